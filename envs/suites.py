"""Named, frozen lists of problems."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from envs.problem import Problem, content_hash
from envs.registry import load_env, nearest
from envs.tag.ablations import DELETIONS, LONG_COUNT, LONG_STEPS, difficulty_problems, unbounded_problems
from envs.tag.published import ALPHABETS, published
from envs.turing.compiler import Compiler
from envs.turing.library import PROGRAMS


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite's name, what it is, and how its problems are made."""

    name: str
    summary: str
    build: Callable[[], list[Problem]]

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
