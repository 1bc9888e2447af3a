"""How a suite's pass rate goes with established benchmarks (Computational Reasoning of LLMs, section 4.3 and figures 2 and 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eval.statistics import Rate, bootstrap

#: The benchmarks of the published table, whose mean the paper calls reasoning score (figure 5).
MEAN_OF = ("aime2024", "math500", "gpqa_diamond")
#: Fewer models say nothing: two points always lie on a line.
LEAST_MODELS = 3


@dataclass(frozen=True, slots=True)
class Correlation:
    """The pass rate against one benchmark, over the models that have both.

    Attributes:
        models: The n models.
        x, y: Pass rates and benchmark scores, each min–max normalised to 0…1; shape (n,).
        r: Pearson's r with its 95 % interval (percentile bootstrap over models).
        p_value: Two-sided, of the hypothesis that the two are uncorrelated (both normal).
        slope, intercept: The least-squares line through the normalised scores.
        shapiro_p: The p value of Shapiro and Wilk's test that the line's residuals are normal.
    """

    models: tuple[str, ...]
    x: np.ndarray
    y: np.ndarray
    r: Rate
    p_value: float
    slope: float
    intercept: float
    shapiro_p: float

    @property
    def residuals(self) -> np.ndarray:
        """What the line leaves of each benchmark score; shape (n,)."""
        return self.y - (self.intercept + self.slope * self.x)

    def to_json(self) -> dict[str, Any]:
        return {
            "pearson_r": self.r.value,
            "low": self.r.low,
            "high": self.r.high,
            "p_value": self.p_value,
            "n": len(self.models),
            "r_squared": float(self.r.value or 0.0) ** 2,
            "slope": self.slope,
            "intercept": self.intercept,
            "shapiro_p": self.shapiro_p,
            "models": list(self.models),
        }


def mean_scores(scores: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """The mean of `MEAN_OF` for each model that has all three. `scores` is by model and benchmark."""
    return {model: float(np.mean([own[b] for b in MEAN_OF])) for model, own in scores.items() if all(b in own for b in MEAN_OF)}


def correlate(pass_rates: Mapping[str, float], scores: Mapping[str, float]) -> Correlation:
    """Correlates two scores over the models that have both.

    Raises:
        ValueError: Where fewer than three models have both, or all have the same score.
    """
    from scipy.stats import linregress, shapiro

    models = tuple(m for m in pass_rates if m in scores)
    if len(models) < LEAST_MODELS:
        raise ValueError(f"{len(models)} models have both a pass rate and this benchmark's score: a correlation needs {LEAST_MODELS}")
    x, y = _normalised([pass_rates[m] for m in models]), _normalised([scores[m] for m in models])
    line = linregress(x, y)
    residuals = y - (line.intercept + line.slope * x)
    return Correlation(
        models=models,
        x=x,
        y=y,
        r=bootstrap(_pearson(x, y), models, least=-1.0),
        p_value=float(line.pvalue),
        slope=float(line.slope),
        intercept=float(line.intercept),
        shapiro_p=float(shapiro(residuals).pvalue) if np.ptp(residuals) > 1e-12 else 1.0,
    )


def _normalised(values: Sequence[float]) -> np.ndarray:
    array = np.asarray(values, float)
    spread = array.max() - array.min()
    if spread == 0:
        raise ValueError("all models have the same score, so nothing can go with it")
    return (array - array.min()) / spread


def _pearson(x: np.ndarray, y: np.ndarray) -> Any:
    """Pearson's r as a statistic on bootstrap weights of shape (R, n); NaN where a resample has no spread."""

    def statistic(weights: np.ndarray) -> np.ndarray:
        share = weights / weights.sum(axis=1, keepdims=True)
        dx, dy = (v - (share @ v)[:, None] for v in (x, y))
        xx, yy, xy = ((share * a * b).sum(axis=1) for a, b in ((dx, dx), (dy, dy), (dx, dy)))
        below = np.sqrt(xx * yy)
        return np.divide(xy, below, out=np.full(len(weights), np.nan), where=below > 1e-12)

    return statistic
