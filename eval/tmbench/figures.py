"""The figures of Computational Reasoning of LLMs, from what `correlation` and `tmtrain ablate` give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from eval.plots import COLOURS, draw_curves, finish, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from eval.tmbench.correlation import Correlation


def correlation_figure(correlations: Mapping[str, Correlation]) -> Figure:
    """Above, the pass rate against each benchmark with the linear fit and its 95 % band; below, the normal Q–Q plot of the residuals
    (figures 2 and 5 of Computational Reasoning of LLMs)."""
    import numpy as np
    from scipy.stats import probplot, t

    figure = new_figure(width=max(4.0, 3.2 * len(correlations)), height=6)
    panels = figure.subplots(2, len(correlations), squeeze=False)
    for (above, below), (name, found), colour in zip(panels.T, correlations.items(), COLOURS, strict=False):
        n, at = len(found.models), np.linspace(0, 1, 50)
        line = found.intercept + found.slope * at
        above.scatter(found.x, found.y, color=colour, s=18)
        above.plot(at, line, color=colour, label=f"r = {found.r.value:.3f}, p = {found.p_value:.2g}")
        spread = float(((found.x - found.x.mean()) ** 2).sum())
        error = np.sqrt((found.residuals**2).sum() / (n - 2) * (1 / n + (at - found.x.mean()) ** 2 / spread))
        half = t.ppf(0.975, n - 2) * error
        above.fill_between(at, line - half, line + half, color=colour, alpha=0.18, linewidth=0)
        above.set(title=name, xlabel="pass rate (min–max)", ylabel="score (min–max)", ylim=(-0.25, 1.35))
        (quantiles, residuals), (slope, intercept, _) = probplot(found.residuals)
        below.scatter(quantiles, residuals, color=colour, s=18)
        below.plot(quantiles, intercept + slope * quantiles, color="#777", linewidth=1)
        below.set(xlabel="normal quantiles", ylabel="residuals, in order")
        finish(above)
        finish(below)
    return figure


def ablation_figure(ablations: Mapping[str, Sequence[Mapping[str, Any]]], axis: str) -> Figure:
    """Pass rate and uniform step-weighted accuracy at each setting, one line a policy with its 95 % band (figures 3b to 3d of Computational
    Reasoning of LLMs). `ablations` holds the points of each policy's `ablation.json`, of which those without a scored episode are left out;
    settings that are names stand side by side."""
    figure = new_figure(width=9)
    labels = list(dict.fromkeys(p["label"] for points in ablations.values() for p in points))
    for axes, (key, name) in zip(
        figure.subplots(1, 2, sharey=True), {"pass_rate": "pass rate (%)", "swa_uniform": "SWA uniform (%)"}.items(), strict=True
    ):
        curves = {
            policy: [
                (labels.index(p["label"]) if p["x"] is None else p["x"], p[key]["value"], p[key]["low"], p[key]["high"])
                for p in points
                if p[key]["value"] is not None
            ]
            for policy, points in ablations.items()
        }
        if all(p["x"] is None for points in ablations.values() for p in points):
            _marks(axes, curves, labels)
            axes.set(xlabel=axis, ylabel=name, ylim=(-2, 102))
            finish(axes)
        else:
            draw_curves(axes, curves, axis, name)
    return figure


def unbounded_figure(
    last_correct: Mapping[str, Sequence[Mapping[str, Any]]], survivals: Mapping[str, Sequence[Mapping[str, Any]]]
) -> Figure:
    """The last correct step of each problem, and the share of the problems still right at each step with its 95 % band (figure 3a of
    Computational Reasoning of LLMs). Both arguments are entries of each policy's `ablation.json`."""
    figure = new_figure(width=9)
    bars, survival = figure.subplots(1, 2)
    width = 0.8 / len(last_correct)
    for i, (name, episodes) in enumerate(last_correct.items()):
        steps = [e["last_correct"] for e in episodes]
        at = [k + width * (i + 0.5) - 0.4 for k in range(len(steps))]
        bars.bar(at, steps, width=width, color=COLOURS[i % len(COLOURS)], label=name)
    bars.set(xlabel="problem", ylabel="last correct step", xticks=[])
    finish(bars)
    points = {
        name: [(a["step"], a["correct"] / a["total"], a["low"], a["high"]) for a in acc if a["total"]] for name, acc in survivals.items()
    }
    draw_curves(survival, points, "step", "problems right up to here (%)", marker="")
    return figure


def _marks(axes: Any, curves: Mapping[str, Sequence[tuple[float, float, float, float]]], labels: Sequence[str]) -> None:
    """Rates with their intervals as bars beside each other, where the settings are names."""
    for i, (name, points) in enumerate(curves.items()):
        if not points:
            continue
        at, value, low, high = zip(*points, strict=True)
        x = [a + 0.6 * (i + 0.5) / len(curves) - 0.3 for a in at]
        below, above = ([100 * abs(e - v) for e, v in zip(ends, value, strict=True)] for ends in (low, high))
        colour = COLOURS[i % len(COLOURS)]
        axes.errorbar(x, [100 * v for v in value], (below, above), color=colour, label=name, fmt="o", markersize=4, capsize=3)
    axes.set_xticks(range(len(labels)), labels)
