"""Small machines that compute something, with inputs on which their tag systems halt within about a thousand steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from envs.turing.machine import LEFT, RIGHT, Configuration, Machine, Table


@dataclass(frozen=True, slots=True)
class Program:
    """A machine with its inputs.

    Attributes:
        summary: What it computes, in a few words.
        table: Its table; the states that it goes to and does not start from halt.
        start: The state that it starts in.
        inputs: Tapes to start on, as (left, current, right): binary numbers to the left and to the right of the current cell, the
            nearest cell being the lowest digit.
    """

    summary: str
    table: Table
    start: str
    inputs: Sequence[tuple[int, int, int]]

    @property
    def machine(self) -> Machine:
        return Machine.from_table(self.table)

    def configurations(self) -> Iterator[Configuration]:
        """The start on each input."""
        for left, current, right in self.inputs:
            yield Configuration(f"{self.start}/{current}", left, right)


def unary(count: int) -> tuple[int, int, int]:
    """A tape with `count` ones from the current cell to the right."""
    return 0, int(count > 0), 2 ** max(count - 1, 0) - 1


def binary(number: int) -> tuple[int, int, int]:
    """A tape with a binary number whose lowest digit is the current cell."""
    return number // 2, number % 2, 0


PROGRAMS = {
    "unary-increment": Program(
        "writes a one behind a block of ones",
        {("seek", 1): (1, RIGHT, "seek"), ("seek", 0): (1, RIGHT, "halt")},
        "seek",
        [unary(n) for n in range(6)],
    ),
    "binary-increment": Program(
        "adds one to a binary number, carrying to the left",
        {("carry", 1): (0, LEFT, "carry"), ("carry", 0): (1, LEFT, "halt")},
        "carry",
        [binary(n) for n in range(16)],
    ),
    "parity": Program(
        "deletes a block of ones and writes whether their number is odd",
        {
            ("even", 1): (0, RIGHT, "odd"),
            ("odd", 1): (0, RIGHT, "even"),
            ("even", 0): (0, RIGHT, "halt"),
            ("odd", 0): (1, RIGHT, "halt"),
        },
        "even",
        [unary(n) for n in range(6)],
    ),
    "busy-beaver": Program(
        "the two-state busy beaver, on the empty tape and on others",
        {
            ("a", 0): (1, RIGHT, "b"),
            ("a", 1): (1, LEFT, "b"),
            ("b", 0): (1, LEFT, "a"),
            ("b", 1): (1, RIGHT, "halt"),
        },
        "a",
        [(0, 0, 0), (1, 0, 0), (2, 0, 0), (0, 0, 2), (4, 0, 0), (0, 1, 0)],
    ),
    "copying": Program(
        "copies a block of ones",
        {
            ("take", 1): (0, RIGHT, "over"),
            ("take", 0): (0, RIGHT, "halt"),
            ("over", 1): (1, RIGHT, "over"),
            ("over", 0): (0, RIGHT, "put"),
            ("put", 1): (1, RIGHT, "put"),
            ("put", 0): (1, LEFT, "back"),
            ("back", 1): (1, LEFT, "back"),
            ("back", 0): (0, LEFT, "home"),
            ("home", 1): (1, LEFT, "home"),
            ("home", 0): (1, RIGHT, "take"),
        },
        "take",
        [unary(n) for n in range(3)],
    ),
}
