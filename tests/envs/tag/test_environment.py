"""Problems, episodes and scripted replies of the tag environment."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from envs.dataset import draw, parse_problem
from envs.environment import STYLES, Setting
from envs.problem import Problem
from envs.registry import load_env
from envs.tag.environment import TagParams
from envs.verdict import Ending, Kind, Verdict

TAG = load_env("tag")
ODD = [
    "A",
    "a",
    "0",
    "17",
    "#",
    "$",
    "%",
    "&",
    "*",
    "-",
    "|",
    "/",
    "\\",
    '"',
    "'",
    "`",
    ",",
    ";",
    ".",
    "(",
    ")",
    "{",
    "}",
    "<",
    ">",
    "~",
    "_",
    "ε",
    "Ж",
    "queue",
    "x10",
]


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    alphabet = draw(st.lists(st.sampled_from(ODD), min_size=1, max_size=5, unique=True))
    word = st.lists(st.sampled_from(alphabet), max_size=4)
    rules = {s: draw(word) for s in alphabet}
    init = draw(st.lists(st.sampled_from(alphabet), max_size=7))
    payload = {"m": draw(st.integers(1, 3)), "alphabet": alphabet, "rules": rules, "init": init, "max_steps": draw(st.integers(0, 12))}
    return TAG.problem(payload)


def verdict_of(problem: Problem, style: str, write: Any) -> Verdict:
    episode = TAG.start(problem, Setting(style))
    episode.reply(write(episode))
    assert episode.over
    return episode.verdict()


@pytest.mark.parametrize("style", STYLES)
@settings(max_examples=300, deadline=None)
@given(problem=problems())
@example(problem=TAG.problem({"rules": {"<": [], "-": ["<"], ">": []}, "alphabet": ["<", "-", ">"], "init": ["-", ">", "<", "-", ">"]}))
@example(problem=TAG.problem({"rules": {",": ["ab"], "ab": [","]}, "alphabet": [",", "ab"], "init": [",", ",", "ab"], "max_steps": 3}))
def test_expert_replies_pass_strictly(style: str, problem: Problem) -> None:
    verdict = verdict_of(problem, style, lambda e: e.expert())
    assert verdict.strict, verdict
    assert verdict.ending is Ending.COMPLETED
    assert [s.kind for s in verdict.steps] == [Kind.CORRECT] * (problem.horizon + 1)
    assert all(s.faithful for s in verdict.steps)


@pytest.mark.parametrize("style", STYLES)
def test_spans_of_expert_replies_tile_the_reply(style: str) -> None:
    for problem in itertools.islice(draw("tag", TagParams(), seed=5, split="spans"), 20):
        episode = TAG.start(problem, Setting(style))
        reply, end = episode.expert(), 0
        episode.reply(reply)
        for step in episode.verdict().steps:
            assert step.span is not None
            assert not reply[end : step.span[0]].strip()
            end = step.span[1]
        assert end == len(reply)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5])
def test_noisy_replies_pass_as_often_as_no_step_goes_wrong(style: str, rate: float) -> None:
    params, passed, expected, variance = TagParams(max_steps=8), 0, 0.0, 0.0
    for i, problem in enumerate(itertools.islice(draw("tag", params, seed=1, split="noisy"), 400)):
        verdict = verdict_of(problem, style, lambda e, i=i: e.noisy(random.Random(f"noise/{i}"), rate))
        passed += verdict.success
        chance = (1 - rate) ** problem.horizon
        expected, variance = expected + chance, variance + chance * (1 - chance)
    assert abs(passed - expected) <= 4 * variance**0.5 + 1e-9


@pytest.mark.parametrize("style", STYLES)
def test_errors_of_noisy_replies_are_told_from_those_they_cause(style: str) -> None:
    problem = next(draw("tag", TagParams(min_horizon=30), seed=2, split="noisy"))
    verdict = verdict_of(problem, style, lambda e: e.noisy(random.Random(3), 0.1))
    first = verdict.first_error
    assert first is not None
    assert verdict.steps[first].faithful is False
    assert any(s.faithful and not s.correct for s in verdict.due[first:])


@pytest.mark.parametrize("style", STYLES)
def test_random_replies_state_every_step_and_know_only_the_first(style: str) -> None:
    problem = next(draw("tag", TagParams(min_horizon=30), seed=2, split="random"))
    verdict = verdict_of(problem, style, lambda e: e.random(random.Random(0)))
    assert verdict.steps[0].correct
    assert verdict.step_accuracy < 0.2
    assert {s.kind for s in verdict.due} == {Kind.CORRECT, Kind.WRONG}


def test_episode_without_a_reply_has_no_answer() -> None:
    episode = TAG.start(next(draw("tag", TagParams(), seed=0, split="none")), Setting())
    verdict = episode.verdict()
    assert (verdict.success, verdict.ending) == (False, Ending.NO_ANSWER)
    assert {s.kind for s in verdict.steps} == {Kind.MISSING}


def test_oracles_are_refused() -> None:
    problem = next(draw("tag", TagParams(), seed=0, split="none"))
    with pytest.raises(ValueError, match="--oracles none"):
        TAG.start(problem, Setting(state=True))
    with pytest.raises(ValueError, match="--wording standard"):
        TAG.start(problem, Setting(wording="brief"))


def test_published_defaults() -> None:
    params = TagParams()
    for problem in itertools.islice(draw("tag", params, seed=9, split="bounds"), 100):
        rules = problem.payload["rules"]
        assert set(rules) == set("ABCDE")
        assert all(1 <= len(w) <= 5 for w in rules.values())
        assert 2 <= len(problem.payload["init"]) <= 9
        assert (problem.payload["m"], problem.payload["max_steps"]) == (2, 30)


def test_horizon_bounds_hold() -> None:
    params = TagParams(min_horizon=4, max_horizon=6, max_steps=20)
    assert {p.horizon for p in itertools.islice(draw("tag", params, seed=9, split="bounds"), 60)} == {4, 5, 6}


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"rule_min": 3, "rule_max": 2}, "rule_min=3 and rule_max=2"),
        ({"init_min": -1}, "init_min=-1"),
        ({"min_horizon": 40}, "min_horizon=40"),
        ({"min_horizon": 5, "max_horizon": 4}, "max_horizon=4"),
        ({"m": 0}, "'m'"),
        ({"alphabet": "AAB"}, "'alphabet'"),
        ({"max_steps": -1, "min_horizon": 0}, "max_steps=-1"),
    ],
)
def test_bad_knobs_are_refused(values: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError) as raised:
        TagParams(**values)
    assert named in str(raised.value)


@given(problems())
def test_problems_round_trip_through_their_json_line(problem: Problem) -> None:
    assert parse_problem(json.loads(json.dumps(problem.to_json()))) == problem


def test_identity_is_of_the_content() -> None:
    def drawn() -> Iterator[Problem]:
        return itertools.islice(draw("tag", TagParams(), seed=1, split="identity"), 50)

    assert [p.id for p in drawn()] == [p.id for p in drawn()]
    assert len({p.id for p in drawn()}) == 50
