"""ListWorld: prune a list to a target with `pop(id)`, from left to right (LUMINA, section 4.1)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, ClassVar, NamedTuple

from envs.action import DONE, Action, Parameter, Signature
from envs.game import Game, Outcome
from envs.problem import content_hash
from envs.world import BudgetParams, World, check_fields, check_values

Value = int | str


@dataclass(frozen=True)
class ListParams(BudgetParams):
    """The generator's knobs.

    Attributes:
        pops: Elements to remove, at least 0: the complexity. T* is one more.
        keep: Elements of the target, at least 0.
        values: How many different values there are, 0, 1, 2, …; fewer than there are elements, so that values repeat.
    """

    pops: int = 5
    keep: int = 10
    values: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, least in (("pops", 0), ("keep", 0), ("values", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name}={getattr(self, name)} must be at least {least}")


class ListState(NamedTuple):
    """The current list, and the lowest index that may still be popped."""

    values: tuple[Value, ...]
    frontier: int


@cache
def _pop(index: int) -> Action:
    return Action("pop", (index,))


class ListGame(Game[ListState]):
    """Prunes `initial` to `target`.

    After a pop at index i the elements before i can no longer change: they must be the target's first i. What comes from i on is an
    untouched tail of `initial`, of which the target's rest must be a subsequence.
    """

    def __init__(self, initial: Sequence[Value], target: Sequence[Value]) -> None:
        self.start, self.target = tuple(initial), tuple(target)
        self.initial = ListState(self.start, 0)
        # tail[p]: how many of the target's last elements, matched greedily from the right, are a subsequence of start[p:].
        self.tail = [0] * (len(self.start) + 1)
        for p in range(len(self.start) - 1, -1, -1):
            matched = self.tail[p + 1]
            fits = matched < len(self.target) and self.start[p] == self.target[-1 - matched]
            self.tail[p] = matched + fits

    def fields(self) -> dict[str, Any]:
        return {"initial": list(self.start), "target": list(self.target)}

    def canonical(self) -> str:
        """Values are numbered in the order in which they appear in the initial list, then in the target."""
        numbers: dict[Value, int] = {}
        lists = [[numbers.setdefault(v, len(numbers)) for v in values] for values in (self.start, self.target)]
        return content_hash(["listworld", *lists])

    def act(self, state: ListState, action: Action) -> Outcome:
        index = action.args[0]
        values, frontier = state
        if not 0 <= index < len(values):
            return Outcome(state, refusal=f"index {index} is not in the list, which has {len(values)} elements")
        if index < frontier:
            return Outcome(state, refusal=f"index {index} lies left of the last pop: only {frontier} and above may be popped")
        return Outcome(ListState(values[:index] + values[index + 1 :], index))

    def optimal(self, state: ListState) -> tuple[Action, ...]:
        """All pops after which the target can still be reached, from the left; each way there has the same number of pops.

        Popping index j keeps the elements before it, so they must equal the target's. Linear in the list.
        """
        values, frontier = state
        target, tail = self.target, self.tail
        kept, popped = len(target), len(self.start) - len(values)
        if values[:frontier] != target[:frontier]:
            return ()
        if len(values) == kept:
            return (DONE,) if values == target else ()
        pops = []
        for j in range(frontier, len(values)):
            if tail[popped + j + 1] >= kept - j:
                pops.append(_pop(j))
            if j >= kept or values[j] != target[j]:
                break
        return tuple(pops)

    def legal(self, state: ListState) -> list[Action]:
        return [*map(_pop, range(state.frontier, len(state.values))), DONE]

    def statement(self, style: str) -> str:
        if style == "compact":
            return f"{self._joined(self.start)}>{self._joined(self.target)}"
        return f"Initial list: {list(self.start)}\nTarget list: {list(self.target)}"

    def feedback(self, state: ListState, action: Action, after: ListState, style: str) -> str:
        return "Popped." if style == "verbose" else "."

    def state_text(self, state: ListState, style: str) -> str:
        """In the compact style a bar stands before the first element that may still be popped."""
        values, frontier = state
        if style == "compact":
            return f"{self._joined(values[:frontier])}|{self._joined(values[frontier:])}"
        return f"the list is {list(values)}; indices from {frontier} on may be popped"

    def plan_text(self, state: ListState, style: str) -> str:
        """Names the element to remove by its value and its number among equal ones, so its index is still to be found."""
        action = self.optimal(state)[0]
        if action == DONE:
            return "the list equals the target: call done()." if style == "verbose" else "done"
        index = action.args[0]
        value = state.values[index]
        number = state.values[: index + 1].count(value)
        if style == "compact":
            return f"{value}#{number}"
        return f"remove the element {value!r}, number {number} of that value in the current list, counted from the left."

    def thought(self, state: ListState, action: Action) -> str:
        if action == DONE:
            return f"The list is {list(state.values)}, which is the target."
        index = action.args[0]
        value = state.values[index]
        return f"The list is {list(state.values)}. Index {index} holds {value!r}, which can go: all before it is as in the target."

    def _joined(self, values: tuple[Value, ...]) -> str:
        return ("" if self._short else ",").join(map(str, values))

    @cached_property
    def _short(self) -> bool:
        return all(len(str(v)) == 1 for v in (*self.start, *self.target))


class ListWorld(World):
    """Prune a list to a target."""

    name: ClassVar[str] = "listworld"
    version: ClassVar[int] = 1
    summary: ClassVar[str] = "prune a list to a target by pop(id), left to right; one wrong pop cannot be undone"
    params: ClassVar[Any] = ListParams
    signatures: ClassVar[tuple[Signature, ...]] = (
        Signature(
            "pop",
            "Removes the element at this index; those behind it move one index down.",
            (Parameter("id", int, "Index of the element in the current list, from 0."),),
        ),
    )
    rules: ClassVar[str] = (
        "You are given a Python list and a target list. The target is what remains of the list when some elements are taken out; "
        "the order stays the same. Turn the list into the target by popping the surplus elements one at a time, then call done().\n"
        "- Indices count from 0 in the list as it is now: every pop lowers the index of all elements behind it by one.\n"
        "- Work from left to right. After a pop at some index, smaller indices can never be popped again; such a call is refused.\n"
        "- A pop cannot be undone."
    )
    reworded: ClassVar[Mapping[str, str]] = {
        "brief": (
            "Pop elements off a Python list until it equals the target, then call done().\n"
            "- The target keeps the list's order. Indices start at 0 and mean the present list; later elements move down after a pop.\n"
            "- Never pop left of an earlier pop: that is refused.\n"
            "- There is no undo."
        ),
        "formal": (
            "Given are an initial list L and a target list T, where T is a subsequence of L. The operation pop(id) deletes the element at "
            "position id of L. The task is complete when L = T, which is to be declared by done().\n"
            "- Positions are numbered from 0 and always refer to the present L, so a deletion decreases the positions of all later "
            "elements by one.\n"
            "- The arguments of successive pops must not decrease; a pop that violates this is rejected.\n"
            "- Deletions are irreversible."
        ),
    }
    example: ClassVar[Mapping[str, Any]] = {"initial": [4, 7, 4, 1, 9, 1], "target": [4, 4, 1]}

    def game(self, fields: Mapping[str, Any]) -> ListGame:
        check_fields(fields, ("initial", "target"))
        for name in ("initial", "target"):
            if not isinstance(fields[name], (list, tuple)):
                raise ValueError(f"{name!r} must be a list, not {fields[name]!r}")
            check_values(fields[name], f"the elements of {name!r}")
        return ListGame(fields["initial"], fields["target"])

    def draw(self, params: ListParams, rng: random.Random) -> dict[str, Any]:
        """Draws the whole list and which of its elements go."""
        size = params.pops + params.keep
        initial = rng.choices(range(params.values), k=size)
        surplus = set(rng.sample(range(size), params.pops))
        return {"initial": initial, "target": [v for i, v in enumerate(initial) if i not in surplus]}
