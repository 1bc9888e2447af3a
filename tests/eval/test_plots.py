"""What figures show, read from their axes."""

from __future__ import annotations

import pytest

from eval.plots import horizon_figure, step_accuracy_figure, tokens_figure


def test_tokens_are_shown_as_the_share_of_episodes_with_at_most_so_many() -> None:
    figure = tokens_figure({"a": [40, 10, 20, 20], "uncounted": []})
    assert figure is not None
    (line,) = figure.axes[0].lines
    assert line.get_label() == "a"
    assert list(zip(*line.get_data(), strict=True)) == [(10, 0), (10, 25), (20, 50), (20, 75), (40, 100)]
    assert figure.axes[0].get_xscale() == "linear"
    wide = tokens_figure({"a": [1, 2], "b": [100]})
    assert wide is not None and wide.axes[0].get_xscale() == "log"
    assert tokens_figure({"uncounted": []}) is None


def test_accuracy_is_drawn_in_percent_at_the_steps_that_some_episode_has() -> None:
    steps = [
        {"step": 0, "correct": 4, "total": 4, "low": 0.5, "high": 1.0},
        {"step": 1, "correct": 1, "total": 2, "low": 0.1, "high": 0.9},
        {"step": 2, "correct": 0, "total": 0, "low": None, "high": None},
    ]
    (axes,) = step_accuracy_figure({"a": {"acc": steps}}).axes
    assert [list(points) for points in axes.lines[0].get_data()] == [[0, 1], [100, 50]]
    band = axes.collections[0].get_paths()[0].vertices
    assert (band[:, 1].min(), band[:, 1].max()) == pytest.approx((10, 100))


def test_horizons_with_few_episodes_are_left_out() -> None:
    rate = {"value": 0.5, "low": 0.4, "high": 0.6}
    levels = [{"horizon": n, "episodes": count, "success_rate": rate, "step_accuracy": rate} for n, count in ((3, 10), (5, 9), (8, 30))]
    figure = horizon_figure({"a": {"by_horizon": levels}})
    assert figure is not None and [list(axes.lines[0].get_xdata()) for axes in figure.axes] == [[3, 8], [3, 8]]
    assert horizon_figure({"a": {"by_horizon": levels[:2]}}) is None
