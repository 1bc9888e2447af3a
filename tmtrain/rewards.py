"""Rewards from the environment's verdict, as TRL reward functions: one for each part, so that TRL weighs and logs them apart."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from envs.dataset import parse_problem
from envs.environment import Setting
from envs.problem import Problem
from envs.registry import load_env
from envs.verdict import Ending, Kind, Verdict

RewardFunction = Callable[..., list[float | None]]


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


class VerdictRewards:
    """TRL reward functions for rows with a `problem` column, and the verdicts that they came from.

    Multi-turn rollouts are checked as they are played and hand their verdicts over. Each single-turn reply is checked once, however many
    parts read it; the shares of endings are logged beside the rewards.

    Attributes:
        functions: One reward function for each of `PARTS`, in that order.
        latest: Of the rollouts scored last, in their order: the verdict, the reply's text and its token ids.
    """

    def __init__(self, setting: Setting, stop_ids: Sequence[int]) -> None:
        """`stop_ids` are the tokens that end a reply: one without any of them at its end was cut."""
        self._setting, self._stops = setting, frozenset(stop_ids)
        self.functions = [self._function(name, part) for name, part in PARTS.items()]
        self.latest: list[tuple[Verdict, str, Sequence[int]]] = []

    def check(self, problems: Sequence[str], completions: Sequence[Any], completion_ids: Sequence[Sequence[int]]) -> list[Verdict]:
        """The verdicts on a batch; asked again for the same batch, those found before."""
        texts = [_text(c) for c in completions]
        if [(text, ids) for _, text, ids in self.latest] != list(zip(texts, completion_ids, strict=True)):
            parsed = {problem: parse_problem(json.loads(problem)) for problem in set(problems)}  # a group has one problem
            self.latest = [
                (_verdict(parsed[problem], text, not ids or ids[-1] not in self._stops, self._setting), text, ids)
                for problem, text, ids in zip(problems, texts, completion_ids, strict=True)
            ]
        return [verdict for verdict, _, _ in self.latest]

    def _function(self, name: str, part: Callable[[Verdict], float]) -> RewardFunction:
        def reward(
            completions: Sequence[Any],
            problem: Sequence[str],
            completion_ids: Sequence[Sequence[int]],
            verdict: Sequence[Verdict] | None = None,
            log_metric: Any = None,
            **_: Any,
        ) -> list[float | None]:
            if verdict is not None:  # a multi-turn rollout brings its own
                return [part(v) if v.ending.scored else None for v in verdict]
            if name == "step":
                self.latest = []  # a new batch, which may hold the same replies to other problems
            verdicts = self.check(problem, completions, completion_ids)
            if log_metric is not None and name == "step":
                endings = Counter(v.ending for v in verdicts)
                for ending in (Ending.COMPLETED, Ending.WRONG, Ending.TRUNCATED, Ending.NO_ANSWER):
                    log_metric(f"endings/{ending.value}", endings[ending] / len(verdicts))
                log_metric("overrun", sum(v.overrun > 0 for v in verdicts) / len(verdicts))
            return [part(v) for v in verdicts]

        reward.__name__ = name
        return reward


def _verdict(problem: Problem, reply: str, cut: bool, setting: Setting) -> Verdict:
    episode = load_env(problem.env).start(problem, setting)
    episode.reply(reply, truncated=cut)
    return episode.verdict()


def _text(completion: Any) -> str:
    return completion if isinstance(completion, str) else completion[0]["content"]
