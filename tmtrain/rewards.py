"""Rewards from the environment's verdict, as TRL reward functions: one for each part, so that TRL weighs and logs them apart."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from envs.dataset import parse_problem
from envs.environment import Setting
from envs.registry import load_env
from envs.verdict import Ending, Kind, Verdict

RewardFunction = Callable[..., list[float]]


def step_reward(verdict: Verdict) -> float:
    """The share of due steps that are correct."""
    return verdict.step_accuracy


def success_reward(verdict: Verdict) -> float:
    """1 where the episode succeeds, else 0."""
    return float(verdict.success)


def format_reward(verdict: Verdict) -> float:
    """The share of steps that are due and readable, among all that are due or were stated after the end: 1 for a well-formed reply."""
    readable = sum(s.kind not in (Kind.MISSING, Kind.UNPARSED, Kind.INVALID) for s in verdict.due)
    return readable / len(verdict.steps) if verdict.steps else 0.0


PARTS: dict[str, Callable[[Verdict], float]] = {"step": step_reward, "success": success_reward, "format": format_reward}


def reward_functions(setting: Setting, stop_ids: Sequence[int]) -> list[RewardFunction]:
    """TRL reward functions in the order of `PARTS`, for rows with a `problem` column.

    A completion without one of `stop_ids` at its end was cut. Each reply is checked once, however many parts read it; the shares of
    endings are logged beside the rewards.
    """
    stops = frozenset(stop_ids)
    check = lru_cache(maxsize=4096)(lambda problem, reply, cut: _verdict(problem, reply, cut, setting))

    def make(name: str, part: Callable[[Verdict], float]) -> RewardFunction:
        def reward(
            completions: Sequence[Any], problem: Sequence[str], completion_ids: Sequence[Sequence[int]], log_metric: Any = None, **_: Any
        ) -> list[float]:
            verdicts = [
                check(p, _text(c), not ids or ids[-1] not in stops) for p, c, ids in zip(problem, completions, completion_ids, strict=True)
            ]
            if log_metric is not None and name == "step":
                endings = Counter(v.ending for v in verdicts)
                for ending in (Ending.COMPLETED, Ending.WRONG, Ending.TRUNCATED, Ending.NO_ANSWER):
                    log_metric(f"endings/{ending.value}", endings[ending] / len(verdicts))
                log_metric("overrun", sum(v.overrun > 0 for v in verdicts) / len(verdicts))
            return [part(v) for v in verdicts]

        reward.__name__ = name
        return reward

    return [make(name, part) for name, part in PARTS.items()]


def _verdict(problem: str, reply: str, cut: bool, setting: Setting) -> Verdict:
    parsed = parse_problem(json.loads(problem))
    episode = load_env(parsed.env).start(parsed, setting)
    episode.reply(reply, truncated=cut)
    return episode.verdict()


def _text(completion: Any) -> str:
    return completion if isinstance(completion, str) else completion[0]["content"]
