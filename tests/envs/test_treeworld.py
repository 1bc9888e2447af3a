"""TreeWorld against a search over all orders of expansion, and against leaks of the hidden tree."""

import json
import random
import re
from functools import cache
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.action import DONE, Action
from envs.dataset import draw, make_params
from envs.environment import Setting
from envs.problem import Problem
from envs.registry import load_env
from envs.verdict import Ending, Kind
from envs.world_episode import WorldEpisode

WORLD = load_env("treeworld")
TREE = {
    "root": "r",
    "children": {"r": ["a", "b"], "b": ["c", "d"], "c": ["e"]},
    "values": {"r": 1, "a": 2, "b": 3, "c": 4, "d": 5, "e": 6},
}


@st.composite
def trees(draw_: st.DrawFn, most: int = 7) -> dict:
    """A random tree; values repeat, so several nodes may hold the wanted value, and sometimes none does."""
    size = draw_(st.integers(1, most))
    children: dict[str, list[str]] = {}
    for i in range(1, size):
        children.setdefault(f"x{draw_(st.integers(0, i - 1))}", []).append(f"x{i}")
    values = {f"x{i}": draw_(st.integers(0, 4)) for i in range(size)}
    return {"root": "x0", "children": children, "values": values, "wanted": draw_(st.integers(0, 4))}


def known(tree: dict, expanded: frozenset[str]) -> set[str]:
    return {tree["root"]}.union(*(tree["children"].get(n, []) for n in expanded))


def best(tree: dict, expanded: frozenset[str]) -> set[str]:
    """The nodes that may be expanded by a policy that knows only what it has been told; empty once the value has been seen."""
    seen = known(tree, expanded)
    return set() if any(tree["values"][n] == tree["wanted"] for n in seen) else seen - expanded


def longest_search(tree: dict) -> int:
    """The most expansions that any order needs until the value is seen."""

    @cache
    def most(expanded: frozenset[str]) -> int:
        return max((1 + most(expanded | {n}) for n in best(tree, expanded)), default=0)

    return most(frozenset())


@given(trees())
@settings(max_examples=150, deadline=None)
def test_the_optimal_sets_and_the_horizon_are_those_of_all_orders(tree: dict) -> None:
    game = WORLD.game(tree)
    reachable = any(tree["values"][n] == tree["wanted"] for n in known(tree, frozenset(tree["values"])))
    assert WORLD.problem(tree).horizon == (longest_search(tree) + 1 if reachable else 0)
    todo, done = [game.initial], set()
    while todo:  # every state, also those that only errors lead to
        state = todo.pop()
        expanded = frozenset(state.expanded)
        if expanded in done:
            continue
        done.add(expanded)
        assert set(state.open) == known(tree, expanded) - expanded
        found = any(tree["values"][n] == tree["wanted"] for n in known(tree, expanded))
        wanted = {DONE} if found else {Action("get_children", (n,)) for n in best(tree, expanded)} if reachable else set()
        assert set(game.optimal(state)) == wanted
        todo += [game.act(state, Action("get_children", (n,))).state for n in state.open]


@given(trees(12), st.randoms(use_true_random=False))
def test_any_optimal_order_ends_within_the_horizon(tree: dict, rng: random.Random) -> None:
    problem = WORLD.problem(tree)
    episode = WORLD.start(problem, Setting())
    while not episode.over:
        episode.reply(rng.choice(episode.optimal_actions))
    assert episode.verdict().ending is (Ending.COMPLETED if problem.horizon else Ending.UNREACHABLE)
    assert len(episode.steps) <= problem.horizon


@given(trees(), st.randoms(use_true_random=False))
def test_the_canonical_hash_ignores_ids_values_and_the_order_of_children(tree: dict, rng: random.Random) -> None:
    ids = list(tree["values"])
    renamed = dict(zip(ids, rng.sample([f"n{i}" for i in range(50)], len(ids)), strict=True))
    names = {v: f"v{v}" for v in range(5)}
    children = {renamed[n]: rng.sample([renamed[c] for c in below], len(below)) for n, below in tree["children"].items()}
    values = {renamed[n]: names[tree["values"][n]] if tree["values"][n] == tree["wanted"] else rng.randrange(9) for n in ids}
    other = {"root": renamed["x0"], "children": children, "values": values, "wanted": names[tree["wanted"]]}
    assert WORLD.problem(other).canonical == WORLD.problem(tree).canonical


def test_the_canonical_hash_tells_trees_apart() -> None:
    hashes = {WORLD.problem({**TREE, "wanted": w}).canonical for w in (1, 2, 3, 4, 5, 6, 7)}
    assert len(hashes) == 7


def start(wanted: int, *nodes: str) -> WorldEpisode:
    episode = WORLD.start(WORLD.problem({**TREE, "wanted": wanted}), Setting())
    for node in nodes:
        episode.reply(f'get_children("{node}")')
    return episode


def test_open_nodes_count_leaves_too_expanded_ones_do_not() -> None:
    assert start(6, "r").optimal_actions == ['get_children("a")', 'get_children("b")']
    assert start(6, "r", "a").optimal_actions == ['get_children("b")']
    assert start(6, "r", "b").optimal_actions == ['get_children("a")', 'get_children("c")', 'get_children("d")']


def test_only_done_is_optimal_once_the_value_is_revealed() -> None:
    episode = start(4, "r", "b")
    assert episode.optimal_actions == ["done()"]
    episode.reply('get_children("a")')
    assert episode.steps[-1].kind is Kind.WRONG
    episode.reply("done()")
    assert episode.success


def test_expanding_again_is_legal_and_not_optimal() -> None:
    episode = start(6, "r", "r")
    assert (episode.steps[-1].kind, episode.feedback, episode.cost) == (Kind.WRONG, "Children of r: a (value 2), b (value 3).", 2)


def test_unknown_and_hidden_nodes_get_the_same_answer() -> None:
    answers = set()
    for node in ("e", "z"):
        episode = start(6, node)
        assert episode.steps[-1].kind is Kind.INVALID
        answers.add(episode.feedback.replace(f'"{node}"', "?"))
    assert answers == {"no node ? has been revealed"}


def test_the_worst_case_expands_all_that_the_value_is_not_under() -> None:
    """The value at e, under c: r, a, b, d, then c, then done()."""
    assert WORLD.problem({**TREE, "wanted": 6}).horizon == 6
    assert WORLD.problem({**TREE, "wanted": 2}).horizon == 2
    assert WORLD.problem({**TREE, "wanted": 1}).horizon == 1


def test_a_value_that_no_node_has_is_unreachable() -> None:
    episode = start(7, "r")
    assert (episode.verdict().ending, episode.optimal_actions, episode.steps) == (Ending.UNREACHABLE, [], [])
    apart = {**TREE, "values": {**TREE["values"], "far": 9}, "wanted": 9}
    assert WORLD.problem(apart).horizon == 0


def drawn(count: int, **knobs: int) -> list[Problem]:
    return list(islice(draw("treeworld", make_params("treeworld", knobs), seed=3, split="t"), count))


@pytest.mark.parametrize(("nodes", "arity"), [(1, 1), (2, 3), (6, 1), (15, 2), (40, 4)])
def test_every_level_is_reached(nodes: int, arity: int) -> None:
    for problem in drawn(5, nodes=nodes, arity=arity):
        children, values = problem.payload["children"], problem.payload["values"]
        assert len(values) == len(set(values.values())) == nodes
        assert max(map(len, children.values()), default=0) <= arity
        holder = next(n for n, v in values.items() if v == problem.payload["wanted"])
        assert not children.get(holder)


def test_ids_do_not_tell_the_order_of_growth() -> None:
    """Over many trees, a child's id is as often below its parent's as above, and so is its value."""
    above = [
        (int(child[1:]) > int(parent[1:]), problem.payload["values"][child] > problem.payload["values"][parent])
        for problem in drawn(60, nodes=20)
        for parent, below in problem.payload["children"].items()
        for child in below
    ]
    for column in zip(*above, strict=True):
        assert 0.45 < sum(column) / len(column) < 0.55


@pytest.mark.parametrize("style", ["verbose", "compact"])
@pytest.mark.parametrize("oracles", ["none", "plan", "state", "plan+state", "state+history", "plan+state+history"])
def test_nothing_hidden_is_ever_said(style: str, oracles: str) -> None:
    """Every id in the task, the feedback and the oracles has been revealed; values are drawn apart from all other numbers."""
    for problem in drawn(6, nodes=12):
        payload = json.loads(json.dumps(problem.payload))
        payload["values"] = {n: f"v{v}" for n, v in payload["values"].items()}
        payload["wanted"] = f"v{payload['wanted']}"
        episode = WORLD.start(WORLD.problem(payload), Setting.parse(oracles, style))
        rng = random.Random(1)
        while not episode.over:
            told = "\n".join(m["content"] for m in episode.messages if m["role"] == "user").rpartition("## Your task")[2]
            seen = {*episode.state.open, *episode.state.expanded}
            assert set(re.findall(r"\bn\d+\b", told)) <= seen
            assert set(re.findall(r"\bv\d+\b", told)) <= {payload["values"][n] for n in seen} | {payload["wanted"]}
            episode.reply(rng.choice(['get_children("no")', episode.random(rng)]))


@pytest.mark.parametrize("oracles", ["none", "state", "state+history"])
def test_what_is_said_does_not_depend_on_what_is_hidden(oracles: str) -> None:
    """Two trees that differ only under nodes that are not expanded look the same."""
    shallow = {**TREE, "values": {**TREE["values"], "f": 7}, "children": {"r": ["a", "b"], "a": ["f"]}, "wanted": 7, "budget": 9}
    deep = {**TREE, "wanted": 6, "budget": 9, "values": {**TREE["values"], "e": 7}} | {"wanted": 7}
    told = []
    for tree in (shallow, deep):
        episode = WORLD.start(WORLD.problem(tree), Setting.parse(oracles))
        for reply in ("pop(1)", 'get_children("c")', 'get_children("r")', 'get_children("r")'):
            episode.reply(reply)
        told.append((episode.messages, episode.state_text, sorted(episode.optimal_actions)))
    assert told[0] == told[1]


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"root": "q"}, "node 'q' has no value"),
        ({"root": 1}, "'root' must be the id"),
        ({"children": {"r": ["a", "zz"]}}, "node 'zz' has no value"),
        ({"children": {"r": ["a", "b"], "a": ["b"]}}, "has a parent already"),
        ({"children": {"a": ["r"]}}, "is the root"),
        ({"children": {"r": "ab"}}, "must be a list of ids"),
        ({"children": []}, "must be objects"),
        ({"values": {"r": 1.5}}, "must be whole numbers or text"),
        ({"wanted": None}, "'wanted' must be whole numbers or text"),
        ({"depth": 3}, "unknown field 'depth'"),
    ],
)
def test_wrong_payloads_are_refused(change: dict, part: str) -> None:
    with pytest.raises(ValueError, match=part):
        WORLD.problem({**TREE, "wanted": 6, **change})
