"""Multi-turn rollouts for GRPO: the evaluator's episode loop, played on the trainer's own generation.

Tokens that were sampled stay as they were sampled; what the environment says is appended and masked. Every process makes the same number
of generation calls, however unequal its episodes: with weights or engines spread over processes, one call more would hang them all.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from envs.dataset import parse_problem
from envs.environment import Setting
from envs.verdict import Ending, Kind, Verdict
from eval.backends.chat import Chat
from eval.backends.folder import Model
from eval.backends.sampling import Sampling
from eval.backends.tokens import TokenPolicy
from eval.batching import settle
from eval.episodes import OverlongPrompt, Task, play_all
from eval.records import EpisodeRecord
from tmtrain.credit import CreditedStep
from tmtrain.generation import Generate, awake, calls_of


@dataclass(frozen=True, slots=True)
class Turn:
    """One generation call's share of an episode."""

    prompt: list[int]
    reply: list[int]
    logprobs: list[float] | None


@dataclass(frozen=True, slots=True)
class Rollout:
    """An episode as one token sequence.

    Attributes:
        prompt: Token ids of the first prompt.
        completion: What follows: replies as sampled and the environment's messages between them.
        model: For each completion token 1 where the model wrote it, else 0.
        logprobs: Of the model's tokens as sampled, 0.0 on the others; None where the engine gave none.
        turns: The half-open range of completion tokens of each reply.
        verdict: The check.
    """

    prompt: list[int]
    completion: list[int]
    model: list[int]
    logprobs: list[float] | None
    turns: list[tuple[int, int]]
    verdict: Verdict

    def credited(self) -> list[CreditedStep]:
        """Every action with its reward, on the tokens of its reply.

        Later actions count after an error, too, since the state is a real one; but not once the goal is out of reach: there no action is
        right, so its reward says nothing about the tokens that chose it.
        """
        judged = [s for s in self.verdict.due if s.turn < len(self.turns) and s.kind is not Kind.DEAD]
        return [CreditedStep(s.index, float(s.correct), *self.turns[s.turn]) for s in judged]


def join(turns: Sequence[Turn], stops: Sequence[int], verdict: Verdict) -> Rollout:
    """Joins the turns of an episode whose contexts only grew.

    Raises:
        RuntimeError: Where a turn's prompt does not begin with the turn before and its reply: then the tokens trained on would not be
            those that were sampled.
    """
    first = turns[0].prompt
    completion: list[int] = []
    model: list[int] = []
    logprobs: list[float] = []
    spans: list[tuple[int, int]] = []
    for i, turn in enumerate(turns):
        own = len(turn.reply)
        if i + 1 < len(turns):
            begun = len(turn.prompt) + own
            following = turns[i + 1].prompt
            if following[:begun] != [*turn.prompt, *turn.reply]:
                # The reply ended with another terminator than the template's, which stands in its place.
                own -= 1
                if turn.reply[-1] not in stops or following[: begun - 1] != [*turn.prompt, *turn.reply[:-1]]:
                    raise RuntimeError("a turn's context does not begin with the tokens of the turns before: it was rendered anew")
        between = turns[i + 1].prompt[len(turn.prompt) + own :] if i + 1 < len(turns) else []
        spans.append((len(completion), len(completion) + own))
        completion += [*turn.reply[:own], *between]
        model += [1] * own + [0] * len(between)
        logprobs += [*(turn.logprobs or [0.0] * own)[:own], *[0.0] * len(between)]
    known = all(t.logprobs is not None for t in turns)
    return Rollout(first, completion, model, logprobs if known else None, spans, verdict)


class RoundPolicy(TokenPolicy):
    """The trainer's generation as a policy. All episodes that wait are continued together, in rounds that all processes make.

    Args:
        generate: The generation call.
        everywhere: From how many episodes wait here to how many wait in all processes.
        room: Most tokens an episode adds to its first prompt, replies and environment together; None where only the context bounds it.
        sampling: How the generation call decodes, for the records; its `max_tokens` is held here, too.
        context: The longest sequence that the engine takes.
        engine: What generates, for the records.
    """

    backend = "trainer"

    def __init__(
        self,
        chat: Chat,
        stops: Sequence[int],
        generate: Generate,
        everywhere: Callable[[int], int],
        *,
        room: int | None,
        sampling: Sampling,
        context: int | None = None,
        engine: str = "",
    ) -> None:
        super().__init__(Model("the model in training", "the model in training"), chat, sampling, stops, context)
        self._generate, self._everywhere, self._room, self._engine = generate, everywhere, room, engine
        self._waiting: list[tuple[list[int], asyncio.Future[tuple[list[int], list[float] | None]]]] = []
        self.turns: dict[str, list[Turn]] = defaultdict(list)

    def describe(self) -> dict[str, object]:
        return {**super().describe(), "engine": self._engine}

    async def generate(self, prompt: list[int], max_tokens: int, seed: str) -> tuple[list[int], bool]:
        episode = self.turns[seed.rpartition("/")[0]]
        room = max_tokens
        if self._room is not None:
            added = len(prompt) - len(episode[0].prompt) if episode else 0
            room = min(room, self._room - added)
        if room < 1:
            raise OverlongPrompt(f"the episode has used up its {self._room} tokens")
        future: asyncio.Future[tuple[list[int], list[float] | None]] = asyncio.get_running_loop().create_future()
        self._waiting.append((prompt, future))
        reply, logprobs = await future
        reply, logprobs = reply[:room], logprobs and logprobs[:room]
        episode.append(Turn(prompt, reply, logprobs))
        return reply, not reply or reply[-1] not in self.stops

    async def run(self, episodes: Awaitable[None], dummy: list[int]) -> None:
        """Plays `episodes`; while others still do after them, goes on making calls, on `dummy`, whose results are dropped."""
        playing = asyncio.ensure_future(episodes)
        while True:
            await settle(self._waiting)  # between two replies episodes wait for nothing else
            batch, self._waiting = self._waiting, []
            if self._everywhere(len(batch)) == 0:
                break
            ids, logprobs = self._generate([prompt for prompt, _ in batch] or [dummy])
            for i, (_, future) in enumerate(batch):
                future.set_result((ids[i], None if logprobs is None else logprobs[i]))
        await playing


class WorldRollouts:
    """TRL's `rollout_func` for rows with a `problem` column.

    Attributes:
        latest: The rollouts made last, in the order of their rows.
    """

    def __init__(self, chat: Chat, stops: Sequence[int], setting: Setting, *, room: int, turn_tokens: int) -> None:
        """Raises ValueError where contexts would not only grow: with the history oracle, or a template that rewrites replies."""
        if setting.history:
            raise ValueError("oracles: the history oracle rewrites the context every turn, so an episode is no one sequence to train on")
        if chat.describe()["context"] != "appended":
            raise ValueError(f"{chat.name}: its chat template rewrites earlier replies, so sampled tokens would not be those trained on")
        self._chat, self._stops, self._setting, self._room, self._turn_tokens = chat, list(stops), setting, room, turn_tokens
        self.latest: list[Rollout] = []

    def __call__(self, prompts: Sequence[Any], trainer: Any) -> dict[str, Any]:
        """Plays one episode for each row of `trainer.rows`, whose prompts TRL hands over."""
        rows = trainer.rows
        if len(rows) != len(prompts):
            raise RuntimeError(f"{len(prompts)} prompts for {len(rows)} rows")

        with awake(trainer):
            self.latest = self.play([row["problem"] for row in rows], *calls_of(trainer))
        known = all(r.logprobs is not None for r in self.latest)
        return {
            "prompt_ids": [r.prompt for r in self.latest],
            "completion_ids": [r.completion for r in self.latest],
            "env_mask": [r.model for r in self.latest],
            "logprobs": [r.logprobs for r in self.latest] if known else None,
            "verdict": [r.verdict for r in self.latest],
        }

    def play(self, problems: Sequence[str], generate: Generate, everywhere: Callable[[int], int]) -> list[Rollout]:
        """The rollouts on problems given as JSON text; each of a group that repeats a problem is an episode of its own."""
        sampling = Sampling(max_tokens=self._turn_tokens, temperature=1.0)
        policy = RoundPolicy(self._chat, self._stops, generate, everywhere, room=self._room, sampling=sampling)
        parsed = {text: parse_problem(json.loads(text)) for text in set(problems)}  # a group has one problem
        tasks = [Task(parsed[text], i) for i, text in enumerate(problems)]
        records: dict[int, EpisodeRecord] = {}

        def keep(record: EpisodeRecord) -> None:
            records[record.sample] = record

        episodes = play_all(tasks, self._setting, policy, concurrency=len(tasks), on_record=keep)
        asyncio.run(policy.run(episodes, [self._chat.tokenizer.pad_token_id]))
        return [join(policy.turns[f"0/{task.key}"], self._stops, records[task.sample].verdict) for task in tasks]

    def metrics(self) -> dict[str, float]:
        """What of the latest rollouts is logged: shares of endings, turns and their tokens."""
        endings = Counter(r.verdict.ending for r in self.latest)
        shares = {f"endings/{e.value}": endings[e] / len(self.latest) for e in Ending if e.scored}
        turns = [end - start for r in self.latest for start, end in r.turns]
        return {**shares, "turns/mean": len(turns) / len(self.latest), "turns/tokens": sum(turns) / max(1, len(turns))}
