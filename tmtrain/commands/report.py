"""Write an HTML report and plots about one or several runs.

tmtrain report runs/mine                              runs/mine/report.html and runs/mine/plots/
tmtrain report runs/before runs/after -o report       both in one page
tmtrain report runs/mine --published                  with the run's place among the models of the published table
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SUMMARY = "write an HTML report about runs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="a run directory")
    parser.add_argument("-o", "--output", metavar="DIR", help="where to write (default: the run's folder; for several, needed)")
    parser.add_argument("--published", action="store_true", help="put runs on tmbench-v1 among the 35 published models")


def run(args: argparse.Namespace) -> int:
    from eval.report import read_runs, write_report
    from eval.tmbench.table2 import published_ranking
    from tmtrain.commands.output import print_json, print_table

    if len(args.runs) > 1 and not args.output:
        raise ValueError("a report about several runs needs a place: add -o DIR")
    directory = Path(args.output or args.runs[0])
    runs = read_runs(args.runs)
    published = published_ranking(runs) if args.published else []
    page = write_report(runs, directory, published=published)
    plots = sorted(str(p) for p in (directory / "plots").glob("*.png"))
    if args.json:
        print_json({"report": str(page), "plots": plots, "published": published})
        return 0
    if published:
        header = ["", "model", "SWA uniform, %", "SWA linear, %", "pass rate, %"]
        rows = [(str(i), _named(row), *(f"{100 * row[k]:.1f}" for k in _SCORES)) for i, row in enumerate(published, 1)]
        print_table(header, rows)
        print()
    print("\n".join([str(page), *plots]))
    return 0


_SCORES = ("swa_uniform", "swa_linear", "pass_rate")


def _named(row: Mapping[str, Any]) -> str:
    return f"→ {row['model']}" if row["own"] else str(row["model"])
