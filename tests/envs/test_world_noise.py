"""How errors compound: what the paper observes of models is seen with a policy whose error rate is known (LUMINA, section 4.4)."""

import random
from itertools import islice

import pytest

from envs.dataset import draw, make_params
from envs.environment import Setting
from envs.registry import load_env
from envs.verdict import Verdict


def played(name: str, knobs: dict, count: int, rate: float) -> list[Verdict]:
    rng, verdicts = random.Random(11), []
    for problem in islice(draw(name, make_params(name, knobs), seed=1, split="noise"), count):
        episode = load_env(name).start(problem, Setting("compact"))
        while not episode.over:
            episode.reply(episode.noisy(rng, rate))
        verdicts.append(episode.verdict())
    return verdicts


@pytest.mark.parametrize("pops", [4, 12])
def test_on_listworld_success_is_that_of_independent_steps(pops: int) -> None:
    verdicts = played("listworld", {"pops": pops, "keep": 10}, 1200, 0.1)
    success = sum(v.success for v in verdicts) / len(verdicts)
    assert success == pytest.approx(0.9 ** (pops + 1), abs=0.035)
    until_the_first_error = [v.steps if v.first_error is None else v.steps[: v.first_error + 1] for v in verdicts]
    steps = [s.correct for some in until_the_first_error for s in some]
    assert sum(steps) / len(steps) == pytest.approx(0.9, abs=0.015)
    assert all(not any(s.correct for s in v.steps[v.first_error :]) for v in verdicts if v.first_error is not None)


@pytest.mark.parametrize(
    ("name", "knobs"), [("treeworld", {"nodes": 15}), ("gridworld", {"size": 8, "min_distance": 10, "max_distance": 14})]
)
def test_elsewhere_errors_can_be_made_good(name: str, knobs: dict) -> None:
    verdicts = played(name, knobs, 500, 0.1)
    faultless = sum(v.first_error is None for v in verdicts) / len(verdicts)
    assert sum(v.success for v in verdicts) / len(verdicts) > faultless + 0.15
