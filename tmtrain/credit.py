"""Step credit: from the verdict on each step to an advantage for exactly that step's tokens. Pure functions, no model.

Notation: a batch holds B rollouts in groups of G that answer the same prompt. Step rewards are an array r of shape (B, S), NaN where a
rollout has no reward for a step.

Which steps of a single-turn reply have a reward (`credited_steps`): those up to and including the first wrong one, since what follows in
the same reply starts from a wrong state, and its correctness says nothing about the tokens that wrote it. One step more is the end, which
every reply has: right where the reply states as many steps as are due and stops. Its tokens are whatever the reply has after the last of
them: the terminator alone, or what was too much.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from envs.verdict import Ending, Verdict

MODES = ("outcome", "process", "step_baseline")


@dataclass(frozen=True, slots=True)
class CreditedStep:
    """A step that gets credit: its column in the rewards, its reward and its half-open range of completion tokens."""

    index: int
    reward: float
    start: int
    end: int


def credited_steps(verdict: Verdict, token_starts: Sequence[int]) -> list[CreditedStep]:
    """The steps of a single-turn reply that get credit, with their tokens.

    Args:
        verdict: The reply's verdict.
        token_starts: The character at which each completion token begins, ascending; tokens without text, such as the terminator, at the
            text's end begin at its length.

    Returns:
        At most one step more than are due, in order; their token ranges are disjoint and ascending. The end's index is the number of due
        steps.
    """
    due = verdict.due
    begins = sorted(s.span[0] for s in verdict.steps if s.span is not None)
    steps: list[CreditedStep] = []
    at = 0  # first token after the steps seen so far
    wrong = False
    for step in due:
        if step.span is None:
            break
        # A step reaches to where the next one begins: the white space between them is its own.
        following = bisect_right(begins, step.span[0])
        until = begins[following] if following < len(begins) else step.span[1]
        start = max(at, bisect_left(token_starts, step.span[0]))
        at = max(start, bisect_left(token_starts, until))
        if not wrong:
            steps.append(CreditedStep(step.index, float(step.correct), start, at))
        wrong = wrong or not step.correct
    complete = all(s.span is not None for s in due) and verdict.overrun == 0 and verdict.ending is not Ending.TRUNCATED
    return [*steps, CreditedStep(len(due), float(complete), at, len(token_starts))]


def reward_array(rewards: Sequence[Sequence[tuple[int, float]]]) -> np.ndarray:
    """Pairs of (step, reward) for each rollout as an array of shape (B, S), NaN where a rollout has none."""
    width = max((index + 1 for row in rewards for index, _ in row), default=0)
    array = np.full((len(rewards), width), np.nan)
    for row, pairs in enumerate(rewards):
        for index, reward in pairs:
            array[row, index] = reward
    return array


def step_baseline(rewards: np.ndarray, group_size: int) -> np.ndarray:
    """A(b, i) = r(b, i) minus the mean of r(·, i) over the group's rollouts that have a reward for step i.

    The baseline is that of turn-level GRPO (as in MT-GRPO, arXiv 2505.11821), taken for each step. Each step is judged by its own reward
    only. That is unbiased where a step's reward does not depend on the choices before it other than by whether there is one; it leaves
    out what a step does to the chance of later ones, so it is myopic by design, and in return a step that the whole group gets right, or
    wrong, adds no noise: its advantage is exactly zero. The baseline includes the rollout itself, which shrinks advantages by
    (n - 1)/n among n that have the reward.

    Args:
        rewards: Shape (B, S), NaN where there is no reward.
        group_size: G, which divides B.

    Returns:
        Shape (B, S), 0 where there is no reward.
    """
    groups = _groups(rewards, group_size)
    known = ~np.isnan(groups)
    count = np.maximum(known.sum(axis=1, keepdims=True), 1)
    mean = np.where(known, groups, 0).sum(axis=1, keepdims=True) / count
    # Equal rewards must give exactly zero, which a rounded mean would not.
    low = np.where(known, groups, np.inf).min(axis=1, keepdims=True)
    high = np.where(known, groups, -np.inf).max(axis=1, keepdims=True)
    return np.where(known & (low < high), groups - mean, 0.0).reshape(rewards.shape)


def process(rewards: np.ndarray, group_size: int) -> np.ndarray:
    """A(b, i) = sum over j >= i of (r(b, j) - mean) / std, mean and std over all step rewards of the group.

    Process supervision of GRPO (DeepSeekMath, arXiv 2402.03300, section 4.1.3). Biased: one mean for all steps is no baseline of the
    reward to go, so where most steps are right, replies with more steps get larger advantages whatever they say. A group without
    variance gives exactly zero. Arguments and result as for `step_baseline`.
    """
    normed = np.zeros(rewards.shape)
    for start, group in enumerate(_groups(rewards, group_size)):
        known = group[~np.isnan(group)]
        if known.size and known.min() < known.max():  # asked of the values: a rounded deviation need not be zero
            rows = slice(start * group_size, (start + 1) * group_size)
            normed[rows] = np.nan_to_num((group - known.mean()) / (known.std() + 1e-4))
    return np.where(np.isnan(rewards), 0.0, np.cumsum(normed[:, ::-1], axis=1)[:, ::-1])


def token_advantages(steps: Sequence[Sequence[CreditedStep]], advantages: np.ndarray, width: int) -> np.ndarray:
    """Lays step advantages of shape (B, S) on tokens: shape (B, width), zero on every token that belongs to no credited step."""
    out = np.zeros((len(steps), width), dtype=np.float32)
    for row, own in enumerate(steps):
        for step in own:
            out[row, step.start : step.end] = advantages[row, step.index]
    return out


class Spelling(dict[int, str]):
    """The text of each token by itself, without special ones: decoded once, when it is first asked for."""

    def __init__(self, tokenizer: Any) -> None:
        super().__init__()
        self.tokenizer = tokenizer

    def __missing__(self, token: int) -> str:
        self[token] = text = self.tokenizer.decode([token], skip_special_tokens=True)
        return text


def token_starts(spelling: Spelling, ids: Sequence[int], text: str) -> list[int]:
    """Where each sampled token begins in `text`, the completion decoded without special tokens.

    Found from the sampled ids, never by tokenizing the text again, which may cut it differently. Tokens are decoded one by one where
    that gives the text, else with the tokens before them, since a token may hold part of a character.
    """
    pieces = [spelling[i] for i in ids]
    if "".join(pieces) == text:
        return [0, *accumulate(map(len, pieces))][: len(ids)]
    tokenizer = spelling.tokenizer
    starts, before, done, at = [], 0, 0, 0
    for i in range(len(ids)):
        starts.append(at)
        old = tokenizer.decode(ids[before:done], skip_special_tokens=True)
        new = tokenizer.decode(ids[before : i + 1], skip_special_tokens=True)
        if len(new) > len(old) and not new.endswith("\ufffd"):
            at, before, done = at + len(new) - len(old), done, i + 1
    return starts


def _groups(rewards: np.ndarray, group_size: int) -> np.ndarray:
    """Shape (B / G, G, S)."""
    if group_size < 1 or len(rewards) % group_size:
        raise ValueError(f"{len(rewards)} rollouts are not whole groups of {group_size}")
    return rewards.reshape(-1, group_size, rewards.shape[1])
