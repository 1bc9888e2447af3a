"""`tmtrain eval` on a model: what is in force where nothing is asked for, and what is refused before anything is generated."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")

from tmtrain.cli import main
from tmtrain.evaluation import evaluate_checkpoint
from tmtrain.recipe import Recipe
from tmtrain.tiny import CHAT_TEMPLATE, tiny_model, tiny_tokenizer

SWITCH = CHAT_TEMPLATE + "{%- if add_generation_prompt and enable_thinking is false -%}.{%- endif -%}"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("files")
    tiny_model(0).save_pretrained(root / "model")
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = SWITCH
    tokenizer.save_pretrained(root / "model")
    assert main(["generate", "tag", "-n", "2", "--seed", "1", "--set", "max_steps=2", "-o", str(root / "tag.jsonl")]) == 0
    assert main(["generate", "listworld", "-n", "2", "--seed", "1", "-o", str(root / "list.jsonl")]) == 0
    (root / "both.jsonl").write_text((root / "tag.jsonl").read_text() + (root / "list.jsonl").read_text())
    return root


def policy(files: Path, problems: str, output: Path, *options: str) -> dict:
    command = [
        "eval",
        str(files / "model"),
        "--problems",
        str(files / problems),
        "--style",
        "compact",
        "-o",
        str(output),
        "--json",
        *options,
    ]
    assert main(command) == 0
    return json.loads((output / "manifest.json").read_text())["policy"]


def test_single_turn_problems_are_answered_greedily_and_the_template_is_left_alone(files: Path, tmp_path: Path) -> None:
    found = policy(files, "tag.jsonl", tmp_path / "run", "--max-tokens", "4")
    assert found["sampling"] == {"max_tokens": 4, "temperature": 0.0, "top_p": 1.0, "top_k": 0, "seed": 0}
    assert found["thinking"] == "template" and found["backend"] == "transformers"


def test_worlds_are_sampled_with_thinking_off(files: Path, tmp_path: Path) -> None:
    found = policy(files, "list.jsonl", tmp_path / "run", "--max-tokens", "4")
    assert found["sampling"]["temperature"] == 0.7 and found["thinking"] == "off"
    found = policy(files, "list.jsonl", tmp_path / "other", "--max-tokens", "4", "--temperature", "0", "--thinking", "template")
    assert found["sampling"]["temperature"] == 0.0 and found["thinking"] == "template"


REFUSED = {
    "both kinds of problems": (["both.jsonl"], "say --temperature and --thinking"),
    "top_p when greedy": (["tag.jsonl", "--top-p", "0.9"], "no effect at temperature 0"),
    "more tokens than the context": (["tag.jsonl", "--max-tokens", "9000"], "does not fit into the context"),
    "a longer context than the model's": (["tag.jsonl", "--context", "9000"], "reads 8192 tokens at most"),
    "a server without address": (["tag.jsonl", "--backend", "openai"], "go together"),
    "several GPUs for transformers": (["tag.jsonl", "--tensor-parallel", "2"], "is for vllm"),
    "retries without a server": (["tag.jsonl", "--retries", "2"], "retries is for openai"),
    "a concurrency of none": (["tag.jsonl", "--concurrency", "0"], "at least 1"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_would_not_be_in_force_is_refused(case: str, files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (problems, *options), line = REFUSED[case]
    command = ["eval", str(files / "model"), "--problems", str(files / problems), "--style", "compact", "-o", str(tmp_path / "run")]
    assert main([*command, *options]) == 2
    err = capsys.readouterr().err.splitlines()
    assert line in err[-1] and not (tmp_path / "run").exists()


def test_a_folder_that_holds_a_run_is_refused_before_the_model_is_loaded(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    command = ["eval", str(tmp_path / "no model"), "--problems", str(files / "tag.jsonl"), "-o", str(tmp_path)]
    assert main(command) == 2
    assert "holds a run already" in capsys.readouterr().err


@pytest.mark.parametrize(("backend", "passed"), [("transformers", True), ("vllm", False)])
def test_a_recipes_evaluation_names_what_its_backend_heeds(
    backend: str, passed: bool, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[list[str]] = []

    def run(words: list[str], **_: object) -> SimpleNamespace:
        called.append(words)
        return SimpleNamespace(returncode=1)

    monkeypatch.setattr("tmtrain.evaluation.chosen_backend", lambda options: backend)
    monkeypatch.setattr("tmtrain.evaluation.subprocess.run", run)
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda: (60, 80))
    recipe = Recipe(eval_levels=[{"max_steps": 2}], eval_max_tokens=4, eval_batch_size=8)
    with pytest.raises(ValueError, match="for the reason above"):
        evaluate_checkpoint(files / "model", [], recipe, tmp_path / "run")
    assert ("--batch-size" in called[0]) is passed and "--concurrency" in called[0]
    assert passed or called[0][called[0].index("--gpu-memory") + 1] == "0.730"
