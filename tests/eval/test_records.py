"""Run directories: nothing lost, nothing double, no going on with other settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envs.environment import Setting
from envs.suites import load_suite
from envs.verdict import Ending, Verdict
from eval.policies import ScriptedPolicy, scripted_policy
from eval.records import EpisodeRecord, RunDirectory, read_records
from eval.runs import Evaluation, evaluate

PROBLEMS = load_suite("tmbench-v1").problems()[:12]
EVALUATION = Evaluation(PROBLEMS, "test", Setting(), concurrency=4)


def record(key: str, ending: Ending = Ending.WRONG) -> EpisodeRecord:
    return EpisodeRecord(
        {"id": key, "horizon": 1}, 0, ({"role": "assistant", "content": "π\n"},), (None,), (3,), Verdict((), False, ending), 0.1
    )


def test_a_record_survives_its_json() -> None:
    run = record("a")
    assert EpisodeRecord.from_json(json.loads(json.dumps(run.to_json()))) == run


def test_a_run_holds_every_episode_and_its_summary(tmp_path: Path) -> None:
    summary = evaluate(ScriptedPolicy("expert", 0.0), EVALUATION, tmp_path / "run", progress=False)
    assert [r.problem["id"] for r in sorted(read_records(tmp_path / "run"), key=lambda r: r.key)] == sorted(p.id for p in PROBLEMS)
    assert json.loads((tmp_path / "run" / "summary.json").read_text()) == json.loads(json.dumps(summary))
    assert summary["pass_rate"]["value"] == 1.0 and summary["pass_rate"]["n"] == 12


def test_a_torn_line_is_dropped_and_the_rest_resumed_to_the_same_summary(tmp_path: Path) -> None:
    whole = evaluate(scripted_policy("noisy:0.05"), EVALUATION, tmp_path / "whole", progress=False)
    evaluate(scripted_policy("noisy:0.05"), EVALUATION, tmp_path / "torn", progress=False)
    samples = tmp_path / "torn" / "samples.jsonl"
    lines = samples.read_bytes().splitlines(keepends=True)
    samples.write_bytes(b"".join(lines[:5]) + lines[5][: len(lines[5]) // 2])
    resumed = evaluate(scripted_policy("noisy:0.05"), EVALUATION, tmp_path / "torn", resume=True, progress=False)
    assert resumed == whole
    keys = [json.loads(line)["problem"]["id"] for line in samples.read_text().splitlines()]
    assert len(keys) == len(set(keys)) == 12


def test_resuming_plays_only_what_is_missing(tmp_path: Path) -> None:
    evaluate(ScriptedPolicy("expert", 0.0), EVALUATION, tmp_path, progress=False)
    before = (tmp_path / "samples.jsonl").read_bytes()
    evaluate(ScriptedPolicy("expert", 0.0), EVALUATION, tmp_path, resume=True, progress=False)
    assert (tmp_path / "samples.jsonl").read_bytes() == before


def test_infrastructure_errors_are_played_again_and_the_later_line_counts(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path, {})
    run.append(record("a", Ending.INFRASTRUCTURE_ERROR))
    run.append(record("b"))
    run.close()
    again = RunDirectory(tmp_path, {}, resume=True)
    assert set(again.finished) == {"b/0"}
    again.append(record("a"))
    again.close()
    assert {r.key: r.verdict.ending for r in read_records(tmp_path)} == {"a/0": Ending.WRONG, "b/0": Ending.WRONG}


def test_a_run_is_not_overwritten(tmp_path: Path) -> None:
    RunDirectory(tmp_path, {"a": 1}).close()
    with pytest.raises(ValueError, match="--resume"):
        RunDirectory(tmp_path, {"a": 1})


def test_a_changed_setting_refuses_to_go_on_and_is_named(tmp_path: Path) -> None:
    RunDirectory(tmp_path, {"setting": {"style": "verbose"}, "git_commit": "x"}).close()
    with pytest.raises(ValueError, match=r'setting\.style was "verbose" and is "compact"'):
        RunDirectory(tmp_path, {"setting": {"style": "compact"}, "git_commit": "y"}, resume=True)
    RunDirectory(tmp_path, {"setting": {"style": "verbose"}, "git_commit": "y"}, resume=True).close()


def test_two_processes_cannot_write_into_one_folder(tmp_path: Path) -> None:
    first = RunDirectory(tmp_path, {})
    with pytest.raises(ValueError, match="another process"):
        RunDirectory(tmp_path, {}, resume=True)
    first.close()
    RunDirectory(tmp_path, {}, resume=True).close()
