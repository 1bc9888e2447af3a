"""The curriculum: shares that follow what is informative, and draws that a resumed run repeats."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmtrain.curriculum import FLOOR, Curriculum, CurriculumSampler

LEVELS = [0] * 10 + [1] * 20


def curriculum(kind: str = "success", starts: tuple[float, float] = (0.0, 0.0), seed: int = 0) -> Curriculum:
    return Curriculum(LEVELS, [1.0, 1.0], starts, kind=kind, batches=100, rng=random.Random(seed))


def test_a_level_whose_groups_are_all_alike_shrinks_to_its_floor_and_comes_back() -> None:
    made = curriculum()
    assert made.shares(0) == [0.5, 0.5]
    made.observe([(0, False)] * 100)
    assert made.shares(0) == pytest.approx([FLOOR / (1 + FLOOR), 1 / (1 + FLOOR)], abs=1e-3)
    made.observe([(0, True)] * 100)
    assert made.shares(0) == pytest.approx([0.5, 0.5], abs=1e-3)


def test_without_a_curriculum_the_weights_stay() -> None:
    made = curriculum("none")
    made.observe([(0, False)] * 100)
    assert made.shares(0.5) == [0.5, 0.5]


def test_a_schedule_opens_levels_later() -> None:
    made = curriculum("none", starts=(0.0, 0.3))
    levels = [[LEVELS[row] for row in made.batch(n, 8)] for n in range(100)]
    assert not any(map(any, levels[:30])) and any(map(any, levels[30:40]))


def test_every_row_of_a_level_is_used_before_one_comes_again() -> None:
    made = curriculum("none", starts=(0.0, 1.0))
    rows = [row for n in range(5) for row in made.batch(n, 4)]
    assert sorted(rows) == sorted([*range(10)] * 2) and sorted(rows[:10]) == [*range(10)]


@given(st.integers(0, 12), st.lists(st.tuples(st.integers(0, 1), st.booleans()), max_size=20))
def test_a_restored_curriculum_draws_what_the_first_would_have_drawn(cut: int, groups: list[tuple[int, bool]]) -> None:
    whole, first, second = curriculum(), curriculum(), curriculum(seed=99)
    for n in range(cut):
        whole.batch(n, 4)
        first.batch(n, 4)
        whole.observe(groups)
        first.observe(groups)
    second.restore(json.loads(json.dumps(first.state())))
    assert [second.batch(n, 4) for n in range(20)] == [whole.batch(n, 4) for n in range(20)]
    assert second.informative == whole.informative


def test_the_sampler_repeats_rows_for_groups_and_batches_for_updates() -> None:
    sampler = CurriculumSampler(curriculum(), prompts=2, generations=3, repeats=2, batches=5)
    order = list(sampler)
    assert len(order) == len(sampler) == 5 * 2 * 3 * 2
    for start in range(0, len(order), 12):
        assert order[start : start + 6] == order[start + 6 : start + 12]
        assert set(Counter(order[start : start + 6]).values()) <= {3, 6}
    assert list(sampler) != order, "the next round goes on"


def test_levels_that_cannot_be_drawn_from_are_refused() -> None:
    for levels, weights, starts, line in [
        ([0], [1.0, 1.0], [0.0, 0.0], "no problem was drawn"),
        ([0, 1], [1.0, 1.0], [0.5, 0.5], "from the start"),
        ([0, 1], [0.0, 1.0], [0.0, 0.5], "from the start"),
    ]:
        with pytest.raises(ValueError, match=line):
            Curriculum(levels, weights, starts, kind="none", batches=1, rng=random.Random(0))
    with pytest.raises(ValueError, match="unknown kind"):
        Curriculum([0], [1.0], [0.0], kind="x", batches=1, rng=random.Random(0))
