"""The ablations of Computational Reasoning of LLMs (section 4.4): what is varied, and what the runs show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from envs.problem import Problem
from envs.registry import load_env
from envs.suites import load_suite
from envs.tag.ablations import DELETIONS, difficulty_problems
from envs.tag.published import ALPHABETS, ROMAN, published
from eval.records import EpisodeRecord
from eval.statistics import wilson

_BASE = next(iter(ALPHABETS))
_NAMED = {name.removeprefix(f"{_BASE}-") if name != _BASE else "roman": symbols for name, symbols in ALPHABETS.items()}


@dataclass(frozen=True, slots=True)
class Point:
    """One setting of an ablation: one evaluation.

    Attributes:
        label: What people call it.
        x: Where it lies on the figure's axis, or None where the settings are names.
        source: Where its problems come from, for people.
        problems: The problems.
        temperature: The sampling temperature, where that is what varies.
    """

    label: str
    x: float | None
    source: str
    problems: Sequence[Problem]
    temperature: float | None = None

    @property
    def folder(self) -> str:
        """The name of its run directory: the label, with what is no letter or digit spelled by its code."""
        return "".join(c if c.isalnum() or c in ".-" else f"_{ord(c):x}" for c in self.label)


@dataclass(frozen=True, slots=True)
class Ablation:
    """A kind of ablation.

    Attributes:
        summary: One line for people.
        axis: The figure's horizontal axis.
        defaults: The values of the paper.
        point: From a value, as written on a command line, to its point. Raises ValueError where the value makes no sense.
        continued: Whether answers that stop early are asked to go on.
    """

    summary: str
    axis: str
    defaults: Sequence[str]
    point: Callable[[str], Point]
    continued: bool = False


def _alphabet(value: str) -> Point:
    symbols = list(_NAMED.get(value, value.split(",") if "," in value else value))
    if len(symbols) != len(ROMAN) or len(set(symbols)) != len(ROMAN):
        raise ValueError(f"an alphabet is {', '.join(_NAMED)} or {len(ROMAN)} different symbols such as VWXYZ, not {value!r}")
    env = load_env("tag")
    problems = [env.problem(system.to_payload(), split=_BASE, id=id) for id, system in published(symbols)]
    return Point(value, None, f"{_BASE} over {{{', '.join(symbols)}}}", problems)


def _temperature(value: str) -> Point:
    temperature = _number(value, "a temperature", float, 0)
    return Point(f"temperature-{temperature:g}", temperature, _BASE, load_suite(_BASE).problems(), temperature)


def _deletions(value: str) -> Point:
    m = _number(value, "a deletion number", int, 1)
    return Point(f"m-{m}", m, f"tmbench-difficulty, m = {m}", difficulty_problems(m))


def _unbounded(value: str) -> Point:
    return Point("unbounded", None, value, load_suite(value).problems())


def _number(value: str, what: str, kind: type[int] | type[float], least: int) -> Any:
    try:
        number = kind(value)
    except ValueError:
        number = -1
    if not least <= number < 1_000_000:
        raise ValueError(f"{what} is a number of at least {least}, not {value!r}")
    return number


KINDS = {
    "alphabets": Ablation("the same problems in other symbols", "alphabet", list(_NAMED), _alphabet),
    "temperature": Ablation("sampling temperature, with top-p 0.8", "temperature", ["0", "0.5", "1", "1.5", "2", "2.5", "3"], _temperature),
    "difficulty": Ablation("the deletion number m, all else alike", "deletion number m", list(map(str, DELETIONS)), _deletions),
    "unbounded": Ablation("a thousand steps, gone on with until the first wrong state", "step", ["tmbench-unbounded"], _unbounded, True),
}


def last_correct_steps(records: Sequence[EpisodeRecord]) -> list[dict[str, Any]]:
    """For each scored episode, the last step before its first wrong one: -1 where not even the initial queue is right."""
    found = []
    for record in records:
        if record.verdict.ending.scored:
            error = record.verdict.first_error
            last = record.problem["horizon"] if error is None else error - 1
            found.append({"id": record.problem["id"], "sample": record.sample, "last_correct": last, "horizon": record.problem["horizon"]})
    return found


def survival(acc: Sequence[Mapping[str, Any]], *, samples: int) -> list[dict[str, Any]]:
    """The share of the episodes that are right up to each step, from the `acc` of a run that stops at the first wrong one.

    With one sample a problem the episodes are independent, and Wilson's interval is right even for ten of them.
    """
    if samples > 1:
        return [dict(a) for a in acc]
    return [{**a, **{k: v for k, v in wilson(a["correct"], a["total"]).to_json().items() if k != "n"}} for a in acc]


def point_json(point: Point, run: str, summary: Mapping[str, Any]) -> dict[str, Any]:
    """What `ablation.json` keeps of a point."""
    rates = ("pass_rate", "strict_pass_rate", "swa_uniform", "swa_linear", "step_accuracy")
    return {"label": point.label, "x": point.x, "run": run, "episodes": summary["episodes"], **{key: summary[key] for key in rates}}
