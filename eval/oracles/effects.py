"""What each oracle does to success, with the others held fixed: paired by problem, and levelled (LUMINA, section 4.4, figure 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eval.oracles.experiment import Experiment, Level, by_problem
from eval.statistics import CONFIDENCE, Rate, mean_interval

#: The pairs of settings that differ in one oracle alone. History pruning needs the state, so it is never alone.
PAIRS = {
    "plan": (("none", "plan"), ("state", "plan+state"), ("state+history", "plan+state+history")),
    "state": (("none", "state"), ("plan", "plan+state")),
    "history": (("state", "state+history"), ("plan+state", "plan+state+history")),
}
#: What an oracle takes over from the agent.
SKILLS = {"plan": "planning", "state": "state tracking", "history": "history pruning"}

#: The success rates at which LUMINA compares models: GridWorld's larger ones never fall to 30 %.
TARGET, TARGETS = 0.3, {"gridworld": 0.75}


@dataclass(frozen=True, slots=True)
class Levelled:
    """A model in one world at the level where its success without oracles is nearest the target.

    Attributes:
        level: The level.
        target: The success that was looked for.
        success: The success rate found there without oracles.
        differences: For each oracle the differences of `differences` there.
        discrepancy: By problem, step accuracy less success, over all settings.
    """

    experiment: Experiment
    world: str
    level: Level
    target: float
    success: float
    differences: Mapping[str, Mapping[str, float]]
    discrepancy: Mapping[str, float]


def differences(experiment: Experiment, world: str, oracle: str, level: Level | None = None) -> dict[str, float]:
    """What turning an oracle on changes in the success of each problem, averaged over the settings of the others.

    Only pairs count of which both settings were run, and only problems that all these settings have; none where there is no such pair.
    """
    run = experiment.settings(world)
    pairs = [pair for pair in PAIRS[oracle] if set(pair) <= set(run)]
    successes = {o: experiment.successes(world, o) for pair in pairs for o in pair}
    if not pairs:
        return {}
    shared = set.intersection(*(set(s) for s in successes.values()))
    if level is not None:
        shared &= {r.problem["id"] for o in successes for r in experiment.cells[world, o] if r in level}
    ordered = [p for p in successes[pairs[0][0]] if p in shared]
    return {p: sum(successes[on][p] - successes[off][p] for off, on in pairs) / len(pairs) for p in ordered}


def simultaneous(claims: int) -> float:
    """The confidence of each of so many intervals that are to hold together with `CONFIDENCE` (Bonferroni)."""
    return 1 - (1 - CONFIDENCE) / max(1, claims)


def effects(experiments: Sequence[Experiment]) -> list[dict[str, Any]]:
    """For every model, world and oracle its effect on success over all levels, and whether there is one at all.

    All intervals of the list hold together with 95 %: an `effect` of 1 or -1 is claimed only where the interval lies off zero.
    """
    found = [
        (experiment, world, oracle, differences(experiment, world, oracle))
        for experiment in experiments
        for world in experiment.worlds
        for oracle in PAIRS
    ]
    found = [row for row in found if row[-1]]
    confidence = simultaneous(len(found))
    return [
        {"model": e.name, "world": world, "oracle": oracle, **judged(mean_interval([values], confidence))}
        for e, world, oracle, values in found
    ]


def judged(rate: Rate) -> dict[str, Any]:
    """A difference as JSON, with the sign of the effect that it shows: 0 where its interval holds zero."""
    sign = 0 if rate.low is None or rate.high is None or rate.low <= 0 <= rate.high else 1 if rate.low > 0 else -1
    return {"difference": rate.to_json(), "effect": sign}


def level_out(experiment: Experiment, world: str, levels: Sequence[Level], target: float) -> Levelled | None:
    """Chooses the level at which success without oracles is nearest `target`, the shorter one of two; None where that was not run."""
    if (world, "none") not in experiment.cells:
        return None
    records = experiment.cells[world, "none"]
    rates = {}
    for level in levels:
        if at := [r.verdict.success for r in records if r in level]:
            rates[level] = sum(at) / len(at)
    level = min(rates, key=lambda one: (abs(rates[one] - target), one.low))
    every = [r for o in experiment.settings(world) for r in experiment.cells[world, o] if r in level]
    return Levelled(
        experiment,
        world,
        level,
        target,
        rates[level],
        {oracle: differences(experiment, world, oracle, level) for oracle in PAIRS},
        by_problem(every, [r.verdict.step_accuracy - r.verdict.success for r in every]),
    )


def averaged(levelled: Sequence[Levelled], key: str) -> list[dict[str, Any]]:
    """Figure 6: the effects at the levels chosen, by model (averaged over worlds) or by world (averaged over models).

    Args:
        key: `model` or `world`.

    Returns:
        For each model or world, each oracle and the discrepancy between step accuracy and success: the mean with an interval. The
        intervals of all oracles in the list hold together with 95 %; that of the discrepancy holds alone.
    """
    groups: dict[str, list[Levelled]] = {}
    for one in levelled:
        groups.setdefault(one.experiment.name if key == "model" else one.world, []).append(one)
    cells = [(name, oracle, [one.differences[oracle] for one in group]) for name, group in groups.items() for oracle in PAIRS]
    cells = [cell for cell in cells if any(cell[-1])]
    confidence = simultaneous(len(cells))
    rows = [{key: name, "oracle": oracle, **judged(mean_interval(strata, confidence))} for name, oracle, strata in cells]
    for name, group in groups.items():
        rows.append({key: name, "oracle": "discrepancy", **judged(mean_interval([one.discrepancy for one in group]))})
    return rows
