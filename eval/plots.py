"""Plots of runs, as matplotlib figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Colours that stay apart for the colour-blind (Okabe and Ito).
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def step_accuracy_figure(summaries: Mapping[str, Mapping[str, Any]]) -> Figure:
    """ACC(i) against the step, one line a run, with its 95 % band (figure 1 of Computational Reasoning of LLMs)."""
    curves = {
        name: [(a["step"], a["correct"] / a["total"], a["low"], a["high"]) for a in summary["acc"] if a["total"]]
        for name, summary in summaries.items()
    }
    return _curves(curves, "step", "step accuracy (%)")


def horizon_figure(summaries: Mapping[str, Mapping[str, Any]]) -> Figure | None:
    """Success rate against the horizon, one line a run, with its 95 % band (figure 3 of LUMINA).

    Horizons with fewer than ten episodes are left out; None where fewer than two remain.
    """
    curves = {
        name: [
            (level["horizon"], rate["value"], rate["low"], rate["high"])
            for level in summary["by_horizon"]
            if (rate := level["success_rate"])["value"] is not None and level["episodes"] >= 10
        ]
        for name, summary in summaries.items()
    }
    if len({point[0] for points in curves.values() for point in points}) < 2:
        return None
    return _curves(curves, "steps of the true trace", "pass rate (%)")


def _curves(curves: Mapping[str, Sequence[tuple[float, float, float, float]]], x_label: str, y_label: str) -> Figure:
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for i, (name, points) in enumerate(curves.items()):
        if not points:
            continue
        x, value, low, high = zip(*points, strict=True)
        colour = _COLOURS[i % len(_COLOURS)]
        axes.fill_between(x, [100 * v for v in low], [100 * v for v in high], color=colour, alpha=0.18, linewidth=0)
        axes.plot(x, [100 * v for v in value], color=colour, label=name, marker="o", markersize=3)
    axes.set(xlabel=x_label, ylabel=y_label, ylim=(-2, 102))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    if curves:
        axes.legend(frameon=False)
    return figure
