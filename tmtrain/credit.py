"""Step credit: from the verdict on each step to an advantage for exactly that step's tokens. Pure functions, no model.

Notation: a batch holds B rollouts in groups of G that answer the same prompt; rollout b has the step rewards r(b, 0), r(b, 1), …, ragged.

Which steps count (`credited_steps`). Steps up to and including the first wrong one of a reply: what follows in the same reply starts from a
wrong state, so its correctness says nothing about the tokens that wrote it. In a multi-turn world every action is a turn of its own, and
all count until the goal is out of reach. A step that is left out counts as wrong, and its tokens are whatever the reply has after the
step before, its terminator if nothing else: this is what stopping too early is punished by. A reply whose steps are all correct has one
step more, its end: right where it ends there, wrong where it goes on.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from envs.verdict import Kind, Verdict

MODES = ("outcome", "process", "step_baseline")


@dataclass(frozen=True, slots=True)
class CreditedStep:
    """A step that gets credit: its reward and its half-open range of completion tokens."""

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
        At most one step more than are due, in order; their token ranges are disjoint and ascending.
    """
    size = len(token_starts)
    begins = sorted(s.span[0] for s in verdict.steps if s.span is not None)
    steps: list[CreditedStep] = []
    at = 0  # first token that no credited step has taken
    for step in verdict.due:
        if step.span is None:
            return [*steps, CreditedStep(0.0, at, size)]
        # A step reaches to where the next one begins: the white space between them is its own.
        following = bisect_right(begins, step.span[0])
        until = begins[following] if following < len(begins) else step.span[1]
        start = max(at, bisect_left(token_starts, step.span[0]))
        at = max(start, bisect_left(token_starts, until))
        steps.append(CreditedStep(float(step.correct), start, at))
        if not step.correct:
            return steps
    overrun = any(s.kind is Kind.OVERRUN for s in verdict.steps)
    return [*steps, CreditedStep(0.0 if overrun else 1.0, at, size)]


def step_baseline(rewards: Sequence[Sequence[float]], group_size: int) -> list[list[float]]:
    """A(b, i) = r(b, i) minus the mean of r(·, i) over the group's rollouts that reached step i.

    The baseline is that of turn-level GRPO (as in MT-GRPO, arXiv 2505.11821), taken for each step. Each step is judged by its own reward
    only. That is unbiased where a step's reward does not depend on the choices before it other than by whether it is reached; it leaves
    out what a step does to the chance of later ones, so it is myopic by design, and in return a step that the whole group gets right, or
    wrong, adds no noise: its advantage is exactly zero. The baseline includes the rollout itself, which shrinks advantages by
    (n - 1)/n among n that reached the step.

    Args:
        rewards: B lists of step rewards; NaN where a reward does not apply: it leaves the mean and gets advantage 0.
        group_size: G, which divides B.

    Returns:
        B lists of the same lengths.
    """
    return [row for group in _groups(rewards, group_size) for row in _centred_by_step(group)]


def process(rewards: Sequence[Sequence[float]], group_size: int) -> list[list[float]]:
    """A(b, i) = sum over j >= i of (r(b, j) - mean) / std, mean and std over all step rewards of the group.

    Process supervision of GRPO (DeepSeekMath, arXiv 2402.03300, section 4.1.3). Biased: one mean for all steps is no baseline of the
    reward to go, so where most steps are right, longer replies get larger advantages whatever they say. A group without variance gives
    exactly zero.
    """
    advantages = []
    for group in _groups(rewards, group_size):
        known = np.array([r for row in group for r in row if not np.isnan(r)])
        varied = known.size > 0 and known.min() < known.max()  # asked of the values: a rounded deviation need not be zero
        for row in group:
            normed = np.nan_to_num((np.array(row, float) - known.mean()) / (known.std() + 1e-4)) if varied else np.zeros(len(row))
            advantages.append(np.cumsum(normed[::-1])[::-1].tolist())
    return advantages


def token_advantages(steps: Sequence[Sequence[CreditedStep]], advantages: Sequence[Sequence[float]], width: int) -> np.ndarray:
    """Lays step advantages on tokens: shape (B, width), zero on every token that belongs to no credited step."""
    out = np.zeros((len(steps), width), dtype=np.float32)
    for row, (own, values) in enumerate(zip(steps, advantages, strict=True)):
        for step, value in zip(own, values, strict=True):
            out[row, step.start : step.end] = value
    return out


def token_starts(tokenizer: Any, ids: Sequence[int], text: str) -> list[int]:
    """Where each sampled token begins in `text`, the completion decoded without special tokens.

    Found from the sampled ids, never by tokenizing the text again, which may cut it differently. Tokens are decoded one by one where
    that gives the text, else with the tokens before them, since a token may hold part of a character.
    """
    pieces = [tokenizer.decode([i], skip_special_tokens=True) for i in ids]
    if "".join(pieces) == text:
        return [0, *np.cumsum([len(p) for p in pieces]).tolist()][: len(ids)]
    starts, before, done, at = [], 0, 0, 0
    for i in range(len(ids)):
        starts.append(at)
        old = tokenizer.decode(ids[before:done], skip_special_tokens=True)
        new = tokenizer.decode(ids[before : i + 1], skip_special_tokens=True)
        if len(new) > len(old) and not new.endswith("\ufffd"):
            at, before, done = at + len(new) - len(old), done, i + 1
    return starts


def _groups(rewards: Sequence[Sequence[float]], group_size: int) -> list[Sequence[Sequence[float]]]:
    if group_size < 1 or len(rewards) % group_size:
        raise ValueError(f"{len(rewards)} rollouts are not whole groups of {group_size}")
    return [rewards[i : i + group_size] for i in range(0, len(rewards), group_size)]


def _centred_by_step(group: Sequence[Sequence[float]]) -> list[list[float]]:
    out: list[list[float]] = [[] for _ in group]
    for i in range(max(map(len, group))):
        known = [row[i] for row in group if len(row) > i and not np.isnan(row[i])]
        # Equal rewards must give exactly zero, which a rounded mean would not.
        mean = known[0] if known and min(known) == max(known) else float(np.mean(known)) if known else 0.0
        for row, own in zip(group, out, strict=True):
            if len(row) > i:
                own.append(0.0 if np.isnan(row[i]) else row[i] - mean)
    return out
