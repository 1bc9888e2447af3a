"""Success against the horizon: the fit, and what independent errors would give."""

from __future__ import annotations

import random

import numpy as np
import pytest
from scipy.optimize import minimize

from envs.suites import load_suite
from eval.oracles.analysis import _paths
from eval.oracles.horizons import _RIDGE, even_odds, independence, shown, step_accuracy, success_rate
from tests.eval.agents import played, record

HORIZONS = (2, 4, 8, 16, 32)


def drawn(half: float, slope: float, count: int, seed: int) -> list:
    rng = random.Random(seed)
    return [record(f"{h}-{i}", rng.random() < 1 / (1 + (h / half) ** slope), horizon=h) for h in HORIZONS for i in range(count)]


def test_the_fit_is_the_maximum_of_the_penalised_likelihood() -> None:
    records = drawn(9, 2, 40, seed=1)
    x = np.log([r.problem["horizon"] for r in records])
    y = np.array([r.verdict.success for r in records], float)
    points = np.unique(x)
    z = (x - points.mean()) / points.std()

    def loss(ab: np.ndarray) -> float:
        logit = ab[0] + ab[1] * z
        return float(np.sum(np.logaddexp(0, logit) - y * logit) + _RIDGE / 2 * (ab @ ab))

    a, b = minimize(loss, [0.0, 0.0], method="BFGS", options={"gtol": 1e-8}).x
    assert even_odds(records)["value"] == pytest.approx(np.exp(points.mean() - points.std() * a / b), rel=1e-4)


def test_the_interval_covers_the_true_horizon() -> None:
    covered = 0
    for seed in range(40):
        fit = even_odds(drawn(9, 2, 20, seed))
        covered += (fit["low"] or 0) <= 9 <= (fit["high"] or 1000)
    assert covered >= 33, "the 0.1 % quantile of a binomial with 40 trials of 95 %"


def test_nothing_is_said_beyond_what_was_played() -> None:
    always, never = ([record(f"{h}-{i}", won, horizon=h) for h in HORIZONS for i in range(9)] for won in (True, False))
    assert even_odds(always)["beyond"] == "above" and shown(even_odds(always)) == "> 32"
    assert even_odds(never)["beyond"] == "below" and shown(even_odds(never)) == "< 2"
    rising = [record(f"{h}-{i}", h > 8, horizon=h) for h in HORIZONS for i in range(9)]
    assert even_odds(rising)["value"] is None
    (one,) = {even_odds([record(str(i), i < 5, horizon=7) for i in range(9)])["value"]}
    assert one is None


def test_a_step_is_found_between_its_two_sides() -> None:
    """Horizons that part successes from failures have no finite fit without the ridge."""
    fit = even_odds([record(f"{h}-{i}", h <= 8, horizon=h) for h in HORIZONS for i in range(9)])
    assert 8 < fit["value"] < 16 and 8 <= fit["low"] <= fit["value"] <= fit["high"] <= 16
    assert shown(fit).startswith(f"{fit['value']:.1f} [")


def test_independent_errors_that_cannot_be_made_good_leave_no_gap_on_track() -> None:
    """LUMINA's own p, all right steps over all steps, is too low there: what follows the first error counts as wrong."""
    problems = [p for p in load_suite("lumina-listworld").problems() if p.horizon == 11]
    records = [r for seed in range(12) for r in played("noisy:0.1", problems, seed, ["none"]).cells["listworld", "none"]]
    found = independence(records)
    on_track = found["on_track"]
    assert on_track["p"]["value"] == pytest.approx(0.9, abs=0.015)
    assert on_track["gap"]["low"] < 0.01 and on_track["gap"]["high"] > -0.01
    assert on_track["predicted"]["value"] == pytest.approx(on_track["p"]["value"] ** 11)
    assert found["step_accuracy"]["p"]["value"] < on_track["p"]["value"] - 0.05 and found["step_accuracy"]["gap"]["low"] > 0.1


def test_where_errors_can_be_made_good_success_lies_above() -> None:
    problems = [p for p in load_suite("lumina-gridworld").problems() if 10 <= p.horizon <= 20]
    found = independence(played("noisy:0.1", problems, 0, ["none"]).cells["gridworld", "none"])
    assert found["on_track"]["gap"]["low"] > 0.1


def test_rates_of_one_and_of_several_samples() -> None:
    once = [record(str(i), i < 3, steps="ccw" if i else "ccc") for i in range(4)]
    assert success_rate(once).value == 0.75 and step_accuracy(once).value == pytest.approx(9 / 12)
    again = [record(str(i % 2), i < 2, sample=i // 2) for i in range(4)]
    assert success_rate(again).value == 0.5 and success_rate(again).n == 2


def test_paths_and_errors() -> None:
    records = [
        record("a", True, horizon=4, steps="cccc"),
        record("b", True, horizon=4, steps="cwcccc"),
        record("c", False, horizon=4, steps="ciwdd"),
        record("d", False, horizon=4, steps="wdd"),
    ]
    found = _paths(records)
    assert found["length_ratio"]["value"] == pytest.approx((1 + 1.5) / 2) and found["length_ratio"]["n"] == 2
    assert found["recovery"]["value"] == pytest.approx(1 / 3)
    assert found["steps"] == {"correct": 10, "wrong": 3, "invalid": 1, "dead": 4}
    assert found["first_errors"] == {"wrong": 2, "invalid": 1}
    assert found["endings"] == {"completed": 2, "wrong": 2}
    clean = _paths(records[:1])
    assert clean["recovery"]["value"] is None and clean["first_errors"] == {}
