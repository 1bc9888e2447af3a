"""Turing machines over {0, 1} in the form of appendix A.1, and their direct simulation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

LEFT, RIGHT = "L", "R"
#: A machine as textbooks write it: from (state, symbol read) to (symbol written, direction, next state).
Table = Mapping[tuple[str, int], tuple[int, str, str]]


@dataclass(frozen=True, slots=True)
class State:
    """What a state does: write, move, read, go on.

    Attributes:
        write: The symbol S written onto the current cell, 0 or 1.
        move: The direction D, `LEFT` or `RIGHT`.
        follow: The next state by the symbol that is read after the move: (Q_i0, Q_i1).
    """

    write: int
    move: str
    follow: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Configuration:
    """The tape and the state, as the triplet (Q, M, N) of appendix A.1.

    The state is the one after reading the current cell, which it is about to overwrite: so that cell's symbol is no part of the triplet.

    Attributes:
        state: Q.
        left: M, the cells left of the current one as a binary number, the nearest being its lowest digit.
        right: N, the cells right of it, likewise.
    """

    state: str
    left: int
    right: int


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine: its states by name, None for those that halt.

    Raises:
        ValueError: Where a state writes no 0 or 1, moves neither way or goes on to a state that there is not.
    """

    states: Mapping[str, State | None]

    def __post_init__(self) -> None:
        for name, state in self.states.items():
            if state is None:
                continue
            if state.write not in (0, 1) or state.move not in (LEFT, RIGHT):
                raise ValueError(f"state {name!r} must write 0 or 1 and move L or R, not {state.write!r} and {state.move!r}")
            if unknown := [s for s in state.follow if s not in self.states]:
                raise ValueError(f"state {name!r} goes on to {unknown[0]!r}, which is no state of the machine")

    @classmethod
    def from_table(cls, table: Table) -> Machine:
        """The machine of a textbook's table.

        There, what is written depends on the symbol read as well, so each state q becomes two, `q/0` and `q/1`: q having read 0 or 1.
        States that the table goes to and does not start from halt.
        """
        names = dict.fromkeys([q for q, _ in table] + [q for _, _, q in table.values()])
        states: dict[str, State | None] = {f"{q}/{read}": None for q in names for read in (0, 1)}
        for (q, read), (write, move, after) in table.items():
            states[f"{q}/{read}"] = State(write, move, (f"{after}/0", f"{after}/1"))
        return cls(states)


def step(machine: Machine, configuration: Configuration) -> Configuration | None:
    """The configuration after one step, or None in a halting state. Raises KeyError for a state that there is not."""
    state = machine.states[configuration.state]
    if state is None:
        return None
    behind, ahead = configuration.left, configuration.right
    if state.move == LEFT:
        behind, ahead = ahead, behind
    read, ahead, behind = ahead % 2, ahead // 2, 2 * behind + state.write
    after = state.follow[read]
    return Configuration(after, ahead, behind) if state.move == LEFT else Configuration(after, behind, ahead)


def run(machine: Machine, start: Configuration, max_steps: int) -> Iterator[Configuration]:
    """The configurations from `start` on, until the machine halts or has taken `max_steps` steps."""
    current: Configuration | None = start
    for _ in range(max_steps + 1):
        if current is None:
            return
        yield current
        current = step(machine, current)
