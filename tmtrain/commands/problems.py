"""Problems named on the command line: a suite, a file of problems or published samples, or the run that was made on them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from envs.dataset import parse_problem, read_problems
from envs.problem import Problem
from envs.suites import load_suite, suite_names
from eval.published import is_published, published_problems
from eval.records import read_records


def named_problems(name: str) -> list[Problem]:
    """The problems of the suite, the file or the run directory with this name.

    Raises:
        ValueError: Where it is none of them.
    """
    if name in suite_names():
        return load_suite(name).problems()
    path = Path(name)
    if not path.exists():
        raise ValueError(f"{name!r} is neither a file, nor a run, nor a suite (suites: {', '.join(suite_names())})")
    if path.is_dir():
        problems = {record.problem["id"]: record.problem for record in read_records(path)}
        if not problems:
            raise ValueError(f"{path} holds no finished episode yet, so no problems")
        return [parse_problem(problem) for problem in problems.values()]
    if published := _published(path):
        return published
    return read_problems(path)


def knobs(pairs: Iterable[str]) -> dict[str, str]:
    """The generator's knobs as `--set` gives them. Raises ValueError for what is not KEY=VALUE."""
    found: dict[str, str] = {}
    for text in pairs:
        key, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"--set takes KEY=VALUE, not {text!r}")
        found[key] = value
    return found


def _published(path: Path) -> list[Problem]:
    """The problems of a file in the published format, or none where it has another format."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return []  # `read_problems` says what is wrong
    return published_problems(data, path) if is_published(data) else []
