"""`tmtrain ablate`, as a user types it."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from eval.backends.sampling import Sampling
from eval.policies import scripted_policy
from eval.tmbench.ablations import KINDS as ABLATIONS
from tests.commands import check_refused, run
from tmtrain.cli import main
from tmtrain.commands.ablate import KINDS


def test_the_command_has_every_kind() -> None:
    assert tuple(ABLATIONS) == KINDS


def test_difficulty_gets_a_run_a_setting_and_a_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "a"
    found = run(capsys, "ablate", "difficulty", "expert", "--values", "2", "12", "--limit", "2", "-o", str(out))
    assert [(p["label"], p["x"], p["episodes"], p["pass_rate"]["value"]) for p in found["points"]] == [
        ("m-2", 2, 2, 1.0),
        ("m-12", 12, 2, 1.0),
    ]
    assert json.loads((out / "m-12" / "manifest.json").read_text())["suite"]["source"] == "tmbench-difficulty, m = 12"
    assert json.loads((out / "ablation.json").read_text())["points"] == found["points"]
    assert Path(found["figure"]).read_bytes().startswith(b"\x89PNG")
    assert main(["ablate", "difficulty", "expert", "--values", "3", "12", "-o", str(out)]) == 2
    assert "m-12 holds a run already" in capsys.readouterr().err and not (out / "m-3").exists()
    wider = run(capsys, "ablate", "difficulty", "expert", "--values", "3", "12", "--limit", "2", "--resume", "-o", str(out))
    assert [p["label"] for p in wider["points"]] == ["m-3", "m-12"]
    beside = run(
        capsys, "ablate", "difficulty", "noisy:0.5", "--values", "3", "--limit", "2", "-o", str(tmp_path / "b"), "--beside", str(out)
    )
    assert Path(beside["figure"]).exists()
    assert main(["ablate", "alphabets", "expert", "-o", str(tmp_path / "c"), "--beside", str(out)]) == 2
    assert "is an ablation of difficulty, not of alphabets" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "values"), [("difficulty", ["2", "3"]), ("alphabets", ["roman", "greek"]), ("unbounded", ["tmbench-unbounded"])]
)
def test_a_setting_without_an_answer_is_named_and_not_drawn(
    kind: str, values: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "eval", "expert", "--suite", "lumina-tiny", "--limit", "1", "-o", str(tmp_path / "elsewhere"))
    silent = f"replay:{tmp_path / 'elsewhere'}"  # holds no answer to these problems
    assert main(["ablate", kind, silent, "--values", *values, "--limit", "5", "-o", str(tmp_path / "silent")]) == 0
    out = capsys.readouterr().out
    assert "–" in out and (tmp_path / "silent" / "ablation.png").exists()
    beside = ["--beside", str(tmp_path / "silent")]
    assert main(["ablate", kind, "expert", "--values", *values, "--limit", "1", "-o", str(tmp_path / "b"), *beside]) == 0


def test_unbounded_reports_each_problems_last_correct_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, "ablate", "unbounded", "noisy:0.05", "--limit", "2", "-o", str(tmp_path))
    assert [e["horizon"] for e in found["last_correct"]] == [1000, 1000]
    assert found["survival"][0]["correct"] == 2 and len(found["survival"]) == 1001
    manifest = json.loads((tmp_path / "unbounded" / "manifest.json").read_text())
    assert manifest["setting"] == {"style": "verbose", "wording": "standard", "oracles": "none", "continued": True, "token_limit": None}
    assert run(capsys, "score", str(tmp_path / "unbounded"))["changed"] == []
    assert main(["ablate", "unbounded", "noisy:0.05", "--limit", "2", "-o", str(tmp_path), "--resume"]) == 0
    assert f"{found['last_correct'][0]['last_correct']} of 1000" in capsys.readouterr().out


def test_alphabets_may_be_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, "ablate", "alphabets", "noisy:0.1", "--values", "greek", "VWXYZ", "--limit", "3", "-o", str(tmp_path))
    assert [p["run"] for p in found["points"]] == ["greek", "VWXYZ"]
    greek, own = (p["swa_uniform"] for p in found["points"])
    assert greek == own, "the same errors at the same steps"


@pytest.mark.parametrize(
    ("kind", "values", "temperatures"), [("difficulty", ["2", "12"], [None]), ("temperature", ["0", "1.5", "3"], [0, 1.5, 3])]
)
def test_a_model_is_loaded_once_for_all_that_is_sampled_alike(
    kind: str, values: list[str], temperatures: list[float | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = []

    def load(args: argparse.Namespace, problems: object) -> Any:
        loaded.append(args.temperature)
        return scripted_policy("expert")

    monkeypatch.setattr("tmtrain.commands.ablate.model_policy", load)
    assert main(["ablate", kind, "m", "--values", *values, "--limit", "1", "-o", str(tmp_path)]) == 0
    assert loaded == temperatures and len(list(tmp_path.glob("*/summary.json"))) == len(values)


def test_the_temperature_ablation_cuts_the_nucleus_as_the_paper_does_unless_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = []

    def load(name: str, sampling: Sampling, options: object) -> Any:
        decoded.append((sampling.temperature, sampling.top_p))
        return scripted_policy("expert")

    monkeypatch.setattr("eval.backends.load.load_policy", load)
    for i, asked in enumerate(([], ["--top-p", "1"], ["--top-p", "0.9"])):
        command = ["ablate", "temperature", "m", "--values", "0", "1.5", "--limit", "1", "-o", str(tmp_path / str(i)), *asked]
        assert main(command) == 0
    assert decoded == [(0.0, 1.0), (1.5, 0.8), (0.0, 1.0), (1.5, 1.0), (0.0, 1.0), (1.5, 0.9)]
    assert main(["ablate", "difficulty", "m", "--values", "2", "--limit", "1", "-o", str(tmp_path / "d")]) == 0
    assert decoded[6:] == [(0.0, 1.0)]


BAD = {
    "an unknown value": (["difficulty", "expert", "--values", "0"], "at least 1"),
    "a temperature beside its sweep": (["temperature", "m", "--temperature", "1"], "is what varies"),
    "a token limit for a script": (["unbounded", "expert", "--token-limit", "5"], "is for models in the unbounded ablation"),
    "a token limit elsewhere": (["difficulty", "m", "--token-limit", "5"], "is for models in the unbounded ablation"),
    "compact answers that go on": (["unbounded", "expert", "--style", "compact"], "use --style verbose"),
    "no ablation beside": (["difficulty", "expert", "--beside", "/nowhere"], "holds no ablation"),
    "resuming nothing": (["difficulty", "expert", "--resume"], "--resume needs -o"),
    "several suites": (["unbounded", "expert", "--values", "turing-parity", "tmbench-unbounded"], "one suite"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_line(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    argv, message = BAD[case]
    check_refused(capsys, ["ablate", *argv], message)


@pytest.mark.slow
def test_the_temperature_reaches_the_model(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from tmtrain.tiny import tiny_model, tiny_tokenizer

    tiny_model(0).save_pretrained(tmp_path / "model")
    tiny_tokenizer().save_pretrained(tmp_path / "model")
    command = ["ablate", "temperature", str(tmp_path / "model"), "--values", "0", "1.5", "--style", "compact", "--max-tokens", "3"]
    assert main([*command, "--limit", "1", "-o", str(tmp_path / "a")]) == 0
    for folder, temperature, top_p in (("temperature-0", 0.0, 1.0), ("temperature-1.5", 1.5, 0.8)):
        sampling = json.loads((tmp_path / "a" / folder / "manifest.json").read_text())["policy"]["sampling"]
        assert (sampling["temperature"], sampling["top_p"]) == (temperature, top_p)


def test_a_model_goes_on_from_its_own_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A served model that writes thirty steps a reply is asked to go on, with its own answers before it."""
    pytest.importorskip("openai")
    from envs.environment import Setting
    from envs.registry import load_env
    from envs.suites import load_suite
    from tests.eval.fake_server import chat_answer, fake_server

    problem = load_suite("tmbench-unbounded").problems()[0]

    def answer(body: dict[str, Any]) -> Any:
        episode = load_env("tag").start(problem, Setting(continued=True))
        for message in body["messages"]:
            if message["role"] == "assistant":
                episode.reply(message["content"])
        return chat_answer(episode.expert(), "length")

    with fake_server(answer, models=[{"id": "m", "object": "model", "created": 0, "owned_by": "me"}]) as server:
        argv = ["ablate", "unbounded", "m", "--base-url", server.url, "--limit", "1", "--token-limit", "14", "-o", str(tmp_path)]
        found = run(capsys, *argv)
    assert [len(body["messages"]) for body in server.seen] == [1, 3, 5, 7, 9]
    assert found["last_correct"][0]["last_correct"] == 149, "five replies of three tokens each reach a limit of 14"
