"""The Tower of Hanoi from any position, as a multi-turn world in a package of its own."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from envs.action import DONE, Action, Parameter, Signature
from envs.game import Game, Outcome
from envs.problem import content_hash
from envs.world import BudgetParams, World, check_fields

PEGS = "ABC"
MOVES = [Action("move", (a, b)) for a in PEGS for b in PEGS if a != b]

#: Where each disc stands, the smallest first.
State = tuple[str, ...]


@dataclass(frozen=True)
class HanoiParams(BudgetParams):
    """The generator's knobs.

    Attributes:
        discs: Number of discs, 1 to 7: the complexity.
    """

    discs: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.discs <= 7:
            raise ValueError(f"discs={self.discs} must lie in 1…7")


def moved(state: State, action: Action) -> State | None:
    """The position after a move, or None where it is against the rules."""
    source, target = action.args
    if source not in state or (target in state and state.index(target) < state.index(source)):
        return None
    disc = state.index(source)
    return (*state[:disc], target, *state[disc + 1 :])


@cache
def distances(discs: int) -> dict[State, int]:
    """The least number of moves from every position to all discs on C, by breadth-first search from there: moves can be taken back."""
    goal: State = ("C",) * discs
    found, edge = {goal: 0}, [goal]
    for state in edge:
        for after in filter(None, (moved(state, action) for action in MOVES)):
            if after not in found:
                found[after] = found[state] + 1
                edge.append(after)
    return found


class HanoiGame(Game[State]):
    """The rules of one problem, which is its first position."""

    def __init__(self, initial: State) -> None:
        self.initial, self.left = initial, distances(len(initial))

    def fields(self) -> dict[str, Any]:
        return {"discs": "".join(self.initial)}

    def canonical(self) -> str:
        """Pegs A and B can change names."""
        swapped = tuple(peg.translate(str.maketrans("AB", "BA")) for peg in self.initial)
        return content_hash(["hanoi", min(self.initial, swapped)])

    def act(self, state: State, action: Action) -> Outcome:
        source, target = action.args
        if source not in PEGS or target not in PEGS or source == target or not source or not target:
            return Outcome(state, refusal="move from one of the pegs A, B, C to another")
        after = moved(state, action)
        if after is None:
            return Outcome(state, refusal=f"no disc can go from {source} to {target}")
        return Outcome(after)

    def optimal(self, state: State) -> tuple[Action, ...]:
        if self.left[state] == 0:
            return (DONE,)
        return tuple(a for a in MOVES if (after := moved(state, a)) is not None and self.left[after] < self.left[state])

    def legal(self, state: State) -> list[Action]:
        return [*(a for a in MOVES if moved(state, a) is not None), DONE]

    def statement(self, style: str) -> str:
        return "".join(self.initial) if style == "compact" else f"Position: {self._pegs(self.initial)}"

    def feedback(self, state: State, action: Action, after: State, style: str) -> str:
        return "." if style == "compact" else "Moved."

    def state_text(self, state: State, style: str) -> str:
        return "".join(state) if style == "compact" else self._pegs(state)

    def plan_text(self, state: State, style: str) -> str:
        """Names the disc to move, so the pegs are still to be found."""
        action = self.optimal(state)[0]
        if action == DONE:
            return "done" if style == "compact" else "all discs are on C: call done()."
        disc = state.index(action.args[0]) + 1
        return str(disc) if style == "compact" else f"move disc {disc}."

    def thought(self, state: State, action: Action) -> str:
        if action == DONE:
            return "All discs are on C."
        source, target = action.args
        return f"The discs stand {self._pegs(state)}. On a shortest way, disc {state.index(source) + 1} goes from {source} to {target}."

    def _pegs(self, state: State) -> str:
        """The pegs with their discs, the largest first, numbered from 1 by size."""
        return ", ".join(f"{peg}: {[i + 1 for i in reversed(range(len(state))) if state[i] == peg]}" for peg in PEGS)


class Hanoi(World):
    """Bring all discs to peg C."""

    name = "hanoi"
    version = 1
    summary = "the Tower of Hanoi from any position: bring all discs to peg C by move(source, target)"
    params = HanoiParams
    signatures = (
        Signature(
            "move",
            "Takes the uppermost disc of one peg to another.",
            (Parameter("source", str, "The peg to take it from: A, B or C."), Parameter("target", str, "The peg to put it on.")),
        ),
    )
    rules = (
        "Discs of different sizes stand on the pegs A, B and C. Bring all of them to C, then call done().\n"
        "- Only the uppermost disc of a peg can be moved, and never onto a smaller one. Such a call is refused."
    )
    example = {"discs": "CB"}

    def game(self, fields: Mapping[str, Any]) -> HanoiGame:
        check_fields(fields, ("discs",))
        discs = fields["discs"]
        if not isinstance(discs, str) or not 1 <= len(discs) <= 7 or not set(discs) <= set(PEGS):
            raise ValueError(f"'discs' must name the peg of each of 1 to 7 discs, such as 'AAB', not {discs!r}")
        return HanoiGame(tuple(discs))

    def draw(self, params: HanoiParams, rng: random.Random) -> dict[str, Any] | None:
        discs = "".join(rng.choices(PEGS, k=params.discs))
        return None if set(discs) == {"C"} else {"discs": discs}
