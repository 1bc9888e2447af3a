"""The effects of the oracles: paired, averaged, levelled, and claimed only at the stated confidence."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_1samp

from envs.environment import ORACLES, Setting
from eval.oracles.effects import PAIRS, averaged, differences, effects, level_out, simultaneous
from eval.oracles.experiment import Experiment, Level
from eval.statistics import mean_interval
from tests.eval.agents import invented, record


def test_pairs_differ_in_one_oracle_and_all_such_pairs_are_there() -> None:
    settings = [Setting.parse(o) for o in ORACLES]
    for oracle, pairs in PAIRS.items():
        expected = {
            (off.oracles, on.oracles)
            for off, on in product(settings, settings)
            if {n for n in PAIRS if getattr(off, n) != getattr(on, n)} == {oracle} and getattr(on, oracle)
        }
        # Turning the state on changes nothing else only where history is off, since pruning needs it.
        assert set(pairs) == expected


def test_an_effect_is_the_mean_over_problems_of_the_mean_over_pairs() -> None:
    """Against a brute force on random outcomes with several samples a problem, some of them missing."""
    rng = random.Random(0)
    experiment = Experiment("m", "m", "m", "compact", "standard")
    for oracles in ORACLES:
        experiment.cells["listworld", oracles] = [
            record(f"p{i}", rng.random() < 0.5, sample=k) for i in range(9) for k in range(3) if rng.random() < 0.7
        ]
    for oracle, pairs in PAIRS.items():
        values = []
        for i in range(9):
            cells = {
                o: [r.verdict.success for r in experiment.cells["listworld", o] if r.problem["id"] == f"p{i}"] for p in pairs for o in p
            }
            if all(cells.values()):
                values.append(np.mean([np.mean(cells[on]) - np.mean(cells[off]) for off, on in pairs]))
        found = differences(experiment, "listworld", oracle)
        assert sorted(found.values()) == pytest.approx(sorted(values))
    assert len(effects([experiment])) == 3


def test_only_pairs_that_were_run_count() -> None:
    whole = invented(lambda o, h: o == "state", 4)
    part = Experiment("m", "m", "m", "compact", "standard", {k: v for k, v in whole.cells.items() if k[1] in ("none", "state", "plan")})
    assert [e["oracle"] for e in effects([part])] == ["plan", "state"]
    assert set(differences(part, "listworld", "state").values()) == {1.0}
    assert differences(part, "listworld", "history") == {}


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=30))
def test_one_stratum_is_the_t_test(values: list[float]) -> None:
    if np.std(values) < 1e-6:
        return
    rate = mean_interval([{str(i): v for i, v in enumerate(values)}], 0.9)
    low, high = ttest_1samp(values, 0).confidence_interval(0.9)
    assert (rate.value, rate.low, rate.high) == pytest.approx((np.mean(values), max(-1, low), min(1, high)), abs=1e-9)
    assert rate.n == len(values)


def test_the_interval_covers_with_strata_of_unlike_sizes_and_shared_clusters() -> None:
    """The two strata share their first ten clusters, whose values depend on each other; the truth is 0.15."""
    rng = np.random.default_rng(5)
    covered, independent = 0, 0
    for _ in range(1500):
        common = rng.normal(size=10)
        first = {str(i): 0.1 * x + 0.03 * rng.normal() + 0.1 for i, x in enumerate(common)}
        second = {str(i): 0.1 * x + 0.03 * rng.normal() + 0.2 for i, x in enumerate(common)}
        second |= {f"x{i}": 0.1 * rng.normal() + 0.2 for i in range(6)}
        rate = mean_interval([first, second])
        covered += rate.low <= 0.15 <= rate.high
        apart = mean_interval([first, {f"{k}b": v for k, v in second.items()}])
        independent += apart.low <= 0.15 <= apart.high
    assert 0.92 < covered / 1500 < 0.975
    assert independent / 1500 < 0.9, "taking the shared problems for different ones would promise too much"


def test_values_that_are_all_alike_leave_what_could_differ_unseen() -> None:
    rate = mean_interval([{str(i): 1.0 for i in range(20)}])
    assert (rate.value, rate.high) == (1.0, 1.0) and rate.low == pytest.approx(0.025 ** (1 / 20))
    assert mean_interval([{"a": 0.5}]).to_json() == {"value": 0.5, "low": -1.0, "high": 1.0, "n": 1}
    assert mean_interval([{}]).value is None


def test_no_effect_is_claimed_where_there_is_none_at_the_stated_confidence() -> None:
    """Outcomes by chance alone, over many seeds: any of six claims is wrong in at most 5 % of the experiments; levelled ones too."""
    seeds, false, false_levelled = 120, 0, 0
    for seed in range(seeds):
        rng = random.Random(f"null/{seed}")
        chance = {4: 0.9, 8: 0.5, 16: 0.3, 24: 0.1}
        made = [
            invented(lambda o, h, rng=rng, chance=chance: rng.random() < chance[h], 12, world=world, levels=chance)
            for world in ("listworld", "treeworld")
        ]
        both = Experiment("m", "m", "m", "compact", "standard", {**made[0].cells, **made[1].cells})
        false += any(e["effect"] for e in effects([both]))
        chosen = [level_out(both, world, [Level(h, h) for h in chance], 0.3) for world in both.worlds]
        false_levelled += any(row["effect"] for row in averaged(chosen, "model") if row["oracle"] in PAIRS)
    assert false <= 14 and false_levelled <= 14, "the 99.9 % quantile of a binomial with 120 trials of 5 %"
    assert simultaneous(6) == pytest.approx(1 - 0.05 / 6)


def test_levelling_takes_the_level_nearest_the_target_without_oracles() -> None:
    rates = {2: 1.0, 6: 0.75, 10: 0.25, 20: 0.0}
    counters = {h: iter([i < 4 * r for i in range(4)]) for h, r in rates.items()}
    experiment = invented(lambda o, h: next(counters[h]) if o == "none" else "state" in o, 4, levels=rates)
    cut = [Level(h, h) for h in rates]
    at = {target: level_out(experiment, "listworld", cut, target) for target in (0.3, 0.75, 0.5)}
    assert [at[t].level for t in at] == [Level(10, 10), Level(6, 6), Level(6, 6)], "of two as near, the shorter"
    assert at[0.3].success == 0.25 and len(at[0.3].differences["state"]) == 4
    rows = {row["oracle"]: row["difference"]["value"] for row in averaged([at[0.3]], "world")}
    assert rows["state"] == pytest.approx((0.75 + 1) / 2) and rows["history"] == 0
    # all steps are as the outcome, so there is no discrepancy
    assert rows["discrepancy"] == 0
    del experiment.cells["listworld", "none"]
    assert level_out(experiment, "listworld", cut, 0.3) is None


def test_figures_6a_and_6b_average_over_worlds_and_over_models() -> None:
    """Each world counts alike, and each model, however many problems it has there."""

    def experiment(name: str, helped: dict[str, str]) -> Experiment:
        made = Experiment(name, name, name, "compact", "standard")
        for world, oracle in helped.items():
            count = 4 if world == "listworld" else 8
            made.cells.update(invented(lambda o, h, oracle=oracle: oracle in o.split("+"), count, world=world).cells)
        return made

    models = [experiment("a", {"listworld": "plan", "treeworld": "state"}), experiment("b", {"listworld": "plan", "treeworld": "plan"})]
    chosen = [level_out(m, world, [Level(5, 5)], 0.3) for m in models for world in m.worlds]
    by_model = {(r["model"], r["oracle"]): r["difference"]["value"] for r in averaged(chosen, "model")}
    assert (by_model["a", "plan"], by_model["a", "state"], by_model["b", "plan"]) == (0.5, 0.5, 1.0)
    by_world = {(r["world"], r["oracle"]): r["difference"]["value"] for r in averaged(chosen, "world")}
    assert (by_world["listworld", "plan"], by_world["treeworld", "plan"], by_world["treeworld", "history"]) == (1.0, 0.5, 0.0)
