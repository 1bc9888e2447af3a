"""The problems of the ablations: what is held fixed, and that a thousand steps cost a thousand times one."""

from __future__ import annotations

import time
import tracemalloc
from collections import deque

import pytest

from envs.environment import Setting
from envs.registry import load_env
from envs.suites import load_suite
from envs.tag.ablations import DELETIONS, MOST_SYMBOLS, difficulty_problems, unbounded_problems
from envs.tag.prompt import verbose_reply
from envs.tag.system import TagSystem, simulate
from envs.tag.verify import verify_reply
from envs.verdict import Ending
from eval.metrics import score


def lengths(system: TagSystem) -> list[int]:
    """The queue's length at each step, by a deque."""
    queue = deque(system.init)
    found = [len(queue)]
    for _ in range(system.max_steps):
        if len(queue) < system.m:
            break
        queue.extend(system.rules[queue[0]])
        for _ in range(system.m):
            queue.popleft()
        found.append(len(queue))
    return found


@pytest.mark.parametrize("m", [2, 7, 20])
def test_only_m_changes_with_the_difficulty(m: int) -> None:
    problems = difficulty_problems(m)
    systems = [TagSystem.from_payload(p.payload) for p in problems]
    assert len({p.canonical for p in problems}) == 100
    assert all(s.m == m and p.horizon == s.max_steps == 30 and len(s.alphabet) == 5 for s, p in zip(systems, problems, strict=True))
    words = [len(w) for s in systems for w in s.rules.values()]
    assert (min(words), max(words)) == (m - 1, m + 3) and {len(s.init) - m for s in systems} <= set(range(8))
    changes = [b - a for s in systems for a, b in zip(lengths(s), lengths(s)[1:], strict=False)]
    assert set(changes) == {-1, 0, 1, 2, 3}
    # The length less m moves alike for every m: by one symbol a step, and a little more since runs that halt are dropped.
    assert 1.0 < sum(changes) / len(changes) < 1.4


def test_the_difficulty_suite_holds_every_m() -> None:
    problems = load_suite("tmbench-difficulty").problems()
    assert [p.payload["m"] for p in problems[::100]] == list(DELETIONS) and len(problems) == 1900
    assert problems[500:600] == difficulty_problems(7)
    with pytest.raises(ValueError, match="rule_min"):
        difficulty_problems(0)


def test_unbounded_problems_run_for_a_thousand_steps_and_never_repeat() -> None:
    problems = unbounded_problems()
    assert len({p.canonical for p in problems}) == 10
    for problem in problems:
        system = TagSystem.from_payload(problem.payload)
        sizes = lengths(system)
        assert len(sizes) == 1001 and problem.horizon == 1000 and sum(sizes) <= MOST_SYMBOLS
        assert len(set(simulate(system).states())) == 1001


def test_the_expert_answers_unbounded_problems_in_parts() -> None:
    problem = min(unbounded_problems(), key=lambda p: sum(lengths(TagSystem.from_payload(p.payload))))
    episode = load_env("tag").start(problem, Setting(continued=True))
    while not episode.over:
        episode.reply(episode.expert())
    assert episode.verdict().ending is Ending.COMPLETED and len(episode.messages) == 2 * 34


def cost(steps: int) -> tuple[float, int]:
    """Seconds and peak bytes of making, writing, reading and scoring a problem whose queue keeps its length."""
    payload = {"rules": {"A": "BC", "B": "CA", "C": "AB"}, "init": "ABCABB", "max_steps": steps}

    def work() -> None:
        problem = load_env("tag").problem(payload)
        system = TagSystem.from_payload(problem.payload)
        trace = simulate(system)
        verdict = verify_reply(system, trace, verbose_reply(system, trace))
        assert score([verdict], ["a"]).success_rate.value == 1.0

    best = float("inf")
    for _ in range(2):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return best, peak


def test_long_problems_cost_in_proportion_to_their_steps() -> None:
    """Eight times the steps: 8 times the cost where it is linear, 64 times where it is quadratic."""
    (short_time, short_bytes), (long_time, long_bytes) = cost(500), cost(4000)
    assert long_bytes < 12 * short_bytes
    assert long_time < 24 * short_time
