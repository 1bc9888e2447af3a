"""The one episode loop: problems times samples, played concurrently by a policy, each at its own pace."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from envs.environment import Episode, Message, Setting
from envs.problem import Problem
from envs.registry import load_env
from envs.verdict import Ending
from eval.records import EpisodeRecord


@dataclass(frozen=True, slots=True)
class Completion:
    """One reply of a policy.

    Attributes:
        text: What the environment reads.
        truncated: Whether a token limit cut it.
        spent: Whether the episode's tokens are spent with it: it ends here, truncated where it is not over by itself.
        prompt_tokens, completion_tokens: Lengths in tokens, or None where the policy has no tokens.
    """

    text: str
    truncated: bool = False
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    spent: bool = False


class InfrastructureError(RuntimeError):
    """The policy could not answer for a reason that says nothing about its ability: the episode is counted apart, not scored."""


class OverlongPrompt(ValueError):
    """The context leaves no room for a reply: the episode ends so, and nothing is cut."""


class Session(Protocol):
    """A policy's side of one episode."""

    async def reply(self, messages: list[Message]) -> Completion:
        """Answers the conversation so far."""


class Policy(Protocol):
    """What is evaluated. `session` is called once an episode; only scripted policies look at the episode itself.

    Attributes:
        name: What people call it.
    """

    name: str

    def describe(self) -> dict[str, object]:
        """What the manifest records: the effective settings, JSON values only."""

    def notes(self) -> list[str]:
        """What people should know before they pay for the run or read its scores, one line each."""
        return []

    def check_prompts(self, prompts: Iterable[Sequence[Message]]) -> list[str]:
        """Looks at every episode's first prompt; gives notes like `notes`. Raises ValueError where the run cannot be as asked."""
        return []

    def session(self, episode: Episode, seed: str) -> Session:
        """The policy's side of one episode; `seed` names the random stream of whatever it draws."""

    async def close(self) -> None:
        """Frees what the policy holds."""


@dataclass(frozen=True, slots=True)
class Task:
    """One episode to play: a problem, and which of its samples this is."""

    problem: Problem
    sample: int = 0

    @property
    def key(self) -> str:
        return f"{self.problem.id}/{self.sample}"


async def play(task: Task, setting: Setting, policy: Policy, seed: int = 0, token_limit: int | None = None) -> EpisodeRecord:
    """Plays one episode to its end, or to the reply with which it has spent `token_limit` tokens.

    Raises:
        ValueError: Where there is a token limit and the policy does not count tokens.
    """
    episode = load_env(task.problem.env).start(task.problem, setting)
    session = policy.session(episode, f"{seed}/{task.key}")
    started = time.monotonic()
    transcript: list[Message] = []
    seen: list[Message] = []  # the context of the turn before, with its reply
    prompt_tokens: list[int | None] = []
    completion_tokens: list[int | None] = []
    while not episode.over:
        context = list(episode.messages)
        transcript += context[_common(seen, context) :]
        try:
            completion = await session.reply(context)
        except InfrastructureError as error:
            episode.end(Ending.INFRASTRUCTURE_ERROR)
            transcript.append({"role": "error", "content": str(error)})
            break
        except OverlongPrompt as error:
            episode.end(Ending.OVERLONG_PROMPT)
            transcript.append({"role": "error", "content": str(error)})
            break
        completion_tokens.append(completion.completion_tokens)
        spent = completion.spent or (token_limit is not None and _spent(completion_tokens, policy) >= token_limit)
        text = _storable(completion.text)
        episode.reply(text, truncated=completion.truncated or spent)
        answer: Message = {"role": "assistant", "content": text}
        transcript.append(answer)
        seen = [*context, answer]
        prompt_tokens.append(completion.prompt_tokens)
        if spent and not episode.over:
            episode.end(Ending.TRUNCATED)
    return EpisodeRecord(
        problem=task.problem.to_json(),
        sample=task.sample,
        messages=tuple(transcript),
        prompt_tokens=tuple(prompt_tokens),
        completion_tokens=tuple(completion_tokens),
        verdict=episode.verdict(),
        seconds=round(time.monotonic() - started, 3),
    )


async def play_all(
    tasks: Sequence[Task],
    setting: Setting,
    policy: Policy,
    *,
    concurrency: int,
    on_record: Callable[[EpisodeRecord], None],
    seed: int = 0,
    token_limit: int | None = None,
) -> None:
    """Plays all tasks, at most `concurrency` at a time, and hands over each record as its episode ends.

    The first exception that `play` or `on_record` raises, such as a full disk, ends everything and is raised as it is.
    """
    waiting = iter(tasks)

    async def worker() -> None:
        for task in waiting:
            on_record(await play(task, setting, policy, seed, token_limit))

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(concurrency, len(tasks))):
                group.create_task(worker())
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None


def _storable(text: str) -> str:
    """`text` with � for each half of a surrogate pair, as a server's JSON may hold where an emoji was cut: no file could take it."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _common(before: Sequence[Message], after: Sequence[Message]) -> int:
    """Length of the common beginning."""
    return next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after)))


def _spent(tokens: Sequence[int | None], policy: Policy) -> int:
    """The tokens of an episode's replies so far."""
    known = [n for n in tokens if n is not None]
    if len(known) < len(tokens):
        raise ValueError(f"{policy.name} does not count its tokens, so a limit of tokens an episode would not be in force: leave it out")
    return sum(known)
