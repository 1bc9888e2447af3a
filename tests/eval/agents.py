"""Oracle experiments in memory, for the tests of their analysis."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from envs.environment import ORACLES, Setting
from envs.problem import Problem
from envs.verdict import Ending, Kind, StepVerdict, Verdict
from eval.episodes import Task, play_all
from eval.oracles.experiment import Experiment
from eval.policies import scripted_policy
from eval.records import EpisodeRecord


def played(spec: str, problems: list[Problem], seed: int = 0, oracles: Iterable[str] = ORACLES, style: str = "compact") -> Experiment:
    """What a scripted policy does with problems of one world in each setting."""
    experiment = Experiment(spec, spec, spec, style, "standard")
    policy = scripted_policy(spec)
    assert policy is not None

    async def play() -> None:
        for name in oracles:
            records: list[EpisodeRecord] = []
            setting = Setting.parse(name, style)
            await play_all([Task(p) for p in problems], setting, policy, concurrency=1, on_record=records.append, seed=seed)
            experiment.cells[problems[0].env, name] = records

    asyncio.run(play())
    return experiment


def record(problem: str, success: bool, *, horizon: int = 5, world: str = "listworld", sample: int = 0, steps: str = "") -> EpisodeRecord:
    """An episode that never was. `steps` says how it went, one letter a step: `c`orrect, `w`rong, `d`ead, `i`nvalid."""
    kinds = {"c": Kind.CORRECT, "w": Kind.WRONG, "d": Kind.DEAD, "i": Kind.INVALID}
    verdicts = tuple(StepVerdict(i, s == "c", kinds[s], turn=i) for i, s in enumerate(steps or ("c" if success else "w") * horizon))
    verdict = Verdict(verdicts, success, Ending.COMPLETED if success else Ending.WRONG)
    return EpisodeRecord({"id": problem, "env": world, "horizon": horizon}, sample, (), (), (), verdict, 0.0)


def invented(
    success: Callable[[str, int], bool], count: int, *, name: str = "m", world: str = "listworld", levels: Iterable[int] = (5,)
) -> Experiment:
    """An experiment in which `success(setting, horizon)` is drawn for each of `count` problems at each level in each setting."""
    experiment = Experiment(name, name, name, "compact", "standard")
    for oracles in ORACLES:
        outcomes = [(f"{world}{h}-{i}", success(oracles, h), h) for h in levels for i in range(count)]
        experiment.cells[world, oracles] = [record(p, won, horizon=h, world=world, steps="c" if won else "w") for p, won, h in outcomes]
    return experiment
