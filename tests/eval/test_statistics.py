"""Intervals against scipy and against plain simulation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from eval.statistics import bootstrap, pass_at_k, percent, resample, wilson


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_is_scipys(case: tuple[int, int]) -> None:
    successes, trials = case
    rate = wilson(successes, trials)
    theirs = binomtest(successes, trials).proportion_ci(0.95, method="wilson")
    assert (rate.low, rate.high) == pytest.approx((theirs.low, theirs.high), abs=1e-9)
    assert rate.low <= rate.value <= rate.high


def test_wilson_of_nothing_is_no_rate() -> None:
    assert wilson(0, 0).value is None
    assert percent(wilson(0, 0).to_json()) == "–"


def test_percent_for_people() -> None:
    assert percent(wilson(94, 100).to_json()) == "94.0 [87.5, 97.2]"


def test_resampling_is_seeded_and_draws_clusters_whole() -> None:
    clusters = ["a", "b", "a", "c", "b"]
    weights = resample(clusters)
    assert (weights == resample(clusters)).all()
    assert (weights != resample(clusters, seed=1)).any()
    assert (weights[:, 0] == weights[:, 2]).all() and (weights[:, 1] == weights[:, 4]).all()
    assert (weights[:, 0] + weights[:, 1] + weights[:, 3] == 3).all()


def test_bootstrap_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    """200 experiments of 40 clusters of 3 equal coin throws: treating the 120 as independent would cover about 75 %."""
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(200):
        throws = np.repeat(rng.random(40) < 0.6, 3).astype(float)
        ids = [str(i // 3) for i in range(120)]
        rate = bootstrap(lambda w, t=throws: (w @ t) / w.sum(axis=1), ids)
        covered += rate.low <= 0.6 <= rate.high
    assert 0.88 <= covered / 200 <= 0.99


@given(st.integers(1, 8).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_k_is_the_share_of_draws_with_a_right_one(case: tuple[int, int, int]) -> None:
    n, correct, k = case
    draws = list(itertools.combinations(range(n), k))
    assert pass_at_k(n, correct, k) == pytest.approx(sum(any(i < correct for i in d) for d in draws) / len(draws))


def test_pass_at_k_refuses_more_draws_than_samples() -> None:
    with pytest.raises(ValueError, match="k=3, n=2"):
        pass_at_k(2, 1, 3)
