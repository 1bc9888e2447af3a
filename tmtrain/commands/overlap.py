"""Count the problems that two sets share, by id and by canonical hash (renamed copies count as the same problem)."""

from __future__ import annotations

import argparse

SUMMARY = "count the problems that two sets share"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", metavar="A", help="a file or a suite")
    parser.add_argument("b", metavar="B", help="a file or a suite")


def run(args: argparse.Namespace) -> int:
    from tmtrain.commands.output import print_json
    from tmtrain.commands.problems import named_problems

    a, b = named_problems(args.a), named_problems(args.b)
    ids = {p.id for p in a} & {p.id for p in b}
    canonical = {p.canonical for p in a} & {p.canonical for p in b}
    if args.json:
        print_json({"a": len(a), "b": len(b), "shared_ids": len(ids), "shared_canonical": len(canonical)})
    else:
        print(f"{args.a}: {len(a)} problems\n{args.b}: {len(b)} problems")
        print(f"shared: {len(ids)} ids, {len(canonical)} canonical hashes" + ("" if canonical else " (disjoint)"))
    return 0
