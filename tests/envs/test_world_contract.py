"""What every registered world keeps, third-party ones too: run over whatever the registry names."""

import json
import os
import random
import subprocess
import sys
from itertools import islice

import pytest

from envs.action import DONE
from envs.dataset import draw, make_params, parse_problem
from envs.environment import ORACLES, WORLD_STYLES, Setting
from envs.game import best
from envs.problem import Problem
from envs.registry import env_names, load_env
from envs.verdict import Ending, Kind, Verdict
from envs.world import World, turn_budget
from envs.world_episode import WorldEpisode

WORLDS = [name for name in env_names() if isinstance(load_env(name), World)]
SETTINGS = [Setting.parse(oracles, style) for oracles in ORACLES for style in WORLD_STYLES]
# Small, larger and extreme levels of the worlds that come with the package; others are drawn with their defaults.
LEVELS = {
    "listworld": [{}, {"pops": 1, "keep": 1}, {"pops": 15, "keep": 15, "values": 3}, {"pops": 0, "keep": 2}],
    "treeworld": [{}, {"nodes": 1}, {"nodes": 30, "arity": 2}],
    "gridworld": [{}, {"size": 10, "min_distance": 8}, {"size": 4, "density": 0.7}],
    "tagworld": [{}, {"max_steps": 0, "min_horizon": 0}, {"max_steps": 20, "alphabet": "aa,b,ccc"}],
}

pytestmark = pytest.mark.parametrize("name", WORLDS)


def problems(name: str, count: int = 4) -> list[Problem]:
    return [
        problem
        for knobs in LEVELS.get(name, [{}])
        for problem in islice(draw(name, make_params(name, knobs), seed=5, split="contract"), count)
    ]


def start(problem: Problem, setting: Setting = SETTINGS[0]) -> WorldEpisode:
    episode = load_env(problem.env).start(problem, setting)
    assert isinstance(episode, WorldEpisode)
    return episode


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda s: f"{s.oracles}-{s.style}")
def test_the_expert_succeeds_with_t_star_actions_all_optimal_and_within_budget(name: str, setting: Setting) -> None:
    for problem in problems(name):
        episode = start(problem, setting)
        while not episode.over:
            episode.reply(episode.expert())
        verdict = episode.verdict()
        assert verdict.ending is Ending.COMPLETED
        assert verdict.success
        assert verdict.step_accuracy == 1
        assert len(verdict.steps) == problem.horizon
        assert [s.index for s in verdict.steps] == [s.turn for s in verdict.steps] == list(range(problem.horizon))
        assert episode.cost <= episode.budget
        assert Verdict.from_json(json.loads(json.dumps(verdict.to_json()))) == verdict


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda s: f"{s.oracles}-{s.style}")
def test_messages_alternate_and_say_what_the_setting_says(name: str, setting: Setting) -> None:
    for problem in problems(name, 1):
        episode = start(problem, setting)
        rng = random.Random(0)
        while not episode.over:
            roles = [m["role"] for m in episode.messages]
            assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"]
            assert len(roles) == 1 if setting.history else len(roles) == 2 * len(episode.steps) + 1
            last = episode.messages[-1]["content"]
            assert (episode.plan_text in last.splitlines()[-1 - (setting.state and setting.style == "verbose")]) or not setting.plan
            assert last.endswith(episode.state_text) == setting.state or not setting.state
            if setting.history:
                assert last.startswith(episode._task)
            episode.reply(episode.noisy(rng, 0.3))
        assert episode.messages[-1]["role"] == "assistant"


def test_drawing_and_playing_are_deterministic(name: str) -> None:
    first, second = problems(name), problems(name)
    assert first == second
    assert len({p.id for p in first}) > 1
    for problem in first:
        played = []
        for _ in range(2):
            episode, rng = start(problem), random.Random(7)
            while not episode.over:
                episode.reply(episode.noisy(rng, 0.3))
            played.append((episode.messages, episode.verdict()))
        assert played[0] == played[1]


def test_the_hash_seed_does_not_matter(name: str) -> None:
    code = (
        "import sys; from itertools import islice; from envs.dataset import *; from envs.registry import load_env; from envs.environment import Setting\n"
        "for p in islice(draw(sys.argv[1], make_params(sys.argv[1], {}), seed=1, split='h'), 5):\n"
        "    e = load_env(p.env).start(p, Setting.parse('plan+state'))\n"
        "    while not e.over: e.reply(e.expert())\n"
        "    print(p.to_json(), e.messages)"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code, name], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    }
    assert len(runs) == 1


def test_problems_round_trip_through_json(name: str) -> None:
    for problem in problems(name):
        line = json.loads(json.dumps(problem.to_json()))
        assert parse_problem(line) == problem
        by_hand = {k: v for k, v in line.items() if k in ("env", *problem.payload)}
        again = parse_problem(by_hand)
        assert (again.id, again.canonical, again.horizon, again.payload) == (
            problem.id,
            problem.canonical,
            problem.horizon,
            problem.payload,
        )


def test_budgets_follow_the_knobs_and_are_stated_where_they_are_not_the_default(name: str) -> None:
    for knobs in LEVELS.get(name, [{}]):
        tight, wide = (
            next(draw(name, make_params(name, {**knobs, **b}), seed=2, split="b")) for b in ({}, {"budget_factor": 3, "budget_slack": 7})
        )
        game = load_env(name).read(tight)[0]
        actions, cost = best(game)
        assert actions == tight.horizon
        assert start(tight).budget == turn_budget(cost)
        assert start(wide).budget == wide.payload["budget"] == turn_budget(cost, 3, 7)
        assert ("budget" in tight.payload) != load_env(name).counts_turns
        assert (tight.canonical, tight.horizon) == (wide.canonical, wide.horizon)


@pytest.mark.parametrize("value", [0, -3, True, 2.5, "9"])
def test_wrong_budgets_are_refused(name: str, value: object) -> None:
    problem = problems(name, 1)[0]
    with pytest.raises(ValueError, match="'budget' must be a whole number of at least 1"):
        load_env(name).problem({**problem.payload, "budget": value})


def test_unknown_and_wrong_parameters_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="has no parameter 'nonsense'"):
        make_params(name, {"nonsense": 1})
    with pytest.raises(ValueError, match="budget_factor"):
        make_params(name, {"budget_factor": 0.5})
    with pytest.raises(ValueError, match="budget_factor"):
        make_params(name, {"budget_factor": "nan"})
    with pytest.raises(ValueError, match="unknown field 'nonsense'"):
        load_env(name).problem({**problems(name, 1)[0].payload, "nonsense": 1})
    with pytest.raises(ValueError, match="is missing"):
        load_env(name).problem({})


@pytest.mark.parametrize("setting", SETTINGS[:2] + SETTINGS[-2:], ids=lambda s: f"{s.oracles}-{s.style}")
def test_random_actions_and_garbage_never_crash_and_end_within_the_budget(name: str, setting: Setting) -> None:
    rng = random.Random(3)
    garbage = ["", "\0", "done", "```python\n```", "```python\nnonsense(1)\n```", "((((", "```python\ndone()\ndone()\n```", "9" * 5000]
    for problem in problems(name):
        episode = start(problem, setting)
        while not episode.over:
            assert episode.cost + load_env(name).done_cost <= episode.budget
            if rng.random() < 0.3:
                before = (episode.state, episode.cost)
                episode.reply(rng.choice(garbage))
                assert (episode.state, episode.cost - 1) == before
                assert episode.steps[-1].kind is Kind.INVALID
                assert len(episode.feedback.splitlines()) == 1
            else:
                episode.reply(episode.random(rng))
                assert episode.steps[-1].kind is not Kind.INVALID
        assert episode.verdict().ending in (Ending.COMPLETED, Ending.WRONG, Ending.OVER_BUDGET, Ending.NO_ANSWER)


def test_legal_actions_are_taken_optimal_ones_are_legal_and_states_do_not_change(name: str) -> None:
    """Also: each optimal action leads on; the goal holds where `done()` is optimal, and then nothing else is."""
    rng = random.Random(4)
    for problem in problems(name, 2):
        game, budget = load_env(name).read(problem)
        state = game.initial
        for _ in range(budget):
            optimal, legal, before = game.optimal(state), game.legal(state), repr(state)
            assert set(optimal) <= set(legal)
            assert DONE in legal
            assert len(set(optimal)) == len(optimal) and len(set(legal)) == len(legal)
            assert DONE not in optimal or optimal == (DONE,)
            for action in legal:
                assert game.normal(action) == action
                if action != DONE:
                    outcome = game.act(state, action)
                    assert not outcome.refusal
                    assert outcome.cost >= 1
                    assert action not in optimal or game.optimal(outcome.state)
            assert (repr(state), game.optimal(state)) == (before, optimal)
            moves = [a for a in legal if a != DONE]
            if not moves:
                break
            state = game.act(state, rng.choice(moves)).state


def test_the_action_of_every_written_reply_is_read_back(name: str) -> None:
    for setting in SETTINGS[:2]:
        for problem in problems(name, 1):
            episode = start(problem, setting)
            for action in episode.game.legal(episode.state):
                assert episode.read(episode.written("So:", action)) == action
                assert episode.read(str(action)) == action


def test_done_a_second_time_changes_nothing(name: str) -> None:
    episode = start(problems(name, 1)[0])
    while not episode.over:
        episode.reply(episode.expert())
    before = (episode.verdict(), episode.cost, list(episode.messages), episode.state)
    episode.reply("done()")
    episode.reply("nonsense")
    episode.end(Ending.OVERLONG_PROMPT)
    assert (episode.verdict(), episode.cost, episode.messages, episode.state) == before


def test_noise_of_zero_is_the_expert_and_of_one_is_wrong_where_it_can_be(name: str) -> None:
    for problem in problems(name, 2):
        episode, rng = start(problem), random.Random(0)
        assert episode.noisy(rng, 0.0) == episode.expert()
        others = set(episode.game.legal(episode.state)) - set(episode.optimal)
        drawn = {episode.read(episode.noisy(rng, 1.0)) for _ in range(40 * len(others) + 1)}
        assert drawn == (others or {episode.optimal[0]})


def test_equal_problems_have_equal_hashes_and_streams_differ(name: str) -> None:
    params = make_params(name, {})
    streams = [list(islice(draw(name, params, seed=seed, split=split), 6)) for seed, split in ((1, "a"), (2, "a"), (1, "b"))]
    assert len({p.id for s in streams for p in s}) > 15
    for problem in streams[0]:
        assert load_env(name).problem(problem.payload).canonical == problem.canonical


def test_a_prompt_style_that_worlds_do_not_have_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="has no placed prompts: use --style verbose or compact"):
        start(problems(name, 1)[0], Setting("placed"))
