"""Named, frozen lists of problems and of the settings that they are meant for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

from envs.dataset import draw, make_params
from envs.environment import ORACLES
from envs.problem import Problem, content_hash
from envs.registry import load_env, nearest
from envs.tag.ablations import DELETIONS, LONG_COUNT, LONG_STEPS, difficulty_problems, unbounded_problems
from envs.tag.published import ALPHABETS, published
from envs.turing.compiler import Compiler
from envs.turing.library import PROGRAMS


@dataclass(frozen=True, slots=True)
class Suite:
    """A named list of problems.

    Attributes:
        name, summary: What it is called, and what it is, on one line.
        build: Makes the problems.
        oracles: The settings that belong to it: `tmtrain eval --oracles all` plays them all.
    """

    name: str
    summary: str
    build: Callable[[], list[Problem]]
    oracles: tuple[str, ...] = ("none",)

    def problems(self) -> list[Problem]:
        return self.build()


def _tmbench(name: str) -> Callable[[], list[Problem]]:
    def build() -> list[Problem]:
        env = load_env("tag")
        return [env.problem(system.to_payload(), split=name, id=id) for id, system in published(ALPHABETS[name])]

    return build


def _turing(name: str) -> Callable[[], list[Problem]]:
    def build() -> list[Problem]:
        env, program = load_env("tag"), PROGRAMS[name]
        compiler = Compiler(program.machine)
        systems = (compiler.halting_system(start) for start in program.configurations())
        return [env.problem(system.to_payload(), split=f"turing-{name}") for system in systems]

    return build


#: Horizon sweeps: the knobs of each world at each level. LUMINA (section 4.1, figure 3) names the knobs and gives no values.
SWEEPS: dict[str, dict[str, list[dict[str, Any]]]] = {
    "lumina": {
        "listworld": [{"pops": n} for n in (3, 6, 10, 15, 22, 30)],
        "treeworld": [{"nodes": n} for n in (10, 15, 20, 30, 40, 60)],
        "gridworld": [
            {"size": size, "min_distance": least, "max_distance": most}
            for size, least, most in ((5, 3, 5), (7, 6, 8), (9, 9, 12), (12, 13, 17), (16, 18, 24), (22, 25, 33))
        ],
        "tagworld": [{"max_steps": n, "min_horizon": n, "init_min": 6} for n in (3, 6, 10, 15, 22, 30)],
    },
    "lumina-tiny": {
        "listworld": [{"pops": n, "keep": 4} for n in (1, 2, 3, 4, 6)],
        "tagworld": [{"max_steps": n, "min_horizon": n, "init_min": 6} for n in (3, 4, 5, 6, 8)],
    },
}


def _sweep(family: str, worlds: Sequence[str], count: int) -> Callable[[], list[Problem]]:
    """Builds `count` problems a level, in turns: one of each world's first level, then of each world's second, and so on, so that the
    first N problems are spread evenly too."""

    def build() -> list[Problem]:
        levels = [level for same in zip(*(_levels(family, world, count) for world in worlds), strict=True) for level in same]
        return [problem for row in zip(*levels, strict=True) for problem in row]

    return build


@cache
def _levels(family: str, world: str, count: int) -> tuple[tuple[Problem, ...], ...]:
    """The problems of each level, each drawn from a stream of its own."""
    levels = []
    for knobs in SWEEPS[family][world]:
        split = "/".join([family, *(f"{key}={value}" for key, value in knobs.items())])
        levels.append(tuple(islice(draw(world, make_params(world, knobs), seed=0, split=split, unique=True), count)))
    return tuple(levels)


_LUMINA, _TINY = list(SWEEPS["lumina"]), list(SWEEPS["lumina-tiny"])
_ALL = [
    *(
        Suite(name, f"the 100 published m-tag problems over {{{', '.join(alphabet)}}}, at most 30 steps", _tmbench(name))
        for name, alphabet in ALPHABETS.items()
    ),
    Suite(
        "tmbench-difficulty",
        f"100 m-tag problems of 30 steps for each m of {DELETIONS[0]} to {DELETIONS[-1]}, all else being as alike as can be",
        lambda: [p for m in DELETIONS for p in difficulty_problems(m)],
    ),
    Suite(
        "tmbench-unbounded", f"{LONG_COUNT} published-like problems that run for {LONG_STEPS} steps and never repeat", unbounded_problems
    ),
    *(
        Suite(f"turing-{name}", f"a Turing machine as a 2-tag system, run to its halt: {program.summary}", _turing(name))
        for name, program in PROGRAMS.items()
    ),
    Suite("lumina-horizon", "600 problems: the paper's three worlds and tagworld, six levels each", _sweep("lumina", _LUMINA, 25), ORACLES),
    *(
        Suite(f"lumina-{world}", f"those of lumina-horizon in {world}: 25 at each level", _sweep("lumina", [world], 25), ORACLES)
        for world in _LUMINA
    ),
    Suite("lumina-tiny", "100 short problems of listworld and tagworld, for tiny models", _sweep("lumina-tiny", _TINY, 10), ORACLES),
]
_SUITES = {suite.name: suite for suite in _ALL}


def suite_names() -> list[str]:
    """Names of all suites."""
    return list(_SUITES)


def load_suite(name: str) -> Suite:
    """The suite with this name. Raises ValueError naming the nearest where there is none."""
    if name not in _SUITES:
        raise ValueError(f"unknown suite {name!r}: {nearest(name, suite_names())}")
    return _SUITES[name]


def problems_hash(problems: list[Problem]) -> str:
    """Identity of a list of problems: their payloads, in order."""
    return content_hash([[p.env, p.id, dict(p.payload)] for p in problems])


@cache
def reserved_hashes() -> frozenset[str]:
    """Canonical hashes of all suites' problems: no training stream may yield one."""
    return frozenset(p.canonical for name in suite_names() for p in load_suite(name).problems())
