"""GridWorld: walk from start to goal on a board with holes, as cheaply as possible (LUMINA, section 4.1)."""

from __future__ import annotations

import heapq
import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, ClassVar

from envs.action import DONE, Action, Signature
from envs.game import Game, Outcome
from envs.problem import content_hash
from envs.world import BudgetParams, World, check_fields

Cell = tuple[int, int]

LARGEST_SIZE = 200
MOVE_COST, HOLE_COST = 1, 4  #: of a move onto free ground, and into a hole
# A distance counts the cost first and the moves second, in one number: cost * _COST + moves.
_COST = 1 << 20
_FREE, _HOLE = MOVE_COST * _COST + 1, HOLE_COST * _COST + 1  # one move of each kind

_MOVES: dict[Action, Cell] = {Action("up"): (-1, 0), Action("down"): (1, 0), Action("left"): (0, -1), Action("right"): (0, 1)}


@dataclass(frozen=True)
class GridParams(BudgetParams):
    """The generator's knobs.

    Attributes:
        size: N of the N x N board, 1 to 200.
        density: Probability of a cell other than start and goal to be a hole, 0 to 1.
        min_distance, max_distance: Bounds of the cost of a cheapest path from start to goal; the goal is drawn uniformly among the
            cells within them. -1: no upper bound.
    """

    size: int = 6
    density: float = 0.2
    min_distance: int = 1
    max_distance: int = -1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.size <= LARGEST_SIZE:
            raise ValueError(f"size={self.size} must lie in 1…{LARGEST_SIZE}")
        if not 0 <= self.density <= 1:
            raise ValueError(f"density={self.density} must lie in 0…1")
        if self.min_distance < 0:
            raise ValueError(f"min_distance={self.min_distance} must be at least 0")
        if 0 <= self.max_distance < self.min_distance:
            raise ValueError(f"max_distance={self.max_distance} is below min_distance={self.min_distance}")


class GridGame(Game[Cell]):
    """Walks over the board; the state is the agent's cell, (row, column).

    Every action that starts a cheapest path is optimal. Cheapest paths may differ in their number of moves, where two holes save six:
    the expert takes one with the fewest, and T* counts its moves and `done()`. The default budget is
    ceil(1.25 * (cost of a cheapest path + 1)) + 2. `done()` is no move and spends none of it.
    """

    def __init__(self, size: int, start: Cell, goal: Cell, holes: frozenset[Cell]) -> None:
        self.size, self.initial, self.goal, self.holes = size, start, goal, holes
        self.distance = distances(size, goal, holes)

    def fields(self) -> dict[str, Any]:
        holes = [list(h) for h in sorted(self.holes)]
        return {"size": self.size, "start": list(self.initial), "goal": list(self.goal), "holes": holes}

    def canonical(self) -> str:
        """The least of the board's eight mirrored and turned images."""
        last = self.size - 1
        images = []
        for turned in (False, True):
            for flip_row in (False, True):
                for flip_column in (False, True):

                    def image(cell: Cell, turned: bool = turned, row: bool = flip_row, column: bool = flip_column) -> list[int]:
                        r, c = cell[::-1] if turned else cell
                        return [last - r if row else r, last - c if column else c]

                    images.append([image(self.initial), image(self.goal), sorted(map(image, self.holes))])
        return content_hash(["gridworld", self.size, min(images)])

    def act(self, state: Cell, action: Action) -> Outcome:
        row, column = _MOVES[action]
        cell = (state[0] + row, state[1] + column)
        if cell not in self.distance:
            return Outcome(state, refusal=f"{action} leads off the board")
        return Outcome(cell, HOLE_COST if cell in self.holes else MOVE_COST)

    def optimal(self, state: Cell) -> tuple[Action, ...]:
        if state == self.goal:
            return (DONE,)
        best = []
        here = self.distance[state]
        for action, (row, column) in _MOVES.items():
            cell = (state[0] + row, state[1] + column)
            beyond = self.distance.get(cell)
            if beyond is not None:
                through = beyond + (_HOLE if cell in self.holes else _FREE)
                if through // _COST == here // _COST:
                    best.append((through, action))
        return tuple([action for _, action in sorted(best)])

    def legal(self, state: Cell) -> list[Action]:
        return [*(a for a, (row, column) in _MOVES.items() if (state[0] + row, state[1] + column) in self.distance), DONE]

    def statement(self, style: str) -> str:
        holes = sorted(self.holes)
        if style == "compact":
            return f"{self.size} {_cell(self.initial)}>{_cell(self.goal)} {' '.join(map(_cell, holes))}".rstrip()
        size = f"Board: {self.size} x {self.size}"
        return f"{size}\nStart: {self.initial}\nGoal: {self.goal}\nHoles: {', '.join(map(str, holes)) or 'none'}"

    def feedback(self, state: Cell, action: Action, after: Cell, style: str) -> str:
        hole = after in self.holes
        if style == "compact":
            return "o" if hole else "."
        return f"You fell into a hole: that cost {HOLE_COST}." if hole else "You moved."

    def state_text(self, state: Cell, style: str) -> str:
        return _cell(state) if style == "compact" else f"you are at {state}"

    def plan_text(self, state: Cell, style: str) -> str:
        """Names the cell to go to, so the direction is still to be found."""
        action = self.optimal(state)[0]
        if action == DONE:
            return "you are at the goal: call done()." if style == "verbose" else "done"
        cell = self.act(state, action).state
        return f">{_cell(cell)}" if style == "compact" else f"move to the cell {cell}."

    def thought(self, state: Cell, action: Action) -> str:
        if action == DONE:
            return f"I am at {state}, which is the goal."
        cell = self.act(state, action).state
        hole = ", though it is a hole" if cell in self.holes else ""
        return f"I am at {state} and the goal is {self.goal}. A cheapest way leads to {cell}{hole}."

    def drawing(self, state: Cell) -> str:
        marks = {**dict.fromkeys(self.holes, "o"), self.goal: "G", state: "@"}
        rows = [" ".join(marks.get((r, c), ".") for c in range(self.size)) for r in range(self.size)]
        return "\n".join([*rows, f"@ you {state}   G goal {self.goal}   o hole"])


class GridWorld(World):
    """Walk on a board with holes."""

    name: ClassVar[str] = "gridworld"
    version: ClassVar[int] = 1
    summary: ClassVar[str] = "walk to the goal on a board with holes by up(), down(), left(), right(), within a budget of cost"
    params: ClassVar[Any] = GridParams
    signatures: ClassVar[tuple[Signature, ...]] = (
        Signature("up", "Moves to the row above: (r, c) to (r - 1, c)."),
        Signature("down", "Moves to the row below: (r, c) to (r + 1, c)."),
        Signature("left", "Moves to the column before: (r, c) to (r, c - 1)."),
        Signature("right", "Moves to the column behind: (r, c) to (r, c + 1)."),
    )
    rules: ClassVar[str] = (
        "You stand on a square board with holes. Walk from the start to the goal at the least cost, and call done() there.\n"
        "- Cells are written (row, column). Rows count downwards and columns to the right, both from 0: the top left cell is (0, 0).\n"
        f"- A move costs {MOVE_COST}; a move into a hole costs {HOLE_COST}. After falling into a hole you stand in it and go on as usual.\n"
        f"- A move off the board is refused: you stay where you are, and it costs {MOVE_COST}.\n"
        "- What you spend comes off your budget. done() costs nothing."
    )
    reworded: ClassVar[Mapping[str, str]] = {
        "brief": (
            "Get from the start to the goal of a square board as cheaply as you can, then call done().\n"
            "- Cells are (row, column), from (0, 0) at the top left, down and to the right.\n"
            f"- A move costs {MOVE_COST}, or {HOLE_COST} into a hole; you can walk on from a hole.\n"
            f"- Moves off the board do nothing and cost {MOVE_COST}.\n"
            "- All costs count against the budget. done() is free."
        ),
        "formal": (
            "Given are a square board, a start cell, a goal cell and a set of holes. The agent occupies one cell at a time, initially the "
            "start. The task is to occupy the goal at minimal total cost, and then to declare this by done().\n"
            "- A cell is denoted (row, column). Both coordinates are numbered from 0; rows increase downwards, columns to the right, and "
            "(0, 0) is the upper left corner.\n"
            f"- Entering a free cell costs {MOVE_COST} and entering a hole costs {HOLE_COST}. A hole does not restrict later moves.\n"
            f"- A move that would leave the board has no effect and costs {MOVE_COST}.\n"
            "- Costs are charged to the budget. done() is free of charge."
        ),
    }
    example: ClassVar[Mapping[str, Any]] = {"size": 4, "start": [3, 0], "goal": [1, 2], "holes": [[0, 3], [2, 0], [2, 2]]}
    done_cost: ClassVar[int] = 0
    counts_turns: ClassVar[bool] = False

    def game(self, fields: Mapping[str, Any]) -> GridGame:
        check_fields(fields, ("size", "start", "goal", "holes"))
        size, holes = fields["size"], fields["holes"]
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= LARGEST_SIZE:
            raise ValueError(f"'size' must be a whole number in 1…{LARGEST_SIZE}, not {size!r}")
        if not isinstance(holes, (list, tuple)):
            raise ValueError(f"'holes' must be a list of cells, not {holes!r}")
        start, goal = (_checked(fields[name], f"{name!r}", size) for name in ("start", "goal"))
        return GridGame(size, start, goal, frozenset(_checked(h, "a cell of 'holes'", size) for h in holes))

    def draw(self, params: GridParams, rng: random.Random) -> dict[str, Any] | None:
        """Draws the start, the holes, and then a goal at a distance that fits."""
        cells = [(r, c) for r in range(params.size) for c in range(params.size)]
        start = rng.choice(cells)
        holes = frozenset(c for c in cells if rng.random() < params.density and c != start)
        # A path and the way back enter the same cells but for start and goal, which are free ground (a hole drawn at the goal is
        # taken away), so the distances to the start are those from it.
        back = distances(params.size, start, holes)
        top = HOLE_COST * params.size**2 if params.max_distance < 0 else params.max_distance
        goals = [c for c in cells if params.min_distance <= back[c] // _COST <= top]
        if not goals:
            return None
        goal = rng.choice(goals)
        return {"size": params.size, "start": list(start), "goal": list(goal), "holes": [list(h) for h in sorted(holes - {goal})]}


@lru_cache(maxsize=1024)  # a group of rollouts, or the six oracle settings, start the same board again and again
def distances(size: int, goal: Cell, holes: frozenset[Cell]) -> dict[Cell, int]:
    """From every cell, the cost of a cheapest way to `goal` and its fewest moves, as `cost * _COST + moves` (Dijkstra from the goal)."""
    neighbours = _board(size)
    best = {goal: 0}
    # Cells wait in the order of what it takes to enter them and go on, so whoever reaches a neighbour first does so best.
    queue = [(_HOLE if goal in holes else _FREE, goal)]
    while queue:
        through, cell = heapq.heappop(queue)
        for before in neighbours[cell]:
            if before not in best:
                best[before] = through
                heapq.heappush(queue, (through + (_HOLE if before in holes else _FREE), before))
    return best


@cache
def _board(size: int) -> dict[Cell, tuple[Cell, ...]]:
    """The neighbours of every cell."""
    cells = [(row, column) for row in range(size) for column in range(size)]
    on_board = set(cells)
    steps = list(_MOVES.values())
    return {(r, c): tuple((r + dr, c + dc) for dr, dc in steps if (r + dr, c + dc) in on_board) for r, c in cells}


def _cell(cell: Cell) -> str:
    return f"{cell[0]},{cell[1]}"


def _checked(value: Any, where: str, size: int) -> Cell:
    if isinstance(value, (list, tuple)) and len(value) == 2:
        row, column = value
        if type(row) is int and type(column) is int and 0 <= row < size and 0 <= column < size:
            return row, column
    raise ValueError(f"{where} must be [row, column] with both in 0…{size - 1}, not {value!r}")
