"""The rules of one problem of a multi-turn world: states, actions and which of them are optimal."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from envs.action import DONE, Action

State = TypeVar("State")


class Outcome(NamedTuple):
    """What an action led to.

    Attributes:
        state: The state after it.
        cost: What it takes from the budget, at least 1.
        refusal: Why a well-formed but illegal action was refused, on one line; the state is then the one before. Empty otherwise.
    """

    state: Any
    cost: int = 1
    refusal: str = ""


class Game(ABC, Generic[State]):
    """The rules of one problem. States are immutable values; a game never changes, so any state of it can be asked about at any time.

    `done()` belongs to no game: it ends the episode, and the goal holds in a state if `done()` is optimal there.
    """

    initial: State

    @abstractmethod
    def fields(self) -> dict[str, Any]:
        """The payload as plain JSON values, without the budget."""

    @abstractmethod
    def canonical(self) -> str:
        """Hash shared by all problems that differ only by a meaningless change."""

    @abstractmethod
    def act(self, state: State, action: Action) -> Outcome:
        """Carries out any action but `done()` whose arguments have the declared types."""

    @abstractmethod
    def optimal(self, state: State) -> tuple[Action, ...]:
        """Every action that some optimal policy takes in `state`, without knowing more than the policy can.

        Empty where the goal is out of reach, `(DONE,)` where it holds. The expert takes the first.
        """

    @abstractmethod
    def legal(self, state: State) -> Sequence[Action]:
        """The actions that are not refused, `DONE` among them, in a fixed order; of endless ones, the optimal and likely slips."""

    @abstractmethod
    def statement(self, style: str) -> str:
        """The problem as the task message gives it."""

    @abstractmethod
    def feedback(self, state: State, action: Action, after: State, style: str) -> str:
        """What the environment says to an action, not refused, that led from `state` to `after`. Says nothing of what is hidden."""

    @abstractmethod
    def state_text(self, state: State, style: str) -> str:
        """The state oracle: all that the past tells which an optimal decision needs, and nothing that is hidden."""

    @abstractmethod
    def plan_text(self, state: State, style: str) -> str:
        """The plan oracle: the next subtask, which the expert's action solves. Needs no look-ahead, and leaves the action to be
        derived from the state. Never asked in a state from which the goal is out of reach."""

    @abstractmethod
    def thought(self, state: State, action: Action) -> str:
        """The expert's reasoning before an optimal `action`, in one or two sentences that are true of `state`."""

    def normal(self, action: Action) -> Action:
        """The canonical one of all writings of the same action."""
        return action

    def written(self, action: Action, style: str) -> str:
        """The action as the scripted policies write it; `normal` brings it back."""
        return str(action)

    def drawing(self, state: State) -> str:
        """The state for a person in a terminal."""
        return self.state_text(state, "verbose")


def best(game: Game[Any]) -> tuple[int, int]:
    """How many actions the expert takes and what they cost, `done()` counted as 1 in both; (0, 0) where the goal is out of reach."""
    state, actions, cost = game.initial, 1, 1
    optimal = game.optimal(state)
    if not optimal:
        return 0, 0
    while optimal[0] != DONE:
        outcome = game.act(state, optimal[0])
        if outcome.state == state:
            raise RuntimeError(f"{type(game).__name__}: {optimal[0]} is called optimal in {state}, but changes nothing")
        state, actions, cost = outcome.state, actions + 1, cost + outcome.cost
        optimal = game.optimal(state)
    return actions, cost
