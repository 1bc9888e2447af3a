"""The analysis of an oracle experiment, as JSON values: everything that LUMINA reports, and what its weaknesses are in one line a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from envs.verdict import Kind
from eval.oracles.effects import SKILLS, TARGET, TARGETS, averaged, effects, judged, level_out
from eval.oracles.experiment import Experiment, Level, levels
from eval.oracles.horizons import even_odds, independence, step_accuracy, success_rate
from eval.oracles.wordings import wordings
from eval.records import EpisodeRecord
from eval.statistics import CONFIDENCE, Rate, bootstrap, mean_interval, percent_difference


def analyse(experiments: Sequence[Experiment], targets: Mapping[str, float] | None = None) -> dict[str, Any]:
    """Everything about an experiment.

    Args:
        experiments: What `read_experiments` found.
        targets: By world the success rate at which models are compared (figure 6); `""` stands for all other worlds.
    """
    wanted = {"": TARGET, **TARGETS, **(targets or {})}
    worlds = list(dict.fromkeys(world for e in experiments for world in e.worlds))
    cut = {world: levels(r for e in experiments for (w, _), cell in e.cells.items() if w == world for r in cell) for world in worlds}
    chosen = [
        one
        for e in experiments
        for world in e.worlds
        if (one := level_out(e, world, cut[world], wanted.get(world, wanted[""]))) is not None
    ]
    found = effects(experiments)
    return {
        "confidence": CONFIDENCE,
        "models": [
            {"model": e.name, "style": e.style, "wording": e.wording, "episodes": sum(map(len, e.cells.values())), "left_out": e.left_out}
            for e in experiments
        ],
        "worlds": worlds,
        "findings": findings(found),
        "effects": found,
        "settings": [row for e in experiments for row in _settings(e)],
        "levels": [row for e in experiments for row in _levels(e, cut)],
        "levelled": [
            {"model": o.experiment.name, "world": o.world, "level": str(o.level), "target": o.target, "success": o.success} for o in chosen
        ],
        "by_model": averaged(chosen, "model"),
        "by_world": averaged(chosen, "world"),
        "wordings": wordings(experiments),
    }


def findings(found: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One line for each model and world: which oracles change its success, and by how much; the greatest first, the others by name."""
    rows: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for effect in found:
        rows.setdefault((effect["model"], effect["world"]), []).append(effect)
    lines = []
    for (model, world), own in rows.items():
        own = sorted(own, key=lambda e: -abs(e["difference"]["value"]) if e["effect"] else 0)
        parts = [f"{SKILLS[e['oracle']]} {_said(e)}" for e in own]
        lines.append({"model": model, "world": world, "text": "; ".join(parts)})
    return lines


def _said(effect: Mapping[str, Any]) -> str:
    points = percent_difference(effect["difference"])
    return points if effect["effect"] else f"no effect ({points})"


def _settings(experiment: Experiment) -> Iterator[dict[str, Any]]:
    """Figure 4 and what else is said of a setting as a whole: one row for each world and setting."""
    for (world, oracles), records in sorted(experiment.cells.items(), key=lambda cell: _order(experiment, *cell[0])):
        without = experiment.successes(world, "none") if (world, "none") in experiment.cells else {}
        own = experiment.successes(world, oracles)
        paired = {p: own[p] - without[p] for p in own if p in without} if oracles != "none" else {}
        yield {
            "model": experiment.name,
            "world": world,
            "oracles": oracles,
            "episodes": len(records),
            "success": success_rate(records).to_json(),
            "step_accuracy": step_accuracy(records).to_json(),
            "against_none": judged(mean_interval([paired])) if paired else None,
            "even_odds": even_odds(records),
            **_paths(records),
        }


def _order(experiment: Experiment, world: str, oracles: str) -> tuple[int, int]:
    return experiment.worlds.index(world), experiment.settings(world).index(oracles)


def _paths(records: Sequence[EpisodeRecord]) -> dict[str, Any]:
    """How episodes went: their length against T*, whether a first error is made good, and what went wrong.

    `length_ratio` is over successful episodes: actions over T*, `done()` included. T* of TreeWorld is that of the worst case, so luck can
    bring the ratio below one. `recovery` is the share of episodes with an error that succeed all the same.
    """
    right = [r for r in records if r.verdict.success]
    erred = [r for r in records if r.verdict.first_error is not None]
    kinds = Counter(step.kind.value for r in records for step in r.verdict.due)
    first = Counter(next(s.kind.value for s in r.verdict.due if not s.correct) for r in erred)
    names = [k.value for k in Kind if kinds[k.value]]
    return {
        "length_ratio": _mean(right, [len(r.verdict.due) / r.problem["horizon"] for r in right]).to_json(),
        "recovery": success_rate(erred).to_json(),
        "steps": {name: kinds[name] for name in names},
        "first_errors": {name: first[name] for name in names if first[name]},
        "endings": dict(Counter(r.verdict.ending.value for r in records)),
    }


def _mean(records: Sequence[EpisodeRecord], values: Sequence[float]) -> Rate:
    numbers = np.array(values)
    return bootstrap(lambda w: (w @ numbers) / w.sum(axis=1), [r.problem["id"] for r in records])


def _levels(experiment: Experiment, cut: Mapping[str, Sequence[Level]]) -> Iterator[dict[str, Any]]:
    """Figure 3: one row for each world, setting and level of the horizon."""
    for world in experiment.worlds:
        for oracles in experiment.settings(world):
            for level in cut[world]:
                if records := [r for r in experiment.cells[world, oracles] if r in level]:
                    yield {
                        "model": experiment.name,
                        "world": world,
                        "oracles": oracles,
                        "level": str(level),
                        "horizon": float(np.mean([r.problem["horizon"] for r in records])),
                        "episodes": len(records),
                        "success": success_rate(records).to_json(),
                        "step_accuracy": step_accuracy(records).to_json(),
                        "independence": independence(records),
                    }
