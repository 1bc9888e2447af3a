"""The commands, as a user types them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from eval.report import read_runs
from tests.commands import check_refused, run
from tmtrain.cli import COMMANDS, main


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([name, "--help"])
    assert end.value.code == 0 and len(capsys.readouterr().out) > 200


@pytest.mark.parametrize(
    ("suite", "file"),
    [("tmbench-v1", ""), ("tmbench-v1-number", "Number"), ("tmbench-v1-greek", "Greek"), ("tmbench-v1-special", "Special")],
)
def test_the_published_suites_are_regenerated(suite: str, file: str, shared: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.json"
    assert main(["generate", suite, "--format", "published", "-o", str(out)]) == 0
    ours, theirs = json.loads(out.read_text()), json.loads((shared / "tmbench" / f"TMBench{file}.json").read_text())
    assert len(ours["samples"]) == 100
    for mine, published in zip(ours["samples"], theirs["samples"], strict=True):
        assert mine == {k: published[k] for k in ("id", "init_str", "rule", "delete_count", "step_results")}


def test_scoring_published_answers(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scores = run(capsys, "score", str(shared / "tmbench" / "results_gemini-2.5-pro.json"))
    assert round(100 * scores["swa_uniform"]["value"], 1) == 96.6 and round(100 * scores["swa_linear"]["value"], 1) == 96.2
    assert scores["pass_rate"]["value"] == 0.94 and scores["strict_pass_rate"]["value"] == 0.87
    steps = {a["step"]: (a["correct"], a["total"]) for a in scores["acc"]}
    assert steps[0] == (99, 100) and steps[30] == (84, 89)
    without = run(capsys, "score", str(shared / "tmbench" / "results_gemini-2.5-pro.json"), "--no-init")
    assert without["swa_uniform"]["value"] < scores["swa_uniform"]["value"] and without["pass_rate"] == scores["pass_rate"]


def test_scoring_by_sample(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = shared / "cases" / "tag_replies.json"
    scored = run(capsys, "score", str(file), "--per-sample")["samples"]
    for got, sample in zip(scored, json.loads(file.read_text())["samples"], strict=True):
        want = sample["expect"]
        assert (got["id"], got["steps"]) == (sample["id"], want["correct"])
        assert (got["passed"], got["strict"], got["overrun"]) == (want["passed"], want["strict"], want["overrun"]), sample["why"]
        assert len(got["kinds"]) == len(got["steps"])


def test_a_run_names_the_problems_that_it_was_made_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, first, second = tmp_path / "list.jsonl", tmp_path / "first", tmp_path / "second"
    run(capsys, "generate", "listworld", "-n", "5", "-o", str(file))
    run(capsys, "eval", "expert", "--problems", str(file), "--samples", "2", "-o", str(first))
    run(capsys, "eval", "noisy:0.5", "--problems", str(first), "-o", str(second))
    assert run(capsys, "compare", str(first), str(second))["pairs"] == 5
    ids = [[json.loads(line)["problem"]["id"] for line in (d / "samples.jsonl").read_text().splitlines()] for d in (first, second)]
    assert len(ids[0]) == 10 and len(ids[1]) == 5 and set(ids[0]) == set(ids[1])
    (second / "samples.jsonl").write_text("")
    check_refused(capsys, ["eval", "expert", "--problems", str(second), "-o", str(tmp_path / "third")], "holds no finished episode yet")
    assert not (tmp_path / "third").exists()


def test_generated_problems_are_disjoint_from_the_suites_and_of_one_seed_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    assert run(capsys, "generate", "tag", "-n", "1000", "--seed", "42", "-o", str(a))["problems"] == 1000
    run(capsys, "generate", "tag", "-n", "1000", "--seed", "43", "-o", str(b))
    shared = run(capsys, "overlap", str(a), str(b))
    assert shared == {"a": 1000, "b": 1000, "shared_ids": shared["shared_ids"], "shared_canonical": shared["shared_canonical"]}
    assert shared["shared_canonical"] < 15  # tiny systems that halt at once meet by chance
    assert run(capsys, "overlap", str(a), "tmbench-v1-greek")["shared_canonical"] == 0
    c = tmp_path / "c.jsonl"
    report = run(capsys, "generate", "tag", "-n", "300", "--seed", "43", "--disjoint-from", str(b), "-o", str(c))
    assert report["disjoint_from"] == {str(b): 0}
    assert run(capsys, "overlap", str(b), str(c))["shared_canonical"] == 0


def test_generation_is_the_same_bytes_under_any_hash_seed(tmp_path: Path) -> None:
    outputs = set()
    for seed in ("0", "1", "12345"):
        done = subprocess.run(
            [sys.executable, "-m", "tmtrain.cli", "generate", "tag", "-n", "20", "--seed", "42"],
            capture_output=True, check=True, env={"PYTHONHASHSEED": seed, "PATH": "/usr/bin:/bin"},
        )  # fmt: skip
        outputs.add(done.stdout)
    assert len(outputs) == 1


def test_a_file_written_by_hand_needs_only_env_and_payload(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "p.jsonl"
    file.write_text('{"env": "tag", "rules": {"aa": ["bb"], "bb": []}, "init": ["aa", "bb", "aa"], "m": 1}\n')
    summary = run(capsys, "eval", "expert", "--problems", str(file), "-o", str(tmp_path / "run"))
    assert summary["pass_rate"] == {"value": 1.0, "low": pytest.approx(0.2, abs=0.1), "high": 1.0, "n": 1}
    assert summary["by_horizon"][0]["horizon"] == 5  # aa bb aa, bb aa bb, aa bb, bb bb, bb, nothing


def test_evaluating_scoring_again_and_reporting(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = tmp_path / "run"
    summary = run(capsys, "eval", "noisy:0.1", "--suite", "tmbench-v1", "--limit", "30", "-o", str(directory))
    assert {p.name for p in directory.iterdir()} == {"manifest.json", "samples.jsonl", "summary.json"}
    again = run(capsys, "score", str(directory))
    assert again["changed"] == [] and again["acc"] == summary["acc"]
    assert run(capsys, "score", str(directory / "samples.jsonl")) == again
    report = run(capsys, "report", str(directory))
    page = Path(report["report"]).read_text()
    assert 'src="data:image/png;base64,' in page and "http" not in page.replace("http-equiv", ""), "the page must stand alone"
    assert '<mark class="wrong"' in page and '<mark class="correct"' in page
    assert Path(report["plots"][-1]).read_bytes().startswith(b"\x89PNG")


def test_regrading_says_which_verdicts_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = tmp_path / "run"
    run(capsys, "eval", "expert", "--suite", "tmbench-v1", "--limit", "3", "-o", str(directory))
    lines = (directory / "samples.jsonl").read_text().splitlines()
    record = json.loads(lines[1])
    record["verdict"]["steps"][2]["correct"] = False
    (directory / "samples.jsonl").write_text("\n".join([lines[0], json.dumps(record), lines[2]]) + "\n")
    assert run(capsys, "score", str(directory))["changed"] == [f"{record['problem']['id']}/0"]


def test_regrading_keeps_what_the_replies_do_not_show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An episode that got no answer stays one, whatever the verifier makes of its replies."""
    run(capsys, "eval", "expert", "--suite", "tmbench-v1", "--limit", "3", "-o", str(tmp_path / "all"))
    few = (tmp_path / "all" / "samples.jsonl").read_text().splitlines()[:2]
    (tmp_path / "all" / "samples.jsonl").write_text("\n".join(few) + "\n")
    run(capsys, "eval", f"replay:{tmp_path / 'all'}", "--suite", "tmbench-v1", "--limit", "3", "-o", str(tmp_path / "replayed"))
    again = run(capsys, "score", str(tmp_path / "replayed"))
    assert again["changed"] == [] and again["endings"]["infrastructure_error"] == 1 and again["success_rate"]["n"] == 2


def test_problems_with_one_id_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Records are kept by id, so one would be scored in place of the other: the suites of the four alphabets share theirs."""
    for suite in ("tmbench-v1", "tmbench-v1-greek"):
        assert main(["generate", suite, "-n", "2", "-o", str(tmp_path / suite)]) == 0
    both = tmp_path / "both.jsonl"
    both.write_text((tmp_path / "tmbench-v1").read_text() + (tmp_path / "tmbench-v1-greek").read_text())
    capsys.readouterr()
    check_refused(capsys, ["eval", "expert", "--problems", str(both), "-o", str(tmp_path / "run")], "several problems with the id")
    assert not (tmp_path / "run").exists()


def test_a_manifest_that_says_too_little_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "eval", "expert", "--suite", "tmbench-v1", "--limit", "2", "-o", str(tmp_path / "run"))
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    del manifest["setting"]
    (tmp_path / "run" / "manifest.json").write_text(json.dumps(manifest))
    check_refused(capsys, ["score", str(tmp_path / "run")], "does not say the setting")


def test_runs_of_one_name_are_told_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [tmp_path / seed / "demo" / "eval" for seed in ("one", "two")]
    for path in runs:
        run(capsys, "eval", "expert", "--suite", "tmbench-v1", "--limit", "2", "-o", str(path))
    assert [r.name for r in read_runs(runs)] == ["one/demo/eval", "two/demo/eval"]
    check_refused(capsys, ["report", str(runs[0]), str(runs[0]), "-o", str(tmp_path / "r")], "is named twice")


def test_the_list_of_environments(capsys: pytest.CaptureFixture[str]) -> None:
    listed = run(capsys, "envs")
    tag = next(e for e in listed["envs"] if e["name"] == "tag")
    assert tag["params"]["max_steps"] == 30 and "tmbench-v1-special" in listed["suites"]
    assert main(["envs", "tag"]) == 0 and "--set m=2" in capsys.readouterr().out


BAD = {
    "an unknown environment": (["generate", "tga"], "did you mean 'tag'?"),
    "an unknown knob": (["generate", "tag", "--set", "max_stebs=3"], "did you mean 'max_steps'?"),
    "a knob of the wrong type": (["generate", "tag", "--set", "m=two"], "must be of type int"),
    "a knob out of range": (["generate", "tag", "--set", "m=0"], "'m' must be a whole number of at least 1"),
    "a knob without a value": (["generate", "tag", "--set", "m"], "KEY=VALUE"),
    "knobs that nothing fits": (["generate", "tag", "--set", "min_horizon=30", "--set", "rule_max=1"], "loosen the parameters"),
    "more problems than there are": (["generate", "tag", "-n", "99", "--set", "alphabet=A", "--set", "max_steps=1", "--set", "init_max=2"], "different ones"),
    "a frozen suite with knobs": (["generate", "tmbench-v1", "--set", "m=3"], "is frozen"),
    "no problems at all": (["generate", "tag", "-n", "0"], "-n must be at least 1"),
    "a suite that is none": (["eval", "expert", "--suite", "tmbench"], "neither a file, nor a run, nor a suite"),
    "a policy that is none": (["eval", "noisy:2", "--suite", "tmbench-v1"], "probability"),
    "a model that is none": (["eval", "/nowhere/model", "--suite", "tmbench-v1", "--limit", "1"], "/nowhere/model is no folder with a model"),
    "oracles in one turn": (["eval", "expert", "--suite", "tmbench-v1", "--oracles", "plan"], "no turn to speak in"),
    "history without state": (["eval", "expert", "--suite", "tmbench-v1", "--oracles", "history"], "needs the state oracle"),
    "resuming nothing": (["eval", "expert", "--suite", "tmbench-v1", "--resume"], "--resume needs -o"),
    "a limit of none": (["eval", "expert", "--suite", "tmbench-v1", "--limit", "0"], "--limit must be at least 1"),
    "scoring no file": (["score", "/nowhere.json"], "cannot read /nowhere.json"),
    "reporting no run": (["report", "/nowhere"], "is no run directory"),
    "a report of several without a place": (["report", "a", "b"], "add -o DIR"),
    "a card of no model": (["card", "/nowhere", "--runs", "a"], "is no folder"),
    "no run to analyse": (["oracles", "/nowhere"], "holds no run directory"),
    "a target of more than all": (["oracles", "x", "--target", "30"], "--target takes a success rate between 0 and 1"),
    "a target that is no number": (["oracles", "x", "--target", "gridworld=high"], "not 'gridworld=high'"),
    "several runs without a place": (["oracles", "a", "b"], "add -o DIR"),
    "all oracles in one turn": (["eval", "expert", "--suite", "tmbench-v1", "--oracles", "all"], "no turn to speak in"),
    "wordings of one turn": (["eval", "expert", "--suite", "tmbench-v1", "--wording", "all"], "--wording standard"),
    "wordings of compact prompts": (["eval", "expert", "--suite", "lumina-tiny", "--style", "compact", "--wording", "all"], "for verbose prompts"),
    "a model's settings for a script": (["eval", "expert", "--suite", "tmbench-v1", "--temperature", "1"], "--temperature is for models, and expert is"),
    "a frozen suite with a seed": (["generate", "tmbench-v1", "--seed", "3"], "is frozen"),
    "an agent that is none": (["eval", "weak:tired", "--suite", "lumina-tiny"], "there is no agent 'tired'"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_line_and_exit_code_2(
    case: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    argv, message = BAD[case]
    check_refused(capsys, argv, message)
    assert list(tmp_path.iterdir()) == [], "nothing may be left behind"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("nonsense", "not JSON"),
        ('{"env": "tag"}', "needs 'init'"),
        ('{"rules": {}}', '"env"'),
        ('{"env": "tag", "rules": {"A": "B"}, "init": "A"}', "'B', which is not in the alphabet"),
        ('{"env": "tag", "rules": {"A": "A"}, "init": "AA", "max_step": 3}', "no field 'max_step'"),
        ('{"env": "tag", "rules": {"A B": []}, "init": []}', "white space"),
        ('{"env": "tag", "rules": {"A": "A"}, "init": "AA", "m": 0}', "'m' must be"),
        ('{"env": "tag", "rules": {"A": "A"}, "init": "AA", "canonical": "0"}', "edited by hand"),
        ('{"samples": [1, 2], "max_step": 3}', "sample 0 is no object"),
        ("[" * 200_000, "nested too deeply"),
        ("", "holds no problems"),
    ],
)
def test_bad_problem_files_are_named_with_their_line(
    content: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "p.jsonl"
    file.write_text(content + "\n")
    assert main(["overlap", str(file), "tmbench-v1"]) == 2
    err = capsys.readouterr().err
    assert message in err and str(file) in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"samples": [], "max_step": 3}', "holds no samples"),
        ('{"samples": [{"id": "a", "init_str": "AA", "rule": {"A": "A"}, "delete_count": 2}], "max_step": 3}', "no answer 'ans'"),
        ('{"samples": [{"id": "a", "rule": {"A": "A"}, "delete_count": 2, "ans": ""}], "max_step": 3}', "has no 'init_str'"),
        ('{"samples": [{"id": "a", "init_str": "AA", "rule": {"A": "A"}, "delete_count": 2, "step_results": ["AA", "AB"], "ans": ""}], "max_step": 3}', "not the run"),
        ('{"samples": [{"id": "a", "init_str": "AA", "rule": {"A": "A"}, "delete_count": 2, "step_results": 5, "ans": ""}], "max_step": 3}', "a list of queues"),
        ('{"samples": [{"id": [1], "init_str": "AA", "rule": {"A": "A"}, "delete_count": 2, "ans": ""}], "max_step": 3}', "'id' must be text"),
        ('{"samples": [1, 2], "max_step": 3}', "sample 0 is no object"),
        ("[" * 200_000, "is not JSON"),
        ("[1]", "no published result file"),
        ("{", "is not JSON"),
    ],
)  # fmt: skip
def test_bad_result_files_are_named(content: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "r.json"
    file.write_text(content)
    check_refused(capsys, ["score", str(file)], message)
