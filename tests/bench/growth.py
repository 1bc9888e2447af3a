"""What each part costs against the size of its work: straight lines, or something is wrong."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from envs.dataset import draw, make_params
from envs.environment import Setting
from envs.registry import load_env
from envs.tag.prompt import verbose_reply
from envs.tag.system import TagSystem, simulate
from envs.tag.verify import verify_reply
from eval.policies import scripted_policy
from eval.records import read_records
from eval.report import read_runs, write_report
from eval.runs import Evaluation, evaluate
from eval.summary import summarise
from tests.bench.rows import seconds

#: Of each curve, times the smallest size.
SIZES = (1, 2, 4, 8, 16)
Curve = list[tuple[int, float]]  # size, seconds


def curves() -> Iterator[tuple[str, str, Curve]]:
    """Each part's name, the unit of its size, and its curve."""

    def sizes(smallest: int, work: Callable[[int], Callable[[], Any]]) -> Curve:
        return [(smallest * n, seconds(work(smallest * n), 0.2)) for n in SIZES]

    yield "generation", "problems", sizes(100, lambda n: lambda: list(islice(draw("tag", make_params("tag", {}), seed=0, split="b"), n)))
    yield "simulation", "steps", sizes(2_000, lambda n: lambda: simulate(growing(n)))
    yield "rendering of a right reply", "steps", sizes(100, _rendering)
    yield "reading and checking of a reply", "steps", sizes(100, _reading)
    yield "an episode of a world", "turns", sizes(25, _episode)
    with tempfile.TemporaryDirectory() as folder:
        records = {n: _run(Path(folder) / str(n), n) for n in (50 * k for k in SIZES)}
        yield "scoring of a run", "episodes", sizes(50, lambda n: lambda: summarise(records[n]))
        yield (
            "report of a run",
            "episodes",
            sizes(50, lambda n: lambda: write_report(read_runs([Path(folder) / str(n)]), Path(folder) / f"r{n}")),
        )


def growing(steps: int) -> TagSystem:
    """A system whose queue stays as long as it is, so that steps cost alike."""
    rules = {"A": tuple("BC"), "B": tuple("CA"), "C": tuple("AB")}
    return TagSystem(2, tuple("ABC"), rules, tuple("ABCABCABCABCABCABC"), steps)


def _rendering(steps: int) -> Callable[[], Any]:
    system = growing(steps)
    trace = simulate(system)
    return lambda: verbose_reply(system, trace)


def _reading(steps: int) -> Callable[[], Any]:
    system = growing(steps)
    trace = simulate(system)
    reply = verbose_reply(system, trace)
    return lambda: verify_reply(system, trace, reply)


def _episode(steps: int) -> Callable[[], Any]:
    """TagWorld, whose state stays as large as it is; elsewhere a longer episode has a larger state, too."""
    world = load_env("tagworld")
    problem = world.problem(growing(steps).to_payload())

    def play() -> None:
        episode = world.start(problem, Setting("compact"))
        while not episode.over:
            episode.reply(episode.expert())

    return play


def _run(folder: Path, episodes: int) -> list[Any]:
    problems = list(islice(draw("tag", make_params("tag", {}), seed=0, split="b", unique=True), episodes))
    policy = scripted_policy("noisy:0.05")
    assert policy is not None
    evaluate(policy, Evaluation(problems, "bench", Setting()), folder, progress=False)
    return read_records(folder)
