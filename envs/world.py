"""The contract of the multi-turn worlds. A new world is one file with two classes: a `World`, which describes the family and draws
problems, and a `Game`, which knows the rules of one problem.

The rest is shared and asks only these two: the episode, the reading of actions, oracles, prompts, in-context examples, budgets and
scripted policies. A third party registers its world under the entry-point group `tmtrain.envs` (see `envs.registry`), and the
contract tests in `tests/envs/test_world_contract.py` then run over it too.
"""

from __future__ import annotations

import math
import random
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from envs.action import DONE, Action, Signature
from envs.environment import WORLD_STYLES, Environment, Setting
from envs.problem import Problem, content_hash
from envs.world_episode import WorldEpisode
from envs.world_prompt import opening

State = TypeVar("State")

#: The default turn budget is ceil(BUDGET_FACTOR * T*) + BUDGET_SLACK (LUMINA, section 4.1).
BUDGET_FACTOR, BUDGET_SLACK = 1.25, 2

DONE_SIGNATURE = Signature("done", "Ends the task. Call it when the goal is reached: nothing can be done after it.")


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


@dataclass(frozen=True)
class BudgetParams:
    """The knobs that every world has.

    Attributes:
        budget_factor: m in the budget ceil(m * T*) + n, at least 1.
        budget_slack: n, at least 0.
    """

    budget_factor: float = BUDGET_FACTOR
    budget_slack: int = BUDGET_SLACK

    def __post_init__(self) -> None:
        if not 1 <= self.budget_factor < math.inf:
            raise ValueError(f"budget_factor={self.budget_factor} must be at least 1")
        if self.budget_slack < 0:
            raise ValueError(f"budget_slack={self.budget_slack} must be at least 0")


class World(Environment):
    """A family of multi-turn problems."""

    multi_turn = True
    signatures: ClassVar[tuple[Signature, ...]]  #: the actions besides `done()`
    rules: ClassVar[str]  #: what the task is and how the world behaves, for the verbose prompt
    reworded: ClassVar[Mapping[str, str]] = {}  #: the same rules in other words, by the name of the wording
    example: ClassVar[Mapping[str, Any]]  #: payload of the small problem that the expert plays in the verbose prompt
    done_cost: ClassVar[int] = 1  #: what `done()` takes from the budget
    counts_turns: ClassVar[bool] = True  #: whether every action costs 1. Where not, the payload states the budget

    @abstractmethod
    def game(self, fields: Mapping[str, Any]) -> Game[Any]:
        """Checks the payload without its budget. Raises ValueError that names what is missing, unknown or wrong."""

    @abstractmethod
    def draw(self, params: Any, rng: random.Random) -> dict[str, Any] | None:
        """Draws the fields of a solvable problem, or None where the draw does not fit `params`."""

    @cached_property
    def actions(self) -> dict[str, Signature]:
        """All actions by name, `done()` last."""
        return {s.name: s for s in (*self.signatures, DONE_SIGNATURE)}

    def problem(self, payload: Mapping[str, Any], *, split: str = "", id: str | None = None) -> Problem:
        """See `Environment.problem`. `horizon` is T*, the expert's actions with `done()`, and 0 where the goal is out of reach."""
        budget, game = self._parsed(payload)
        horizon, cost = best(game)
        return self._problem(game, horizon, turn_budget(cost) if budget is None else budget, split, id)

    def sample(self, params: Any, rng: random.Random, split: str = "") -> Problem | None:
        fields = self.draw(params, rng)
        if fields is None:
            return None
        game = self.game(fields)
        horizon, cost = best(game)
        return self._problem(game, horizon, turn_budget(cost, params.budget_factor, params.budget_slack), split, None)

    def start(self, problem: Problem, setting: Setting) -> WorldEpisode:
        if setting.continued:
            raise ValueError(f"{self.name} is played turn by turn, so there is no single reply to go on with: continue tag problems")
        if setting.style not in WORLD_STYLES:
            raise ValueError(f"{self.name} has no {setting.style} prompts: use --style {' or '.join(WORLD_STYLES)}")
        game, budget = self.read(problem)
        return WorldEpisode(self, game, setting, budget, opening(self, setting))

    def read(self, problem: Problem) -> tuple[Game[Any], int]:
        """The rules of a problem and its budget."""
        budget, game = self._parsed(problem.payload)
        return game, budget or turn_budget(problem.horizon)

    def _problem(self, game: Game[Any], horizon: int, budget: int, split: str, id: str | None) -> Problem:
        fields = game.fields()
        if not self.counts_turns or budget != turn_budget(horizon):
            fields["budget"] = budget
        return Problem(self.name, fields, id or content_hash([self.name, fields]), game.canonical(), horizon, split)

    def _parsed(self, payload: Mapping[str, Any]) -> tuple[int | None, Game[Any]]:
        fields = dict(payload)
        budget = fields.pop("budget", None)
        if budget is not None and (isinstance(budget, bool) or not isinstance(budget, int) or budget < 1):
            raise ValueError(f"'budget' must be a whole number of at least 1, not {budget!r}")
        return budget, self.game(fields)


def turn_budget(least: int, factor: float = BUDGET_FACTOR, slack: int = BUDGET_SLACK) -> int:
    """The budget where an optimal policy needs `least`, with `done()` counted as 1 (LUMINA, section 4.1)."""
    return math.ceil(factor * least - 1e-9) + slack  # 1.1 * 50 is a hair above 55


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


def check_fields(fields: Mapping[str, Any], needed: Collection[str], optional: Collection[str] = ()) -> None:
    """Raises ValueError naming the first field of a payload that is missing or unknown."""
    if missing := [name for name in needed if name not in fields]:
        raise ValueError(f"the field {missing[0]!r} is missing")
    if unknown := sorted(map(str, fields.keys() - {*needed, *optional})):
        raise ValueError(f"unknown field {unknown[0]!r}: the fields are {', '.join([*needed, *optional])}, budget")


def check_values(values: Collection[Any], where: str) -> None:
    """Raises ValueError where some value is no whole number or text, which nodes and list elements must be."""
    if not set(map(type, values)) <= {int, str}:
        strange = next(v for v in values if type(v) not in (int, str))
        raise ValueError(f"{where} must be whole numbers or text, not {strange!r}")
