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
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    if not is_published(data):
        raise ValueError(f'{path} is no published result file: it needs "samples" and "max_step"')
    problems = published_problems(data, path)
    if not problems:
        raise ValueError(f"{path} holds no samples")
    answers = []
    for problem, sample in zip(problems, data["samples"], strict=True):
        if "ans" not in sample:
            raise ValueError(f"{path}: sample {problem.id!r} has no answer 'ans': these are problems, not results")
        # An API that refused or failed is stored as null by some runners: that is no answer, not a crash.
        reply = sample["ans"] if isinstance(sample["ans"], str) else ""
        tokens = sample.get("num_token")
        answers.append(Answer(problem, reply, tokens if isinstance(tokens, int) and tokens > 0 else None))
    return answers


def is_published(data: Any) -> bool:
    """Whether a JSON value is laid out as the published benchmark's files are."""
    return isinstance(data, dict) and isinstance(data.get("samples"), list) and "max_step" in data


def published_problems(data: dict[str, Any], path: str | Path) -> list[Problem]:
    """The problems of such a value, which was read from `path`. Raises ValueError where a sample is none."""
    problems = []
    for number, sample in enumerate(data["samples"]):
        if not isinstance(sample, dict):
            raise ValueError(f"{path}: sample {number} is no object")
        try:
            system = from_published(sample, data["max_step"])
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        problems.append(load_env("tag").problem(system.to_payload(), id=sample.get("id")))
    return problems
