"""The contract of the multi-turn worlds. A new world is one file with two classes: a `World`, which describes the family and draws
problems, and a `Game`, which knows the rules of one problem.

The rest is shared and asks only these two: the episode, the reading of actions, oracles, prompts, in-context examples, budgets and
scripted policies. A third party registers its world under the entry-point group `tmtrain.envs` (see `envs.registry`), and the
contract tests in `tests/envs/test_world_contract.py` then run over it too.
"""

from __future__ import annotations

import math
import random
from abc import abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from envs.action import Signature
from envs.environment import WORLD_STYLES, Environment, Setting
from envs.game import Game, best
from envs.problem import Problem, content_hash
from envs.world_episode import WorldEpisode
from envs.world_prompt import opening, played

#: The default turn budget is ceil(BUDGET_FACTOR * T*) + BUDGET_SLACK (LUMINA, section 4.1).
BUDGET_FACTOR, BUDGET_SLACK = 1.25, 2

DONE_SIGNATURE = Signature("done", "Ends the task. Call it when the goal is reached: nothing can be done after it.")


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
        return self._episode(problem, setting, self._opening(setting))

    def read(self, problem: Problem) -> tuple[Game[Any], int]:
        """The rules of a problem and its budget."""
        budget, game = self._parsed(problem.payload)
        return game, budget or turn_budget(problem.horizon)

    def _episode(self, problem: Problem, setting: Setting, before: str) -> WorldEpisode:
        game, budget = self.read(problem)
        return WorldEpisode(game, self.actions, setting, budget, opening=before, done_cost=self.done_cost)

    def _opening(self, setting: Setting) -> str:
        """The first message before the problem's own statement; compact messages begin with that."""
        if setting.style == "compact":
            return ""
        if setting not in self._openings:
            example = played(self._episode(self.problem(self.example), setting, ""))
            rules = {"standard": self.rules, **self.reworded}
            self._openings[setting] = opening(self.name, rules, self.signatures, self.actions, setting, example)
        return self._openings[setting]

    @cached_property
    def _openings(self) -> dict[Setting, str]:
        return {}

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
