"""Rewards: the parts of the verdict, as TRL calls them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from envs.environment import Setting
from envs.registry import load_env
from envs.verdict import Ending, Kind, StepVerdict, Verdict
from tmtrain.rewards import PARTS, VerdictRewards, format_reward

PROBLEM = load_env("tag").problem({"m": 2, "rules": {"A": "B", "B": "B", "C": "DCB", "D": "C", "E": "C"}, "init": "ECAEE"})
RIGHT = "30[ECAEE]29.E:C[AEEC]28.A:B[ECB]27.E:C[BC]26.B:B[B]"
STOP = 2


def reward(reply: str, *, ended: bool = True, metrics: dict[str, float] | None = None) -> dict[str, float]:
    log: Any = None if metrics is None else metrics.__setitem__
    call = {
        "prompts": [None],
        "completions": [[{"role": "assistant", "content": reply}]],
        "completion_ids": [[7, STOP] if ended else [7, 8]],
        "problem": [json.dumps(PROBLEM.to_json())],
        "trainer_state": None,
        "log_metric": log,
    }
    return {f.__name__: f(**call)[0] for f in VerdictRewards(Setting("compact"), [STOP]).functions}


def test_the_expert_gets_everything() -> None:
    assert reward(RIGHT) == {"step": 1.0, "success": 1.0, "format": 1.0}


def test_a_wrong_step_costs_its_share_and_the_success() -> None:
    assert reward(RIGHT.replace("[ECB]", "[ECC]")) == {"step": pytest.approx(4 / 5), "success": 0.0, "format": 1.0}


def test_an_unreadable_step_costs_format_too() -> None:
    assert reward(RIGHT.replace("[ECB]", "[EC?]")) == {"step": pytest.approx(4 / 5), "success": 0.0, "format": pytest.approx(4 / 5)}


def test_going_on_after_the_end_costs_format_only() -> None:
    assert reward(RIGHT + "25.B:B[B]") == {"step": 1.0, "success": 1.0, "format": pytest.approx(5 / 6)}


def test_endings_are_logged() -> None:
    metrics: dict[str, float] = {}
    reward(RIGHT[:20], ended=False, metrics=metrics)
    assert metrics == {"endings/completed": 0.0, "endings/wrong": 0.0, "endings/truncated": 1.0, "endings/no_answer": 0.0, "overrun": 0.0}


def test_the_parts_are_bounded_and_zero_for_nothing() -> None:
    nothing = Verdict((StepVerdict(0, False, Kind.MISSING),), False, Ending.NO_ANSWER)
    assert {name: part(nothing) for name, part in PARTS.items()} == {"step": 0.0, "success": 0.0, "format": 0.0}
    assert format_reward(Verdict((), False, Ending.UNREACHABLE)) == 0.0
