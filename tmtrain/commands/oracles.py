"""Analyse an oracle experiment: what holds a model back in the multi-turn worlds, as a page, figures and JSON.

RUN is a run directory or a folder with several, such as `tmtrain eval MODEL --suite lumina-horizon --oracles all -o RUN` leaves. Runs are
arranged by what their manifests say: several models are compared, and different problems of one model are put together.

  tmtrain oracles runs/qwen                                runs/qwen/oracles.html and runs/qwen/plots/
  tmtrain oracles runs/qwen-4b runs/qwen-8b -o report      both in one page
  tmtrain oracles runs/qwen --target 0.5 --target gridworld=0.75

The page holds success by setting, success and step accuracy by horizon, each oracle's effect on success with an interval, the same at
levels where models succeed alike (about 30 %, in GridWorld 75 %: --target), the horizon of even odds, paths and errors; and, where several
wordings of the prompt were run, how much they move success.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

SUMMARY = "analyse an oracle experiment: what holds a model back"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="a run directory, or a folder with several")
    parser.add_argument(
        "--target",
        action="append",
        default=[],
        metavar="[WORLD=]RATE",
        help="success at which models are compared (default: 0.3 and gridworld=0.75)",
    )
    parser.add_argument("-o", "--output", metavar="DIR", help="where to write (default: the folder; for several, needed)")


def run(args: argparse.Namespace) -> int:
    from eval.oracles.analysis import analyse
    from eval.oracles.experiment import read_experiments
    from eval.oracles.report import write_oracle_report
    from tmtrain.commands.output import print_json

    if len(args.runs) > 1 and not args.output:
        raise ValueError("a report about several runs needs a place: add -o DIR")
    targets = _targets(args.target)
    analysis = analyse(read_experiments(args.runs), targets)
    directory = Path(args.output or args.runs[0])
    page = write_oracle_report(analysis, directory)
    plots = sorted(str(p) for p in (directory / "plots").glob("*.png"))
    if args.json:
        print_json({**analysis, "report": str(page), "plots": plots})
        return 0
    for finding in analysis["findings"]:
        print(f"{finding['model']}, {finding['world']}: {finding['text']}")
    if analysis["findings"]:
        print("\nchange in success with the oracle on, in points; the intervals hold together with 95 %\n")
    print("\n".join([str(page), *plots]))
    return 0


def _targets(texts: Iterable[str]) -> dict[str, float]:
    """By world the success rates of `--target`; "" stands for all worlds that are not named."""
    targets = {}
    for text in texts:
        world, _, rate = text.rpartition("=")
        try:
            targets[world] = float(rate)
        except ValueError:
            targets[world] = -1.0
        if not 0 < targets[world] < 1:
            raise ValueError(f"--target takes a success rate between 0 and 1, such as 0.3 or gridworld=0.75, not {text!r}")
    return targets
