"""Plots of runs, as matplotlib figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Colours that stay apart for the colour-blind (Okabe and Ito).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
#: Endings in the order of the bars.
_ENDINGS = {
    "completed": "#1a7f37",
    "wrong": "#c62828",
    "over_budget": "#D55E00",
    "truncated": "#b26a00",
    "no_answer": "#8d6e63",
    "overlong_prompt": "#CC79A7",
    "unreachable": "#78909c",
    "infrastructure_error": "#37474f",
}


def step_accuracy_figure(summaries: Mapping[str, Mapping[str, Any]]) -> Figure:
    """ACC(i) against the step, one line a run, with its 95 % band (figure 1 of Computational Reasoning of LLMs)."""
    curves = {
        name: [(a["step"], a["correct"] / a["total"], a["low"], a["high"]) for a in summary["acc"] if a["total"]]
        for name, summary in summaries.items()
    }
    figure = new_figure()
    draw_curves(figure.subplots(), curves, "step", "step accuracy (%)")
    return figure


def horizon_figure(summaries: Mapping[str, Mapping[str, Any]]) -> Figure | None:
    """Success rate and step accuracy against the horizon, one line a run, with 95 % bands (figure 3 of LUMINA).

    Horizons with fewer than ten episodes are left out; None where fewer than two remain.
    """
    panels = {}
    for key, label in (("success_rate", "success rate (%)"), ("step_accuracy", "step accuracy (%)")):
        panels[label] = {
            name: [
                (level["horizon"], rate["value"], rate["low"], rate["high"])
                for level in summary["by_horizon"]
                if (rate := level[key])["value"] is not None and level["episodes"] >= 10
            ]
            for name, summary in summaries.items()
        }
    if len({point[0] for curves in panels.values() for points in curves.values() for point in points}) < 2:
        return None
    figure = new_figure(width=9)
    for axes, (label, curves) in zip(figure.subplots(1, 2, sharey=True), panels.items(), strict=True):
        draw_curves(axes, curves, "steps of the true trace", label)
    return figure


def tokens_figure(tokens: Mapping[str, Sequence[int]]) -> Figure | None:
    """Which share of the episodes took at most so many tokens, one line a run; None where no run counted tokens."""
    known = {name: sorted(counts) for name, counts in tokens.items() if counts}
    if not known:
        return None
    figure = new_figure()
    axes = figure.subplots()
    for i, (name, counts) in enumerate(known.items()):
        shares = [100 * (rank + 1) / len(counts) for rank in range(len(counts))]
        axes.step([counts[0], *counts], [0.0, *shares], where="post", color=COLOURS[i % len(COLOURS)], label=name)
    if max(counts[-1] for counts in known.values()) > 30 * max(1, min(counts[0] for counts in known.values())):
        axes.set_xscale("log")
    axes.set(xlabel="tokens of an episode's replies", ylabel="episodes with at most so many (%)", ylim=(-2, 102))
    finish(axes)
    return figure


def endings_figure(endings: Mapping[str, Mapping[str, int]]) -> Figure:
    """How episodes ended: one bar a run, cut by the share of each ending."""
    figure = new_figure(height=1.1 + 0.45 * len(endings))
    axes = figure.subplots()
    kinds = [kind for kind in _ENDINGS if any(kind in counts for counts in endings.values())]
    names = list(endings)
    left = [0.0] * len(names)
    for kind in kinds:
        share = [100 * endings[n].get(kind, 0) / max(1, sum(endings[n].values())) for n in names]
        bars = axes.barh(names, share, left=left, color=_ENDINGS[kind], label=kind.replace("_", " "), height=0.6)
        axes.bar_label(bars, [f"{s:.0f}" if s >= 4 else "" for s in share], label_type="center", fontsize=8, color="white")
        left = [x + s for x, s in zip(left, share, strict=True)]
    axes.invert_yaxis()
    axes.set(xlabel="share of the episodes (%)", xlim=(0, 100))
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.legend(frameon=False, ncols=4, loc="lower left", bbox_to_anchor=(0, 1), fontsize=8)
    return figure


def new_figure(width: float = 7, height: float = 4) -> Figure:
    """An empty figure of this size in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def draw_curves(
    axes: Any, curves: Mapping[str, Sequence[tuple[float, float, float, float]]], x_label: str, y_label: str, marker: str = "o"
) -> None:
    """Draws one line a run through points (x, value, low, high), in percent, with a band from low to high."""
    from matplotlib.ticker import MaxNLocator

    for i, (name, points) in enumerate(curves.items()):
        if not points:
            continue
        x, value, low, high = zip(*points, strict=True)
        colour = COLOURS[i % len(COLOURS)]
        axes.fill_between(x, [100 * v for v in low], [100 * v for v in high], color=colour, alpha=0.18, linewidth=0)
        axes.plot(x, [100 * v for v in value], color=colour, label=name, marker=marker, markersize=3)
    axes.set(xlabel=x_label, ylabel=y_label, ylim=(-2, 102))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    finish(axes)


def finish(axes: Any) -> None:
    """The look of all axes: a faint grid, no box, and a legend where there is something to name."""
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False)
