"""Scripted policies, which need no model: `expert`, `random`, `noisy:P`, `replay:FILE` and `weak:NAME`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from envs.environment import Episode, Message
from envs.problem import stream
from envs.verdict import Ending
from eval.episodes import Completion, InfrastructureError, OverlongPrompt, Policy, Session
from eval.published import read_published
from eval.records import SAMPLES, EpisodeRecord, read_records
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


@dataclass(frozen=True, slots=True)
class _Stored:
    """What a file holds of one episode: its replies, and with what it ended where none came after them."""

    replies: Sequence[Completion]
    error: InfrastructureError | OverlongPrompt | None = None

    @classmethod
    def of(cls, record: EpisodeRecord) -> _Stored:
        """All of a record that the verdict depends on, and its tokens."""
        ending, texts = record.verdict.ending, record.replies
        replies = [
            Completion(text, prompt_tokens=prompt, completion_tokens=completion)
            for text, prompt, completion in zip(
                texts, _each(record.prompt_tokens, texts), _each(record.completion_tokens, texts), strict=True
            )
        ]
        if replies and ending is Ending.TRUNCATED:
            replies[-1] = replace(replies[-1], truncated=True, spent=True)
        reason = "".join(m["content"] for m in record.messages if m["role"] == "error")
        if ending is Ending.OVERLONG_PROMPT:
            return cls(replies, OverlongPrompt(reason))
        return cls(replies, InfrastructureError(reason) if ending is Ending.INFRASTRUCTURE_ERROR else None)


def _each(tokens: Sequence[int | None], texts: Sequence[str]) -> Sequence[int | None]:
    """The length of each reply, or of its context; None for all where a record does not have one for each."""
    return tokens if len(tokens) == len(texts) else [None] * len(texts)


class _Replay(Session):
    def __init__(self, stored: _Stored, missing: str) -> None:
        self._replies, self._error = iter(stored.replies), stored.error or InfrastructureError(missing)

    async def reply(self, messages: list[Message]) -> Completion:
        if (completion := next(self._replies, None)) is None:
            raise self._error
        return completion


class ReplayPolicy(Policy):
    """Answers what a file holds: a run's `samples.jsonl`, or answers in the published format.

    In the run's own setting its episodes end as they did: cut replies are cut, prompts that were too long are, and what got no answer
    gets none.
    """

    def __init__(self, path: str) -> None:
        """Raises ValueError where the file cannot be read."""
        self.name = f"replay:{path}"
        source = Path(path)
        if source.is_dir() or source.name == SAMPLES:
            records = read_records(source if source.is_dir() else source.parent)
            self._stored = {record.key: _Stored.of(record) for record in records}
        else:
            answers = read_published(path)
            self._stored = {f"{a.problem.id}/0": _Stored([Completion(a.reply, completion_tokens=a.tokens)]) for a in answers}

    def describe(self) -> dict[str, object]:
        return {"backend": "scripted", "policy": self.name}

    def session(self, episode: Episode, seed: str) -> Session:
        key = seed.partition("/")[2]
        return _Replay(self._stored.get(key, _Stored(())), f"{self.name} holds no (further) reply for {key}")

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
