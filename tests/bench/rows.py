"""A line of the bench's table, and how its times are taken."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """What was compared.

    Attributes:
        what: The work.
        ours: Our figure, with its unit.
        peer: Who it is compared with.
        theirs: Their figure.
        faster: How many times as fast as the peer we are.
        low, high: The range of `faster` over repetitions; None where each side is the best of several.
    """

    what: str
    ours: str
    peer: str
    theirs: str
    faster: float
    low: float | None = None
    high: float | None = None

    @property
    def ratio(self) -> str:
        """For the table, e.g. `1.53 (1.51 to 1.56)`."""
        spread = "" if self.low is None or self.high is None else f" ({self.low:.2f} to {self.high:.2f})"
        return f"{self.faster:.2f}{spread}" if self.faster >= 0.1 else f"{self.faster:.2g}{spread}"


def seconds(work: Callable[[], object], least: float = 0.3) -> float:
    """The best time of one call, over repetitions that take `least` seconds in all."""
    best, spent = float("inf"), 0.0
    while spent < least:
        start = time.perf_counter()
        work()
        best, spent = min(best, time.perf_counter() - start), spent + time.perf_counter() - start
    return best


def rates(what: str, unit: str, count: float, ours: float, peer: str, theirs: float) -> Row:
    """The row of `count` units of work that took us and the peer so many seconds."""
    return Row(what, f"{count / ours:,.0f} {unit}/s", peer, f"{count / theirs:,.0f} {unit}/s", theirs / ours)
