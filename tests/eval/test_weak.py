"""The scripted agents: what is wrong with each is seen in its play, and the analysis finds it and nothing else."""

from __future__ import annotations

import asyncio

import pytest

from envs.environment import ORACLES, WORLD_STYLES, Setting
from envs.registry import load_env
from envs.suites import load_suite
from envs.verdict import Kind
from eval.oracles.analysis import findings
from eval.oracles.effects import PAIRS, effects
from eval.policies import scripted_policy
from eval.weak import SLIP, WEAKNESSES, WeakPolicy
from tests.eval.agents import played

#: Where each agent is looked at.
WHERE = {
    "forgets": "listworld",
    "miscounts": "listworld",
    "reexpands": "treeworld",
    "lost": "gridworld",
    "literal": "listworld",
    "ignores-state": "tagworld",
    "shortsighted": "gridworld",
    "distracted": "listworld",
}


def problems(world: str, count: int) -> list:
    return load_suite(f"lumina-{world}").problems()[:count]


def test_all_agents_are_looked_at_in_a_world_where_their_weakness_shows() -> None:
    assert WHERE.keys() == WEAKNESSES.keys()
    assert all(not WEAKNESSES[name].worlds or world in WEAKNESSES[name].worlds for name, world in WHERE.items())
    assert all(weakness.response.keys() == PAIRS.keys() for weakness in WEAKNESSES.values())


@pytest.mark.parametrize("name", WHERE)
def test_the_analysis_names_what_was_planted_and_says_no_effect_elsewhere(name: str) -> None:
    found = effects([played(f"weak:{name}", problems(WHERE[name], 60))])
    assert {e["oracle"]: e["effect"] for e in found} == WEAKNESSES[name].response
    (line,) = findings(found)
    planted = [oracle for oracle, sign in WEAKNESSES[name].response.items() if sign]
    assert line["text"].count("no effect") == 3 - len(planted)


@pytest.mark.slow
def test_its_error_rates_over_many_seeds() -> None:
    """Of each agent's three claims, any false one counts: that may happen in at most 5 % of the experiments."""
    seeds, false, missed, planted = 25, 0, 0, 0
    for name, world in WHERE.items():
        for seed in range(seeds):
            found = {e["oracle"]: e["effect"] for e in effects([played(f"weak:{name}", problems(world, 48), seed=seed)])}
            response = WEAKNESSES[name].response
            false += any(found[oracle] != sign for oracle, sign in response.items() if not sign)
            missed += sum(found[oracle] != sign for oracle, sign in response.items() if sign)
            planted += sum(map(bool, response.values()))
    experiments = seeds * len(WHERE)
    print(f"{false} of {experiments} experiments with a false effect; {missed} of {planted} planted effects missed")
    assert false <= 20, "the 99.9 % quantile of a binomial with 200 trials of 5 %"
    assert missed <= 0.03 * planted


@pytest.mark.parametrize("style", WORLD_STYLES)
@pytest.mark.parametrize("world", ["listworld", "treeworld", "gridworld", "tagworld"])
def test_an_oracle_counts_as_told_only_where_the_message_holds_its_words(world: str, style: str) -> None:
    for oracles in ORACLES:
        for problem in problems(world, 2):
            episode = load_env(world).start(problem, Setting.parse(oracles, style))
            agent = WeakPolicy("forgets").session(episode, "0")
            while not episode.over:
                told = agent._told(episode.messages[-1]["content"])
                assert told == {"plan", "state"} & set(oracles.split("+"))
                episode.reply(episode.expert())


def test_a_forgetter_goes_by_the_message_and_not_by_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the state oracle on but its line cut out of the message, it forgets as if nothing had been told."""
    monkeypatch.setattr("eval.weak.SLIP", 0.0)
    problem = next(p for p in problems("listworld", 60) if p.horizon > 15)
    done = {}
    for cut in (False, True):
        episode = load_env("listworld").start(problem, Setting(state=True))
        agent = WeakPolicy("forgets:3").session(episode, "9")
        while not episode.over:
            messages = [{**m, "content": m["content"].partition("State:")[0] if cut else m["content"]} for m in episode.messages]
            episode.reply(asyncio.run(agent.reply(messages)).text)
        done[cut] = episode.verdict()
    assert done[False].success
    assert done[True].first_error >= 4 and done[True].step_accuracy < 0.5


def test_without_its_weakness_an_agent_only_slips() -> None:
    some = problems("gridworld", 60)
    for spec in ("weak:miscounts", "weak:reexpands", "weak:shortsighted:0", "weak:forgets:1000"):
        steps = [s for r in played(spec, some, oracles=["none"]).cells["gridworld", "none"] for s in r.verdict.steps]
        assert sum(not s.correct for s in steps) / len(steps) == pytest.approx(SLIP, abs=0.015), spec


def test_what_the_agents_do_is_what_they_are_said_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eval.weak.SLIP", 0.0)
    forgets = played("weak:forgets:6", problems("tagworld", 60), oracles=["none"])
    for episode in forgets.cells["tagworld", "none"]:
        assert episode.verdict.first_error == (None if episode.problem["horizon"] <= 7 else 7)
    miscounts = played("weak:miscounts:1", problems("listworld", 12), oracles=["plan+state"])
    first = [r.verdict.steps[0].correct for r in miscounts.cells["listworld", "plan+state"]]
    assert sum(first) <= 3, "now and then the element beside may go as well"
    literal = played("weak:literal:1", problems("gridworld", 12), oracles=["plan"])
    assert all(s.kind is Kind.INVALID for r in literal.cells["gridworld", "plan"] for s in r.verdict.steps[:1])
    ignoring = played("weak:ignores-state", problems("tagworld", 12), oracles=["state+history"])
    assert not any(r.verdict.success for r in ignoring.cells["tagworld", "state+history"])


def test_play_is_a_function_of_the_seed_and_each_setting_has_a_stream_of_its_own() -> None:
    some = problems("gridworld", 30)
    first, again, other = (played("weak:shortsighted", some, seed=s) for s in (3, 3, 4))
    verdicts = [[[r.verdict for r in cell] for cell in e.cells.values()] for e in (first, again, other)]
    assert verdicts[0] == verdicts[1] != verdicts[2]
    assert first.successes("gridworld", "none") != first.successes("gridworld", "state")


BAD = {
    "weak:forgetful": "there is no agent 'forgetful': choose one of forgets",
    "weak:forgets:-1": "forgets takes a number of turns, such as weak:forgets:8",
    "weak:lost:2": "lost takes a probability",
    "weak:lost:much": "lost takes a probability",
    "weak:ignores-state:3": "ignores-state takes no amount",
}


@pytest.mark.parametrize("spec", BAD)
def test_agents_that_are_none_are_refused(spec: str) -> None:
    with pytest.raises(ValueError, match=BAD[spec]):
        scripted_policy(spec)


def test_single_turn_problems_are_refused() -> None:
    tag = load_env("tag").start(load_suite("tmbench-v1").problems()[0], Setting())
    with pytest.raises(ValueError, match="plays multi-turn worlds only"):
        WeakPolicy("forgets").session(tag, "0")
