"""The simulator against a deque, and the payloads it takes and refuses."""

from __future__ import annotations

import itertools
import json
from collections import deque
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.tag.system import TagSystem, simulate, stalls

SYMBOLS = ["A", "b", "#", "αβ", "10", "1", "'"]


@st.composite
def systems(draw: st.DrawFn) -> TagSystem:
    alphabet = draw(st.lists(st.sampled_from(SYMBOLS), min_size=1, max_size=4, unique=True))
    word = st.lists(st.sampled_from(alphabet), max_size=5).map(tuple)
    rules = {s: draw(word) for s in alphabet}
    init = draw(st.lists(st.sampled_from(alphabet), max_size=9).map(tuple))
    return TagSystem(draw(st.integers(1, 5)), tuple(alphabet), rules, init, draw(st.integers(0, 25)))


def brute_force(system: TagSystem) -> list[list[str]]:
    queue = deque(system.init)
    states = [list(queue)]
    while len(states) <= system.max_steps and len(queue) >= system.m:
        queue.extend(system.rules[queue[0]])
        for _ in range(system.m):
            queue.popleft()
        states.append(list(queue))
    return states


@settings(max_examples=300)
@given(systems())
def test_simulation_equals_a_deque(system: TagSystem) -> None:
    trace, expected = simulate(system), brute_force(system)
    assert [list(q) for q in trace.states()] == expected
    assert trace.horizon == len(expected) - 1
    assert trace.halted == (len(expected[-1]) < system.m)
    assert [trace.head(i) for i in range(1, trace.horizon + 1)] == [q[0] for q in expected[:-1]]
    assert stalls(trace) == any(a == b for a, b in itertools.pairwise(expected))
    for before, after in itertools.pairwise(expected):
        assert system.step(tuple(before)) == tuple(after)
    if trace.halted:
        assert system.step(trace.state(trace.horizon)) is None


@given(systems())
def test_payload_round_trips_through_json(system: TagSystem) -> None:
    assert TagSystem.from_payload(json.loads(json.dumps(system.to_payload()))) == system


def test_bound_of_simulate_overrides_the_systems_own() -> None:
    system = TagSystem.from_payload({"rules": {"A": "AA"}, "init": "AA", "max_steps": 3})
    assert simulate(system).horizon == 3
    assert simulate(system, 7).horizon == 7


def test_payload_needs_only_rules_and_initial_queue() -> None:
    system = TagSystem.from_payload({"rules": {"A": "", "B": "A"}, "init": "AB"})
    assert (system.m, system.alphabet, system.max_steps) == (2, ("A", "B"), 30)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"rules": None}, "'rules'"),
        ({"rules": "AB"}, "'rules' must be an object"),
        ({"init": None}, "'init'"),
        ({"init": 5}, "init"),
        ({"init": ["A", 1]}, "init"),
        ({"init": "AX"}, "init has 'X'"),
        ({"rules": {"A": "X", "B": ""}}, r"rules['A'] has 'X'"),
        ({"rules": {"A": 1, "B": ""}}, "rules['A']"),
        ({"rules": {"A": ""}, "alphabet": "AB"}, "'rules' lacks the symbol 'B'"),
        ({"rules": {"A": "", "B": "", "C": ""}, "alphabet": "AB"}, "'rules' has 'C'"),
        ({"rules": {}, "init": ""}, "'alphabet'"),
        ({"alphabet": "AAB"}, "'alphabet'"),
        ({"alphabet": ["A", ""], "rules": {"A": [], "": []}}, "symbol ''"),
        ({"alphabet": ["A", "B C"], "rules": {"A": [], "B C": []}}, "symbol 'B C'"),
        ({"alphabet": ["A", "["], "rules": {"A": [], "[": []}}, "symbol '['"),
        ({"m": 0}, "'m' must be a whole number of at least 1"),
        ({"m": 1.5}, "'m'"),
        ({"m": True}, "'m'"),
        ({"max_steps": -1}, "'max_steps'"),
        ({"max_steps": "30"}, "'max_steps'"),
        ({"steps": 3}, "no field 'steps'"),
    ],
)
def test_bad_payloads_are_refused_with_one_line_that_names_the_field(change: dict[str, Any], named: str) -> None:
    payload: dict[str, Any] = {"rules": {"A": "B", "B": "A"}, "init": "AB", **change}
    payload = {k: v for k, v in payload.items() if v is not None}
    with pytest.raises(ValueError) as raised:
        TagSystem.from_payload(payload)
    assert named in str(raised.value)
    assert "\n" not in str(raised.value)
