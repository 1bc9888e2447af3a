"""Intervals: Wilson's for rates of independent trials, Student's t for paired differences, a seeded cluster bootstrap for the rest."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np

CONFIDENCE = 0.95
_Z = 1.959963984540054  # the standard normal's quantile at (1 + CONFIDENCE) / 2
RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate, or a difference of two, with its 95 % interval: fractions, or None where nothing was counted.

    Attributes:
        value, low, high: The estimate and the interval's ends.
        n: What was counted: trials for a Wilson interval, clusters (problems) for a bootstrap.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def percent(rate: Mapping[str, Any]) -> str:
    """A rate's JSON form for people, in percent with its interval: `96.6 [93.1, 98.9]`, or `–` where nothing was counted."""
    if rate["value"] is None:
        return "–"
    return f"{100 * rate['value']:.1f} [{100 * rate['low']:.1f}, {100 * rate['high']:.1f}]"


def percent_difference(difference: Mapping[str, Any]) -> str:
    """A difference of two rates for people, in points: `+9.0 [+4.0, +14.0]`, or `–` where nothing was counted."""
    if difference["value"] is None:
        return "–"
    return f"{100 * difference['value']:+.1f} [{100 * difference['low']:+.1f}, {100 * difference['high']:+.1f}]"


def wilson(successes: int, trials: int) -> Rate:
    """The score interval of Wilson (1927) for `successes` of `trials` independent trials."""
    if trials == 0:
        return Rate(None, None, None, 0)
    p, z2 = successes / trials, _Z * _Z
    centre = (p + z2 / (2 * trials)) / (1 + z2 / trials)
    half = _Z * math.sqrt(p * (1 - p) / trials + z2 / (4 * trials * trials)) / (1 + z2 / trials)
    # At the ends rounding must not move the interval off the estimate.
    low = 0.0 if successes == 0 else centre - half
    high = 1.0 if successes == trials else centre + half
    return Rate(p, low, high, trials)


def resample(clusters: Sequence[str], seed: int = 0) -> np.ndarray:
    """Bootstrap weights: how often each item counts in each resample, the clusters being drawn whole.

    Args:
        clusters: The cluster (problem id) of each of the n items.
        seed: Seed of the draw; equal inputs give equal weights.

    Returns:
        Integers of shape (RESAMPLES, n).
    """
    names, member = np.unique(np.asarray(clusters, dtype=object).astype(str), return_inverse=True)
    return _counts(len(names), seed)[:, member]


@lru_cache(maxsize=4)  # an analysis asks for the same few again and again
def _counts(clusters: int, seed: int) -> np.ndarray:
    """How often each cluster is drawn in each resample."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(clusters, np.full(clusters, 1 / clusters), size=RESAMPLES)


def bootstrap(
    statistic: Callable[[np.ndarray], np.ndarray], clusters: Sequence[str], weights: np.ndarray | None = None, *, least: float = 0.0
) -> Rate:
    """A statistic with its percentile bootstrap interval.

    Args:
        statistic: From weights of shape (R, n) to R values; NaN where it is undefined for a resample.
        clusters: The cluster of each of the n items.
        weights: What `resample(clusters)` gave, where it is at hand.
        least: The least value that the statistic can have; the largest is 1.
    """
    if not clusters:
        return Rate(None, None, None, 0)
    value = float(statistic(np.ones((1, len(clusters))))[0])
    if math.isnan(value):
        return Rate(None, None, None, 0)
    if len(set(clusters)) == 1:  # one problem says nothing about the others
        return Rate(value, least, 1.0, 1)
    values = statistic(resample(clusters) if weights is None else weights)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.nanquantile(values, [tail, 1 - tail])
    return Rate(value, min(float(low), value), max(float(high), value), len(set(clusters)))


def mean_interval(strata: Sequence[Mapping[str, float]], confidence: float = CONFIDENCE) -> Rate:
    """The mean of the strata's means of values in -1…1, with Student's t interval.

    The strata count alike however many values they have. Values of the same cluster in several strata are taken to depend on each other
    (cluster-robust variance); the degrees of freedom are Satterthwaite's. Where no stratum varies at all, t would give a point: the
    interval is then what could differ unseen among so many (Clopper and Pearson), in the smallest stratum.

    Args:
        strata: For each stratum the value of each cluster (problem id); empty ones are left out.
        confidence: Of the interval, e.g. 1 - 0.05 / 12 for each of twelve that are to hold together (Bonferroni).
    """
    from scipy.special import stdtrit  # Student's t; scipy.stats takes seconds to import

    filled = [(list(s), np.array(list(s.values()))) for s in strata if s]
    clusters = {name for names, _ in filled for name in names}
    if not filled:
        return Rate(None, None, None, 0)
    value = float(np.mean([values.mean() for _, values in filled]))
    sizes = np.array([len(values) for _, values in filled])
    if sizes.min() == 1:  # one problem says nothing about the others
        return Rate(value, -1.0, 1.0, len(clusters))
    together: dict[str, float] = defaultdict(float)
    alone = []
    for (names, values), n in zip(filled, sizes, strict=True):
        parts = (values - values.mean()) * math.sqrt(n / (n - 1)) / (n * len(filled))
        alone.append(float(parts @ parts))
        for name, part in zip(names, parts, strict=True):
            together[name] += part
    variance = sum(part * part for part in together.values())
    if sum(alone) < 1e-20:
        half = 1 - ((1 - confidence) / 2) ** (1 / int(sizes.min()))
    else:
        freedom = sum(alone) ** 2 / sum(a * a / (n - 1) for a, n in zip(alone, sizes, strict=True))
        half = float(stdtrit(freedom, (1 + confidence) / 2)) * math.sqrt(variance)
    return Rate(value, max(-1.0, value - half), min(1.0, value + half), len(clusters))


def pass_at_k(n: int, correct: int, k: int) -> float:
    """The unbiased estimate of the chance that one of k samples is right, from n samples of which `correct` are (arXiv 2107.03374).

    Raises:
        ValueError: Unless 1 ≤ k ≤ n and 0 ≤ correct ≤ n.
    """
    if not (1 <= k <= n and 0 <= correct <= n):
        raise ValueError(f"pass@k needs 1 <= k <= n and 0 <= correct <= n, got k={k}, n={n}, correct={correct}")
    return 1.0 - math.comb(n - correct, k) / math.comb(n, k)
