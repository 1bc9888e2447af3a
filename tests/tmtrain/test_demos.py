"""`tmtrain demos`: rows to fine-tune on, which evaluation would score as perfect."""

import json
from pathlib import Path

import pytest

from envs.dataset import read_problems
from envs.environment import Setting
from envs.registry import load_env
from tmtrain.cli import main

WORLDS = ("listworld", "treeworld", "gridworld", "tagworld")
ORACLES = ("none", "plan", "state", "plan+state", "state+history", "plan+state+history")


def written(tmp_path: Path, *arguments: str) -> list[dict]:
    path = tmp_path / "demos.jsonl"
    assert main(["demos", *arguments, "-o", str(path)]) == 0
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("oracles", ORACLES)
@pytest.mark.parametrize("style", ["verbose", "compact"])
def test_the_demonstrated_replies_succeed_in_the_very_context_they_show(tmp_path: Path, name: str, oracles: str, style: str) -> None:
    rows = written(tmp_path, name, "-n", "3", "--oracles", oracles, "--style", style)
    assert main(["generate", name, "-n", "3", "-o", str(tmp_path / "problems.jsonl")]) == 0
    for problem in read_problems(tmp_path / "problems.jsonl"):
        own = [row["messages"] for row in rows if row["id"] == problem.id]
        assert len(own) == (problem.horizon if "history" in oracles else 1)
        episode = load_env(name).start(problem, Setting.parse(oracles, style))
        for messages in own:
            for i, message in enumerate(messages):
                if message["role"] == "assistant":
                    assert episode.messages == messages[:i]
                    episode.reply(message["content"])
            assert messages[-1]["role"] == "assistant"
        assert episode.verdict().success


def test_noise_makes_errors(tmp_path: Path) -> None:
    clean, noisy = (written(tmp_path, "gridworld", "-n", "8", "--set", "min_distance=4", "--noise", rate) for rate in ("0", "0.5"))
    assert [row["id"] for row in clean] == [row["id"] for row in noisy]
    assert clean != noisy


def test_counts_and_errors(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    path = str(tmp_path / "x.jsonl")
    assert main(["demos", "listworld", "-n", "2", "--set", "pops=2", "--oracles", "state+history", "-o", path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"problems": 2, "rows": 6, "output": path}
    for arguments, part in (
        (["--noise", "2"], "0…1"),
        (["-n", "0"], "at least 1"),
        (["--json"], "add -o FILE"),
        (["--set", "x=1"], "no parameter 'x'"),
    ):
        assert main(["demos", "listworld", *arguments]) == 2
        assert part in capsys.readouterr().err
