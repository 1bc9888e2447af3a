"""Paired comparison of two runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scipy.stats import binom

from envs.environment import Episode, Message, Setting
from envs.registry import load_env
from envs.suites import load_suite
from eval.compare import BY_HORIZON, LEAST_PAIRS, compare_runs
from eval.episodes import Completion, OverlongPrompt, Session
from eval.policies import ScriptedPolicy, scripted_policy
from eval.report import Run, read_runs
from eval.runs import Evaluation, evaluate
from tmtrain.cli import main
from tmtrain.evaluation import before_and_after

PROBLEMS = load_suite("tmbench-v1").problems()


def run(path: Path, policy: str, problems: list = PROBLEMS, samples: int = 1) -> Path:
    evaluate(scripted_policy(policy), Evaluation(problems, "test", Setting(), samples), path, progress=False)
    return path


def two(a: Path, b: Path) -> tuple[Run, Run]:
    first, second = read_runs([a, b])
    return first, second


def test_a_better_policy_is_better_with_an_interval_off_zero(tmp_path: Path) -> None:
    found = compare_runs(*two(run(tmp_path / "a", "noisy:0.1"), run(tmp_path / "b", "noisy:0.01")))
    assert found.pairs == 100 and found.left_out == 0
    for name in ("success_rate", "swa_uniform", "swa_linear", "step_accuracy"):
        score = found.scores[name]
        assert score["difference"]["value"] == pytest.approx(score["b"] - score["a"])
        assert 0 < score["difference"]["low"] <= score["difference"]["value"] <= score["difference"]["high"] <= 1
    assert found.same_text + len(found.verdicts_differ) == 100, "a noisy reply that differs has another verdict"
    assert any(line.startswith("policy.policy was") for line in found.settings)


def test_each_horizon_with_enough_pairs_is_compared_by_itself(tmp_path: Path) -> None:
    problems = [*PROBLEMS[:30], *(p for p in PROBLEMS[30:] if p.horizon < 30)]
    found = compare_runs(*two(run(tmp_path / "a", "noisy:0.1", problems), run(tmp_path / "b", "expert", problems)))
    (level,) = found.by_horizon
    assert level["horizon"] == 30 and level["pairs"] >= 20 and level["success_rate"]["b"] == 1.0
    assert level["success_rate"]["difference"]["value"] == pytest.approx(1 - level["success_rate"]["a"])
    json.dumps(found.to_json())


def test_mcnemar_is_the_binomial_tail_of_the_discordant_pairs(tmp_path: Path) -> None:
    a, b = two(run(tmp_path / "a", "noisy:0.05"), run(tmp_path / "b", "noisy:0.03"))
    found = compare_runs(a, b)
    won = {r.problem["id"]: r.verdict.success for r in a.records}
    pairs = [(won[r.problem["id"]], r.verdict.success) for r in b.records]
    only_a, only_b = pairs.count((True, False)), pairs.count((False, True))
    assert (found.success.only_a, found.success.only_b) == (only_a, only_b) and only_a + only_b > 5
    assert found.success.p_value == pytest.approx(min(1.0, 2 * binom.cdf(min(only_a, only_b), only_a + only_b, 0.5)))


def test_pairing_narrows_the_interval(tmp_path: Path) -> None:
    """Two runs that differ in one problem of a hundred differ by at most a few, however hard the problems are."""
    a = run(tmp_path / "a", "noisy:0.05")
    b = tmp_path / "b"
    b.mkdir()
    for name in ("manifest.json", "samples.jsonl"):
        (b / name).write_bytes((a / name).read_bytes())
    first, second = two(a, b)
    found = compare_runs(first, second)
    assert found.success.p_value == 1.0 and found.same_text == 100 and found.verdicts_differ == ()
    assert all(s["difference"]["value"] == s["difference"]["low"] == s["difference"]["high"] == 0 for s in found.scores.values())


def test_only_problems_of_both_runs_count(tmp_path: Path) -> None:
    found = compare_runs(*two(run(tmp_path / "a", "expert", PROBLEMS[:60]), run(tmp_path / "b", "expert", PROBLEMS[40:])))
    assert (found.pairs, found.left_out) == (20, 80)
    with pytest.raises(ValueError, match="no scored episode in common"):
        compare_runs(*two(run(tmp_path / "c", "expert", PROBLEMS[:2]), run(tmp_path / "d", "expert", PROBLEMS[2:4])))


def test_different_problems_of_one_id_are_not_compared(tmp_path: Path) -> None:
    renamed = [load_env("tag").problem(p.payload, id=q.id) for p, q in zip(PROBLEMS[3:6], PROBLEMS[:3], strict=True)]
    with pytest.raises(ValueError, match="a and b hold different problems under the id"):
        compare_runs(*two(run(tmp_path / "a", "expert", PROBLEMS[:3]), run(tmp_path / "b", "expert", renamed)))


def test_several_samples_of_a_problem_are_no_independent_pairs(tmp_path: Path) -> None:
    found = compare_runs(*two(run(tmp_path / "a", "noisy:0.1", PROBLEMS[:10], 3), run(tmp_path / "b", "expert", PROBLEMS[:10], 3)))
    assert found.pairs == 30 and found.success is None


def test_the_command_prints_both_and_the_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = run(tmp_path / "a", "noisy:0.1", PROBLEMS[:20]), run(tmp_path / "b", "expert", PROBLEMS[:20])
    assert main(["compare", str(a), str(b)]) == 0
    out = capsys.readouterr().out
    assert "B - A" in out and "McNemar" in out and "100.0" in out
    assert main(["compare", str(a), str(tmp_path)]) == 2
    assert "no run directory" in capsys.readouterr().err


def test_a_score_that_one_run_does_not_have_at_a_level_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where no episode of a level gets as far as its first action, its run has no step there to be right or wrong."""

    class Short(ScriptedPolicy):
        def session(self, episode: Episode, seed: str) -> Session:
            return Nothing() if seed.partition("/")[2].removesuffix("/0") in long else super().session(episode, seed)

    class Nothing(Session):
        async def reply(self, messages: list[Message]) -> Completion:
            raise OverlongPrompt("9 tokens, the context 8")

    drawn = load_suite("lumina-listworld").problems()
    levels = sorted({p.horizon for p in drawn})[:2]
    problems = [p for level in levels for p in [q for q in drawn if q.horizon == level][:LEAST_PAIRS]]
    long = {p.id for p in problems if p.horizon == levels[1]}
    assert len(problems) == 2 * LEAST_PAIRS
    evaluate(Short("expert", 0.0), Evaluation(problems, "test", Setting("compact")), tmp_path / "short", progress=False)
    evaluate(ScriptedPolicy("expert", 0.0), Evaluation(problems, "test", Setting("compact")), tmp_path / "whole", progress=False)
    found = compare_runs(*two(tmp_path / "short", tmp_path / "whole"))
    assert [set(level) & set(BY_HORIZON) for level in found.by_horizon] == [set(BY_HORIZON), {"success_rate"}]
    assert found.by_horizon[1]["success_rate"]["difference"]["value"] == 1.0
    assert main(["compare", str(tmp_path / "short"), str(tmp_path / "whole")]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith(f"step accuracy, {levels[1]} steps")]
    assert line.split()[-3:] == ["–", "–", "–"]
    (line,) = [
        line
        for line in before_and_after(tmp_path / "short", tmp_path / "whole").splitlines()
        if line.startswith(f"step accuracy, {levels[1]}")
    ]
    assert line.split()[4] == "–" and "100.0" in line and line.endswith("–")
