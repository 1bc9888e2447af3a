"""ListWorld against a search over all sequences of pops."""

import math
from functools import cache
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.action import DONE, Action
from envs.dataset import draw, make_params
from envs.environment import Setting
from envs.listworld import ListGame, ListState
from envs.registry import load_env
from envs.verdict import Ending, Kind

small = st.lists(st.integers(0, 2), max_size=7)


def all_states(initial: tuple) -> set[tuple[tuple, int]]:
    """Every list and frontier that some sequence of legal pops leads to."""
    found, todo = set(), [(initial, 0)]
    while todo:
        values, frontier = state = todo.pop()
        if state not in found:
            found.add(state)
            todo += [(values[:i] + values[i + 1 :], i) for i in range(frontier, len(values))]
    return found


def searched(target: tuple):
    """The fewest pops from a state to the target, by trying everything."""

    @cache
    def fewest(values: tuple, frontier: int) -> float:
        if values == target:
            return 0
        return 1 + min((fewest(values[:i] + values[i + 1 :], i) for i in range(frontier, len(values))), default=math.inf)

    return fewest


@given(small, small)
@settings(max_examples=120, deadline=None)
def test_optimal_sets_are_those_of_an_exhaustive_search(initial: list, target: list) -> None:
    game, fewest = ListGame(initial, target), searched(tuple(target))
    for values, frontier in all_states(tuple(initial)):
        left = fewest(values, frontier)
        if left == 0:
            best = {DONE}
        elif left == math.inf:
            best = set()
        else:
            pops = range(frontier, len(values))
            best = {Action("pop", (i,)) for i in pops if fewest(values[:i] + values[i + 1 :], i) == left - 1}
        optimal = game.optimal(ListState(values, frontier))
        assert set(optimal) == best
        assert len(optimal) == len(best)


@given(st.data(), small)
def test_a_reachable_target_takes_as_many_pops_as_elements_are_surplus(data: st.DataObject, initial: list) -> None:
    kept = data.draw(st.lists(st.booleans(), min_size=len(initial), max_size=len(initial)))
    target = [v for v, k in zip(initial, kept, strict=True) if k]
    assert load_env("listworld").problem({"initial": initial, "target": target}).horizon == len(initial) - len(target) + 1


@given(small, small, st.permutations(range(3)))
def test_the_canonical_hash_ignores_the_values_names(initial: list, target: list, names: list) -> None:
    renamed = ListGame([f"v{names[v]}" for v in initial], [f"v{names[v]}" for v in target])
    assert renamed.canonical() == ListGame(initial, target).canonical()


def test_the_canonical_hash_tells_problems_apart() -> None:
    assert ListGame([1, 2, 1], [1, 2]).canonical() != ListGame([1, 2, 1], [2, 1]).canonical()
    assert ListGame([1, 2], [1]).canonical() != ListGame([1, 1], [1]).canonical()


def play(initial: list, target: list, *calls: str):
    world = load_env("listworld")
    episode = world.start(world.problem({"initial": initial, "target": target}), Setting())
    for call in calls:
        episode.reply(call)
    return episode


def test_equal_values_give_several_optimal_pops() -> None:
    assert play([1, 2, 2, 2, 3], [1, 2, 3]).optimal_actions == ["pop(1)", "pop(2)"]  # after pop(3) one surplus 2 lies left of it
    assert play([1, 2, 2, 2, 3], [1, 2, 3], "pop(2)").optimal_actions == ["pop(2)"]
    assert play([1, 1, 1], []).optimal_actions == ["pop(0)"]


def test_after_a_pop_smaller_indices_are_refused() -> None:
    episode = play([5, 6, 7, 8], [6, 8], "pop(2)")
    assert (episode.state, episode.steps[-1].kind) == (ListState((5, 6, 8), 2), Kind.WRONG)
    episode.reply("pop(0)")
    assert (episode.state, episode.steps[-1].kind) == (ListState((5, 6, 8), 2), Kind.INVALID)
    assert "only 2 and above" in episode.feedback


@pytest.mark.parametrize("index", [-1, 3, 10**15])
def test_indices_outside_the_list_are_refused(index: int) -> None:
    episode = play([5, 6, 7], [5], f"pop({index})")
    assert (episode.steps[-1].kind, episode.cost, len(episode.state.values)) == (Kind.INVALID, 1, 3)


def test_a_wrong_pop_is_dead_for_good() -> None:
    episode = play([1, 2, 3, 4], [1, 2], "pop(0)", "pop(1)", "pop(0)", "done()")
    assert [s.kind for s in episode.steps] == [Kind.WRONG, Kind.DEAD, Kind.INVALID, Kind.DEAD]
    assert episode.verdict().ending is Ending.WRONG
    assert episode.verdict().first_error == 0


def test_a_dead_state_has_no_optimal_action() -> None:
    episode = play([1, 2, 3, 4], [1, 2], "pop(0)")
    assert episode.optimal_actions == []
    assert episode.plan_text == "The goal is out of reach."
    assert episode.expert().endswith("```python\ndone()\n```")


def test_a_target_that_is_no_part_of_the_list_is_unreachable() -> None:
    episode = play([1, 2, 3], [3, 1], "pop(0)")
    assert (episode.verdict().ending, episode.verdict().steps, episode.optimal_actions) == (Ending.UNREACHABLE, (), [])


def test_the_plan_names_an_element_that_the_state_locates() -> None:
    episode = play([4, 7, 4, 7, 1], [4, 4, 7], "pop(1)")
    assert episode.plan_text == "remove the element 1, number 1 of that value in the current list, counted from the left."
    assert play(["a", "b", "b"], ["b", "b"]).plan_text.startswith("remove the element 'a'")


@pytest.mark.parametrize(("pops", "keep"), [(0, 3), (1, 0), (1, 10), (20, 20), (60, 5)])
def test_every_level_is_reached(pops: int, keep: int) -> None:
    for problem in islice(draw("listworld", make_params("listworld", {"pops": pops, "keep": keep}), seed=0, split="t"), 5):
        assert problem.horizon == pops + 1
        assert (len(problem.payload["initial"]), len(problem.payload["target"])) == (pops + keep, keep)


def test_long_lists_are_solved() -> None:
    game = ListGame([0, 1] * 3000, [0] * 3000)
    assert game.optimal(game.initial) == (Action("pop", (1,)),)


@pytest.mark.parametrize(
    ("payload", "part"),
    [
        ({"initial": [1]}, "'target' is missing"),
        ({"initial": [1], "target": [], "extra": 1}, "unknown field 'extra'"),
        ({"initial": "12", "target": []}, "'initial' must be a list"),
        ({"initial": [1.5], "target": []}, "must be whole numbers or text, not 1.5"),
        ({"initial": [True], "target": []}, "not True"),
        ({"initial": [1], "target": [None]}, "'target' must be whole numbers or text"),
    ],
)
def test_wrong_payloads_are_refused(payload: dict, part: str) -> None:
    with pytest.raises(ValueError, match=part):
        load_env("listworld").problem(payload)
