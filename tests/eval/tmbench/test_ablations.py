"""What ablations show of a policy that errs at a known rate, and token limits."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from scipy.stats import geom, kstest

from envs.environment import Episode, Message, Setting
from envs.problem import Problem
from envs.suites import load_suite
from envs.tag.ablations import difficulty_problems, unbounded_problems
from envs.verdict import Ending
from eval.episodes import Completion, Task, play, play_all
from eval.policies import scripted_policy
from eval.records import EpisodeRecord
from eval.regrade import regrade
from eval.runs import Evaluation, evaluate
from eval.statistics import wilson
from eval.summary import summarise
from eval.tmbench.ablations import KINDS, last_correct_steps, survival

RATE = 0.01


def records_of(problems: Sequence[Problem], samples: int, setting: Setting, spec: str = f"noisy:{RATE}") -> list[EpisodeRecord]:
    found: list[EpisodeRecord] = []
    tasks = [Task(p, k) for p in problems for k in range(samples)]
    asyncio.run(play_all(tasks, setting, scripted_policy(spec), concurrency=1, on_record=found.append))
    return found


def check_survival(last_correct: Sequence[int], most: int) -> None:
    """The share of the episodes right up to each step is that of a policy that errs at RATE a step: over all steps together by
    Kolmogorov's 95 % bound, and step by step within 95 % intervals at nine steps of ten."""
    n = len(last_correct)
    alive = [sum(last >= step for last in last_correct) for step in range(most + 1)]
    expected = [(1 - RATE) ** step for step in range(most + 1)]
    assert max(abs(a / n - e) for a, e in zip(alive, expected, strict=True)) < 1.358 / n**0.5
    rates = [wilson(a, n) for a in alive]
    within = [r.low <= e <= r.high for r, e in zip(rates, expected, strict=True)]
    assert sum(within) >= 0.9 * len(within)


def test_unbounded_runs_survive_as_their_error_rate_says() -> None:
    records = records_of(unbounded_problems(), 6, Setting(continued=True))
    last = [e["last_correct"] for e in last_correct_steps(records)]
    check_survival(last, 1000)
    assert kstest([n + 1 for n in last], geom(RATE).cdf).pvalue > 0.05, "first errors are geometric"
    acc = summarise(records)["acc"]
    assert [a["correct"] for a in acc] == [sum(n >= a["step"] for n in last) for a in acc], "nothing after a first error counts"


@pytest.mark.parametrize("m", [2, 9, 20])
def test_difficulty_runs_survive_as_their_error_rate_says_whatever_m_is(m: int) -> None:
    records = records_of(difficulty_problems(m), 3, Setting("compact"))
    check_survival([e["last_correct"] for e in last_correct_steps(records)], 30)
    rate = wilson(sum(r.verdict.success for r in records), 300)
    assert rate.low <= (1 - RATE) ** 30 <= rate.high


def test_last_correct_steps_by_hand() -> None:
    problems = unbounded_problems()[:1]
    assert [e["last_correct"] for e in last_correct_steps(records_of(problems, 1, Setting(continued=True), "random"))] == [0]
    short = load_suite("turing-parity").problems()[:2]
    assert [e["last_correct"] for e in last_correct_steps(records_of(short, 1, Setting(continued=True), "expert"))] == [8, 17]


def test_survival_has_wilsons_interval_where_episodes_are_independent() -> None:
    acc = [
        {"step": 0, "correct": 10, "total": 10, "low": 1.0, "high": 1.0},
        {"step": 1, "correct": 5, "total": 10, "low": 0.2, "high": 0.8},
    ]
    alone = survival(acc, samples=1)
    assert (alone[1]["low"], alone[1]["high"]) == (wilson(5, 10).low, wilson(5, 10).high) and alone[0]["low"] < 0.8
    assert survival(acc, samples=2) == acc


def test_points_are_the_papers() -> None:
    assert [KINDS["difficulty"].point(v).x for v in KINDS["difficulty"].defaults] == list(range(2, 21))
    temperatures = [KINDS["temperature"].point(v).temperature for v in KINDS["temperature"].defaults]
    assert (temperatures[0], temperatures[-1]) == (0, 3)
    points = {v: KINDS["alphabets"].point(v) for v in [*KINDS["alphabets"].defaults, "VWXYZ", "s1,s2,s3,s4,s5"]}
    canonical = [[p.canonical for p in point.problems] for point in points.values()]
    assert all(c == canonical[0] for c in canonical) and len({p.folder for p in points.values()}) == 6
    for name, suite in (("roman", "tmbench-v1"), ("special", "tmbench-v1-special")):
        assert [dict(p.payload) for p in points[name].problems] == [dict(p.payload) for p in load_suite(suite).problems()]
    assert points["s1,s2,s3,s4,s5"].problems[0].payload["alphabet"] == ["s1", "s2", "s3", "s4", "s5"]
    assert KINDS["alphabets"].point("@/#\\%").folder == "_40_2f_23_5c_25"


@pytest.mark.parametrize(
    ("kind", "value", "line"),
    [
        ("alphabets", "ABCD", "5 different symbols"),
        ("alphabets", "AABCD", "5 different symbols"),
        ("alphabets", "AB[CD", "square bracket"),
        ("difficulty", "0", "a deletion number is a number of at least 1"),
        ("difficulty", "two", "not 'two'"),
        ("temperature", "-1", "a temperature is a number of at least 0"),
        ("temperature", "nan", "not 'nan'"),
        ("unbounded", "tmbench-unbound", "did you mean 'tmbench-unbounded'"),
    ],
)
def test_bad_values_are_refused(kind: str, value: str, line: str) -> None:
    with pytest.raises(ValueError) as error:
        KINDS[kind].point(value)
    assert line in str(error.value) and "\n" not in str(error.value)


class Counting:
    """Writes the expert's next steps, and says that each reply had ten tokens, or none that it counts."""

    name = "counting"

    def __init__(self, tokens: int | None = 10) -> None:
        self.tokens = tokens

    def describe(self) -> dict[str, object]:
        return {"backend": "test"}

    def session(self, episode: Episode, seed: str) -> Counting:
        self.episode = episode
        return self

    def notes(self) -> list[str]:
        return []

    def check_prompts(self, prompts: object) -> list[str]:
        return []

    async def reply(self, messages: list[Message]) -> Completion:
        return Completion(self.episode.expert(), completion_tokens=self.tokens)

    async def close(self) -> None:
        pass


@pytest.mark.parametrize(("limit", "turns"), [(1, 1), (10, 1), (11, 2), (35, 4), (339, 34), (None, 34)])
def test_an_episode_ends_when_it_has_spent_its_tokens(limit: int | None, turns: int) -> None:
    task = Task(unbounded_problems()[8])
    record = asyncio.run(play(task, Setting(continued=True), Counting(), token_limit=limit))
    assert len(record.replies) == turns
    assert record.verdict.ending is (Ending.COMPLETED if turns == 34 else Ending.TRUNCATED)
    assert record.verdict.first_error == (None if turns == 34 else 30 * turns)


def test_a_limit_that_cannot_be_kept_is_refused() -> None:
    with pytest.raises(ValueError, match="counting does not count its tokens"):
        asyncio.run(play(Task(unbounded_problems()[0]), Setting(continued=True), Counting(None), token_limit=5))


@pytest.mark.parametrize("limit", [None, 25])
def test_continued_runs_are_regraded_to_the_same_verdicts(limit: int | None, tmp_path: Path) -> None:
    policy = scripted_policy("noisy:0.02") if limit is None else Counting()
    evaluation = Evaluation(unbounded_problems()[8:9], "s", Setting(continued=True), concurrency=1, token_limit=limit)
    evaluate(policy, evaluation, tmp_path / "run", progress=False)
    pairs = regrade(tmp_path / "run")
    assert len(pairs) == 1 and all(record.verdict == verdict for record, verdict in pairs)
    assert len(pairs[0][0].replies) > 1
