"""The published table, correlations against scipy, and scores read from harness files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from eval.report import read_runs
from eval.runs import Evaluation, evaluate
from eval.tmbench.correlation import correlate, mean_scores
from eval.tmbench.figures import correlation_figure
from eval.tmbench.harness import read_scores
from eval.tmbench.table2 import CORRELATED, published_ranking, read_table
from tests.commands import check_refused, run
from tmtrain.cli import main

TABLE = {m.name: m for m in read_table()}


def test_the_table_holds_what_is_printed() -> None:
    assert len(TABLE) == 35 and len({m.group for m in TABLE.values()}) == 5
    best = TABLE["Gemini-2.5-Pro"]
    assert (best.swa_uniform, best.swa_linear, best.pass_rate) == pytest.approx((0.966, 0.962, 0.94))
    assert dict(TABLE["R1-Distill-Qwen-32B"].benchmarks) == pytest.approx({"aime2024": 0.726, "math500": 0.943, "gpqa_diamond": 0.621})
    assert sum(m.pass_rate for m in TABLE.values()) == pytest.approx(6.67)
    assert all(m.swa_linear <= m.swa_uniform for m in TABLE.values())


def test_the_table_is_the_papers(shared: Path) -> None:
    lines = (shared / "papers" / "tmbench.txt").read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("Model\tSWA"))
    printed = {}
    for line in lines[start + 1 :]:
        if not line.strip():
            break
        name, *values = line.split("\t")
        if values:
            printed[name] = [float(v) for v in values]
    ours = {m.name: [100 * v for v in (m.swa_uniform, m.swa_linear, m.pass_rate, *m.benchmarks.values())] for m in TABLE.values()}
    assert ours.keys() == printed.keys()
    for name, values in printed.items():
        assert ours[name] == pytest.approx(values)


def test_correlate_gives_the_published_figures(capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, "correlate")
    assert round(found["pearson_r"], 3) == 0.882 and f"{found['p_value']:.2e}" == "1.49e-04" and found["n"] == 12
    r = {name: c["pearson_r"] for name, c in found["per_benchmark"].items()}
    assert r["gpqa_diamond"] > r["aime2024"] > r["math500"]
    assert all(c["p_value"] < 0.05 and c["n"] == 12 for c in found["per_benchmark"].values())
    assert sorted(found["models"]) == sorted(CORRELATED)
    assert run(capsys, "correlate", "--models", "all")["n"] == 35


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100)), min_size=3, max_size=20))
def test_a_correlation_equals_scipys(pairs: list[tuple[int, int]]) -> None:
    x, y = (np.array(v, float) / 100 for v in zip(*pairs, strict=True))
    names = [str(i) for i in range(len(pairs))]
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        with pytest.raises(ValueError, match="same score"):
            correlate(dict(zip(names, x, strict=True)), dict(zip(names, y, strict=True)))
        return
    found = correlate(dict(zip(names, x, strict=True)), {**dict(zip(names, y, strict=True)), "without a pass rate": 0.5})
    expected = stats.pearsonr(x, y)
    assert found.r.value == pytest.approx(expected.statistic, abs=1e-9)
    assert found.p_value == pytest.approx(expected.pvalue, abs=1e-6)
    assert found.r.low <= found.r.value <= found.r.high and found.models == tuple(names)
    assert (found.x.min(), found.x.max(), found.y.min(), found.y.max()) == (0, 1, 0, 1)
    assert found.residuals.sum() == pytest.approx(0, abs=1e-9)
    assert (found.residuals * found.x).sum() == pytest.approx(0, abs=1e-9), "the line is not the least-squares one"


def test_the_interval_covers_as_often_as_it_says() -> None:
    """The percentile bootstrap is a little narrow at 30 points: 95 % nominal, at least 85 % wanted over 60 draws of a known r."""
    rng, hits = np.random.default_rng(0), 0
    for _ in range(60):
        x, y = rng.multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]], size=30).T
        r = correlate({str(i): v for i, v in enumerate(x)}, {str(i): v for i, v in enumerate(y)}).r
        hits += r.low <= 0.7 <= r.high
    assert hits >= 51


def test_the_mean_needs_all_three() -> None:
    full = {"aime2024": 0.1, "math500": 0.2, "gpqa_diamond": 0.6, "mmlu_pro": 1.0}
    assert mean_scores({"a": full, "b": {"aime2024": 0.1, "math500": 0.2}}) == {"a": pytest.approx(0.3)}


def test_the_figure_has_a_scatter_and_a_qq_plot_for_each_benchmark() -> None:
    own = {m.name: m.pass_rate for m in TABLE.values()}
    found = correlate(own, {m.name: m.benchmarks["math500"] for m in TABLE.values()})
    figure = correlation_figure({"one": found, "two": found})
    assert len(figure.axes) == 4
    (quantiles, ordered), _ = stats.probplot(found.residuals)
    assert np.allclose(figure.axes[2].collections[0].get_offsets(), np.column_stack([quantiles, ordered]))


LM_EVAL = {
    "results": {
        "aime24": {"alias": "aime24", "exact_match,none": 0.1, "exact_match_stderr,none": 0.05},
        "hendrycks_math500": {"exact_match,none": 0.2, "math_verify,none": 0.4},
        "gpqa_diamond_cot_zeroshot": {"exact_match,strict-match": 0.005, "exact_match,flexible-extract": 0.27},
        "mmlu_pro": {"exact_match,custom-extract": 0.5},
        "mmlu_pro_biology": {"exact_match,custom-extract": 0.9},
        "gpqa_main_zeroshot": {"acc,none": 0.9},
        "aime25": {"exact_match,none": 0.9},
    }
}
LIGHTEVAL = {
    "results": {
        "lighteval|aime24|0": {"math_pass@1:1_samples": 0.3, "math_pass@1:1_samples_stderr": 0.1, "math_pass@1:64_samples": 0.02},
        "lighteval|math_500|0": {"extractive_match": 0.85, "extractive_match_stderr": 0.016},
        "extended|gpqa:diamond|0|0": {"gpqa_pass@1:1_samples": 0.6},
        "lighteval|mmlu_pro|0": {"pass@k:k=1&n=1": 0.7},
        "all": {"math_pass@1:1_samples": 0.9},
    }
}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (LM_EVAL, {"aime2024": 0.1, "math500": 0.4, "gpqa_diamond": 0.27, "mmlu_pro": 0.5}),
        (LIGHTEVAL, {"aime2024": 0.3, "math500": 0.85, "gpqa_diamond": 0.6, "mmlu_pro": 0.7}),
    ],
)
def test_scores_of_both_harnesses_are_read(data: Any, expected: dict[str, float], tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(json.dumps(data))
    assert {name: s.value for name, s in read_scores(tmp_path / "r.json").items()} == expected


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("{", "cannot read"),
        ("[]", 'no object "results"'),
        ('{"results": {"hellaswag": {"acc,none": 0.5}}}', "its tasks are hellaswag"),
        ('{"results": {"aime24": {"exact_match,none": "N/A"}}}', "has no accuracy"),
        ('{"results": {"gpqa_diamond_zeroshot": {"acc,none": 0.5}, "gpqa_diamond_n_shot": {"acc,none": 0.4}}}', "gpqa_diamond twice"),
    ],
)
def test_files_without_one_score_each_are_refused(text: str, line: str, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(ValueError) as error:
        read_scores(tmp_path / "r.json")
    assert line in str(error.value) and "\n" not in str(error.value)


@pytest.fixture(scope="module")
def own_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from envs.environment import Setting
    from envs.suites import load_suite
    from eval.policies import scripted_policy

    path = tmp_path_factory.mktemp("runs") / "mine"
    evaluate(scripted_policy("noisy:0.05"), Evaluation(load_suite("tmbench-v1").problems(), "tmbench-v1", Setting()), path, progress=False)
    return path


def test_a_model_of_ones_own_joins_in(own_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r.json").write_text(json.dumps(LM_EVAL))
    out = tmp_path / "out"
    found = run(capsys, "correlate", "--run", f"mine={own_run}", "--scores", f"mine={tmp_path / 'r.json'}", "-o", str(out))
    assert found["n"] == 13 and found["models"][-1] == "mine" and "mmlu_pro" not in found["per_benchmark"]
    assert {r["benchmark"]: r["task"] for r in found["read"]}["math500"] == "hendrycks_math500"
    assert json.loads((out / "correlation.json").read_text())["pearson_r"] == found["pearson_r"]
    assert Path(found["plots"][0]).read_bytes().startswith(b"\x89PNG")
    assert main(["correlate", "--run", f"mine={own_run}"]) == 2 and "no benchmark scores" in capsys.readouterr().err
    table_models = [a for name in CORRELATED[:3] for a in ("--scores", f"{name}={tmp_path / 'mmlu.json'}")]
    (tmp_path / "mmlu.json").write_text('{"results": {"mmlu_pro": {"exact_match,custom-extract": 0.5}}}')
    assert main(["correlate", *table_models]) == 2 and "same score" in capsys.readouterr().err


def test_a_run_finds_its_place_among_the_published_models(own_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, "report", str(own_run), "--published", "-o", str(tmp_path))
    rows = found["published"]
    rates = [row["pass_rate"] for row in rows]
    assert len(rows) == 36 and rates == sorted(rates, reverse=True) and rows[0]["model"] == "Gemini-2.5-Pro"
    (own,) = [row for row in rows if row["own"]]
    assert own["model"] == "mine" and own["pass_rate"] == json.loads((own_run / "summary.json").read_text())["pass_rate"]["value"]
    page = (tmp_path / "report.html").read_text()
    assert "Among the published models" in page and "Claude-3.7-Sonnet" in page
    assert main(["report", str(own_run), "--published", "-o", str(tmp_path)]) == 0
    assert "→ mine" in capsys.readouterr().out


@pytest.mark.parametrize("answered", [50, 0])
def test_a_run_with_episodes_that_got_no_answer_does_not_rank(
    answered: int, own_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (own_run / "samples.jsonl").read_text().splitlines()
    for i, line in enumerate(lines[answered:], answered):
        record = json.loads(line)
        lines[i] = json.dumps({**record, "verdict": {**record["verdict"], "ending": "infrastructure_error"}})
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "manifest.json").write_bytes((own_run / "manifest.json").read_bytes())
    (mine / "samples.jsonl").write_text("\n".join(lines) + "\n")
    message = f"mine is of {answered} problems of tmbench-v1 ({100 - answered} more got no answer and are not scored: go on with --resume)"
    with pytest.raises(ValueError, match="got no answer"):
        published_ranking(read_runs([mine]))
    check_refused(capsys, ["report", str(mine), "--published", "-o", str(tmp_path / "report")], message)
    check_refused(capsys, ["correlate", "--run", f"mine={mine}"], message)


BAD = {
    "scores without a run": (["--scores", "x={file}"], "'x' has benchmark scores and no pass rate"),
    "no pair": (["--scores", "{file}x"], "--scores takes NAME=FILE"),
    "no models": (["--models", "none"], "needs 3"),
    "a run that is none": (["--run", "x=/nowhere"], "is no run directory"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_line(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv, message = BAD[case]
    (tmp_path / "r.json").write_text(json.dumps(LM_EVAL))
    check_refused(capsys, ["correlate", *(a.format(file=tmp_path / "r.json") for a in argv)], message)


def test_a_run_on_other_problems_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "expert", "--suite", "tmbench-v1", "--limit", "5", "-o", str(tmp_path / "run"), "--json"]) == 0
    capsys.readouterr()
    assert main(["correlate", "--run", f"mine={tmp_path / 'run'}"]) == 2
    assert "mine is of 5 problems of tmbench-v1" in capsys.readouterr().err
