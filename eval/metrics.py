"""The scores of a set of checked episodes (Computational Reasoning of LLMs, section 3.3; LUMINA, sections 3 and 4.2).

Notation: episode e has true steps 0…T_e and c(e, i) says whether step i is correct. All sums run over scored episodes only: those that
ended by an infrastructure error or were unreachable leave every denominator.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from envs.verdict import Ending, Verdict
from eval.statistics import Rate, bootstrap, pass_at_k, resample, wilson

#: Raised whenever the same verdicts could give other scores; recorded in every run's manifest.
SCORER_VERSION = 1

#: From bootstrap weights of shape (R, n) to R values, NaN where undefined.
Statistic = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, slots=True)
class StepCount:
    """Step i: how many episodes state it correctly, of how many that have it. The interval is clustered by problem."""

    step: int
    correct: int
    total: int
    rate: Rate

    def to_json(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "correct": self.correct,
            "total": self.total,
            **{k: v for k, v in self.rate.to_json().items() if k != "n"},
        }


@dataclass(frozen=True, slots=True)
class Scores:
    """All scores of a set of episodes.

    Attributes:
        episodes: Number of scored episodes.
        success_rate: Share of episodes that succeed. For tag this is the published pass rate.
        strict_success_rate: Share that succeed with nothing stated after the true end.
        step_accuracy: Correct steps over due steps, pooled.
        swa_uniform, swa_linear: Step-weighted accuracy: the mean of ACC(i) over steps, with weights 1, or 1, 2, 3, … from the first
            step counted (equation 3; with step 0 left out these are its w_i = i).
        faithfulness: Share of transitions (steps from 1 on) that follow from the stated previous state; tag only.
        mean_first_error: Mean index of the first wrong step among the episodes that have one, or None.
        acc: ACC(i), with survivors in the denominator (equation 2).
        pass_at_k: Where problems have several samples: the unbiased estimate of the chance that one of k succeeds.
        endings: How many episodes ended in each way, unscored ones included.
    """

    episodes: int
    success_rate: Rate
    strict_success_rate: Rate
    step_accuracy: Rate
    swa_uniform: Rate
    swa_linear: Rate
    faithfulness: Rate
    mean_first_error: float | None
    acc: tuple[StepCount, ...]
    pass_at_k: dict[int, Rate]
    endings: dict[str, int]


def score(verdicts: Sequence[Verdict], problem_ids: Sequence[str], *, first_step: int = 0) -> Scores:
    """Scores episodes.

    Args:
        verdicts: One for each episode.
        problem_ids: The problem of each episode; episodes of one problem are resampled together.
        first_step: The first step that the step-weighted accuracies count: 0 as the published scorer does, or 1.
    """
    endings = Counter(v.ending.value for v in verdicts)
    kept = [(v, p) for v, p in zip(verdicts, problem_ids, strict=True) if v.ending.scored]
    ids = [p for _, p in kept]
    scored = [v for v, _ in kept]
    correct, due = _matrices(scored)
    weights = resample(ids) if ids else None
    statistics = statistics_of(scored, first_step=first_step)
    rates = {name: bootstrap(statistic, ids, weights) for name, statistic in statistics.items()}
    if len(set(ids)) == len(ids):  # episodes are independent, and Wilson's interval is right even for few of them
        rates["success_rate"] = wilson(sum(v.success for v in scored), len(scored))
        rates["strict_success_rate"] = wilson(sum(v.strict for v in scored), len(scored))
    errors = [e for v in scored if (e := v.first_error) is not None]
    acc = []
    for i in range(correct.shape[1]):
        interval = bootstrap(_ratio(correct[:, i : i + 1], due[:, i : i + 1]), ids, weights)
        acc.append(StepCount(i, int(correct[:, i].sum()), int(due[:, i].sum()), interval))
    return Scores(
        episodes=len(kept),
        **rates,
        mean_first_error=float(np.mean(errors)) if errors else None,
        acc=tuple(acc),
        pass_at_k=_pass_at_k([v.success for v in scored], ids),
        endings={e.value: endings[e.value] for e in Ending if endings[e.value]},
    )


def statistics_of(verdicts: Sequence[Verdict], *, first_step: int = 0) -> dict[str, Statistic]:
    """The rates of `Scores` as functions of bootstrap weights of shape (R, episodes), by name."""
    correct, due = _matrices(verdicts)
    once = np.ones((len(verdicts), 1))
    faithful = np.array([_faithful(v) for v in verdicts], float).reshape(-1, 2)
    return {
        "success_rate": _ratio(np.array([v.success for v in verdicts], float).reshape(-1, 1), once),
        "strict_success_rate": _ratio(np.array([v.strict for v in verdicts], float).reshape(-1, 1), once),
        "step_accuracy": _ratio(correct, due),
        "swa_uniform": _swa(correct, due, first_step, linear=False),
        "swa_linear": _swa(correct, due, first_step, linear=True),
        "faithfulness": _ratio(faithful[:, :1], faithful[:, 1:]),
    }


def _pass_at_k(successes: Sequence[bool], ids: Sequence[str]) -> dict[int, Rate]:
    """The chance that one of k samples succeeds, for each k that some problem has samples for; none where all have one."""
    by_problem: dict[str, list[bool]] = defaultdict(list)
    for success, problem in zip(successes, ids, strict=True):
        by_problem[problem].append(success)
    rates = {}
    for k in range(1, max(map(len, by_problem.values()), default=0) + 1):
        enough = {p: hits for p, hits in by_problem.items() if len(hits) >= k}
        values = np.array([[pass_at_k(len(hits), sum(hits), k)] for hits in enough.values()])
        rates[k] = bootstrap(_ratio(values, np.ones_like(values)), list(enough))
    return rates if len(rates) > 1 else {}


def _matrices(verdicts: Sequence[Verdict]) -> tuple[np.ndarray, np.ndarray]:
    """Correct and due steps as 0/1 arrays of shape (episodes, longest trace)."""
    width = max((len(v.due) for v in verdicts), default=0)
    correct, due = np.zeros((len(verdicts), width)), np.zeros((len(verdicts), width))
    for row, verdict in enumerate(verdicts):
        for column, step in enumerate(verdict.due):
            due[row, column] = 1
            correct[row, column] = step.correct
    return correct, due


def _faithful(verdict: Verdict) -> tuple[int, int]:
    """Faithful transitions, and transitions whose two states are both stated."""
    judged = [s.faithful for s in verdict.due if s.index > 0 and s.faithful is not None]
    return sum(judged), len(judged)


def _ratio(hits: np.ndarray, counts: np.ndarray) -> Statistic:
    """The pooled ratio as a statistic on bootstrap weights of shape (R, episodes)."""
    top, bottom = hits.sum(axis=1), counts.sum(axis=1)

    def statistic(weights: np.ndarray) -> np.ndarray:
        below = weights @ bottom
        return np.divide(weights @ top, below, out=np.full(len(weights), np.nan), where=below > 0)

    return statistic


def _swa(correct: np.ndarray, due: np.ndarray, first_step: int, *, linear: bool) -> Statistic:
    """Step-weighted accuracy as a statistic on bootstrap weights; steps that no resampled episode has are left out."""
    correct, due = correct[:, first_step:], due[:, first_step:]
    step_weights = np.arange(1, correct.shape[1] + 1) if linear else np.ones(correct.shape[1])

    def statistic(weights: np.ndarray) -> np.ndarray:
        total = weights @ due
        acc = np.divide(weights @ correct, total, out=np.zeros_like(total, float), where=total > 0)
        used = (total > 0) * step_weights
        below = used.sum(axis=1)
        return np.divide((acc * used).sum(axis=1), below, out=np.full(len(weights), np.nan), where=below > 0)

    return statistic
