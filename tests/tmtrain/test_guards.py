"""Runs that go nowhere are stopped, others are left alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("transformers")

from tmtrain.guards import PATIENCE, Guards

FINE = {"reward": 0.5, "frac_reward_zero_std": 0.5, "completions/clipped_ratio": 0.1, "sampling/sampling_logp_difference/mean": 0.01}


def log(guards: Guards, times: int, **values: Any) -> None:
    for step in range(times):
        guards.on_log(None, SimpleNamespace(global_step=step), None, {**FINE, **{k.replace("__", "/"): v for k, v in values.items()}})


FAULTS = [
    ({"frac_reward_zero_std": 1.0}, "rewards were all equal"),
    ({"completions__clipped_ratio": 1.0}, "every completion was cut off"),
    ({"sampling__sampling_logp_difference__mean": 0.25}, "weights are stale"),
]


@pytest.mark.parametrize(("values", "line"), FAULTS)
def test_a_fault_that_stays_stops_the_run(values: dict[str, float], line: str) -> None:
    guards = Guards()
    log(guards, PATIENCE - 1, **values)
    log(guards, 1)
    log(guards, PATIENCE - 1, **values)
    with pytest.raises(ValueError, match=line) as error:
        log(guards, 1, **values)
    assert "\n" not in str(error.value)


def test_other_runs_go_on() -> None:
    guards = Guards()
    log(guards, 3 * PATIENCE)
    log(guards, 3 * PATIENCE, frac_reward_zero_std=1.0, credit__nonzero_tokens=0.1)
    for _ in range(3 * PATIENCE):
        guards.on_log(None, SimpleNamespace(global_step=0), None, {"train_runtime": 1.0})
