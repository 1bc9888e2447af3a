"""The oracle experiment from the command line: one command plays it, one reports on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from envs.environment import ORACLES, WORDINGS, Setting
from eval.oracles.analysis import analyse
from eval.records import read_manifest
from tests.commands import run
from tests.eval.agents import invented
from tmtrain.cli import main
from tmtrain.commands.eval import _settings
from tmtrain.commands.oracles import _targets


def test_the_experiment_and_its_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "forgets"
    played = run(capsys, "eval", "weak:forgets:3", "--suite", "lumina-tiny", "--limit", "40", "--oracles", "all", "-o", str(out))
    assert list(played["runs"]) == list(ORACLES)
    assert [read_manifest(out / name)["setting"]["oracles"] for name in ORACLES] == list(ORACLES)
    hashes = {read_manifest(out / name)["suite"]["hash"] for name in ORACLES}
    assert len(hashes) == 1, "the same problems in every setting"
    assert main(["oracles", str(out)]) == 0
    lines = capsys.readouterr().out.splitlines()
    finding = next(line for line in lines if line.startswith("weak:forgets:3, tagworld: "))
    assert finding.startswith("weak:forgets:3, tagworld: state tracking +") and finding.count("no effect") == 2
    page, *plots = lines[-7:]
    text = Path(page).read_text(encoding="utf-8")
    assert text.count('src="data:image/png;base64,') == 6 and "http" not in text, "the page must stand alone"
    names = ["effects", "errors", "figure_3_horizons", "figure_4_settings", "figure_6a_models", "figure_6b_worlds"]
    assert [Path(plot).stem for plot in plots] == names
    assert all(Path(plot).read_bytes().startswith(b"\x89PNG") for plot in plots)


def test_an_experiment_that_was_stopped_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["eval", "weak:lost", "--suite", "lumina-gridworld", "--limit", "4", "--oracles", "all", "-o", str(tmp_path / "x")]
    first = run(capsys, *command)
    (tmp_path / "x" / "plan" / "samples.jsonl").write_text("")
    (tmp_path / "x" / "state" / "manifest.json").unlink()
    assert main(command) == 2 and "holds a run already" in capsys.readouterr().err
    again = run(capsys, *command, "--resume")
    for name in ORACLES:
        assert again["runs"][name]["success_rate"] == first["runs"][name]["success_rate"]


def test_part_of_the_settings_gives_part_of_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "noisy"
    run(capsys, "eval", "noisy:0.1", "--suite", "lumina-listworld", "--limit", "12", "--samples", "2", "-o", str(out))
    found = run(capsys, "oracles", str(out))
    assert found["findings"] == [] and found["effects"] == []
    assert {Path(p).name for p in found["plots"]} == {"errors.png", "figure_3_horizons.png", "figure_4_settings.png"}
    assert all(row["against_none"] is None and row["episodes"] == 24 for row in found["settings"])


def test_all_wordings_and_how_much_they_move_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "words"
    played = run(capsys, "eval", "weak:lost", "--suite", "lumina-gridworld", "--limit", "2", "--wording", "all", "-o", str(out))
    assert list(played["runs"]) == list(WORDINGS)
    assert read_manifest(out / "formal")["setting"] == {"style": "verbose", "wording": "formal", "oracles": "none"}
    found = run(capsys, "oracles", str(out))
    assert [row["wording"] for row in found["wordings"]] == list(WORDINGS) and Path(found["plots"][-1]).name == "wordings.png"
    assert "How much the wording" in Path(found["report"]).read_text(encoding="utf-8")


def test_each_setting_has_a_folder_of_its_own() -> None:
    both = _settings("all", "verbose", "all")
    assert len(both) == 18 and both["brief/state+history"] == Setting.parse("state+history", wording="brief")
    assert list(_settings("all", "compact", "standard")) == list(ORACLES)
    assert _settings("plan", "compact", "standard") == {"": Setting.parse("plan", "compact")}


def test_targets() -> None:
    experiment = invented(lambda oracles, horizon: horizon == 2, 3, world="gridworld", levels=(2, 9))
    experiment.cells.update(invented(lambda oracles, horizon: horizon == 2, 3, levels=(2, 9)).cells)
    for given, target, level in (([], (0.75, 0.3), ("2", "9")), (["0.6", "gridworld=0.2"], (0.2, 0.6), ("9", "2"))):
        rows = {row["world"]: row for row in analyse([experiment], _targets(given))["levelled"]}
        assert tuple(rows[world]["target"] for world in ("gridworld", "listworld")) == target
        assert tuple(rows[world]["level"] for world in ("gridworld", "listworld")) == level
