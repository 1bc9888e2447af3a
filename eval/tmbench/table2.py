"""Table 2 of Computational Reasoning of Large Language Models (arXiv 2504.20771): 35 models, scores as printed.

The paper speaks of 36 models; its table prints 35. MMLU-Pro, which its figure 2 shows as well, is not in the table.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envs.suites import load_suite, problems_hash
from eval.records import EpisodeRecord
from eval.report import Run
from eval.tmbench.correlation import MEAN_OF

SUITE = "tmbench-v1"
#: The 12 models of the paper's figures 2 and 5 (section 4.3).
CORRELATED = (
    "Gemini-2.5-Pro",
    "Grok-3-Beta",
    "Claude-3.7-Sonnet",
    "Doubao-1.5-Pro",
    "DeepSeek-R1",
    "GPT-4.1",
    "Llama-4-Maverick",
    "Qwen2.5-72B",
    "Llama-3.3-70B",
    "Qwen2.5-32B",
    "Gemma-3-27B",
    "Qwen2.5-14B",
)


@dataclass(frozen=True, slots=True)
class PublishedModel:
    """One row of the table, as fractions.

    Attributes:
        name, group: The model, and the heading under which it stands.
        swa_uniform, swa_linear, pass_rate: Its scores on the suite.
        benchmarks: Its scores on the benchmarks that the table marks with asterisks, by their names in `MEAN_OF`.
    """

    name: str
    group: str
    swa_uniform: float
    swa_linear: float
    pass_rate: float
    benchmarks: Mapping[str, float]


def read_table() -> list[PublishedModel]:
    """The rows, in the table's order."""
    with Path(__file__).with_name("table2.csv").open(encoding="utf-8", newline="") as file:
        return [_row(row) for row in csv.DictReader(file)]


def published_ranking(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """The runs among the models of the published table, by pass rate: scores as fractions, and whether a row is one of the runs.

    Raises:
        ValueError: Where a run is not of the whole of the published suite.
    """
    keys = ("swa_uniform", "swa_linear", "pass_rate")
    rows: list[dict[str, Any]] = [{"model": m.name, "own": False, **{key: getattr(m, key) for key in keys}} for m in read_table()]
    for run in runs:
        check_comparable(run.name, run.manifest, run.records)
        rows.append({"model": run.name, "own": True, **{key: run.summary[key]["value"] for key in keys}})
    return sorted(rows, key=lambda row: (row["pass_rate"], row["swa_uniform"]), reverse=True)


def check_comparable(name: str, manifest: Mapping[str, Any], records: Sequence[EpisodeRecord]) -> None:
    """Raises ValueError where a run cannot stand beside the table: its scores are not of the whole of `tmbench-v1`.

    Args:
        name: The run's name, for the error.
        manifest: Its manifest.
        records: Its episodes, of which only the scored ones count.
    """
    whole = load_suite(SUITE).problems()
    scored = {r.problem["id"] for r in records if r.verdict.ending.scored}
    if manifest["suite"]["hash"] != problems_hash(whole) or len(scored) < len(whole):
        unanswered = len({r.problem["id"] for r in records} - scored)
        found = f"{len(scored)} problems of {manifest['suite']['source']}"
        found += f" ({unanswered} more got no answer and are not scored: go on with --resume)" if unanswered else ""
        raise ValueError(f"the published scores are of the {len(whole)} problems of {SUITE}, {name} is of {found}: evaluate on {SUITE}")


def _row(row: Mapping[str, str]) -> PublishedModel:
    def fraction(key: str) -> float:
        return float(row[key]) / 100

    benchmarks = {name: fraction(name) for name in MEAN_OF}
    return PublishedModel(row["model"], row["group"], fraction("swa_uniform"), fraction("swa_linear"), fraction("pass_rate"), benchmarks)
