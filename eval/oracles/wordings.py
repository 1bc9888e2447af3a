"""How much scores move with the wording of the prompt: the same problems, put in other words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from envs.environment import WORDINGS
from eval.oracles.effects import judged, simultaneous
from eval.oracles.experiment import Experiment
from eval.oracles.horizons import success_rate
from eval.statistics import mean_interval


def wordings(experiments: Sequence[Experiment]) -> list[dict[str, Any]]:
    """One row for each model, world, oracle setting and wording, where more than one wording was run.

    `difference` is paired by problem, against the first wording that was run; the intervals of all differences hold together with 95 %.
    """
    models: dict[str, dict[str, Experiment]] = {}
    for experiment in experiments:
        models.setdefault(experiment.identity, {})[experiment.wording] = experiment
    rows = []
    for worded in models.values():
        ordered = [worded[w] for w in WORDINGS if w in worded]
        for world, oracles in ordered[0].cells if len(ordered) > 1 else ():
            base = ordered[0].successes(world, oracles)
            for experiment in ordered:
                if (world, oracles) not in experiment.cells:
                    continue
                own = experiment.successes(world, oracles)
                paired = {p: own[p] - base[p] for p in own if p in base} if experiment is not ordered[0] else {}
                rows.append((experiment, world, oracles, paired))
    confidence = simultaneous(sum(bool(paired) for *_, paired in rows))
    return [
        {
            "model": e.model,
            "wording": e.wording,
            "world": world,
            "oracles": oracles,
            "success": success_rate(e.cells[world, oracles]).to_json(),
            **(judged(mean_interval([paired], confidence)) if paired else {"difference": None, "effect": 0}),
        }
        for e, world, oracles, paired in rows
    ]
