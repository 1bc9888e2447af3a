"""Answers that are asked to go on until their first wrong state."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.environment import Setting
from envs.registry import load_env
from envs.tag.continued import STEPS_A_REPLY, ContinuedEpisode
from envs.tag.prompt import verbose_reply, verbose_step
from envs.tag.system import TagSystem, simulate
from envs.verdict import Ending, Kind, Verdict

SYSTEM = TagSystem.from_payload({"rules": {"A": "BC", "B": "ACA", "C": "A"}, "init": "ABCA", "max_steps": 100})
TRACE = simulate(SYSTEM)
HALTING = TagSystem.from_payload({"rules": {"A": "BA", "B": "C", "C": ""}, "init": "ABCAB", "max_steps": 100})


def steps(first: int, last: int, system: TagSystem = SYSTEM) -> str:
    trace = simulate(system)
    return "\n\n".join(verbose_step(system, i, trace.state(i - 1) if i else None, trace.state(i)) for i in range(first, last + 1))


def played(*replies: str, system: TagSystem = SYSTEM, truncated: bool = False) -> ContinuedEpisode:
    episode = ContinuedEpisode(system, "verbose")
    for reply in replies:
        assert not episode.over
        episode.reply(reply, truncated=truncated)
    return episode


def test_an_answer_in_parts_is_the_answer_in_one() -> None:
    episode = played(steps(0, 40), steps(41, 41), steps(42, 100))
    verdict = episode.verdict()
    assert episode.over and verdict.success and verdict.ending is Ending.COMPLETED and len(verdict.steps) == 101
    assert [s.turn for s in verdict.steps] == [0] * 41 + [1] + [2] * 59
    for step in verdict.steps:
        text = [m["content"] for m in episode.messages if m["role"] == "assistant"][step.turn]
        assert step.span and text[step.span[0] : step.span[1]] == steps(step.index, step.index)
    assert [m["content"] for m in episode.messages[2::2]] == [
        f"Go on with step {i}, in the same format, to the halt or to the last step that is asked for." for i in (41, 42)
    ]


@settings(max_examples=60)
@given(st.lists(st.integers(0, 2500), max_size=60), st.booleans())
def test_wherever_a_limit_cuts_no_right_answer_is_called_wrong(cuts: list[int], repeats: bool) -> None:
    for system in (SYSTEM, HALTING):
        episode = ContinuedEpisode(system, "verbose")
        for cut in cuts:
            if episode.over:
                break
            first = max(0, episode.next_step - 3 * repeats)
            episode.reply(steps(first, simulate(system).horizon, system)[:cut], truncated=True)
        verdict = episode.verdict()
        assert verdict.ending in (Ending.COMPLETED, Ending.TRUNCATED, Ending.NO_ANSWER)
        assert {s.kind for s in verdict.steps} <= {Kind.CORRECT, Kind.MISSING}
        assert verdict.success == (verdict.ending is Ending.COMPLETED)


@pytest.mark.parametrize(
    ("second", "first_error", "kind", "ending"),
    [
        (verbose_step(SYSTEM, 31, TRACE.state(30), ("A",)), 31, Kind.WRONG, Ending.WRONG),
        (steps(31, 33) + "\n\n### step 34:\n- Queue State: [A …]", 34, Kind.UNPARSED, Ending.WRONG),
        (steps(31, 33) + "\n\n" + steps(35, 40), 34, Kind.MISSING, Ending.WRONG),
        (steps(33, 40), 31, Kind.MISSING, Ending.WRONG),
        (steps(0, 30), 31, Kind.MISSING, Ending.WRONG),
        ("I would rather not.", 31, Kind.MISSING, Ending.WRONG),
        ("", 31, Kind.MISSING, Ending.WRONG),
    ],
)
def test_the_first_wrong_or_skipped_state_ends_it(second: str, first_error: int, kind: Kind, ending: Ending) -> None:
    verdict = played(steps(0, 30), second).verdict()
    assert (verdict.first_error, verdict.ending, verdict.success) == (first_error, ending, False)
    assert verdict.due[first_error].kind is kind and len(verdict.due) == 101
    assert all(s.kind is Kind.MISSING for s in verdict.due[first_error + 1 :])
    assert verdict.due[first_error].faithful in (None, False)


def test_no_answer_at_all_is_named_so_and_a_cut_one_too() -> None:
    assert played("Sorry.").verdict().ending is Ending.NO_ANSWER
    assert played("<think>hm", truncated=True).verdict().ending is Ending.TRUNCATED
    assert ContinuedEpisode(SYSTEM, "verbose").verdict().ending is Ending.NO_ANSWER


def test_what_is_stated_after_the_halt_is_overrun() -> None:
    end = simulate(HALTING).horizon
    verdict = played(steps(0, end, HALTING) + f"\n\n### step {end + 1}:\n- Queue State: [A]", system=HALTING).verdict()
    assert verdict.success and verdict.overrun == 1 and not verdict.strict and verdict.ending is Ending.COMPLETED


def test_a_step_far_beyond_the_end_costs_nothing() -> None:
    end = simulate(HALTING).horizon
    verdict = played(steps(0, end, HALTING) + "\n\n### step 999999999:\n- Queue State: [A]", system=HALTING).verdict()
    assert verdict.success and verdict.overrun == 1


def drive(episode: ContinuedEpisode, answer: str, rate: float = 0.0, seed: int = 0) -> tuple[Verdict, int]:
    rng, turns = random.Random(seed), 0
    while not episode.over:
        text = {"expert": episode.expert, "noisy": lambda: episode.noisy(rng, rate), "random": lambda: episode.random(rng)}[answer]()
        episode.reply(text)
        turns += 1
    return episode.verdict(), turns


@pytest.mark.parametrize("system", [SYSTEM, HALTING])
def test_scripted_answers(system: TagSystem) -> None:
    horizon = simulate(system).horizon
    for answer in ("expert", "noisy"):
        verdict, turns = drive(ContinuedEpisode(system, "verbose"), answer)
        assert verdict.strict and turns == math.ceil((horizon + 1) / STEPS_A_REPLY)
    verdict, turns = drive(ContinuedEpisode(system, "verbose"), "random")
    assert verdict.first_error == 1 and turns == 1
    verdict, _ = drive(ContinuedEpisode(system, "verbose"), "noisy", 1.0)
    assert verdict.first_error == 1


def test_the_parts_of_a_verbose_reply_are_its_steps() -> None:
    assert steps(0, 100) == verbose_reply(SYSTEM, TRACE)


def test_only_verbose_tag_problems_can_be_gone_on_with() -> None:
    tag, world = load_env("tag"), load_env("listworld")
    with pytest.raises(ValueError, match="use --style verbose"):
        tag.start(tag.problem(SYSTEM.to_payload()), Setting("compact", continued=True))
    with pytest.raises(ValueError, match="played turn by turn"):
        world.start(world.problem({"initial": [1, 2], "target": [1]}), Setting(continued=True))
