"""From statements to kinds, endings and faithfulness."""

from __future__ import annotations

import pytest

from envs.tag.system import TagSystem, simulate
from envs.tag.verify import verify_reply
from envs.verdict import Ending, Kind, Verdict

SYSTEM = TagSystem.from_payload({"rules": {"A": "B", "B": "B", "C": "DCB", "D": "C", "E": "C"}, "init": "ECAEE"})
STATES = ["E C A E E", "A E E C", "E C B", "B C", "B"]


def verify(*states: str, truncated: bool = False, first: int = 0) -> Verdict:
    reply = "\n".join(f"### step {i}:\n- Queue State: [{s}]" for i, s in enumerate(states, first))
    return verify_reply(SYSTEM, simulate(SYSTEM), reply, truncated=truncated)


def test_right() -> None:
    verdict = verify(*STATES)
    assert verdict.strict
    assert [s.index for s in verdict.steps] == [0, 1, 2, 3, 4]


def test_fresh_and_inherited_errors() -> None:
    """An error is fresh where the state does not follow from the one stated before, and inherited where it does."""
    verdict = verify("E C A E E", "A A E E C", "E E C B", "C B C", "C D C B")
    assert [s.correct for s in verdict.steps] == [True, False, False, False, False]
    assert [s.faithful for s in verdict.steps] == [True, False, True, True, True]


def test_faithfulness_is_unknown_next_to_a_state_that_cannot_be_read() -> None:
    verdict = verify("E C A E E", "A E …", "E C B", "B C", "B")
    assert [s.kind for s in verdict.steps] == [Kind.CORRECT, Kind.UNPARSED, Kind.CORRECT, Kind.CORRECT, Kind.CORRECT]
    assert [s.faithful for s in verdict.steps] == [True, None, None, True, True]


def test_missing_first_state() -> None:
    verdict = verify(*STATES[1:], first=1)
    assert (verdict.steps[0].kind, verdict.steps[0].span) == (Kind.MISSING, None)
    assert verdict.first_error == 0


def test_states_after_the_end_undo_only_strictness() -> None:
    verdict = verify(*STATES, "B", "B")
    assert (verdict.success, verdict.strict, verdict.overrun) == (True, False, 2)
    assert [s.index for s in verdict.steps[5:]] == [5, 6]
    assert all(s.span and not s.correct for s in verdict.steps[5:])


@pytest.mark.parametrize(
    ("states", "truncated", "ending"),
    [
        (STATES, False, Ending.COMPLETED),
        (STATES, True, Ending.COMPLETED),
        (STATES[:3], True, Ending.TRUNCATED),
        (STATES[:3], False, Ending.WRONG),
        ([], False, Ending.NO_ANSWER),
        ([], True, Ending.TRUNCATED),
    ],
)
def test_endings(states: list[str], truncated: bool, ending: Ending) -> None:
    assert verify(*states, truncated=truncated).ending is ending


def test_a_queue_too_short_to_step_is_followed_by_nothing() -> None:
    assert verify(*STATES, "C").steps[5].faithful is False


def test_a_state_cut_by_the_token_limit_is_not_guessed() -> None:
    verdict = verify_reply(SYSTEM, simulate(SYSTEM), "### step 0:\n- Queue State: [E C A E E", truncated=True)
    assert verdict.steps[0].kind is Kind.UNPARSED
