"""Benchmark scores from the result files of lm-evaluation-harness and lighteval.

Both write a JSON object whose `results` map a task to its metrics. lm-evaluation-harness names them `metric,filter`
(`{"gpqa_diamond_cot_zeroshot": {"exact_match,flexible-extract": 0.27}}`), lighteval just `metric`, and its tasks carry the suite and the
number of examples (`{"lighteval|gpqa:diamond|0": {"gpqa_pass@1:1_samples": 0.5}}`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: How each benchmark's tasks are called, in the two harnesses' versions so far.
_TASKS = {
    "aime2024": re.compile(r"aime_?(?:20)?24\w*"),
    "math500": re.compile(r"(?:hendrycks_|minerva_)?math_?500\w*"),
    "gpqa_diamond": re.compile(r"\w*gpqa[:_]diamond\w*"),
    "mmlu_pro": re.compile(r"(?:leaderboard_)?mmlu_pro"),
}
#: The metrics that are accuracies, the one to take first. Lenient ways to find the answer in a reply come before strict ones, which
#: score the format. Of pass@1 estimates the one from a single sample is taken: it means the same in every version of lighteval.
_METRICS = [
    re.compile(p)
    for p in (
        r"math_verify(,.*)?",
        r"exact_match,flexible-extract",
        r"exact_match,custom-extract",
        r"exact_match(,none)?",
        r"extractive_match",
        r"(\w+_)?pass@1:1_samples",
        r"(\w+_)?pass@k:k=1(&n=1)?",
        r"acc(,none)?",
        r"acc_norm(,none)?",
        r"exact_match,.*",
        r"pass@1",
    )
]


@dataclass(frozen=True, slots=True)
class BenchmarkScore:
    """A benchmark's score as a fraction, and the task and metric of the file that it was read from."""

    value: float
    task: str
    metric: str


def read_scores(path: str | Path) -> dict[str, BenchmarkScore]:
    """The scores of AIME 2024, MATH-500, GPQA Diamond and MMLU-Pro in a result file, by the keys `aime2024`, `math500`, …

    Raises:
        ValueError: Where it is no such file, holds none of these benchmarks, or holds one of them several times.
    """
    try:
        data: Any = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"cannot read the benchmark results in {path}: {error}") from None
    results = data.get("results") if isinstance(data, dict) else None
    if not isinstance(results, dict):
        raise ValueError(f'{path} is no result file of lm-evaluation-harness or lighteval: it has no object "results"')
    found: dict[str, BenchmarkScore] = {}
    for task, metrics in results.items():
        benchmark = next((b for b, pattern in _TASKS.items() if pattern.fullmatch(_plain(task))), None)
        score = _score(task, metrics) if benchmark and isinstance(metrics, dict) else None
        if benchmark is None or score is None:
            continue
        if benchmark in found:
            raise ValueError(f"{path} has {benchmark} twice, as {found[benchmark].task!r} and {task!r}: leave one of them in the file")
        found[benchmark] = score
    if not found:
        raise ValueError(f"{path} has no accuracy of {', '.join(_TASKS)}; its tasks are {', '.join(results) or 'none'}")
    return found


def _plain(task: str) -> str:
    """A task's name without lighteval's suite and number of examples."""
    parts = task.lower().split("|")
    return parts[1] if len(parts) > 2 else parts[0]


def _score(task: str, metrics: Mapping[str, Any]) -> BenchmarkScore | None:
    for pattern in _METRICS:
        for name, value in metrics.items():
            if pattern.fullmatch(name) and isinstance(value, (int, float)) and 0 <= value <= 1:
                return BenchmarkScore(float(value), task, name)
    return None
