"""The HTML page about an oracle experiment and its figures, from what `eval.oracles.analysis.analyse` gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envs.environment import ORACLES
from eval.oracles.effects import PAIRS, SKILLS
from eval.oracles.horizons import shown
from eval.plots import COLOURS, finish, new_figure
from eval.report import write_page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SETTING = dict(zip(ORACLES, ("#78909c", COLOURS[0], COLOURS[1], COLOURS[3], COLOURS[2], COLOURS[4]), strict=True))
_BARS = {**dict(zip(PAIRS, COLOURS, strict=False)), "discrepancy": "#78909c"}
_NAMES = {**SKILLS, "discrepancy": "step accuracy − success"}
#: Kinds of steps in the order of the bars.
_KINDS = {"correct": "#1a7f37", "wrong": "#c62828", "dead": "#8d6e63", "invalid": "#b26a00"}

Rows = Sequence[Mapping[str, Any]]


def write_oracle_report(analysis: Mapping[str, Any], directory: str | Path) -> Path:
    """Writes `oracles.html` and `plots/*.png` into `directory`; returns the page's path."""
    return write_page("oracles.html", Path(directory), figures(analysis), analysis=analysis, skills=SKILLS, fit=shown)


def figures(analysis: Mapping[str, Any]) -> dict[str, Figure | None]:
    """All figures by the name of their files; None for those that the runs give nothing for."""
    worlds, models = analysis["worlds"], [m["model"] for m in analysis["models"]]
    return {
        "effects": _effects(analysis["effects"]),
        "figure_3_horizons": _horizons(analysis["levels"], worlds, models),
        "figure_4_settings": _settings(analysis["settings"], worlds, models),
        "figure_6a_models": _levelled(analysis["by_model"], "model"),
        "figure_6b_worlds": _levelled(analysis["by_world"], "world"),
        "errors": _errors(analysis["settings"], worlds, models),
        "wordings": _wordings(analysis["wordings"]),
    }


def _effects(rows: Rows) -> Figure | None:
    """Each oracle's effect with its simultaneous interval; hollow where it holds zero."""
    groups = list(dict.fromkeys((row["model"], row["world"]) for row in rows))
    if not groups:
        return None
    figure = new_figure(8, 1.2 + 0.5 * len(groups))
    axes = figure.subplots()
    for oracle, colour in _BARS.items():
        own = [row for row in rows if row["oracle"] == oracle]
        y = [groups.index((row["model"], row["world"])) + 0.22 * (list(PAIRS).index(oracle) - 1) for row in own]
        value, spread = _bars([row["difference"] for row in own])
        axes.errorbar(value, y, xerr=spread, fmt="none", ecolor=colour, elinewidth=1.6, capsize=2)
        filled = [colour if row["effect"] else "white" for row in own]
        axes.scatter(value, y, c=filled, edgecolors=colour, s=34, zorder=3)
        if own:
            axes.scatter([], [], c=colour, s=34, label=SKILLS[oracle])
    axes.axvline(0, color="#444", linewidth=0.8)
    axes.set_yticks(range(len(groups)), [f"{model}, {world}" for model, world in groups])
    axes.invert_yaxis()
    axes.set(xlabel="change in success with the oracle on (points)")
    axes.grid(alpha=0.3, axis="x")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(left=False)
    axes.legend(frameon=False, ncols=3, loc="lower left", bbox_to_anchor=(0, 1))
    return figure


def _horizons(rows: Rows, worlds: Sequence[str], models: Sequence[str]) -> Figure | None:
    """Success (solid), step accuracy (dashed) and what independent errors would give (dotted) against the horizon, without oracles."""
    rows = [row for row in rows if row["oracles"] == "none"]
    shown = [w for w in worlds if sum(row["world"] == w for row in rows) > 1]
    if not shown:
        return None
    figure, panels = _panels(shown, 2.8)
    for world, axes in panels.items():
        for i, model in enumerate(models):
            own = [row for row in rows if (row["model"], row["world"]) == (model, world)]
            if not own:
                continue
            x, colour = [row["horizon"] for row in own], COLOURS[i % len(COLOURS)]
            low, high = ([100 * row["success"][end] for row in own] for end in ("low", "high"))
            axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
            axes.plot(x, [100 * row["success"]["value"] for row in own], color=colour, marker="o", markersize=3, label=model)
            for style, rates in (
                ("--", [row["step_accuracy"] for row in own]),
                (":", [row["independence"]["on_track"]["predicted"] for row in own]),
            ):
                known = [(at, 100 * rate["value"]) for at, rate in zip(x, rates, strict=True) if rate["value"] is not None]
                axes.plot([at for at, _ in known], [v for _, v in known], color=colour, linestyle=style, linewidth=1.2)
        axes.set(title=world, xlabel="horizon T* (actions)", ylim=(-2, 102))
        finish(axes)
        axes.get_legend().remove()
    first = next(iter(panels.values()))
    first.set_ylabel("success, step accuracy (%)")
    for style, name in (("-", "success"), ("--", "step accuracy"), (":", "independent errors")):
        first.plot([], [], color="#444", linestyle=style, label=name)
    figure.legend(*first.get_legend_handles_labels(), loc="outside upper center", ncols=6, frameon=False, fontsize=9)
    return figure


def _settings(rows: Rows, worlds: Sequence[str], models: Sequence[str]) -> Figure:
    """Success in each setting, one group of bars a model."""
    figure, panels = _panels(worlds, 2.8)
    settings = [o for o in ORACLES if any(row["oracles"] == o for row in rows)]
    width = 0.84 / len(settings)
    for world, axes in panels.items():
        here = [m for m in models if any((row["model"], row["world"]) == (m, world) for row in rows)]
        for i, oracles in enumerate(settings):
            own = [row for row in rows if (row["world"], row["oracles"]) == (world, oracles)]
            value, spread = _bars([row["success"] for row in own])
            x = [here.index(row["model"]) + width * (i - (len(settings) - 1) / 2) for row in own]
            axes.bar(x, value, width * 0.92, yerr=spread, color=_SETTING[oracles], label=oracles, error_kw={"elinewidth": 1})
        axes.set(title=world, ylim=(0, 102))
        axes.set_xticks(range(len(here)), here, fontsize=9, rotation=0 if len(here) < 5 else 20)
        finish(axes)
        axes.get_legend().remove()
    first = next(iter(panels.values()))
    first.set_ylabel("success (%)")
    figure.legend(*first.get_legend_handles_labels(), loc="outside upper center", ncols=6, frameon=False, fontsize=9)
    return figure


def _levelled(rows: Rows, key: str) -> Figure | None:
    """The effects at the levels where models succeed alike, one group of bars a model or world."""
    groups = list(dict.fromkeys(row[key] for row in rows))
    if not any(row["oracle"] in PAIRS for row in rows):
        return None
    figure = new_figure(max(5.0, 1.6 + 1.5 * len(groups)), 3.8)
    axes = figure.subplots()
    for i, (oracle, colour) in enumerate(_BARS.items()):
        own = [row for row in rows if row["oracle"] == oracle]
        value, spread = _bars([row["difference"] for row in own])
        x = [groups.index(row[key]) + 0.21 * (i - 1.5) for row in own]
        axes.bar(x, value, 0.19, yerr=spread, color=colour, label=_NAMES[oracle], error_kw={"elinewidth": 1})
    axes.axhline(0, color="#444", linewidth=0.8)
    axes.set_xticks(range(len(groups)), groups, fontsize=9)
    axes.set_ylabel("points")
    finish(axes)
    axes.get_legend().remove()
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False, fontsize=9)
    return figure


def _errors(rows: Rows, worlds: Sequence[str], models: Sequence[str]) -> Figure:
    """What steps were, one bar a model and setting."""
    most = max(sum(row["world"] == world for row in rows) for world in worlds)
    figure, panels = _panels(worlds, 0.9 + 0.2 * most)
    for world, axes in panels.items():
        own = [row for row in rows if row["world"] == world]
        names = [f"{row['model']}, {row['oracles']}" if len(models) > 1 else row["oracles"] for row in own]
        left = [0.0] * len(own)
        for kind, colour in _KINDS.items():
            share = [100 * row["steps"].get(kind, 0) / max(1, sum(row["steps"].values())) for row in own]
            axes.barh(range(len(own)), share, left=left, color=colour, label=kind, height=0.75)
            left = [a + b for a, b in zip(left, share, strict=True)]
        axes.set(title=world, xlabel="share of the steps (%)", xlim=(0, 100))
        axes.set_yticks(range(len(own)), names, fontsize=7)
        axes.invert_yaxis()
        axes.spines[["top", "right", "left"]].set_visible(False)
    first = next(iter(panels.values()))
    figure.legend(*first.get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False, fontsize=9)
    return figure


def _wordings(rows: Rows) -> Figure | None:
    """Success in each wording, one group a model, world and setting."""
    groups = list(dict.fromkeys((row["model"], row["world"], row["oracles"]) for row in rows))
    if not groups:
        return None
    figure = new_figure(8, 1.2 + 0.42 * len(groups))
    axes = figure.subplots()
    for i, wording in enumerate(dict.fromkeys(row["wording"] for row in rows)):
        own = [row for row in rows if row["wording"] == wording]
        y = [groups.index((row["model"], row["world"], row["oracles"])) + 0.2 * (i - 1) for row in own]
        value, spread = _bars([row["success"] for row in own])
        axes.errorbar(value, y, xerr=spread, fmt="o", color=COLOURS[i], markersize=5, capsize=2, label=wording)
    axes.set_yticks(range(len(groups)), [f"{model}, {world}, {oracles}" for model, world, oracles in groups])
    axes.invert_yaxis()
    axes.set(xlabel="success (%)", xlim=(-2, 102))
    finish(axes)
    return figure


def _panels(worlds: Sequence[str], height: float) -> tuple[Figure, dict[str, Any]]:
    """A figure with one panel a world, two in a row."""
    columns = min(len(worlds), 2)
    rows = -(-len(worlds) // columns)
    figure = new_figure(7 if columns == 1 else 10, 0.5 + height * rows)
    every = figure.subplots(rows, columns, squeeze=False).ravel()
    for spare in every[len(worlds) :]:
        spare.set_visible(False)
    return figure, dict(zip(worlds, every, strict=False))


def _bars(rates: Sequence[Mapping[str, Any]]) -> tuple[list[float], list[list[float]]]:
    """Values, and how far their intervals reach below and above them, in percent."""
    value = [100 * rate["value"] for rate in rates]
    below = [100 * (rate["value"] - rate["low"]) for rate in rates]
    above = [100 * (rate["high"] - rate["value"]) for rate in rates]
    return value, [below, above]
