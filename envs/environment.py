"""What every environment offers, single-turn or multi-turn: problems to generate, and episodes to play and check."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from envs.problem import Problem
from envs.verdict import Ending, Verdict

Message = dict[str, str]  #: {"role": "user" | "assistant", "content": text}

#: Prompt styles of worlds, and of tag.
WORLD_STYLES = ("verbose", "compact")
STYLES = (*WORLD_STYLES, "placed")
#: How a verbose prompt may be put: the same facts in other words.
WORDINGS = ("standard", "brief", "formal")
#: The six settings of the oracles (LUMINA, section 4.3).
ORACLES = ("none", "plan", "state", "plan+state", "state+history", "plan+state+history")


@dataclass(frozen=True, slots=True)
class Setting:
    """How a problem is put to a policy: the prompt style, which oracles speak, whether a single reply may be gone on with, and the wording
    of verbose prompts.

    `continued` is budget forcing: an answer that stops before its end is asked to go on until its first mistake (tag only).

    Raises:
        ValueError: For an unknown style or wording, a wording of compact prompts, which have no words, or history pruning without the
            state that must replace the history.
    """

    style: str = "verbose"
    plan: bool = False
    state: bool = False
    history: bool = False
    continued: bool = False
    wording: str = "standard"

    def __post_init__(self) -> None:
        if self.style not in STYLES:
            raise ValueError(f"unknown prompt style {self.style!r}: choose one of {', '.join(STYLES)}")
        if self.wording not in WORDINGS:
            raise ValueError(f"unknown wording {self.wording!r}: choose one of {', '.join(WORDINGS)}")
        if self.wording != "standard" and self.style != "verbose":
            raise ValueError(f"wordings are for verbose prompts: {self.style} ones have no words to change")
        if self.history and not self.state:
            raise ValueError("the history oracle replaces the history by the state: it needs the state oracle (state+history)")

    @property
    def oracles(self) -> str:
        """The oracles' name, such as `plan+state`, or `none`."""
        return "+".join(n for n in ("plan", "state", "history") if getattr(self, n)) or "none"

    @classmethod
    def parse(cls, oracles: str, style: str = "verbose", *, wording: str = "standard", continued: bool = False) -> Setting:
        """Reads `none`, `plan`, `state`, `plan+state`, `state+history` or `plan+state+history`."""
        names = set() if oracles == "none" else set(oracles.split("+"))
        if unknown := names - {"plan", "state", "history"}:
            raise ValueError(f"unknown oracle {sorted(unknown)[0]!r} in {oracles!r}: join plan, state, history with '+', or say none")
        return cls(style, "plan" in names, "state" in names, "history" in names, continued, wording)


class Episode(ABC):
    """One problem being played: what the policy sees, what it answers, and in the end the verdict.

    `messages` is the context for the next reply; `over` turns True when no further reply is wanted. A model policy looks at
    `messages` only; the scripted policies ask `expert`, `noisy` and `random`.
    """

    messages: list[Message]
    over: bool = False

    @abstractmethod
    def reply(self, text: str, *, truncated: bool = False) -> None:
        """Takes the policy's message; `truncated` says that it was cut by a token limit."""

    @abstractmethod
    def end(self, ending: Ending) -> None:
        """Ends the episode from outside, e.g. with `Ending.OVERLONG_PROMPT`."""

    @abstractmethod
    def verdict(self) -> Verdict:
        """The checked steps so far."""

    @abstractmethod
    def expert(self) -> str:
        """A reply with which every step is correct."""

    @abstractmethod
    def noisy(self, rng: random.Random, rate: float) -> str:
        """The expert's reply with an error at each step with probability `rate`, carried on from there."""

    @abstractmethod
    def random(self, rng: random.Random) -> str:
        """A well-formed reply that knows nothing of the problem's solution."""


class Environment(ABC):
    """A family of problems. One instance of each serves the whole process; it holds no state."""

    name: ClassVar[str]
    version: ClassVar[int]  #: part of every random stream's name: raised when generated problems change
    summary: ClassVar[str]  #: one line for `tmtrain envs`
    multi_turn: ClassVar[bool] = False  #: whether an episode takes several replies
    params: ClassVar[Any]  #: frozen dataclass of the generator's knobs, with defaults, which checks its values

    @abstractmethod
    def problem(self, payload: Mapping[str, Any], *, split: str = "", id: str | None = None) -> Problem:
        """Checks a payload and makes the problem. Raises ValueError that names what is wrong."""

    @abstractmethod
    def sample(self, params: Any, rng: random.Random, split: str = "") -> Problem | None:
        """Draws one problem from `rng`, or None where the draw does not fit `params`: then it is drawn again from the same stream."""

    @abstractmethod
    def start(self, problem: Problem, setting: Setting) -> Episode:
        """A fresh episode of `problem`."""
