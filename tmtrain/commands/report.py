"""Write an HTML report and plots about one or several runs.

tmtrain report runs/mine                              runs/mine/report.html and runs/mine/plots/
tmtrain report runs/before runs/after -o report       both in one page
"""

from __future__ import annotations

import argparse
from pathlib import Path

SUMMARY = "write an HTML report about runs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="a run directory")
    parser.add_argument("-o", "--output", metavar="DIR", help="where to write (default: the run's folder; for several, needed)")


def run(args: argparse.Namespace) -> int:
    from eval.report import read_runs, write_report
    from tmtrain.commands.output import print_json

    if len(args.runs) > 1 and not args.output:
        raise ValueError("a report about several runs needs a place: add -o DIR")
    directory = Path(args.output or args.runs[0])
    page = write_report(read_runs(args.runs), directory)
    plots = sorted(str(p) for p in (directory / "plots").glob("*.png"))
    if args.json:
        print_json({"report": str(page), "plots": plots})
    else:
        print("\n".join([str(page), *plots]))
    return 0
