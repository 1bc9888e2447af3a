"""How success falls with the horizon: the horizon of even odds, and what independent step errors would make of it (LUMINA, figure 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from eval.metrics import statistics_of
from eval.records import EpisodeRecord
from eval.statistics import CONFIDENCE, Rate, bootstrap, resample, wilson

#: Weight of the ridge that keeps the fit finite where one horizon parts successes from failures.
_RIDGE = 0.01


def success_rate(records: Sequence[EpisodeRecord]) -> Rate:
    """Wilson's interval where each problem has one episode, else the bootstrap clustered by problem."""
    ids = [r.problem["id"] for r in records]
    if len(set(ids)) == len(ids):
        return wilson(sum(r.verdict.success for r in records), len(records))
    return bootstrap(statistics_of([r.verdict for r in records])["success_rate"], ids)


def step_accuracy(records: Sequence[EpisodeRecord]) -> Rate:
    """Optimal actions over all actions (J_step in LUMINA, section 3)."""
    return bootstrap(statistics_of([r.verdict for r in records])["step_accuracy"], [r.problem["id"] for r in records])


def independence(records: Sequence[EpisodeRecord]) -> dict[str, dict[str, Any]]:
    """What success would be if steps went wrong independently of each other, and how far the success rate lies above that.

    An episode of horizon T would succeed with probability p^T. Two values are used for p: `step_accuracy`, as in the paper, and
    `on_track`, the share of right actions up to each episode's first error. Only the latter makes the gap zero where errors are
    independent and cannot be made good: after a mistake that cannot be undone all later steps count as wrong, which says nothing of p.
    A gap above zero then says that errors are made good, or come together in few episodes.

    Returns:
        For each p its value, `predicted` (the mean of p^T over the episodes) and `gap` (success rate minus predicted), as rates.
    """
    ids = [r.problem["id"] for r in records]
    horizon = np.array([r.problem["horizon"] for r in records], float)
    success = np.array([r.verdict.success for r in records], float)
    due = [r.verdict.due for r in records]
    until = [[s.correct for s in d[: 1 + next((i for i, s in enumerate(d) if not s.correct), len(d))]] for d in due]
    weights = resample(ids)
    found = {}
    for name, steps in (("step_accuracy", [[s.correct for s in d] for d in due]), ("on_track", until)):
        right, all_ = np.array([sum(s) for s in steps], float), np.array([len(s) for s in steps], float)

        def p(w: np.ndarray, right: np.ndarray = right, all_: np.ndarray = all_) -> np.ndarray:
            below = w @ all_
            return np.divide(w @ right, below, out=np.full(len(w), np.nan), where=below > 0)

        def predicted(w: np.ndarray, p: Any = p) -> np.ndarray:
            return (w * p(w)[:, None] ** horizon).sum(axis=1) / w.sum(axis=1)

        def gap(w: np.ndarray, predicted: Any = predicted) -> np.ndarray:
            return w @ success / w.sum(axis=1) - predicted(w)

        found[name] = {
            "p": bootstrap(p, ids, weights).to_json(),
            "predicted": bootstrap(predicted, ids, weights).to_json(),
            "gap": bootstrap(gap, ids, weights, least=-1.0).to_json(),
        }
    return found


def even_odds(records: Sequence[EpisodeRecord]) -> dict[str, Any]:
    """The horizon at which half of the episodes succeed: a logistic fit of success on the logarithm of the horizon.

    Returns:
        `value` with its interval `low`, `high` (percentile bootstrap clustered by problem), `n` problems, and `least` and `most`, the
        range of horizons that were played. Nothing is said beyond that range: an end that lies beyond is None, and `beyond` says on
        which side the value itself lies, `above`, `below` or None.
    """
    ids = [r.problem["id"] for r in records]
    horizons = np.array([r.problem["horizon"] for r in records])
    success = np.array([r.verdict.success for r in records], float)
    least, most = int(horizons.min()), int(horizons.max())
    weights = np.vstack([np.ones((1, len(ids)), int), resample(ids)])
    points, member = np.unique(horizons, return_inverse=True)
    at = np.eye(len(points))[member]
    values = _half(np.log(points), (weights * success) @ at, weights @ at)
    ends = np.quantile(values[1:], [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], method="nearest")
    value, low, high = (float(v) if least <= v <= most else None for v in (values[0], *ends))
    beyond = None if value is not None else "above" if values[0] > most else "below"
    return {"value": value, "low": low, "high": high, "n": len(set(ids)), "least": least, "most": most, "beyond": beyond}


def shown(fit: dict[str, Any]) -> str:
    """The fit for people: `14.2 [12.9, 15.8]`; what lies beyond the range is written as `> 31` or `< 4`."""
    if fit["beyond"]:
        return f"> {fit['most']}" if fit["beyond"] == "above" else f"< {fit['least']}"
    low = f"{fit['low']:.1f}" if fit["low"] is not None else f"< {fit['least']}"
    high = f"{fit['high']:.1f}" if fit["high"] is not None else f"> {fit['most']}"
    return f"{fit['value']:.1f} [{low}, {high}]"


def _half(x: np.ndarray, successes: np.ndarray, trials: np.ndarray) -> np.ndarray:
    """Newton's method for R weightings at once.

    Args:
        x: Log horizons, shape (H,).
        successes, trials: Weights of the successes and of all episodes at each horizon, shape (R, H).

    Returns:
        The horizons of even odds, shape (R,); infinite or 0 where success does not fall with the horizon and is above or below a half.
    """
    scale = x.std() or 1.0
    z = (x - x.mean()) / scale
    a, b = np.zeros(len(trials)), np.zeros(len(trials))
    for _ in range(50):
        p = 1 / (1 + np.exp(-np.clip(a[:, None] + b[:, None] * z, -30, 30)))
        residual, curve = successes - trials * p, trials * p * (1 - p)
        first = residual.sum(axis=1) - _RIDGE * a
        second = residual @ z - _RIDGE * b
        aa, ab, bb = curve.sum(axis=1) + _RIDGE, curve @ z, curve @ (z * z) + _RIDGE
        determinant = aa * bb - ab * ab
        step_a, step_b = (bb * first - ab * second) / determinant, (aa * second - ab * first) / determinant
        longest = np.maximum(1.0, np.maximum(abs(step_a), abs(step_b)))  # far steps are cut: Newton's may overshoot
        a, b = a + step_a / longest, b + step_b / longest
        if max(abs(step_a).max(), abs(step_b).max()) < 1e-9:
            break
    falls = b < -1e-6
    with np.errstate(over="ignore"):
        half = np.exp(x.mean() + scale * np.divide(-a, b, out=np.zeros_like(a), where=falls))
    return np.where(falls, half, np.where(a > 0, np.inf, 0.0))
