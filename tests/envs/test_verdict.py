"""What a verdict says about its steps, and its way through JSON."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from envs.verdict import Ending, Kind, StepVerdict, Verdict


def steps(*kinds: Kind) -> tuple[StepVerdict, ...]:
    return tuple(StepVerdict(i, kind is Kind.CORRECT, kind) for i, kind in enumerate(kinds))


def test_overrun_steps_are_not_due_and_undo_only_strictness() -> None:
    verdict = Verdict(steps(Kind.CORRECT, Kind.CORRECT, Kind.OVERRUN), True, Ending.COMPLETED)
    assert len(verdict.due) == 2
    assert (verdict.overrun, verdict.strict, verdict.step_accuracy, verdict.first_error) == (1, False, 1.0, None)


def test_first_error_and_accuracy() -> None:
    verdict = Verdict(steps(Kind.CORRECT, Kind.MISSING, Kind.WRONG, Kind.CORRECT), False, Ending.WRONG)
    assert (verdict.first_error, verdict.step_accuracy, verdict.strict) == (1, 0.5, False)


def test_no_steps() -> None:
    verdict = Verdict((), False, Ending.NO_ANSWER)
    assert (verdict.step_accuracy, verdict.first_error, verdict.overrun) == (0.0, None, 0)


def test_only_two_endings_are_not_scored() -> None:
    assert {e for e in Ending if not e.scored} == {Ending.INFRASTRUCTURE_ERROR, Ending.UNREACHABLE}


step_verdicts = st.builds(
    StepVerdict,
    index=st.integers(0, 99),
    correct=st.booleans(),
    kind=st.sampled_from(Kind),
    span=st.none() | st.tuples(st.integers(0, 50), st.integers(50, 99)),
    faithful=st.none() | st.booleans(),
    turn=st.integers(0, 9),
)


@given(st.builds(Verdict, steps=st.lists(step_verdicts, max_size=5).map(tuple), success=st.booleans(), ending=st.sampled_from(Ending)))
def test_verdicts_round_trip_through_json(verdict: Verdict) -> None:
    assert Verdict.from_json(json.loads(json.dumps(verdict.to_json()))) == verdict


def test_stored_verdicts_may_lack_what_has_a_default() -> None:
    assert StepVerdict.from_json({"index": 1, "correct": True, "kind": "correct"}) == StepVerdict(1, True, Kind.CORRECT)
