"""From a run's records to its `summary.json`: scores, endings, tokens, overall and by horizon."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from eval.metrics import Scores, score
from eval.records import EpisodeRecord

#: The rates of a summary.
RATES = ("success_rate", "step_accuracy", "swa_uniform", "swa_linear", "strict_pass_rate")


def summarise(records: Sequence[EpisodeRecord], *, first_step: int = 0) -> dict[str, Any]:
    """The summary as JSON values: rates as fractions with intervals, keys in snake case."""
    levels: dict[int, list[EpisodeRecord]] = defaultdict(list)
    for record in records:
        levels[record.problem["horizon"]].append(record)
    scores = _score(records, first_step)
    return {
        "episodes": scores.episodes,
        **scores_json(scores),
        "tokens": tokens(records),
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
        "pass_at_k": {str(k): rate.to_json() for k, rate in scores.pass_at_k.items()},
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


def tokens(records: Sequence[EpisodeRecord]) -> dict[str, dict[str, float] | None]:
    """Tokens of replies and of contexts, summed over each episode, and of the single replies; None where no policy counted them."""
    known = [[n for n in r.completion_tokens if n is not None] for r in records]
    prompts = [[n for n in r.prompt_tokens if n is not None] for r in records]
    return {
        "completion": _spread([sum(n) for n in known if n]),
        "completion_per_turn": _spread([n for turns in known for n in turns]),
        "prompt": _spread([sum(n) for n in prompts if n]),
    }


def _spread(counts: Sequence[int]) -> dict[str, float] | None:
    if not counts:
        return None
    p50, p90, p99 = np.percentile(counts, [50, 90, 99])
    return {
        "total": sum(counts),
        "mean": float(np.mean(counts)),
        "p50": float(p50),
        "p90": float(p90),
        "p99": float(p99),
        "max": max(counts),
    }
