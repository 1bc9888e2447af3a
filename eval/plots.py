"""Plots of runs, as matplotlib figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from eval.correlation import Correlation

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
    _curves(figure.subplots(), curves, "step", "step accuracy (%)")
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
        _curves(axes, curves, "steps of the true trace", label)
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
    Reasoning of LLMs). `ablations` holds the points of each policy's `ablation.json`; settings that are names stand side by side."""
    figure = new_figure(width=9)
    labels = list(dict.fromkeys(p["label"] for points in ablations.values() for p in points))
    for axes, (key, name) in zip(
        figure.subplots(1, 2, sharey=True), {"pass_rate": "pass rate (%)", "swa_uniform": "SWA uniform (%)"}.items(), strict=True
    ):
        curves = {
            policy: [
                (labels.index(p["label"]) if p["x"] is None else p["x"], p[key]["value"], p[key]["low"], p[key]["high"]) for p in points
            ]
            for policy, points in ablations.items()
        }
        if all(p["x"] is None for points in ablations.values() for p in points):
            _marks(axes, curves, labels)
            axes.set(xlabel=axis, ylabel=name, ylim=(-2, 102))
            finish(axes)
        else:
            _curves(axes, curves, axis, name)
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
    points = {name: [(a["step"], a["correct"] / a["total"], a["low"], a["high"]) for a in acc] for name, acc in survivals.items()}
    _curves(survival, points, "step", "problems right up to here (%)", marker="")
    return figure


def new_figure(width: float = 7, height: float = 4) -> Figure:
    """An empty figure of this size in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _curves(
    axes: Any, curves: Mapping[str, Sequence[tuple[float, float, float, float]]], x_label: str, y_label: str, marker: str = "o"
) -> None:
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


def _marks(axes: Any, curves: Mapping[str, Sequence[tuple[float, float, float, float]]], labels: Sequence[str]) -> None:
    """Rates with their intervals as bars beside each other, where the settings are names."""
    for i, (name, points) in enumerate(curves.items()):
        at, value, low, high = zip(*points, strict=True)
        x = [a + 0.6 * (i + 0.5) / len(curves) - 0.3 for a in at]
        below, above = ([100 * abs(e - v) for e, v in zip(ends, value, strict=True)] for ends in (low, high))
        colour = COLOURS[i % len(COLOURS)]
        axes.errorbar(x, [100 * v for v in value], (below, above), color=colour, label=name, fmt="o", markersize=4, capsize=3)
    axes.set_xticks(range(len(labels)), labels)


def finish(axes: Any) -> None:
    """The look of all axes: a faint grid, no box, and a legend where there is something to name."""
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False)
