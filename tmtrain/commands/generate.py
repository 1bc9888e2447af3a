"""Generate problems of an environment, or write a suite's problems.

Item i of a set is drawn from a random stream of its own, named by environment, split, seed and i, so any machine gives the same bytes.
Problems of the frozen suites, and whatever --disjoint-from names, are never generated; nor is any problem generated twice (both judged
by the canonical hash, so renamed copies count as the same problem).

  tmtrain generate tag -n 1000 --seed 42 --set max_steps=10 -o train.jsonl
  tmtrain generate tag -n 200 --seed 1 --split eval --disjoint-from train.jsonl -o eval.jsonl
  tmtrain generate tmbench-v1 --format published -o tmbench.json
"""

from __future__ import annotations

import argparse
import sys
from itertools import islice
from pathlib import Path

SUMMARY = "generate problems of an environment, or write a suite"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", metavar="ENV|SUITE", help="an environment or a suite, see `tmtrain envs`")
    parser.add_argument("-n", type=int, default=None, metavar="N", help="number of problems (default: 10; for a suite, all)")
    parser.add_argument("--seed", type=int, help="seed of the streams (default: 0)")
    parser.add_argument("--split", help="name of the streams (default: train)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a knob of the generator; may be repeated")
    parser.add_argument(
        "--disjoint-from", action="append", default=[], metavar="FILE|SUITE", help="share no canonical hash with this; may be repeated"
    )
    parser.add_argument("--format", choices=("jsonl", "published"), default="jsonl", help="file format (published: tag only)")
    parser.add_argument("-o", "--output", metavar="FILE", help="where to write (default: standard output)")


def run(args: argparse.Namespace) -> int:
    from envs.dataset import draw, make_params
    from envs.problem import Problem
    from envs.suites import load_suite, reserved_hashes, suite_names
    from tmtrain.commands.output import print_json
    from tmtrain.commands.problems import knobs, named_problems

    if args.n is not None and args.n < 1:
        raise ValueError(f"-n must be at least 1, not {args.n}")
    if args.json and not args.output:
        raise ValueError("--json prints counts, so the problems need a file: add -o FILE")
    settings = knobs(args.set)
    excluded = {name: {p.canonical for p in named_problems(name)} for name in args.disjoint_from}
    if args.target in suite_names():
        if settings or args.disjoint_from or args.seed is not None or args.split is not None:
            raise ValueError(f"suite {args.target} is frozen: --set, --seed, --split and --disjoint-from are for environments")
        problems: list[Problem] = load_suite(args.target).problems()[: args.n]
    else:
        forbidden = set().union(reserved_hashes(), *excluded.values())
        seed, split = args.seed or 0, args.split or "train"
        stream = draw(args.target, make_params(args.target, settings), seed=seed, split=split, forbidden=forbidden, unique=True)
        problems = list(islice(stream, 10 if args.n is None else args.n))
    text = _published(problems) if args.format == "published" else _lines(problems)
    if args.output:
        with Path(args.output).open("w", encoding="utf-8") as file:
            file.write(text)
    else:
        sys.stdout.write(text)
    shared = {name: len({p.canonical for p in problems} & hashes) for name, hashes in excluded.items()}
    if args.json:
        print_json({"problems": len(problems), "output": args.output, "disjoint_from": shared})
    else:
        for name, count in shared.items():
            print(f"{count} of {len(problems)} share a canonical hash with {name} ({len(excluded[name])} hashes)", file=sys.stderr)
        if args.output:
            print(f"wrote {len(problems)} problems to {args.output}", file=sys.stderr)
    return 0


def _lines(problems: list) -> str:
    from envs.dataset import to_lines

    return "".join(to_lines(problems))


def _published(problems: list) -> str:
    import json

    from envs.tag.published import to_published
    from envs.tag.system import TagSystem

    if other := {p.env for p in problems} - {"tag"}:
        raise ValueError(f"the published format is for tag problems, not for {other.pop()}")
    data = to_published([(p.id, TagSystem.from_payload(p.payload)) for p in problems])
    return json.dumps(data, ensure_ascii=False, indent=1) + "\n"
