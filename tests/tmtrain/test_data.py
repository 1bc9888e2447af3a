"""Training data: apart from what is evaluated on, and right."""

from __future__ import annotations

from itertools import islice

import pytest

from envs.environment import ORACLES, Setting
from envs.registry import load_env
from envs.suites import load_suite, reserved_hashes
from tmtrain.data import Mixture, data_record, demonstrations, demonstrations_by_turns, held_out, prompt_row

LEVELS = [{"max_steps": 3}, {"max_steps": 6, "min_horizon": 6, "weight": 3}]


def test_training_never_meets_a_held_out_or_frozen_problem() -> None:
    """On two-symbol systems, where chance meetings abound."""
    level = [{"alphabet": "AB", "rule_max": 2, "init_max": 3, "max_steps": 5}]
    held = held_out("tag", level, 20, seed=1)
    mixture = Mixture("tag", level, 0, "sft")
    free = {p.canonical for p in islice(mixture.problems(), 600)}
    kept_apart = list(islice(mixture.problems(frozenset(p.canonical for p in held)), 600))
    assert free & {p.canonical for p in held}, "without the bar they would meet"
    record = data_record(kept_apart, mixture, held)
    assert record["shared_canonical"] == {"held_out": 0, "frozen_suites": 0}
    assert record["problems"] == 600 and record["distinct_canonical"] < 600


def test_the_record_counts_what_is_shared() -> None:
    problems = load_suite("tmbench-v1").problems()[:5]
    record = data_record(problems, Mixture("tag", LEVELS, 0, "sft"), problems[:2])
    assert record["shared_canonical"] == {"held_out": 2, "frozen_suites": 5}
    assert {p.canonical for p in problems} <= reserved_hashes()


def test_levels_are_mixed_by_weight_and_the_stream_is_fixed() -> None:
    problems = list(islice(Mixture("tag", LEVELS, 7, "grpo").problems(), 400))
    share = sum(p.horizon == 6 for p in problems) / 400
    assert share == pytest.approx(0.75, abs=0.07)
    assert [p.id for p in problems] == [p.id for p in islice(Mixture("tag", LEVELS, 7, "grpo").problems(), 400)]
    assert [p.id for p in problems] != [p.id for p in islice(Mixture("tag", LEVELS, 8, "grpo").problems(), 400)]


def test_held_out_levels_share_no_problem() -> None:
    problems = held_out("tag", [{"max_steps": 3}, {"max_steps": 3}], 50, seed=1)
    assert len({p.canonical for p in problems}) == 100


@pytest.mark.parametrize("levels", [[], [{"max_stebs": 3}], [{"max_steps": 3, "weight": -1}], [3]])
def test_bad_levels_are_refused(levels: list) -> None:
    with pytest.raises(ValueError):
        Mixture("tag", levels, 0, "sft")


@pytest.mark.parametrize("style", ["verbose", "compact"])
def test_a_demonstration_is_the_prompt_and_a_right_reply(style: str) -> None:
    problem = load_suite("tmbench-v1").problems()[0]
    (row,) = demonstrations(problem, Setting(style))
    assert [m["role"] for m in row["messages"]] == ["user", "assistant"]
    episode = load_env("tag").start(problem, Setting(style))
    assert row["messages"][:1] == episode.messages == prompt_row(problem, Setting(style))["prompt"]
    episode.reply(row["messages"][1]["content"])
    assert episode.verdict().strict


def test_demonstrations_take_turns_in_the_settings() -> None:
    """Seven problems in six settings: plans in the second and the fourth, a row a turn where the history is pruned."""
    problems = held_out("listworld", [{"pops": 2, "keep": 4}], 7, seed=1)
    rows = list(demonstrations_by_turns(problems, [Setting.parse(name, "compact") for name in ORACLES]))
    assert len(rows) == 4 + 2 * 3 + 1
    assert [" P:" in row["messages"][0]["content"] for row in rows[:4]] == [False, True, False, True]
    assert [" S:" in row["messages"][0]["content"] for row in rows] == [False, False, *[True] * 8, False]
