"""Correlate the pass rate on tmbench-v1 with established benchmarks: AIME 2024, MATH-500, GPQA Diamond, MMLU-Pro.

Pearson's r with its p value and a bootstrap interval over models, for each benchmark and for the mean of the first three, on scores
normalised to 0…1 (min–max). The published table gives the models of the paper's figure, all of its models, or none; models of your own
join in with a run directory and with result files of lm-evaluation-harness or lighteval. The table has no MMLU-Pro: it is correlated
where --scores gives it for at least three models, which may be models of the table.

  tmtrain correlate -o correlation                       the paper's 12 models, with scatter and Q-Q plots
  tmtrain correlate --models all
  tmtrain correlate --run mine=runs/mine --scores mine=results_2026.json
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eval.tmbench.correlation import Correlation

SUMMARY = "correlate pass rates with established benchmarks"

_NAMES = {"aime2024": "AIME 2024", "math500": "MATH-500", "gpqa_diamond": "GPQA Diamond", "mmlu_pro": "MMLU-Pro"}
_MEAN = "mean of the first three"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--models",
        choices=("figure", "all", "none"),
        default="figure",
        help="which of the published table's: the 12 of the paper's figure (default), all, or none",
    )
    parser.add_argument(
        "--run", dest="runs", action="append", default=[], metavar="NAME=DIR", help="a model's run on tmbench-v1; may be repeated"
    )
    parser.add_argument(
        "--scores",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="benchmark results of a model; may be repeated",
    )
    parser.add_argument("-o", "--output", metavar="DIR", help="write correlation.json and plots here")


def run(args: argparse.Namespace) -> int:
    from eval.tmbench.correlation import LEAST_MODELS, correlate, mean_scores
    from tmtrain.commands.output import print_json, print_table

    pass_rates, scores = _published(args.models)
    for name, directory in _pairs(args.runs, "--run"):
        pass_rates[name] = _pass_rate(name, directory)
    read = _add_scores(scores, args.scores)
    if idle := sorted(scores.keys() - pass_rates.keys()):
        raise ValueError(f"{idle[0]!r} has benchmark scores and no pass rate: add --run {idle[0]}=DIR")
    if bare := sorted(pass_rates.keys() - scores.keys()):
        raise ValueError(f"{bare[0]!r} has a run and no benchmark scores: add --scores {bare[0]}=FILE")
    mean = correlate(pass_rates, mean_scores(scores))
    found: dict[str, Correlation] = {}
    for benchmark in _NAMES:
        own = {model: values[benchmark] for model, values in scores.items() if benchmark in values}
        if len(own) >= LEAST_MODELS:
            found[benchmark] = correlate(pass_rates, own)
    result: dict[str, Any] = {**mean.to_json(), "per_benchmark": {name: c.to_json() for name, c in found.items()}, "read": read}
    plots = _write(result, found, mean, Path(args.output)) if args.output else []
    if args.json:
        print_json({**result, "plots": plots})
        return 0
    shown = {**{_NAMES[name]: c for name, c in found.items()}, _MEAN: mean}
    print_table(
        ["benchmark", "models", "Pearson's r [95 % interval]", "p", "R²", "residuals normal, p"], [_row(*item) for item in shown.items()]
    )
    if "mmlu_pro" not in found:
        print("\nMMLU-Pro: the published table does not print it; give it for three models or more with --scores NAME=FILE")
    for line in [*(f"{r['model']}: {r['benchmark']} from {r['task']}, {r['metric']}" for r in read), *plots]:
        print(line)
    return 0


def _row(name: str, found: Correlation) -> Sequence[str]:
    r = found.r
    interval = f"{r.value:.3f} [{r.low:.3f}, {r.high:.3f}]"
    return [name, str(len(found.models)), interval, f"{found.p_value:.2e}", f"{(r.value or 0) ** 2:.3f}", f"{found.shapiro_p:.2f}"]


def _published(which: str) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    """Pass rates and benchmark scores of the chosen models of the table."""
    from eval.tmbench.table2 import CORRELATED, read_table

    rows = [] if which == "none" else [m for m in read_table() if which == "all" or m.name in CORRELATED]
    return {m.name: m.pass_rate for m in rows}, {m.name: dict(m.benchmarks) for m in rows}


def _pass_rate(name: str, directory: str) -> float:
    from eval.report import read_runs
    from eval.tmbench.table2 import check_comparable

    (found,) = read_runs([directory])
    check_comparable(name, found.manifest, found.records)
    return float(found.summary["pass_rate"]["value"])


def _add_scores(scores: dict[str, dict[str, float]], given: Sequence[str]) -> list[dict[str, str]]:
    """Puts what the result files hold into `scores`; what was taken from where."""
    from eval.tmbench.harness import read_scores

    read = []
    for name, path in _pairs(given, "--scores"):
        for benchmark, score in read_scores(path).items():
            scores.setdefault(name, {})[benchmark] = score.value
            read.append({"model": name, "benchmark": benchmark, "task": score.task, "metric": score.metric, "file": path})
    return read


def _pairs(given: Sequence[str], flag: str) -> list[tuple[str, str]]:
    pairs = []
    for text in given:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise ValueError(f"{flag} takes NAME={'DIR' if flag == '--run' else 'FILE'}, not {text!r}")
        pairs.append((name, value))
    return pairs


def _write(result: dict[str, Any], found: dict[str, Correlation], mean: Correlation, directory: Path) -> list[str]:
    """Writes correlation.json and the plots; the plots' paths."""
    from eval.records import write_json
    from eval.tmbench.figures import correlation_figure

    directory.mkdir(parents=True, exist_ok=True)
    write_json(directory / "correlation.json", result)
    path = directory / "correlation.png"
    figure = correlation_figure({**{_NAMES[name]: c for name, c in found.items()}, _MEAN: mean})
    figure.savefig(path, dpi=150, metadata={"Software": None})
    return [str(path)]
