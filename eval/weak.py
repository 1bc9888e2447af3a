"""Scripted agents with one known weakness, for the multi-turn worlds: `weak:NAME` or `weak:NAME:AMOUNT`.

Which oracle helps whom is known by construction, so an analysis of oracle settings can be shown to find it. An agent takes an oracle to
speak only where the message that it is sent holds the oracle's very words. Where its weakness does not show, it plays like the expert, but
for a slip now and then.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from envs.action import DONE, Action
from envs.environment import Episode, Message
from envs.gridworld import GridGame
from envs.listworld import ListGame
from envs.problem import stream
from envs.tagworld import TagGame
from envs.treeworld import TreeGame
from envs.world_episode import WorldEpisode
from eval.episodes import Completion, Policy, Session

#: Chance a turn that any agent takes a legal action that is not optimal, whatever its weakness: no setting is free of chance.
SLIP = 0.02


class Agent(Session):
    """One episode of an agent.

    Attributes:
        amount: How weak it is: a number of turns, or a chance a turn.
        past: The true state before each of its turns.
    """

    def __init__(self, episode: WorldEpisode, amount: float, rng: Random) -> None:
        self.episode, self.amount, self.rng = episode, amount, rng
        self.past: list[Any] = []

    async def reply(self, messages: list[Message]) -> Completion:
        self.past.append(self.episode.state)
        earlier = sum(m["role"] == "assistant" for m in messages)
        slips = self.rng.random() < SLIP
        return Completion(self.episode.noisy(self.rng, 1.0) if slips else self.answer(self._told(messages[-1]["content"]), earlier))

    def answer(self, told: set[str], earlier: int) -> str:
        """Its reply where it does not slip; `told` names the oracles that speak, `earlier` is how many of its turns it is shown."""
        raise NotImplementedError

    def best(self, state: Any) -> str:
        """What the expert would do in `state`; `done()` where nothing is optimal."""
        return self.episode.written("", next(iter(self.episode.game.optimal(state)), DONE))

    def weak(self) -> bool:
        """Whether its weakness strikes this turn, for agents whose amount is a chance."""
        return self.rng.random() < self.amount

    def _told(self, message: str) -> set[str]:
        verbose = self.episode.setting.style == "verbose"
        lines = {
            "plan": ("Plan: " if verbose else "P:") + self.episode.plan_text,
            "state": ("State: " if verbose else "S:") + self.episode.state_text,
        }
        return {oracle for oracle, line in lines.items() if line in message}


class _Forgets(Agent):
    def answer(self, told: set[str], earlier: int) -> str:
        return self.best(self.episode.state if "state" in told else self.past[min(earlier, int(self.amount))])


class _IgnoresState(Agent):
    def answer(self, told: set[str], earlier: int) -> str:
        return self.best(self.past[earlier])


class _Miscounts(Agent):
    def answer(self, told: set[str], earlier: int) -> str:
        optimal = self.episode.optimal
        if isinstance(self.episode.game, ListGame) and optimal and optimal[0] != DONE and self.weak():
            return self.episode.written("", Action("pop", (optimal[0].args[0] + self.rng.choice((-1, 1)),)))
        return self.best(self.episode.state)


class _Reexpands(Agent):
    def answer(self, told: set[str], earlier: int) -> str:
        state = self.episode.state
        if isinstance(self.episode.game, TreeGame) and not told and state.expanded and self.weak():
            return self.episode.written("", Action("get_children", (self.rng.choice(state.expanded),)))
        return self.best(state)


class _Lost(Agent):
    believed: Any = None  #: where it thinks it stands

    def answer(self, told: set[str], earlier: int) -> str:
        game, state = self.episode.game, self.episode.state
        if not isinstance(game, GridGame):
            return self.best(state)
        if "state" in told or self.believed is None:
            self.believed = state
        elif self.weak():
            moves = [a for a in game.legal(self.believed) if a != DONE]
            self.believed = game.act(self.believed, self.rng.choice(moves)).state
        action = game.optimal(self.believed)[0]
        if action != DONE:
            self.believed = game.act(self.believed, action).state
        return self.episode.written("", action)


class _Literal(Agent):
    #: What a plan names first, in both styles, and the call that it is taken for.
    _NAMED = {
        ListGame: (r"(?:element '?|^(?=\w+#))(\w+)", "pop({})"),
        TreeGame: (r"(?:value |=)'?(\w+)", 'get_children("{}")'),
        GridGame: (r"(\d+, ?\d+)", "move({})"),
        TagGame: (r"(?:append |:)([\w ]*)", 'state("{}")'),
    }

    def answer(self, told: set[str], earlier: int) -> str:
        known = self._NAMED.get(type(self.episode.game))
        if known and "plan" in told and self.episode.optimal not in ((), (DONE,)) and self.weak():
            pattern, call = known
            if named := re.search(pattern, self.episode.plan_text):
                return f"```python\n{call.format(named.group(1))}\n```"
        return self.best(self.episode.state)


class _Shortsighted(Agent):
    def answer(self, told: set[str], earlier: int) -> str:
        return self.episode.noisy(self.rng, 0.0 if "plan" in told else self.amount)


class _Distracted(Agent):
    def answer(self, told: set[str], earlier: int) -> str:
        return self.episode.noisy(self.rng, min(1.0, self.amount * earlier))


@dataclass(frozen=True, slots=True)
class Weakness:
    """What is wrong with an agent, and what each oracle does about it.

    Attributes:
        agent: Its class.
        summary: What it does, on one line.
        amount: The default; None where there is nothing to set.
        response: For each oracle whether it raises (1), lowers (-1) or does not change (0) the chance of success.
        worlds: Where the weakness shows; none where it shows in every world.
    """

    agent: type[Agent]
    summary: str
    amount: float | None
    response: Mapping[str, int]
    worlds: tuple[str, ...] = ()


def _response(plan: int = 0, state: int = 0, history: int = 0) -> dict[str, int]:
    return {"plan": plan, "state": state, "history": history}


WEAKNESSES = {
    "forgets": Weakness(_Forgets, "after AMOUNT turns its memory of the state (the list) stands still", 8, _response(state=1)),
    "miscounts": Weakness(_Miscounts, "names an index that is off by one, with chance AMOUNT", 0.05, _response(), ("listworld",)),
    "reexpands": Weakness(
        _Reexpands, "expands a node again, with chance AMOUNT, unless told what is left", 0.4, _response(plan=1, state=1), ("treeworld",)
    ),
    "lost": Weakness(
        _Lost, "misjudges where it stands, with chance AMOUNT, and goes on from there", 0.05, _response(state=1), ("gridworld",)
    ),
    "literal": Weakness(_Literal, "takes the plan's words for the call, with chance AMOUNT", 0.3, _response(plan=-1)),
    "ignores-state": Weakness(_IgnoresState, "goes by what it did itself and never reads the state", None, _response(history=-1)),
    "shortsighted": Weakness(_Shortsighted, "without a plan errs with chance AMOUNT", 0.1, _response(plan=1)),
    "distracted": Weakness(_Distracted, "errs with chance AMOUNT for each earlier turn that it is shown", 0.01, _response(history=1)),
}


class WeakPolicy(Policy):
    """Plays every episode as the agent that `spec` names."""

    def __init__(self, spec: str) -> None:
        """Reads `NAME` or `NAME:AMOUNT`. Raises ValueError for an agent that is none, or an amount that makes no sense for it."""
        name, colon, amount = spec.partition(":")
        if name not in WEAKNESSES:
            raise ValueError(f"weak:{spec}: there is no agent {name!r}: choose one of {', '.join(WEAKNESSES)}")
        self.name = f"weak:{spec}"
        self.weakness = WEAKNESSES[name]
        default = self.weakness.amount
        self._amount = 0.0 if default is None else default
        if colon:
            most = 0.0 if default is None else 1.0 if default < 1 else 1e9
            try:
                self._amount = float(amount)
            except ValueError:
                self._amount = -1.0
            if default is None or not 0 <= self._amount <= most:
                takes = "no amount" if default is None else "a probability" if default < 1 else "a number of turns"
                raise ValueError(f"weak:{spec}: {name} takes {takes}" + (f", such as weak:{name}:{default}" if default else ""))

    def describe(self) -> dict[str, object]:
        return {"backend": "scripted", "policy": self.name}

    def session(self, episode: Episode, seed: str) -> Session:
        if not isinstance(episode, WorldEpisode):
            raise ValueError(f"{self.name} plays multi-turn worlds only")
        # Each setting has a stream of its own, as a model's samples in different contexts have.
        return self.weakness.agent(episode, self._amount, stream("policy", self.name, seed, episode.setting))

    async def close(self) -> None:
        pass
