"""Run directories arranged by model, world and setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from envs.environment import ORACLES, Setting
from envs.suites import load_suite
from envs.verdict import Ending, Verdict
from eval.oracles.analysis import analyse
from eval.oracles.experiment import MOST_LEVELS, levels, read_experiments
from eval.oracles.report import write_oracle_report
from eval.policies import scripted_policy
from eval.records import EpisodeRecord
from eval.runs import Evaluation, evaluate_all
from tests.eval.agents import invented, record

TINY = load_suite("lumina-tiny").problems()


def run(path: Path, spec: str, settings: dict[str, Setting], problems: list = TINY[:20], samples: int = 1, seed: int = 0) -> Path:
    evaluations = {path / name: Evaluation(problems, "test", s, samples, seed) for name, s in settings.items()}
    policy = scripted_policy(spec)
    assert policy is not None
    evaluate_all(policy, evaluations, progress=False)
    return path


def compact(*oracles: str) -> dict[str, Setting]:
    return {name: Setting.parse(name, "compact") for name in oracles}


def test_runs_are_arranged_by_what_their_manifests_say_wherever_they_lie(tmp_path: Path) -> None:
    run(tmp_path / "deep" / "a", "noisy:0.1", compact("none", "plan"), TINY[:10], samples=2)
    run(tmp_path / "b", "noisy:0.1", compact("none"), TINY[10:20], samples=2)
    run(tmp_path / "c", "expert", compact("state"))
    noisy, expert = sorted(read_experiments([tmp_path]), key=lambda e: e.name, reverse=True)
    assert (noisy.name, noisy.style, noisy.wording, noisy.left_out) == ("noisy:0.1", "compact", "standard", 0)
    assert noisy.worlds == ["listworld", "tagworld"] and noisy.settings("listworld") == ["none", "plan"]
    assert {o: len(noisy.cells["tagworld", o]) for o in ("none", "plan")} == {"none": 20, "plan": 10}
    shares = noisy.successes("listworld", "none")
    assert len(shares) == 10 and set(shares.values()) <= {0.0, 0.5, 1.0}
    assert list(expert.cells) == [("listworld", "state"), ("tagworld", "state")]
    assert set(expert.successes("listworld", "state").values()) == {1.0}


def test_the_same_model_with_another_seed_is_another_experiment_and_can_be_told_apart(tmp_path: Path) -> None:
    for seed in (1, 2):
        run(tmp_path / f"seed{seed}", "noisy:0.1", compact("none"), TINY[:4], seed=seed)
    assert [e.name for e in read_experiments([tmp_path])] == ["noisy:0.1 in seed1", "noisy:0.1 in seed2"]
    run(tmp_path / "deep" / "seed1", "noisy:0.1", compact("plan", "state"), TINY[:4], seed=3)
    names = [e.name for e in read_experiments([tmp_path])]
    assert len(set(names)) == 3 and f"noisy:0.1 in seed1 in {tmp_path / 'deep' / 'seed1'}" in names


def test_what_cannot_be_arranged_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds no run directory"):
        read_experiments([tmp_path])
    run(tmp_path / "a", "expert", compact("none"), TINY[:2])
    run(tmp_path / "b", "expert", compact("none"), TINY[:2])
    with pytest.raises(ValueError, match=r"and another run both hold .* of expert with oracles none: leave one out"):
        read_experiments([tmp_path])
    assert len(read_experiments([tmp_path / "a", tmp_path / "a" / "none"])) == 1, "a folder named twice is read once"
    tag = load_suite("tmbench-v1").problems()[:2]
    run(tmp_path / "tag", "expert", compact("none"), tag)
    with pytest.raises(ValueError, match="problems of tag, which are answered in one reply"):
        read_experiments([tmp_path / "tag"])


@pytest.mark.parametrize("horizons", [[3], [2, 5, 5, 9], [*range(1, 40)], [1] * 50 + [*range(2, 30)], [7, 7, 7, 8, 8, 1, 2, 3, 4, 5, 6]])
def test_levels_part_all_horizons(horizons: list[int]) -> None:
    records = [record(str(i), True, horizon=h, steps="c") for i, h in enumerate(horizons)]
    cut = levels(records)
    assert 1 <= len(cut) <= MOST_LEVELS and cut == sorted(cut, key=lambda level: level.low)
    assert all(sum(r in level for level in cut) == 1 for r in records)
    if len(set(horizons)) <= MOST_LEVELS:
        assert [(level.low, level.high) for level in cut] == [(h, h) for h in sorted(set(horizons))]
    elif horizons == [*range(1, 40)]:
        assert {sum(r in level for r in records) for level in cut} == {6, 7}


def test_wordings_are_compared_on_the_same_problems(tmp_path: Path) -> None:
    settings = {w: Setting.parse("none", wording=w) for w in ("standard", "brief", "formal")}
    run(tmp_path, "weak:shortsighted:0.2", settings, TINY[:8])
    experiments = read_experiments([tmp_path])
    assert {e.name for e in experiments} == {f"weak:shortsighted:0.2 ({w})" for w in settings}
    rows = analyse(experiments)["wordings"]
    assert [(r["world"], r["wording"]) for r in rows] == [(w, words) for w in ("listworld", "tagworld") for words in settings]
    for first, *others in (rows[:3], rows[3:]):
        assert first["difference"] is None
        for row in others:
            assert row["difference"]["value"] == pytest.approx(row["success"]["value"] - first["success"]["value"])
            assert row["effect"] == 0, "the agent does not read the words"


def test_a_level_in_which_no_prompt_fits_is_shown_all_the_same(tmp_path: Path) -> None:
    """Its episodes ended before the first step, so there is a success rate, but nothing to say of steps."""

    def overlong(problem: str, horizon: int) -> EpisodeRecord:
        fields = {"id": problem, "env": "listworld", "horizon": horizon}
        return EpisodeRecord(fields, 0, (), (), (), Verdict((), False, Ending.OVERLONG_PROMPT), 0.0)

    experiment = invented(lambda oracles, horizon: horizon == 2, 3, levels=(2,))
    for cell in experiment.cells.values():
        cell += [overlong(f"long{i}", 60) for i in range(3)]
    analysis = analyse([experiment])
    assert [row["success"]["value"] for row in analysis["levels"][:2]] == [1.0, 0.0]
    assert analysis["levels"][1]["step_accuracy"]["value"] is None
    assert analysis["settings"][0]["endings"] == {"completed": 3, "overlong_prompt": 3}
    assert "overlong prompt 3" in write_oracle_report(analysis, tmp_path).read_text(encoding="utf-8")


def test_runs_without_an_answer_are_no_experiment(tmp_path: Path) -> None:
    run(tmp_path / "a", "expert", compact("none"), TINY[:1])
    lines = tmp_path / "a" / "none" / "samples.jsonl"
    lines.write_text(lines.read_text().replace('"ending": "completed"', '"ending": "infrastructure_error"'))
    with pytest.raises(ValueError, match="the runs of expert hold no episode that is scored"):
        read_experiments([tmp_path])


def test_one_wording_alone_is_no_comparison(tmp_path: Path) -> None:
    assert analyse(read_experiments([run(tmp_path, "expert", compact(*ORACLES), TINY[:4])]))["wordings"] == []
