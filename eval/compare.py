"""Two runs on the same problems: paired differences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from envs.verdict import Verdict
from eval.metrics import statistics_of
from eval.records import EpisodeRecord, changed_settings
from eval.report import Run
from eval.statistics import bootstrap, resample

#: Horizons with fewer pairs are not compared by themselves.
LEAST_PAIRS = 10
#: The scores that are compared at each horizon.
BY_HORIZON = ("success_rate", "step_accuracy")


@dataclass(frozen=True, slots=True)
class McNemar:
    """The exact test of McNemar (1947) on the episodes of which one run succeeds and the other does not.

    Attributes:
        only_a, only_b: How many succeed in one run only.
        p_value: Two-sided, of the hypothesis that both are equally likely.
    """

    only_a: int
    only_b: int
    p_value: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """What `compare_runs` finds.

    Attributes:
        a, b: Names of the runs.
        pairs: Episodes that both runs have and score; only they count.
        left_out: Episodes that only one of the runs has or scores.
        same_text: Pairs whose replies are the same, character by character.
        verdicts_differ: Episodes (problem id/sample) whose verdicts differ.
        scores: For each score its value in both runs and the difference b - a with a 95 % interval (percentile bootstrap over problems,
            the same resamples for both runs).
        by_horizon: The success rate and the step accuracy in the same form, for each horizon that has at least ten pairs. A score that
            one of the runs does not have is left out, here as in `scores`.
        success: McNemar's test, or None where problems have several samples, which are not independent.
        settings: In what the runs differ, besides the scores.
    """

    a: str
    b: str
    pairs: int
    left_out: int
    same_text: int
    verdicts_differ: tuple[str, ...]
    scores: dict[str, dict[str, Any]]
    by_horizon: tuple[dict[str, Any], ...]
    success: McNemar | None
    settings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        lists = {name: list(getattr(self, name)) for name in ("settings", "verdicts_differ", "by_horizon")}
        return {**asdict(self), **lists}


def compare_runs(a: Run, b: Run) -> Comparison:
    """Compares two runs episode by episode.

    Raises:
        ValueError: Where they have no scored episode in common, or hold different problems under the same id.
    """
    own, other = _scored(a), _scored(b)
    keys = [key for key in own if key in other]
    if not keys:
        raise ValueError(f"{a.name} and {b.name} have no scored episode in common: compare runs on the same problems")
    for key in keys:
        if _payload(own[key]) != _payload(other[key]):
            raise ValueError(f"{a.name} and {b.name} hold different problems under the id {key}: they cannot be compared")
    ids = [own[key].problem["id"] for key in keys]
    verdicts_a, verdicts_b = [own[k].verdict for k in keys], [other[k].verdict for k in keys]
    return Comparison(
        a=a.name,
        b=b.name,
        pairs=len(keys),
        left_out=len(own.keys() ^ other.keys()),
        same_text=sum(own[k].replies == other[k].replies for k in keys),
        verdicts_differ=tuple(k for k in keys if own[k].verdict != other[k].verdict),
        scores=_differences(verdicts_a, verdicts_b, ids),
        by_horizon=tuple(_by_horizon([own[k] for k in keys], [other[k] for k in keys])),
        success=_mcnemar(verdicts_a, verdicts_b) if len(set(ids)) == len(ids) else None,
        settings=tuple(sorted(changed_settings(a.manifest, b.manifest))),
    )


def _scored(run: Run) -> dict[str, EpisodeRecord]:
    return {r.key: r for r in run.records if r.verdict.ending.scored}


def _payload(record: EpisodeRecord) -> dict[str, Any]:
    return {k: v for k, v in record.problem.items() if k != "split"}


def _differences(a: list[Verdict], b: list[Verdict], ids: list[str]) -> dict[str, dict[str, Any]]:
    first, second, weights = statistics_of(a), statistics_of(b), resample(ids)
    found: dict[str, dict[str, Any]] = {}
    for name in first:
        one, two = first[name], second[name]
        values = [float(s(np.ones((1, len(ids))))[0]) for s in (one, two)]
        if np.isnan(values).any():
            continue

        def difference(weights: np.ndarray, one: Any = one, two: Any = two) -> np.ndarray:
            return two(weights) - one(weights)

        found[name] = {"a": values[0], "b": values[1], "difference": bootstrap(difference, ids, weights, least=-1.0).to_json()}
    return found


def _by_horizon(a: list[EpisodeRecord], b: list[EpisodeRecord]) -> Iterator[dict[str, Any]]:
    for horizon in sorted({r.problem["horizon"] for r in a}):
        pairs = [(x, y) for x, y in zip(a, b, strict=True) if x.problem["horizon"] == horizon]
        if len(pairs) >= LEAST_PAIRS:
            found = _differences([x.verdict for x, _ in pairs], [y.verdict for _, y in pairs], [x.problem["id"] for x, _ in pairs])
            # Where the episodes of one run end before their first step, it has no step accuracy there.
            yield {"horizon": horizon, "pairs": len(pairs), **{name: found[name] for name in BY_HORIZON if name in found}}


def _mcnemar(a: list[Verdict], b: list[Verdict]) -> McNemar:
    from scipy.stats import binomtest

    only_a = sum(x.success and not y.success for x, y in zip(a, b, strict=True))
    only_b = sum(y.success and not x.success for x, y in zip(a, b, strict=True))
    p_value = float(binomtest(only_b, only_a + only_b).pvalue) if only_a + only_b else 1.0
    return McNemar(only_a, only_b, p_value)
