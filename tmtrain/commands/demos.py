"""Write demonstrations to fine-tune on: the expert's episodes as chat messages, one JSON object a line.

Each row is {"messages": [...], "id": problem id}, whole episodes in one row. With history pruning the context is rewritten every turn, so
each turn is a row of its own. The problems are those that `tmtrain generate` gives for the same seed, split and knobs.

  tmtrain demos tag -n 1000 --set max_steps=5 --style compact -o sft.jsonl
  tmtrain demos listworld -n 500 --oracles plan+state --noise 0.1 -o sft.jsonl
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from envs.environment import Setting
    from envs.problem import Problem

SUMMARY = "write the expert's demonstrations for SFT"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from envs.environment import STYLES

    parser.add_argument("env", metavar="ENV", help="an environment, see `tmtrain envs`")
    parser.add_argument("-n", type=int, default=10, metavar="N", help="number of problems (default: 10)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the streams (default: 0)")
    parser.add_argument("--split", default="train", help="name of the streams (default: train)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a knob of the generator; may be repeated")
    parser.add_argument(
        "--disjoint-from", action="append", default=[], metavar="FILE|SUITE", help="share no canonical hash with this; may be repeated"
    )
    parser.add_argument("--oracles", default="none", help="none, plan, state, plan+state, state+history or plan+state+history")
    parser.add_argument("--style", choices=STYLES, default="verbose", help="prompt style (default: verbose)")
    parser.add_argument("--noise", type=float, default=0.0, metavar="P", help="chance of a wrong action at each step (default: 0)")
    parser.add_argument("-o", "--output", metavar="FILE", help="where to write (default: standard output)")


def run(args: argparse.Namespace) -> int:
    from envs.dataset import draw, make_params
    from envs.environment import Setting
    from envs.suites import reserved_hashes
    from tmtrain.commands.output import print_json
    from tmtrain.commands.problems import knobs, named_problems

    if args.n < 1:
        raise ValueError(f"-n must be at least 1, not {args.n}")
    if not 0 <= args.noise <= 1:
        raise ValueError(f"--noise must lie in 0…1, not {args.noise}")
    if args.json and not args.output:
        raise ValueError("--json prints counts, so the rows need a file: add -o FILE")
    setting = Setting.parse(args.oracles, args.style)
    params = make_params(args.env, knobs(args.set))
    forbidden = reserved_hashes().union(*({p.canonical for p in named_problems(name)} for name in args.disjoint_from))
    problems = islice(draw(args.env, params, seed=args.seed, split=args.split, forbidden=forbidden, unique=True), args.n)
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for problem in problems for row in _rows(problem, setting, args.noise, args.seed)]
    if args.output:
        with Path(args.output).open("w", encoding="utf-8") as file:
            file.writelines(lines)
    else:
        sys.stdout.writelines(lines)
    if args.json:
        print_json({"problems": args.n, "rows": len(lines), "output": args.output})
    elif args.output:
        print(f"wrote {len(lines)} rows of {args.n} problems to {args.output}", file=sys.stderr)
    return 0


def _rows(problem: Problem, setting: Setting, noise: float, seed: int) -> Iterator[dict[str, Any]]:
    from envs.problem import stream
    from tmtrain.data import demonstrations

    rng = stream("demos", problem.id, seed)
    for row in demonstrations(problem, setting, lambda episode: episode.noisy(rng, noise)):
        yield {**row, "id": problem.id}
