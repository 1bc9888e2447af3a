"""The tag environment: its generator's knobs, its problems and its one-turn episodes."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from envs.environment import Environment, Episode, Message, Setting
from envs.problem import Problem, content_hash
from envs.tag.canonical import canonical_hash
from envs.tag.continued import ContinuedEpisode
from envs.tag.noise import noisy_states, random_states
from envs.tag.prompt import compact_reply, compact_task, verbose_reply, verbose_task
from envs.tag.system import TagSystem, Trace, Word, simulate, stalls
from envs.tag.verify import verify_reply
from envs.verdict import Ending, Kind, StepVerdict, Verdict


@dataclass(frozen=True, slots=True)
class TagParams:
    """The generator's knobs; the defaults are the published benchmark's (section 4.1).

    Attributes:
        alphabet: The symbols: a string of characters, or symbols joined by commas.
        m: Deletion number.
        rule_min, rule_max: Bounds of a rule's length, in symbols; uniform between them.
        init_min, init_max: Bounds of the initial queue's length, likewise.
        max_steps: Most steps of the trace that is asked for.
        min_horizon, max_horizon: Bounds of the true trace's number of steps; other draws are dropped. -1: no upper bound.
    """

    alphabet: str = "ABCDE"
    m: int = 2
    rule_min: int = 1
    rule_max: int = 5
    init_min: int = 2
    init_max: int = 9
    max_steps: int = 30
    min_horizon: int = 1
    max_horizon: int = -1

    def __post_init__(self) -> None:
        for low, high, least in (("rule_min", "rule_max", 0), ("init_min", "init_max", 0)):
            if not least <= getattr(self, low) <= getattr(self, high):
                raise ValueError(f"{low}={getattr(self, low)} and {high}={getattr(self, high)}: need {least} <= {low} <= {high}")
        if not 0 <= self.min_horizon <= self.max_steps:
            raise ValueError(f"min_horizon={self.min_horizon} must lie in 0…max_steps={self.max_steps}")
        if 0 <= self.max_horizon < self.min_horizon:
            raise ValueError(f"max_horizon={self.max_horizon} is below min_horizon={self.min_horizon}")
        TagSystem.from_payload({"m": self.m, "alphabet": self.symbols, "rules": dict.fromkeys(self.symbols, ""), "init": ""})

    @property
    def symbols(self) -> list[str]:
        return self.alphabet.split(",") if "," in self.alphabet.strip(",") else list(self.alphabet)


class TagEnvironment(Environment):
    """m-tag systems in one reply."""

    name: ClassVar[str] = "tag"
    version: ClassVar[int] = 1
    summary: ClassVar[str] = "m-tag systems: state the queue after every step, in one reply"
    params: ClassVar[Any] = TagParams

    def problem(self, payload: Mapping[str, Any], *, split: str = "", id: str | None = None) -> Problem:
        system = TagSystem.from_payload(payload)
        return self._problem(system, simulate(system).horizon, split, id)

    def sample(self, params: TagParams, rng: random.Random, split: str = "") -> Problem | None:
        symbols = params.symbols

        def word(low: int, high: int) -> Word:
            return tuple(rng.choices(symbols, k=rng.randint(low, high)))

        rules = {s: word(params.rule_min, params.rule_max) for s in symbols}
        system = TagSystem(params.m, tuple(symbols), rules, word(params.init_min, params.init_max), params.max_steps)
        trace = simulate(system)
        top = params.max_steps if params.max_horizon < 0 else params.max_horizon
        if not params.min_horizon <= trace.horizon <= top or stalls(trace):
            return None
        return self._problem(system, trace.horizon, split, None)

    def start(self, problem: Problem, setting: Setting) -> TagEpisode | ContinuedEpisode:
        if setting.oracles != "none":
            raise ValueError("tag is answered in one reply, so oracles have no turn to speak in: use --oracles none")
        if setting.wording != "standard":
            raise ValueError("tag's prompt has the published wording only: use --wording standard")
        system = TagSystem.from_payload(problem.payload)
        return ContinuedEpisode(system, setting.style) if setting.continued else TagEpisode(system, setting.style)

    @staticmethod
    def _problem(system: TagSystem, horizon: int, split: str, id: str | None) -> Problem:
        payload = system.to_payload()
        own_id = id or content_hash(["tag", payload])
        return Problem("tag", payload, own_id, canonical_hash(system), horizon, split)


class TagEpisode(Episode):
    """One reply that states the whole trace."""

    def __init__(self, system: TagSystem, style: str) -> None:
        self.system, self.style = system, style
        self.trace: Trace = simulate(system)
        task = verbose_task(system) if style == "verbose" else compact_task(system, placed=style == "placed")
        self.messages: list[Message] = [{"role": "user", "content": task}]
        self.over = False
        self._verdict: Verdict | None = None

    def reply(self, text: str, *, truncated: bool = False) -> None:
        self.messages.append({"role": "assistant", "content": text})
        self._verdict = verify_reply(self.system, self.trace, text, truncated=truncated)
        self.over = True

    def end(self, ending: Ending) -> None:
        if self._verdict is None:
            steps = tuple(StepVerdict(i, False, Kind.MISSING) for i in range(self.trace.horizon + 1))
            self._verdict = Verdict(steps, False, ending)
        self.over = True

    def verdict(self) -> Verdict:
        if self._verdict is None:
            self.end(Ending.NO_ANSWER)
        assert self._verdict is not None
        return self._verdict

    def expert(self) -> str:
        return self._written(None)

    def noisy(self, rng: random.Random, rate: float) -> str:
        """Each step goes wrong with probability `rate`: a symbol of the new queue is lost or doubled, and the run goes on from there."""
        init = self.system.init
        return self._written([init, *noisy_states(self.system, init, self.system.max_steps, rng, rate)])

    def random(self, rng: random.Random) -> str:
        """The right initial queue, then queues of random symbols."""
        return self._written([self.system.init, *random_states(self.system, self.system.max_steps, rng)])

    def _written(self, states: list[Word] | None) -> str:
        if self.style == "verbose":
            return verbose_reply(self.system, self.trace, states=states)
        return compact_reply(self.system, self.trace, states=states, placed=self.style == "placed")
