"""GridWorld against value iteration over the board, forwards and in both cost and moves."""

import math
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.action import DONE, Action
from envs.dataset import draw, make_params
from envs.environment import Setting
from envs.registry import load_env
from envs.verdict import Ending, Kind
from envs.world_episode import WorldEpisode

WORLD = load_env("gridworld")
STEPS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}


@st.composite
def boards(draw_: st.DrawFn, most: int = 5) -> dict:
    size = draw_(st.integers(1, most))
    cell = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)).map(list)
    return {"size": size, "start": draw_(cell), "goal": draw_(cell), "holes": draw_(st.lists(cell, max_size=size * size))}


def moved(board: dict, cell: tuple[int, int], name: str) -> tuple[tuple[int, int], int] | None:
    """Where a move leads and what it costs, by the rules as they are told; None off the board."""
    row, column = cell[0] + STEPS[name][0], cell[1] + STEPS[name][1]
    if not (0 <= row < board["size"] and 0 <= column < board["size"]):
        return None
    return (row, column), 1 + 3 * ([row, column] in board["holes"])


def iterated(board: dict) -> dict[tuple[int, int], tuple[float, float]]:
    """The least cost to the goal and the fewest moves of a path of that cost, from every cell: repeated until nothing changes."""
    cells = [(r, c) for r in range(board["size"]) for c in range(board["size"])]
    value = dict.fromkeys(cells, (math.inf, math.inf)) | {tuple(board["goal"]): (0, 0)}
    while True:
        before = dict(value)
        for cell in cells:
            for name in STEPS:
                if (step := moved(board, cell, name)) is not None:
                    onward, cost = step
                    value[cell] = min(value[cell], (value[onward][0] + cost, value[onward][1] + 1))
        if value == before:
            return value


@given(boards())
@settings(max_examples=150, deadline=None)
def test_optimal_sets_horizon_and_budget_are_those_of_value_iteration(board: dict) -> None:
    problem, game, value = WORLD.problem(board), WORLD.game(board), iterated(board)
    for cell, (left, _) in value.items():
        best = {DONE} if cell == tuple(board["goal"]) else set()
        for name in STEPS:
            step = moved(board, cell, name)
            if left and step is not None and step[1] + value[step[0]][0] == left:
                best.add(Action(name))
        assert set(game.optimal(cell)) == best
    cost, moves = value[tuple(board["start"])]
    assert problem.horizon == moves + 1
    assert problem.payload["budget"] == math.ceil(1.25 * (cost + 1)) + 2


@given(boards(), st.integers(0, 7))
def test_the_canonical_hash_ignores_the_eight_symmetries(board: dict, symmetry: int) -> None:
    last = board["size"] - 1

    def image(cell: list[int]) -> list[int]:
        row, column = cell
        for _ in range(symmetry % 4):
            row, column = column, last - row
        return [row, last - column] if symmetry >= 4 else [row, column]

    turned = {
        "size": board["size"],
        "start": image(board["start"]),
        "goal": image(board["goal"]),
        "holes": [image(h) for h in board["holes"]],
    }
    assert WORLD.problem(turned).canonical == WORLD.problem(board).canonical
    assert WORLD.problem(turned).horizon == WORLD.problem(board).horizon


def test_the_canonical_hash_tells_boards_apart() -> None:
    board = {"size": 3, "start": [0, 0], "goal": [1, 2], "holes": [[0, 1]]}
    others = [{**board, "holes": [[1, 1]]}, {**board, "goal": [2, 1]}, {**board, "size": 4}, {**board, "start": [1, 2], "goal": [0, 0]}]
    assert len({WORLD.problem(b).canonical for b in [board, *others]}) == 5


def start(board: dict, *calls: str) -> WorldEpisode:
    episode = WORLD.start(WORLD.problem(board), Setting())
    for call in calls:
        episode.reply(call)
    return episode


OPEN = {"size": 3, "start": [0, 0], "goal": [2, 2], "holes": []}
# The way round the row of holes takes six moves more than the way through it, a hole only three.
WALL = {"size": 5, "start": [0, 0], "goal": [2, 0], "holes": [[1, 0], [1, 1], [1, 2], [1, 3]]}


def test_all_cheapest_paths_count() -> None:
    assert start(OPEN).optimal_actions == ["down()", "right()"]
    assert start(OPEN, "right()", "right()").optimal_actions == ["down()"]


def test_the_way_leads_through_a_hole_where_that_is_cheaper() -> None:
    assert start(WALL).optimal_actions == ["down()"]
    episode = start(WALL, "down()")
    assert (episode.cost, episode.feedback) == (4, "You fell into a hole: that cost 4.")
    assert WORLD.problem(WALL).horizon == 3


def test_a_hole_and_a_detour_of_the_same_cost_both_count() -> None:
    """Two holes in a row cost six more than two free cells, as much as the way round; T* is that of the fewest moves."""
    board = {"size": 6, "start": [0, 0], "goal": [3, 0], "holes": [[r, c] for r in (1, 2) for c in (0, 1, 2)]}
    assert start(board).optimal_actions == ["down()", "right()"]
    problem = WORLD.problem(board)
    assert problem.horizon == 4
    episode = start(board, *["right()"] * 3, *["down()"] * 3, *["left()"] * 3, "done()")
    assert (episode.success, episode.cost, episode.verdict().step_accuracy) == (True, 9, 1.0)


def test_moves_off_the_board_are_refused_and_cost_one() -> None:
    episode = start(OPEN, "up()", "left()")
    assert (episode.state, episode.cost, episode.feedback) == ((0, 0), 2, "left() leads off the board")
    assert [s.kind for s in episode.steps] == [Kind.INVALID] * 2


def test_done_costs_nothing_so_a_budget_may_be_used_up_by_moves() -> None:
    walk = ["right()", "right()", "down()", "down()"]
    assert start({**OPEN, "budget": 4}, *walk, "done()").verdict().ending is Ending.COMPLETED
    assert start({**OPEN, "budget": 3}, *walk, "done()").verdict().ending is Ending.OVER_BUDGET
    episode = start({**WALL, "budget": 3}, "down()")
    assert (episode.verdict().ending, episode.steps[0].correct) == (Ending.OVER_BUDGET, True)


def test_done_off_the_goal_is_wrong_and_at_the_goal_right() -> None:
    assert start(OPEN, "done()").verdict().ending is Ending.WRONG
    at_goal = start({**OPEN, "goal": [0, 0]})
    assert at_goal.optimal_actions == ["done()"]


def test_a_mistake_can_be_made_good() -> None:
    """Nothing is ever out of reach: after an error the optimal set is that of the new place."""
    episode = start(OPEN, "right()", "left()", "down()", "down()", "right()", "right()", "done()")
    assert episode.success
    assert [s.correct for s in episode.steps] == [True, False, True, True, True, True, True]


def test_the_default_budget_need_not_be_stated() -> None:
    stated = WORLD.problem(OPEN)
    assert stated.payload["budget"] == 9  # ceil(1.25 * 5) + 2
    assert WORLD.problem({**OPEN, "budget": 9}) == stated


@pytest.mark.parametrize(
    "knobs",
    [
        {"size": 1, "min_distance": 0},
        {"size": 10, "min_distance": 18},
        {"size": 6, "density": 1.0},
        {"size": 7, "min_distance": 5, "max_distance": 5},
    ],
)
def test_every_level_is_reached(knobs: dict) -> None:
    for problem in islice(draw("gridworld", make_params("gridworld", knobs), seed=0, split="t"), 5):
        board = problem.payload
        cost = iterated(board)[tuple(board["start"])][0]
        assert knobs.get("min_distance", 1) <= cost <= knobs.get("max_distance", math.inf)
        assert board["start"] not in board["holes"]
        assert board["goal"] not in board["holes"]


def test_density_is_that_of_the_holes() -> None:
    problems = list(islice(draw("gridworld", make_params("gridworld", {"size": 10, "density": 0.3}), seed=0, split="t"), 40))
    assert 0.27 < sum(len(p.payload["holes"]) for p in problems) / 4000 < 0.32


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"size": 0}, "'size' must be a whole number in 1…200"),
        ({"size": 201}, "'size'"),
        ({"start": [0, 3]}, r"'start' must be \[row, column\] with both in 0…2"),
        ({"goal": [0]}, "'goal' must be"),
        ({"holes": [[0, -1]]}, "a cell of 'holes'"),
        ({"holes": {}}, "'holes' must be a list"),
        ({"budget": 0}, "'budget' must be a whole number of at least 1"),
        ({"walls": []}, "unknown field 'walls'"),
    ],
)
def test_wrong_payloads_are_refused(change: dict, part: str) -> None:
    with pytest.raises(ValueError, match=part):
        WORLD.problem({**OPEN, **change})
