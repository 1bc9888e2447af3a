"""The episode that all worlds share, on a third-party world that is registered by entry point."""

import random
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from itertools import islice
from typing import Any

import pytest

from envs import registry
from envs.action import DONE, Action, Parameter, Signature
from envs.dataset import draw, make_params
from envs.environment import Setting
from envs.game import Game, Outcome
from envs.problem import content_hash, stream
from envs.registry import load_env
from envs.verdict import Ending, Kind
from envs.world import BudgetParams, World, check_fields, turn_budget
from envs.world_episode import WorldEpisode


class CountdownGame(Game[int]):
    """Take 1 or 2 from a number until it is 0; below zero nothing helps any more."""

    def __init__(self, start: int) -> None:
        self.initial = start

    def fields(self) -> dict[str, Any]:
        return {"start": self.initial}

    def canonical(self) -> str:
        return content_hash(["countdown", self.initial])

    def act(self, state: int, action: Action) -> Outcome:
        if action.args[0] not in (1, 2):
            return Outcome(state, refusal="take 1 or 2")
        return Outcome(state - action.args[0])

    def optimal(self, state: int) -> tuple[Action, ...]:
        if state <= 0:
            return (DONE,) if state == 0 else ()
        return (Action("take", (2,)),) if state % 2 == 0 else (Action("take", (2,)), Action("take", (1,)))[state == 1 :]

    def legal(self, state: int) -> list[Action]:
        return [Action("take", (1,)), Action("take", (2,)), DONE]

    def statement(self, style: str) -> str:
        return f"{self.initial}"

    def feedback(self, state: int, action: Action, after: int, style: str) -> str:
        return "taken"

    def state_text(self, state: int, style: str) -> str:
        return f"at {state}"

    def plan_text(self, state: int, style: str) -> str:
        return "go on" if state else "stop"

    def thought(self, state: int, action: Action) -> str:
        return f"It is {state}."


@dataclass(frozen=True)
class CountdownParams(BudgetParams):
    even: bool = False


class Countdown(World):
    name = "countdown"
    version = 1
    summary = "count down"
    params = CountdownParams
    signatures = (Signature("take", "takes", (Parameter("count", int, "1 or 2"),)),)
    rules = "Take until nothing is left."
    example = {"start": 2}

    def game(self, fields: Any) -> CountdownGame:
        check_fields(fields, ("start",))
        return CountdownGame(fields["start"])

    def draw(self, params: CountdownParams, rng: random.Random) -> dict[str, Any]:
        return {"start": rng.randrange(0, 10, 1 + params.even)}


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch):
    """The world above, as an installed package would register it."""
    entries = [EntryPoint(name, f"{__name__}:{made}", "tmtrain.envs") for name, made in (("countdown", "Countdown"), ("gone", "Gone"))]
    monkeypatch.setattr(registry, "entry_points", lambda group: entries if group == "tmtrain.envs" else [])
    registry._locations.cache_clear()
    registry.load_env.cache_clear()
    yield
    registry._locations.cache_clear()
    registry.load_env.cache_clear()


def start(number: int = 4, setting: str = "none", style: str = "verbose", **payload: int) -> WorldEpisode:
    world = load_env("countdown")
    episode = world.start(world.problem({"start": number, **payload}), Setting.parse(setting, style))
    assert isinstance(episode, WorldEpisode)
    return episode


def fenced(call: str) -> str:
    return f"So:\n```python\n{call}\n```"


def play(episode: WorldEpisode, *calls: str) -> WorldEpisode:
    for call in calls:
        episode.reply(call)
    return episode


def test_a_knob_may_be_a_truth_value() -> None:
    for said in ("yes", True, "1"):
        drawn = islice(draw("countdown", make_params("countdown", {"even": said}), seed=0, split="t"), 20)
        assert all(p.payload["start"] % 2 == 0 for p in drawn)
    assert make_params("countdown", {"even": "no"}) == CountdownParams()
    with pytest.raises(ValueError, match="countdown's even must be of type bool, not 'maybe'"):
        make_params("countdown", {"even": "maybe"})


def test_a_world_whose_optimal_action_does_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CountdownGame, "act", lambda self, state, action: Outcome(state))
    with pytest.raises(RuntimeError, match=r"CountdownGame: take\(2\) is called optimal in 4, but changes nothing"):
        load_env("countdown").problem({"start": 4})


def test_unknown_oracles_are_named() -> None:
    with pytest.raises(ValueError, match=r"unknown oracle 'stat' in 'plan\+stat'"):
        Setting.parse("plan+stat")


def test_a_third_party_world_is_listed_drawn_and_played() -> None:
    assert "countdown" in registry.env_names()
    with pytest.raises(ValueError, match=r"'gone' is registered as .*:Gone', which cannot be imported"):
        load_env("gone")
    problem = next(draw("countdown", make_params("countdown", {}), seed=0, split="t"))
    assert problem.payload == {"start": stream("countdown", 1, "t", 0, 0).randint(0, 9)}
    assert play(start(5), *["take(2)", "take(1)", "take(2)", "done()"]).success


def test_t_star_counts_done_and_sets_the_budget() -> None:
    assert load_env("countdown").problem({"start": 8}).horizon == 5
    assert start(8).budget == 9  # ceil(1.25 * 5) + 2
    assert start(8, budget=5).budget == 5
    assert turn_budget(50, 1.1, 0) == 55  # though 1.1 * 50 is a hair above


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("take(2)", Kind.CORRECT),
        ("take(1)", Kind.WRONG),
        ("done()", Kind.WRONG),
        ("take(3)", Kind.INVALID),
        ("take()", Kind.INVALID),
        ("", Kind.INVALID),
    ],
)
def test_each_kind_of_step(call: str, kind: Kind) -> None:
    step = play(start(4), call).steps[0]
    assert (step.kind, step.correct) == (kind, kind is Kind.CORRECT)


def test_after_a_fatal_action_steps_are_dead_and_the_episode_goes_on() -> None:
    episode = play(start(1), "take(2)")
    assert (episode.over, episode.optimal_actions, episode.steps[0].kind) == (False, [], Kind.WRONG)
    play(episode, "take(1)", "take(5)", "done()")
    assert [s.kind for s in episode.steps[1:]] == [Kind.DEAD, Kind.INVALID, Kind.DEAD]
    assert episode.verdict().ending is Ending.WRONG


def test_invalid_replies_leave_the_state_and_spend_one() -> None:
    episode = play(start(4), "take(3)", "nonsense")
    assert (episode.state, episode.cost) == (4, 2)
    assert episode.messages[-1]["content"].startswith("no fenced block")
    assert episode.messages[-3]["content"].startswith("take 1 or 2")


def test_spans_are_the_stripped_replies() -> None:
    replies = ["\n  " + fenced("take(2)") + " \n", "take(9)", "  \n", fenced("take(2)"), "done()"]
    episode = play(start(4), *replies)
    for step, reply in zip(episode.steps, replies, strict=True):
        if reply.strip():
            assert reply[slice(*step.span)] == reply.strip()
        else:
            assert step.span is None
    assert [s.turn for s in episode.steps] == list(range(5))


def test_the_budget_must_pay_for_done() -> None:
    assert play(start(4, budget=3), "take(2)", "take(2)", "done()").success
    late = play(start(4, budget=3), "take(2)", "nonsense", "take(2)")
    assert (late.over, late.success, late.verdict().ending) == (True, False, Ending.OVER_BUDGET)


def test_endings_where_the_budget_runs_out() -> None:
    assert play(start(4, budget=2), "x", "y").verdict().ending is Ending.NO_ANSWER
    assert play(start(4, budget=2), "take(9)", "y").verdict().ending is Ending.OVER_BUDGET
    cut = start(4, budget=2)
    cut.reply("take(2)")
    cut.reply("let me th", truncated=True)
    assert cut.verdict().ending is Ending.TRUNCATED
    cut_after_the_action = start(4, budget=2)
    cut_after_the_action.reply("take(2)")
    cut_after_the_action.reply("```python\ntake(1)", truncated=True)
    assert cut_after_the_action.verdict().ending is Ending.OVER_BUDGET


def test_a_cut_reply_is_read_for_what_it_says() -> None:
    episode = start(2)
    episode.reply("```python\ntake(2)", truncated=True)
    assert episode.steps[0].correct
    episode.reply("hm", truncated=True)
    assert (episode.over, episode.steps[1].kind) == (False, Kind.INVALID)
    episode.reply("done()")
    assert episode.success


def test_endings_from_outside_and_none_at_all() -> None:
    episode = play(start(4), "take(2)")
    assert (episode.verdict().ending, len(episode.verdict().steps)) == (Ending.NO_ANSWER, 1)
    episode.end(Ending.OVERLONG_PROMPT)
    assert (episode.over, episode.verdict().ending, episode.verdict().success) == (True, Ending.OVERLONG_PROMPT, False)
    assert play(episode, "take(2)").verdict().ending is Ending.OVERLONG_PROMPT
    assert start(4).verdict().ending is Ending.NO_ANSWER


def test_an_unreachable_problem_is_over_at_once() -> None:
    episode = play(start(-1), "take(1)")
    assert (episode.over, episode.verdict().ending, episode.steps, episode.optimal_actions) == (True, Ending.UNREACHABLE, [], [])
    assert not episode.verdict().ending.scored
    assert load_env("countdown").problem({"start": -1}).horizon == 0


def test_oracles_speak_in_every_message_and_in_the_example() -> None:
    episode = play(start(4, "plan+state"), fenced("take(2)"))
    example = episode.messages[0]["content"]
    assert example.count("Plan: ") == example.count("State: at ") == 3  # two turns of the example, one of the task
    assert example.endswith("## Your task\n4\nBudget left: 6\nPlan: go on\nState: at 4")
    assert episode.messages[2]["content"] == "taken\nBudget left: 5\nPlan: go on\nState: at 2"
    plain = play(start(4), fenced("take(2)"))
    assert "Plan" not in plain.messages[0]["content"]
    assert plain.messages[2]["content"] == "taken\nBudget left: 5"
    short = play(start(4, "plan+state", "compact"), "take(2)", "take(7)")
    assert [m["content"] for m in short.messages] == ["4 P:go on S:at 4", "take(2)", "taken P:go on S:at 2", "take(7)", "! P:go on S:at 2"]


def test_history_pruning_leaves_the_task_and_the_state() -> None:
    for style in ("verbose", "compact"):
        episode = start(4, "plan+state+history", style)
        before, _, told = episode.messages[0]["content"].rpartition("4 P:" if style == "compact" else "Budget left: 6")
        play(episode, "take(2)")
        (message,) = episode.messages
        after = f"4 P:{told}" if style == "compact" else f"Budget left: 5{told}"
        assert message == {"role": "user", "content": before + after.replace("at 4", "at 2")}
        play(episode, "take(2)", "done()")
        assert [m["role"] for m in episode.messages] == ["user", "assistant"]


def test_the_opening_declares_the_actions_and_shows_the_experts_example() -> None:
    text = start(4).messages[0]["content"]
    assert '{"name": "take", "description": "takes", "parameters": {"count": {"type": "integer", "description": "1 or 2"}}}' in text
    assert '{"name": "done"' in text
    assert (
        "## Example\n2\nBudget left: 5\n\nYou:\nIt is 2.\n```python\ntake(2)\n```\n\nEnvironment:\ntaken\nBudget left: 4\n\nYou:\nIt is 0.\n```python\ndone()\n```"
        in text
    )


def test_scripted_replies() -> None:
    assert start(4).expert() == "It is 4.\n```python\ntake(2)\n```"
    assert start(4, style="compact").expert() == "take(2)"
    dead = play(start(1), "take(2)")
    assert dead.expert().endswith(fenced("done()")[4:])
    rng = random.Random(0)
    assert {start(4, style="compact").random(rng) for _ in range(50)} == {"take(1)", "take(2)", "done()"}
