"""Step credit on hand-computed groups, and that it falls on the right tokens and no others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs.environment import Setting
from envs.registry import load_env
from envs.verdict import Verdict
from tmtrain.credit import CreditedStep, Spelling, credited_steps, process, reward_array, step_baseline, token_advantages, token_starts

NAN = float("nan")
PROBLEM = load_env("tag").problem({"m": 2, "rules": {"A": "B", "B": "B", "C": "DCB", "D": "C", "E": "C"}, "init": "ECAEE", "max_steps": 3})
PIECES = ["3[ECAEE]", "2.E:C[AEEC]", "1.A:B[ECB]", "0.E:C[BC]"]


def verdict(reply: str) -> Verdict:
    episode = load_env("tag").start(PROBLEM, Setting("compact"))
    episode.reply(reply)
    return episode.verdict()


def credited(pieces: list[str], terminated: bool = True) -> list[tuple[float, str]]:
    """Reward and text of each credited step, one token a character and one for the terminator."""
    text = "".join(pieces)
    starts = list(range(len(text) + terminated))
    return [(s.reward, text[s.start : s.end] + ("$" if s.end > len(text) else "")) for s in credited_steps(verdict(text), starts)]


def test_a_right_reply_gets_each_step_and_its_end() -> None:
    assert credited(PIECES) == [*((1.0, p) for p in PIECES), (1.0, "$")]


def test_after_the_first_wrong_step_only_the_end_gets_credit() -> None:
    assert credited([*PIECES[:2], "1.A:B[ECC]", "0.E:C[CC]"]) == [(1.0, PIECES[0]), (1.0, PIECES[1]), (0.0, "1.A:B[ECC]"), (1.0, "$")]


def test_stopping_too_early_falls_on_the_terminator() -> None:
    assert credited(PIECES[:2]) == [(1.0, PIECES[0]), (1.0, PIECES[1]), (0.0, "$")]


def test_going_on_falls_on_what_was_too_much() -> None:
    assert credited([*PIECES, "0.B:B[B]"])[-1] == (0.0, "0.B:B[B]$")


def test_an_unreadable_step_is_wrong_and_is_its_own_text() -> None:
    assert credited([*PIECES[:2], "1.A:B[EC?]", PIECES[3]])[-2:] == [(0.0, "1.A:B[EC?]"), (1.0, "$")]


def test_a_cut_reply_did_not_end_right() -> None:
    episode = load_env("tag").start(PROBLEM, Setting("compact"))
    episode.reply("".join(PIECES[:-1]) + "0.E:C[B", truncated=True)
    assert credited_steps(episode.verdict(), range(60))[-1].reward == 0.0


def test_a_reply_that_says_nothing_is_one_wrong_step() -> None:
    assert credited(["hello"]) == [(0.0, "hello$")]
    assert credited([]) == [(0.0, "$")]


def array(*rows: list[float]) -> np.ndarray:
    return reward_array([list(enumerate(row)) for row in rows])


def test_step_baseline_by_hand() -> None:
    advantages = step_baseline(array([1, 1, 1], [1, 0], [1, 1, 0], [1, 1, 1]), 4)
    assert advantages == pytest.approx(np.array([[0, 0.25, 1 / 3], [0, -0.75, 0], [0, 0.25, -2 / 3], [0, 0.25, 1 / 3]]))


def test_a_reward_that_does_not_apply_leaves_the_baseline_and_gets_nothing() -> None:
    assert step_baseline(array([1.0], [0.0], [NAN], [1.0]), 4)[:, 0] == pytest.approx([1 / 3, -2 / 3, 0, 1 / 3])
    assert process(array([1.0], [NAN]), 2).tolist() == [[0.0], [0.0]]


@pytest.mark.parametrize("estimate", [step_baseline, process])
@given(reward=st.floats(0, 1), lengths=st.lists(st.integers(1, 5), min_size=8, max_size=8))
def test_eight_equal_rewards_give_exactly_zero(estimate, reward: float, lengths: list[int]) -> None:
    assert not estimate(array(*([reward] * n for n in lengths)), 8).any()


def test_process_by_hand() -> None:
    # Rewards 1, 1, 0, 1 have mean 3/4 and deviation sqrt(3)/4; each step gets its own and all later ones.
    up, down = (1 / 4) / (np.sqrt(3) / 4 + 1e-4), (-3 / 4) / (np.sqrt(3) / 4 + 1e-4)
    assert process(array([1, 1, 0], [1]), 2) == pytest.approx(np.array([[2 * up + down, up + down, down], [up, 0, 0]]))


def test_groups_do_not_see_each_other() -> None:
    assert step_baseline(array([1], [0], [1], [1]), 2).tolist() == [[0.5], [-0.5], [0.0], [0.0]]
    with pytest.raises(ValueError, match="3 rollouts are not whole groups of 2"):
        step_baseline(array([1], [0], [1]), 2)


@given(st.lists(st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=6), min_size=2, max_size=8))
def test_step_baseline_sums_to_zero_at_every_step(rewards: list[list[float]]) -> None:
    advantages = step_baseline(array(*rewards), len(rewards))
    assert advantages.sum(axis=0) == pytest.approx(np.zeros(advantages.shape[1]), abs=1e-9)


def test_a_wrong_step_in_the_middle_moves_only_its_own_tokens() -> None:
    """Among four rollouts one errs at step 2: of all tokens of all rollouts, only those of step 2 move."""
    texts = [PIECES, PIECES, PIECES, [*PIECES[:2], "1.A:B[ECC]", "0.E:C[CC]"]]
    steps = [credited_steps(verdict("".join(t)), range(len("".join(t)) + 1)) for t in texts]
    rewards = reward_array([[(s.index, s.reward) for s in own] for own in steps])
    advantages = token_advantages(steps, step_baseline(rewards, 4), 60)
    first, length = len("".join(PIECES[:2])), len("1.A:B[ECC]")
    assert (advantages[:3, first : first + length] == np.float32(0.25)).all() and (
        advantages[3, first : first + length] == np.float32(-0.75)
    ).all()
    advantages[:, first : first + length] = 0
    assert not advantages.any(), "steps that the whole group gets right, and what follows an error, must not move"


def test_tokens_outside_of_steps_and_padding_stay_zero() -> None:
    laid = token_advantages([[CreditedStep(0, 1.0, 2, 4)], []], np.array([[0.5], [0.7]]), 6)
    assert laid.tolist() == [[0, 0, 0.5, 0.5, 0, 0], [0] * 6]


class Pieces:
    """A tokenizer whose token i decodes to piece i; bytes that are no whole character decode to the replacement character."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = pieces

    def decode(self, ids: list[int], skip_special_tokens: bool) -> str:
        return b"".join(self.pieces[i] for i in ids).decode(errors="replace")


@pytest.mark.parametrize(
    ("pieces", "starts"),
    [
        ([b"ab", b"c", b"", b"de"], [0, 2, 3, 3]),
        ([b"a", "α".encode()[:1], "α".encode()[1:], b"b"], [0, 1, 1, 2]),
        ([], []),
    ],
)
def test_token_starts(pieces: list[bytes], starts: list[int]) -> None:
    tokenizer = Pieces(*pieces)
    ids = list(range(len(pieces)))
    assert token_starts(Spelling(tokenizer), ids, tokenizer.decode(ids, skip_special_tokens=True)) == starts
