"""The outcome of checking one episode, step by step: the value that rewards, scores, reports and cards all read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

#: Raised by one whenever a stored reply could get another verdict than before; recorded in every run's manifest.
VERIFIER_VERSION = 1


class Kind(StrEnum):
    """Why a step counts as it does."""

    CORRECT = "correct"
    WRONG = "wrong"
    MISSING = "missing"  # the reply does not state this step
    UNPARSED = "unparsed"  # it states something that cannot be read as a state, or hedges between two
    INVALID = "invalid"  # worlds: not exactly one valid action
    DEAD = "dead"  # worlds: the goal was already out of reach
    OVERRUN = "overrun"  # stated after the true end


class Ending(StrEnum):
    """How an episode ended. Only `INFRASTRUCTURE_ERROR` and `UNREACHABLE` leave the denominator of every rate."""

    COMPLETED = "completed"
    WRONG = "wrong"
    TRUNCATED = "truncated"
    NO_ANSWER = "no_answer"
    OVER_BUDGET = "over_budget"
    OVERLONG_PROMPT = "overlong_prompt"
    UNREACHABLE = "unreachable"
    INFRASTRUCTURE_ERROR = "infrastructure_error"

    @property
    def scored(self) -> bool:
        """Whether episodes that ended so count in rates."""
        return self not in (Ending.INFRASTRUCTURE_ERROR, Ending.UNREACHABLE)


@dataclass(frozen=True, slots=True)
class StepVerdict:
    """One step, checked.

    Attributes:
        index: The step's number in the true trace (tag) or the action's number (worlds), from 0.
        correct: Tag: the stated queue equals the true one. Worlds: the action is in the optimal set.
        kind: Why.
        span: Half-open character range `(start, end)` in the reply of `turn` that states the step, or None where nothing does.
        faithful: Tag only: the stated queue follows from the *stated* previous one, so False marks a fresh error and
            True beside `correct=False` an inherited one. None where one of the two is not stated.
        turn: Which model message the span lies in, from 0.
    """

    index: int
    correct: bool
    kind: Kind
    span: tuple[int, int] | None = None
    faithful: bool | None = None
    turn: int = 0

    def to_json(self) -> dict[str, Any]:
        return {
            "index": self.index,
            "correct": self.correct,
            "kind": self.kind.value,
            "span": list(self.span) if self.span else None,
            "faithful": self.faithful,
            "turn": self.turn,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> StepVerdict:
        span = data.get("span")
        return cls(
            index=data["index"],
            correct=data["correct"],
            kind=Kind(data["kind"]),
            span=(span[0], span[1]) if span else None,
            faithful=data.get("faithful"),
            turn=data.get("turn", 0),
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """All steps of one episode, whether it succeeded, and how it ended."""

    steps: tuple[StepVerdict, ...]
    success: bool
    ending: Ending

    @property
    def due(self) -> tuple[StepVerdict, ...]:
        """The steps that the episode was asked for: all but the overrun ones."""
        return tuple(s for s in self.steps if s.kind is not Kind.OVERRUN)

    @property
    def overrun(self) -> int:
        """How many steps were stated after the true end."""
        return sum(s.kind is Kind.OVERRUN for s in self.steps)

    @property
    def strict(self) -> bool:
        """Success with nothing stated after the end."""
        return self.success and self.overrun == 0

    @property
    def step_accuracy(self) -> float:
        """Share of the due steps that are correct; 0.0 where none is due."""
        due = self.due
        return sum(s.correct for s in due) / len(due) if due else 0.0

    @property
    def first_error(self) -> int | None:
        """Index of the first incorrect due step, or None."""
        return next((s.index for s in self.due if not s.correct), None)

    def to_json(self) -> dict[str, Any]:
        return {"steps": [s.to_json() for s in self.steps], "success": self.success, "ending": self.ending.value}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Verdict:
        return cls(tuple(StepVerdict.from_json(s) for s in data["steps"]), data["success"], Ending(data["ending"]))
