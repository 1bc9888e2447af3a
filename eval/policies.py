"""Scripted policies, which need no model: `expert`, `random`, `noisy:P`, `replay:FILE` and `weak:NAME`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from envs.environment import Episode, Message
from envs.problem import stream
from eval.episodes import Completion, InfrastructureError, Policy, Session
from eval.published import read_published
from eval.records import SAMPLES, read_records
from eval.weak import WeakPolicy


class _Scripted(Session):
    def __init__(self, answer: Callable[[], str]) -> None:
        self._answer = answer

    async def reply(self, messages: list[Message]) -> Completion:
        return Completion(self._answer())


class ScriptedPolicy(Policy):
    """A policy that answers from the episode itself.

    Args:
        name: As given on the command line.
        rate: Chance of an error at each step, or None for a policy that knows nothing.
    """

    def __init__(self, name: str, rate: float | None) -> None:
        self.name = name
        self._rate = rate

    def describe(self) -> dict[str, object]:
        return {"backend": "scripted", "policy": self.name}

    def session(self, episode: Episode, seed: str) -> Session:
        rng = stream("policy", self.name, seed)
        if self._rate is None:
            return _Scripted(lambda: episode.random(rng))
        if self._rate == 0:
            return _Scripted(episode.expert)
        rate = self._rate
        return _Scripted(lambda: episode.noisy(rng, rate))

    async def close(self) -> None:
        pass


class ReplayPolicy(Policy):
    """Answers what a file holds: a run's `samples.jsonl`, or answers in the published format."""

    def __init__(self, path: str) -> None:
        """Raises ValueError where the file cannot be read."""
        self.name = f"replay:{path}"
        self._replies: dict[str, list[str]] = {}
        source = Path(path)
        if source.is_dir() or source.name == SAMPLES:
            for record in read_records(source if source.is_dir() else source.parent):
                self._replies[record.key] = record.replies
        else:
            for answer in read_published(path):
                self._replies[f"{answer.problem.id}/0"] = [answer.reply]

    def describe(self) -> dict[str, object]:
        return {"backend": "scripted", "policy": self.name}

    def session(self, episode: Episode, seed: str) -> Session:
        key = seed.partition("/")[2]
        replies = iter(self._replies.get(key, []))

        def answer() -> str:
            try:
                return next(replies)
            except StopIteration:
                raise InfrastructureError(f"{self.name} holds no (further) reply for {key}") from None

        return _Scripted(answer)

    async def close(self) -> None:
        pass


def scripted_policy(spec: str) -> Policy | None:
    """The scripted policy that `spec` names, or None where it names a model.

    Raises:
        ValueError: For a `noisy:` without a probability, a `replay:` without a readable file, or a `weak:` agent that is none.
    """
    name, colon, argument = spec.partition(":")
    if spec == "expert":
        return ScriptedPolicy(spec, 0.0)
    if spec == "random":
        return ScriptedPolicy(spec, None)
    if name == "replay" and colon:
        try:
            return ReplayPolicy(argument)
        except (OSError, json.JSONDecodeError) as error:
            raise ValueError(f"cannot replay {argument}: {error}") from None
    if name == "weak" and colon:
        return WeakPolicy(argument)
    if name == "noisy":
        try:
            rate = float(argument)
        except ValueError:
            rate = -1.0
        if not 0 <= rate <= 1:
            raise ValueError(f"{spec!r}: noisy takes a probability of an error a step, such as noisy:0.1")
        return ScriptedPolicy(spec, rate)
    return None
