"""Reading the published benchmark's result files: problems with one model's answers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envs.environment import Setting
from envs.problem import Problem
from envs.registry import load_env
from envs.tag.published import from_published
from envs.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Answer:
    """A problem, the answer stored for it and its length in tokens where that is known."""

    problem: Problem
    reply: str
    tokens: int | None

    def verdict(self) -> Verdict:
        """The answer, checked."""
        episode = load_env(self.problem.env).start(self.problem, Setting())
        episode.reply(self.reply)
        return episode.verdict()


def read_published(path: str | Path) -> list[Answer]:
    """The answers of a published result file.

    Raises:
        ValueError: Where it is no such file, saying what is missing.
    """
    try:
        data: Any = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot read {path}: {error}") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    if not isinstance(data, dict) or not isinstance(data.get("samples"), list) or "max_step" not in data:
        raise ValueError(f'{path} is no published result file: it needs "samples" and "max_step"')
    if not data["samples"]:
        raise ValueError(f"{path} holds no samples")
    answers = []
    for number, sample in enumerate(data["samples"]):
        if not isinstance(sample, dict):
            raise ValueError(f"{path}: sample {number} is no object")
        try:
            system = from_published(sample, data["max_step"])
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        if "ans" not in sample:
            raise ValueError(f"{path}: sample {sample.get('id', number)!r} has no answer 'ans': these are problems, not results")
        problem = load_env("tag").problem(system.to_payload(), id=sample.get("id"))
        # An API that refused or failed is stored as null by some runners: that is no answer, not a crash.
        reply = sample["ans"] if isinstance(sample["ans"], str) else ""
        answers.append(Answer(problem, reply, sample.get("num_token") or None))
    return answers
