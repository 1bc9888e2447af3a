"""Everything that is said about speed, in one run: `make bench`.

  python -m tests.bench                          all parts, into docs/benchmarks.md (a quarter of an hour on two cores)
  python -m tests.bench peers growth             some of them, printed only

Ratios within one run are what to look at; absolute figures depend on the machine and on what else it does.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.bench.growth import Curve, curves
from tests.bench.rows import Row

#: Of each part, the module that yields its rows.
COMPARED = ("peers", "trainer", "evaluator")
HEAD = ("what", "ours", "peer", "peer's", "times as fast", "`python -m tests.bench …`")


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join((*COMPARED, 'growth'))} (default: all)")
    given = parser.parse_args()
    parts = given.parts or [*COMPARED, "growth"]
    if unknown := set(parts) - {*COMPARED, "growth"}:
        parser.error(f"unknown part {sorted(unknown)[0]!r}: the parts are {', '.join((*COMPARED, 'growth'))}")
    rows = [(part, row) for part in parts if part in COMPARED for row in shown(part)]
    grown = list(curves()) if "growth" in parts else []
    for name, unit, curve in grown:
        print(f"{name:34}{cost(curve)} {unit}")
    if not given.parts:
        docs = Path(__file__).parents[2] / "docs"
        figure(grown).savefig(docs / "benchmarks.png", dpi=120)
        (docs / "benchmarks.md").write_text(page(rows, grown), encoding="utf-8")
        print(docs / "benchmarks.md")


def shown(part: str) -> Iterator[Row]:
    """A part's rows, printed as they come; what the libraries print of themselves goes nowhere."""
    source = import_module(f"tests.bench.{part}").rows()
    while True:
        with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            row = next(source, None)
        if row is None:
            return
        print(f"{row.what:62}{row.ours:>18}{row.theirs:>18}  {row.ratio:22}{row.peer}", file=sys.stdout, flush=True)
        yield row


def cost(curve: Curve) -> str:
    """How much an item costs at the largest size, against the smallest."""
    (small, first), (large, last) = curve[0], curve[-1]
    return f"{1e6 * last / large:10,.1f} us each at {large:>7,}, {last / large / (first / small):5.2f} times that at {small:>5,}"


def page(rows: Sequence[tuple[str, Row]], grown: Sequence[tuple[str, str, Curve]]) -> str:
    lines = [f"| {' | '.join(HEAD)} |", "|---" * len(HEAD) + "|"]
    lines += [f"| {r.what} | {r.ours} | {r.peer} | {r.theirs} | {r.ratio} | `{part}` |" for part, r in rows]
    table = ["| part | size | an item's cost | against the smallest size |", "|---|---|---|---|"]
    for name, unit, curve in grown:
        (small, first), (large, last) = curve[0], curve[-1]
        table.append(f"| {name} | {large:,} {unit} | {1e6 * last / large:,.1f} µs | {last / large / (first / small):.2f} |")
    return (
        "# Benchmarks\n\n"
        "Written by `make bench`, all in one run on one machine: ratios are what to look at. A peer does the nearest thing that it does,\n"
        "`tests/bench/peers.py` says which; ranges are over repetitions that take turns with the peer's.\n"
        "Where a peer is faster it does less: the published reader takes what stands in brackets and nothing else, reasoning-gym's and the\n"
        "published generator compute no hash that tells renamed copies, and Tower of Hanoi's checker reads one fixed line a move.\n\n"
        + "\n".join(lines)
        + "\n\n## Cost against size\n\n"
        + "\n".join(table)
        + "\n\n![Seconds against size, on logarithmic axes; dotted, a cost that grows as the size does](benchmarks.png)\n"
    )


def figure(grown: Sequence[tuple[str, str, Curve]]) -> Any:
    """Time against size, both relative to the smallest, on logarithmic axes."""
    from eval.plots import COLOURS, finish, new_figure

    drawn = new_figure(7, 4.5)
    axes = drawn.subplots()
    for i, (name, _, curve) in enumerate(grown):
        small, first = curve[0]
        xs, ys = [size / small for size, _ in curve], [time / first for _, time in curve]
        axes.plot(xs, ys, marker="o", color=COLOURS[i % len(COLOURS)], linestyle="-" if i < len(COLOURS) else "--", label=name)
    axes.plot(xs, xs, ":", color="grey", label="as the size")
    axes.set(xscale="log", yscale="log", xlabel="size, times the smallest", ylabel="time, times that of the smallest")
    finish(axes)
    return drawn


if __name__ == "__main__":
    main()
