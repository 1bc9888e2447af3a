"""Compare two runs on the same problems, episode by episode.

  tmtrain compare runs/demo/eval_before runs/demo/eval_after

Differences are B - A with 95 % intervals from a bootstrap over problems that resamples both runs alike: problems that are hard for both
do not widen them. Success is tested by McNemar's exact test on the episodes that only one of the runs gets right.
"""

from __future__ import annotations

import argparse
from typing import Any

SUMMARY = "compare two runs on the same problems"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", metavar="RUN_A", help="a run directory")
    parser.add_argument("b", metavar="RUN_B", help="another one")


def run(args: argparse.Namespace) -> int:
    from eval.compare import BY_HORIZON, compare_runs
    from eval.report import read_runs
    from eval.statistics import percent_difference
    from tmtrain.commands.output import print_json, print_table

    result = compare_runs(*read_runs([args.a, args.b]))
    if args.json:
        print_json(result.to_json())
        return 0
    named: list[tuple[str, dict[str, Any] | None]] = [(name.replace("_", " "), score) for name, score in result.scores.items()]
    for level in result.by_horizon if len(result.by_horizon) > 1 else ():
        named += [(f"{name.replace('_', ' ')}, {level['horizon']} steps", level.get(name)) for name in BY_HORIZON]
    rows = [
        (name, f"{100 * s['a']:.1f}", f"{100 * s['b']:.1f}", percent_difference(s["difference"])) if s else (name, "–", "–", "–")
        for name, s in named
    ]
    print_table(["score, %", f"A: {result.a}", f"B: {result.b}", "B - A [95 % interval]"], rows)
    print(f"\n{result.pairs} episodes in both runs" + (f", {result.left_out} in one only, left out" if result.left_out else ""))
    differ = result.verdicts_differ
    print(f"replies that are the same to the letter: {result.same_text}; episodes with different verdicts: {len(differ)}", end="")
    print(f" ({', '.join(key[:14] for key in differ[:5])}{', …' if len(differ) > 5 else ''})" if differ else "")
    if result.success:
        test = result.success
        print(f"only A succeeds: {test.only_a}, only B: {test.only_b}; McNemar's exact test: p = {test.p_value:.2g}")
    if result.settings:
        print("the runs also differ in: " + "; ".join(result.settings))
    return 0
