"""Compiled machines against a tape that is written cell by cell."""

from __future__ import annotations

from collections import defaultdict
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.suites import load_suite
from envs.tag.environment import TagEnvironment
from envs.tag.system import TagSystem, simulate
from envs.turing.compiler import Compiler
from envs.turing.library import PROGRAMS, binary, unary
from envs.turing.machine import LEFT, RIGHT, Configuration, Machine, State, run

MOST_STEPS = 5_000  # of a tag system: the numbers are unary, and may double at every step


NAMES = ["q0", "q1", "q2", "q3", "end"]
FOLLOWING = [*NAMES, *NAMES[:-1]]  # so that one step in nine halts
STATES = [State(s, d, (a, b)) for s in (0, 1) for d in (LEFT, RIGHT) for a in FOLLOWING for b in FOLLOWING]
MACHINES = st.lists(st.sampled_from(STATES), min_size=4, max_size=4).map(
    lambda states: Machine({**dict(zip(NAMES, states, strict=False)), "end": None})
)
STARTS = st.tuples(MACHINES, st.builds(Configuration, st.sampled_from(NAMES), st.integers(0, 9), st.integers(0, 9)))


def on_a_tape(machine: Machine, start: Configuration, steps: int) -> list[Configuration]:
    """Writes, moves and reads on a dictionary of cells."""
    cells: dict[int, int] = defaultdict(int)
    for side, number in ((-1, start.left), (1, start.right)):
        for distance, digit in enumerate(reversed(f"{number:b}"), 1):
            cells[side * distance] = int(digit)
    head, name, seen = 0, start.state, []
    while True:
        left, right = (sum(cells[head + side * i] << (i - 1) for i in range(1, 32)) for side in (-1, 1))
        seen.append(Configuration(name, left, right))
        state = machine.states[name]
        if state is None or len(seen) > steps:
            return seen
        cells[head] = state.write
        head += 1 if state.move == RIGHT else -1
        name = state.follow[cells[head]]


@settings(max_examples=2000)
@given(STARTS)
def test_a_tag_run_decodes_step_by_step_to_the_machines_run(given_start: tuple[Machine, Configuration]) -> None:
    machine, start = given_start
    expected = on_a_tape(machine, start, 4)
    assert list(run(machine, start, 4)) == expected
    compiler = Compiler(machine)
    trace = simulate(compiler.system(start, MOST_STEPS if machine.states[expected[-1].state] is None else 1_000))
    at, decoded = zip(*islice(compiler.macro_steps(trace), len(expected) + 1), strict=True)
    assert list(decoded[: len(expected)]) == expected[: len(decoded)]
    assert len(decoded) >= len(expected) or trace.horizon == 1_000
    last = expected[-1]
    if machine.states[last.state] is None:
        assert len(decoded) == len(expected), "nothing is decoded after the halt"
        assert trace.halted and trace.state(trace.horizon) == () and trace.horizon == at[-1] + last.left + last.right + 2


def test_both_directions_both_digits_and_halting_are_met() -> None:
    """That the property above is about something: each of them occurs in one machine's run, decoded."""
    machine = PROGRAMS["copying"].machine
    seen = on_a_tape(machine, Configuration("take/1", 0, 1), 100)
    moves = {(s.move, c.state[-1]) for c in seen if (s := machine.states[c.state]) is not None}
    assert {m for m, _ in moves} == {LEFT, RIGHT} and {read for _, read in moves} == {"0", "1"}
    assert machine.states[seen[-1].state] is None


@given(STARTS)
def test_decoding_inverts_encoding_and_refuses_what_lies_between(given_start: tuple[Machine, Configuration]) -> None:
    machine, start = given_start
    compiler = Compiler(machine)
    queue = compiler.encode(start)
    assert compiler.decode(queue) == start and len(queue) == 2 * (start.left + start.right + 2)
    for broken in (queue[1:], queue[2:], (*queue, "x"), queue[:-1], (), ("A99", "x", "B99", "x"), ("Ax",)):
        with pytest.raises(ValueError, match="not of the form"):
            compiler.decode(broken)


def test_a_system_survives_its_payload() -> None:
    system = Compiler(PROGRAMS["parity"].machine).halting_system(Configuration("even/1", 0, 3))
    assert TagSystem.from_payload(system.to_payload()) == system


def last(name: str, tape: tuple[int, int, int]) -> Configuration:
    """The last configuration of a program, decoded from its tag system's run."""
    program = PROGRAMS[name]
    compiler = Compiler(program.machine)
    left, current, right = tape
    trace = simulate(compiler.halting_system(Configuration(f"{program.start}/{current}", left, right)))
    return list(compiler.macro_steps(trace))[-1][1]


def test_the_programs_compute_what_they_say() -> None:
    for n in range(6):
        assert last("unary-increment", unary(n)).left.bit_count() == n + 1
        assert last("parity", unary(n)).left == n % 2
    for n in range(16):
        halted = last("binary-increment", binary(n))
        carried = (n ^ (n + 1)).bit_length()  # so many digits lie right of the head, the highest of them nearest
        value = (2 * halted.left + int(halted.state[-1])) << carried
        assert value + sum((halted.right >> i & 1) << (carried - 1 - i) for i in range(carried)) == n + 1
    beaver = last("busy-beaver", (0, 0, 0))
    assert beaver.left.bit_count() + beaver.right.bit_count() + int(beaver.state[-1]) == 4
    for n in range(3):
        copied = last("copying", unary(n))
        assert copied.left.bit_count() + copied.right.bit_count() + int(copied.state[-1]) == 2 * n


def test_the_copy_stands_beside_the_original() -> None:
    """11 becomes 11 0 11, with the head on the first cell of the copy."""
    found = last("copying", unary(2))
    assert (f"{found.left:b}", found.state, f"{found.right:b}") == ("110", "halt/1", "1")


@pytest.mark.parametrize("name", PROGRAMS)
def test_suites_hold_the_programs_run_to_their_halt(name: str) -> None:
    problems = load_suite(f"turing-{name}").problems()
    assert len(problems) == len(PROGRAMS[name].inputs) == len({p.canonical for p in problems})
    for problem in problems:
        system = TagSystem.from_payload(problem.payload)
        assert simulate(system).halted and problem.horizon == system.max_steps <= 500
        assert TagEnvironment().problem(problem.payload, split=problem.split) == problem


def test_what_does_not_halt_is_refused() -> None:
    machine = Machine({"q": State(0, RIGHT, ("q", "q"))})
    with pytest.raises(ValueError, match="does not halt within 500 steps"):
        Compiler(machine).halting_system(Configuration("q", 0, 0), 500)


@pytest.mark.parametrize(
    ("state", "line"),
    [
        (State(2, RIGHT, ("q", "q")), "write 0 or 1"),
        (State(0, "U", ("q", "q")), "move L or R"),
        (State(0, LEFT, ("q", "p")), "'p', which is no"),
    ],
)
def test_bad_machines_are_refused(state: State, line: str) -> None:
    with pytest.raises(ValueError, match=line):
        Machine({"q": state})
