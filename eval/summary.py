"""From a run's records to its `summary.json`: scores, endings, tokens, overall and by horizon."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from eval.metrics import Scores, score
from eval.records import EpisodeRecord


def summarise(records: Sequence[EpisodeRecord], *, first_step: int = 0) -> dict[str, Any]:
    """The summary as JSON values: rates as fractions with intervals, keys in snake case."""
    levels: dict[int, list[EpisodeRecord]] = defaultdict(list)
    for record in records:
        levels[record.problem["horizon"]].append(record)
    scores = _score(records, first_step)
    return {
        "episodes": scores.episodes,
        **scores_json(scores),
        "tokens": {"completion": _spread(records, "completion_tokens"), "prompt": _spread(records, "prompt_tokens")},
        "by_horizon": [{"horizon": h, **_level(_score(levels[h], first_step))} for h in sorted(levels)],
    }


def scores_json(scores: Scores) -> dict[str, Any]:
    """All scores as JSON values. For tag, success is the published pass, so it stands under both names."""
    return {
        "success_rate": scores.success_rate.to_json(),
        "pass_rate": scores.success_rate.to_json(),
        "strict_pass_rate": scores.strict_success_rate.to_json(),
        "step_accuracy": scores.step_accuracy.to_json(),
        "swa_uniform": scores.swa_uniform.to_json(),
        "swa_linear": scores.swa_linear.to_json(),
        "faithfulness": scores.faithfulness.to_json(),
        "mean_first_error": scores.mean_first_error,
        "acc": [count.to_json() for count in scores.acc],
        "endings": scores.endings,
    }


def _score(records: Sequence[EpisodeRecord], first_step: int) -> Scores:
    return score([r.verdict for r in records], [r.problem["id"] for r in records], first_step=first_step)


def _level(scores: Scores) -> dict[str, Any]:
    return {
        "episodes": scores.episodes,
        "success_rate": scores.success_rate.to_json(),
        "step_accuracy": scores.step_accuracy.to_json(),
    }


def _spread(records: Sequence[EpisodeRecord], field: str) -> dict[str, float] | None:
    """Tokens an episode: total, mean and quantiles; None where no policy counted tokens."""
    sums = [sum(n) for r in records if (n := [t for t in getattr(r, field) if t is not None])]
    if not sums:
        return None
    p50, p90, p99 = np.percentile(sums, [50, 90, 99])
    return {
        "total": sum(sums),
        "mean": float(np.mean(sums)),
        "p50": float(p50),
        "p90": float(p90),
        "p99": float(p99),
        "max": max(sums),
    }
