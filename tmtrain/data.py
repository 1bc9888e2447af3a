"""From problems to the rows that TRL trains on: expert demonstrations for SFT, prompts for GRPO."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

from envs.dataset import draw, make_params
from envs.environment import Episode, Setting
from envs.problem import Problem, stream
from envs.registry import load_env
from envs.suites import problems_hash, reserved_hashes
from eval.backends.chat import Chat


@dataclass(frozen=True, slots=True)
class Mixture:
    """Problems at several levels, mixed by weight.

    Attributes:
        env: The environment of levels that do not name one.
        levels: Each a set of the generator's knobs; the key `weight` (default 1) is its share, `env` its environment, and
            `from` (0…1, default 0) the share of GRPO's steps after which it joins in.
        seed, split: Names of the random streams.
    """

    env: str
    levels: Sequence[Mapping[str, Any]]
    seed: int
    split: str

    def __post_init__(self) -> None:
        if not self.levels:
            raise ValueError(f"a mixture of {self.env} problems needs at least one level")
        for level in self.levels:
            if not isinstance(level, Mapping):
                raise ValueError(f"a level is a set of knobs such as {{max_steps: 5}}, not {level!r}")
            if float(level.get("weight", 1)) < 0:
                raise ValueError(f"a level's weight must be at least 0, got {level!r}")
            if not 0 <= float(level.get("from", 0)) < 1:
                raise ValueError(f"a level's 'from' is a share of the training in 0…1, got {level!r}")
            make_params(level.get("env", self.env), _knobs(level))

    @property
    def weights(self) -> list[float]:
        """The share of each level, not normalised."""
        return [float(level.get("weight", 1)) for level in self.levels]

    @property
    def starts(self) -> list[float]:
        """When each level joins in."""
        return [float(level.get("from", 0)) for level in self.levels]

    def level(self, problem: Problem) -> int:
        """Which level a problem of this mixture was drawn from: its stream's name says so."""
        return int(problem.split.rpartition("/")[2])

    def problems(self, forbidden: frozenset[str] = frozenset()) -> Iterator[Problem]:
        """The endless stream of problems; which level each comes from is drawn from a stream of its own.

        Problems of the frozen suites never occur, nor those whose canonical hash is in `forbidden`.
        """
        barred = forbidden | reserved_hashes()
        sources = [
            draw(env, make_params(env, _knobs(level)), seed=self.seed, split=f"{self.split}/{i}", forbidden=barred)
            for i, level in enumerate(self.levels)
            for env in [level.get("env", self.env)]
        ]
        choose: random.Random = stream("mixture", self.env, self.split, self.seed)
        while True:
            yield next(choose.choices(sources, self.weights)[0])


def held_out(env: str, levels: Sequence[Mapping[str, Any]], count: int, seed: int) -> list[Problem]:
    """`count` different problems of each level, for evaluation: from the streams named `eval`, none of them in a frozen suite."""
    problems: list[Problem] = []
    for i, level in enumerate(levels):
        taken = reserved_hashes() | {p.canonical for p in problems}
        name = level.get("env", env)
        source = draw(name, make_params(name, _knobs(level)), seed=seed, split=f"eval/{i}", forbidden=taken, unique=True)
        problems += [problem for problem, _ in zip(source, range(count), strict=False)]
    return problems


def demonstrations(problem: Problem, setting: Setting, answer: Callable[[Episode], str] | None = None) -> list[dict[str, Any]]:
    """An episode as SFT rows of `messages`, answered by `answer`, or by the expert.

    One row where the context only grows. Where the history oracle rewrites it, every turn is a row of its own, since no single
    conversation ever stood in the context.
    """
    episode: Episode = load_env(problem.env).start(problem, setting)
    rows: list[dict[str, Any]] = []
    while not episode.over:
        reply = {"role": "assistant", "content": answer(episode) if answer else episode.expert()}
        row = [*episode.messages, reply]
        if rows and rows[-1]["messages"] == row[: len(rows[-1]["messages"])]:
            rows[-1]["messages"] = row
        else:
            rows.append({"messages": row})
        episode.reply(reply["content"])
    return rows


def demonstrations_by_turns(problems: Iterable[Problem], settings: Sequence[Setting]) -> Iterator[dict[str, Any]]:
    """The expert's `demonstrations` of the problems, each in the setting after that of the one before."""
    for problem, setting in zip(problems, cycle(settings)):
        yield from demonstrations(problem, setting)


def prompt_row(problem: Problem, setting: Setting) -> dict[str, Any]:
    """A GRPO row: the prompt's messages, and the problem as JSON text for the rewards (a column must be of one type)."""
    episode = load_env(problem.env).start(problem, setting)
    return {"prompt": list(episode.messages), "problem": json.dumps(problem.to_json(), ensure_ascii=False)}


@dataclass(frozen=True, slots=True)
class Lengths:
    """What the expert needs, in tokens: for one reply with its terminator, and for all that an episode adds to its first prompt."""

    reply: int
    episode: int
    prompt: int


def expert_lengths(chat: Chat, problems: Sequence[Problem], setting: Setting) -> Lengths:
    """The longest replies, episodes and first prompts of the expert; of the problems, the 200 with the longest horizons are played.

    Raises:
        ValueError: See `expert_length`.
    """
    played = [expert_length(chat, problem, setting) for problem in sorted(problems, key=lambda p: p.horizon)[-200:]]
    return Lengths(*(max(getattr(n, part) for n in played) for part in ("reply", "episode", "prompt")))


def expert_length(chat: Chat, problem: Problem, setting: Setting) -> Lengths:
    """What the expert needs for one problem.

    Raises:
        ValueError: Where a reply of the expert, tokenized and read back, is not scored as right: nothing could be learned from it.
    """
    episode = load_env(problem.env).start(problem, setting)
    conversation, first, reply, whole = chat.conversation(), 0, 0, 0
    while not episode.over:
        context = list(episode.messages)
        prompt = conversation.prompt(context)
        ids = chat.tokenizer(episode.expert(), add_special_tokens=False)["input_ids"]
        first = first or len(prompt)
        reply, whole = max(reply, len(ids) + 1), max(whole, len(prompt) + len(ids) + 1 - first)
        episode.reply(conversation.answered(context, prompt, ids, []))
    verdict = episode.verdict()
    if not verdict.strict or verdict.step_accuracy < 1:
        raise ValueError(
            f"the expert's replies to {problem.id[:12]} are not scored as right once they are tokenized and decoded: the tokenizer "
            "changes the text, so right replies would go unrewarded; choose another tokenizer or alphabet"
        )
    return Lengths(reply, whole, first)


def data_record(problems: Sequence[Problem], mixture: Mixture, held: Sequence[Problem]) -> dict[str, Any]:
    """What a checkpoint's training record and card say of its data."""
    trained = {p.canonical for p in problems}
    return {
        "env": ", ".join(sorted({p.env for p in problems})),
        "levels": [dict(level) for level in mixture.levels],
        "seed": mixture.seed,
        "problems": len(problems),
        "distinct_canonical": len(trained),
        "hash": problems_hash(list(problems)),
        "shared_canonical": {
            "held_out": len(trained & {p.canonical for p in held}),
            "frozen_suites": len(trained & reserved_hashes()),
        },
    }


def _knobs(level: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in level.items() if k not in ("weight", "env", "from")}
