"""Scores on hand-computed verdicts."""

from __future__ import annotations

import pytest

from envs.verdict import Ending, Kind, StepVerdict, Verdict
from eval.metrics import score


def verdict(marks: str, *, overrun: int = 0, ending: Ending | None = None, faithful: str | None = None) -> Verdict:
    """`+` is a correct step, `-` a wrong one."""
    steps = [
        StepVerdict(i, m == "+", Kind.CORRECT if m == "+" else Kind.WRONG, faithful=None if faithful is None else faithful[i] == "+")
        for i, m in enumerate(marks)
    ]
    steps += [StepVerdict(len(marks) + i, False, Kind.OVERRUN) for i in range(overrun)]
    success = "-" not in marks
    return Verdict(tuple(steps), success, ending or (Ending.COMPLETED if success else Ending.WRONG))


def test_accuracy_at_a_step_has_the_survivors_in_its_denominator() -> None:
    scores = score([verdict("++"), verdict("+-+"), verdict("+---")], ["a", "b", "c"])
    assert [(a.correct, a.total) for a in scores.acc] == [(3, 3), (1, 3), (1, 2), (0, 1)]


def test_step_weighted_accuracy_by_hand() -> None:
    # ACC = 1, 1/3, 1/2, 0
    scores = score([verdict("++"), verdict("+-+"), verdict("+---")], ["a", "b", "c"])
    assert scores.swa_uniform.value == pytest.approx((1 + 1 / 3 + 1 / 2 + 0) / 4)
    assert scores.swa_linear.value == pytest.approx((1 * 1 + 2 / 3 + 3 / 2 + 0) / (1 + 2 + 3 + 4))
    without_initial = score([verdict("++"), verdict("+-+"), verdict("+---")], ["a", "b", "c"], first_step=1)
    assert without_initial.swa_uniform.value == pytest.approx((1 / 3 + 1 / 2 + 0) / 3)
    assert without_initial.swa_linear.value == pytest.approx((1 / 3 + 2 / 2 + 0) / (1 + 2 + 3))


def test_pass_strict_pass_and_first_error() -> None:
    scores = score([verdict("++"), verdict("++", overrun=2), verdict("+-+"), verdict("--")], ["a", "b", "c", "d"])
    assert scores.success_rate.value == 0.5
    assert scores.strict_success_rate.value == 0.25
    assert scores.mean_first_error == pytest.approx(0.5)
    assert scores.step_accuracy.value == pytest.approx(6 / 9)


def test_faithfulness_counts_transitions_only() -> None:
    scores = score([verdict("+--", faithful="+-+")], ["a"])
    assert scores.faithfulness.value == pytest.approx(0.5)


def test_infrastructure_errors_and_unreachable_problems_leave_every_denominator() -> None:
    bad = [verdict("--", ending=Ending.INFRASTRUCTURE_ERROR), verdict("--", ending=Ending.UNREACHABLE)]
    scores = score([verdict("++"), *bad], ["a", "b", "c"])
    assert scores.episodes == 1 and scores.success_rate.value == 1.0 and scores.step_accuracy.value == 1.0
    assert scores.endings == {"completed": 1, "unreachable": 1, "infrastructure_error": 1}


def test_truncated_and_unanswered_episodes_stay_in() -> None:
    scores = score([verdict("++"), verdict("--", ending=Ending.TRUNCATED), verdict("--", ending=Ending.NO_ANSWER)], ["a", "b", "c"])
    assert scores.success_rate.value == pytest.approx(1 / 3)


def test_samples_of_one_problem_are_not_counted_as_independent() -> None:
    verdicts = [verdict("++"), verdict("+-")] * 50
    apart = score(verdicts, [str(i) for i in range(100)])
    together = score(verdicts, [("a", "b")[i % 2] for i in range(100)])
    assert apart.success_rate.value == together.success_rate.value == 0.5
    assert together.success_rate.high - together.success_rate.low > 3 * (apart.success_rate.high - apart.success_rate.low)


def test_pass_at_k_over_problems_by_hand() -> None:
    """Problem a: 1 of 3 right, problem b: 3 of 3; pass@1 = 2/3, pass@2 = (2/3 + 1) / 2, pass@3 = 1."""
    marks = ["+", "-", "-", "+", "+", "+"]
    scores = score([verdict(m) for m in marks], list("aaabbb"))
    assert {k: rate.value for k, rate in scores.pass_at_k.items()} == pytest.approx({1: 2 / 3, 2: 5 / 6, 3: 1.0})
    assert score([verdict("+"), verdict("-")], ["a", "b"]).pass_at_k == {}


def test_nothing_scored_gives_no_rates_and_no_error() -> None:
    scores = score([], [])
    assert scores.episodes == 0 and scores.success_rate.value is None and scores.swa_uniform.value is None and scores.acc == ()
