"""The oracle experiment from the command line: one command plays it, one reports on it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from envs.environment import ORACLES
from eval.records import read_manifest
from tmtrain.cli import main


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> Any:
    assert main([*argv, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_experiment_and_its_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "forgets"
    played = run(capsys, "eval", "weak:forgets:3", "--suite", "lumina-tiny", "--limit", "60", "--oracles", "all", "-o", str(out))
    assert list(played["runs"]) == list(ORACLES)
    assert [read_manifest(out / name)["setting"]["oracles"] for name in ORACLES] == list(ORACLES)
    hashes = {read_manifest(out / name)["suite"]["hash"] for name in ORACLES}
    assert len(hashes) == 1, "the same problems in every setting"
    found = run(capsys, "oracles", str(out))
    effects = {(e["world"], e["oracle"]): e["effect"] for e in found["effects"]}
    assert effects["listworld", "state"] == effects["tagworld", "state"] == 1
    for row in found["settings"]:
        assert row["success"] == played["runs"][row["oracles"]]["success_rate"] or row["episodes"] == 30
    page = Path(found["report"]).read_text(encoding="utf-8")
    assert page.count('src="data:image/png;base64,') == 6 and "http" not in page, "the page must stand alone"
    assert {Path(p).name for p in found["plots"]} == {
        "effects.png",
        "errors.png",
        "figure_3_horizons.png",
        "figure_4_settings.png",
        "figure_6a_models.png",
        "figure_6b_worlds.png",
    }


def test_an_experiment_that_was_stopped_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["eval", "weak:lost", "--suite", "lumina-gridworld", "--limit", "4", "--oracles", "all", "-o", str(tmp_path / "x")]
    first = run(capsys, *command)
    (tmp_path / "x" / "plan" / "samples.jsonl").write_text("")
    (tmp_path / "x" / "state" / "manifest.json").unlink()
    assert main(command) == 2 and "holds a run already" in capsys.readouterr().err
    again = run(capsys, *command, "--resume")
    for name in ORACLES:
        assert again["runs"][name]["success_rate"] == first["runs"][name]["success_rate"]
    assert main(["oracles", str(tmp_path / "x")]) == 0
    finding, *_, plot = capsys.readouterr().out.splitlines()
    assert finding.startswith("weak:lost, gridworld: ") and finding.count("no effect") == 3, "four problems show nothing"
    assert plot.endswith("figure_6b_worlds.png") and Path(plot).read_bytes().startswith(b"\x89PNG")


def test_part_of_the_settings_gives_part_of_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "noisy"
    run(capsys, "eval", "noisy:0.1", "--suite", "lumina-listworld", "--limit", "12", "--samples", "2", "-o", str(out))
    found = run(capsys, "oracles", str(out))
    assert found["findings"] == [] and found["effects"] == []
    assert {Path(p).name for p in found["plots"]} == {"errors.png", "figure_3_horizons.png", "figure_4_settings.png"}
    assert all(row["against_none"] is None and row["episodes"] == 24 for row in found["settings"])


def test_all_wordings_and_how_much_they_move_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "words"
    command = ["eval", "weak:distracted", "--suite", "lumina-tiny", "--limit", "2", "-o", str(out)]
    played = run(capsys, *command, "--wording", "all", "--oracles", "all")
    assert len(played["runs"]) == 18 and "brief/state+history" in played["runs"]
    assert read_manifest(out / "formal" / "plan")["setting"] == {"style": "verbose", "wording": "formal", "oracles": "plan"}
    found = run(capsys, "oracles", str(out))
    assert len(found["wordings"]) == 36 and Path(found["plots"][-1]).name == "wordings.png"
    assert "How much the wording" in Path(found["report"]).read_text(encoding="utf-8")


def test_targets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "noisy")
    run(capsys, "eval", "noisy:0.05", "--suite", "lumina-horizon", "--limit", "8", "-o", out)
    targets = {row["world"]: row["target"] for row in run(capsys, "oracles", out)["levelled"]}
    assert targets == {"listworld": 0.3, "treeworld": 0.3, "gridworld": 0.75, "tagworld": 0.3}
    other = run(capsys, "oracles", out, "--target", "0.5", "--target", "tagworld=0.9")["levelled"]
    assert {row["world"]: row["target"] for row in other} == {"listworld": 0.5, "treeworld": 0.5, "gridworld": 0.75, "tagworld": 0.9}


BAD = {
    "no run": (["oracles", "/nowhere"], "holds no run directory"),
    "a target of more than all": (["oracles", "x", "--target", "30"], "--target takes a success rate between 0 and 1"),
    "a target that is no number": (["oracles", "x", "--target", "gridworld=high"], "not 'gridworld=high'"),
    "several runs without a place": (["oracles", "a", "b"], "add -o DIR"),
    "oracles in one turn": (["eval", "expert", "--suite", "tmbench-v1", "--oracles", "all"], "no turn to speak in"),
    "wordings of one turn": (["eval", "expert", "--suite", "tmbench-v1", "--wording", "all"], "--wording standard"),
    "wordings of compact prompts": (["eval", "expert", "--suite", "lumina-tiny", "--style", "compact", "--wording", "all"], "for verbose prompts"),
    "an agent that is none": (["eval", "weak:tired", "--suite", "lumina-tiny"], "there is no agent 'tired'"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_line_and_exit_code_2(
    case: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    argv, message = BAD[case]
    assert main(argv) == 2
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
