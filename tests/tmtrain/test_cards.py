"""Model cards: what they say is what was run."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")

import yaml
from huggingface_hub import ModelCard, parse_eval_result_entries

from envs.environment import Setting
from envs.suites import load_suite
from eval.backends.load import load_policy
from eval.backends.options import Options
from eval.backends.sampling import Sampling
from eval.runs import Evaluation, evaluate
from tests.tmtrain.fake_hub import FakeHub, fake_hub
from tmtrain.card_metadata import METRICS
from tmtrain.cards import write_card
from tmtrain.cli import main
from tmtrain.data import Mixture, data_record
from tmtrain.provenance import write_training_record
from tmtrain.tiny import tiny_model, tiny_tokenizer

PROBLEMS = load_suite("tmbench-v1").problems()[:3]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two checkpoints, each evaluated (an untrained model states the first step at best)."""
    root = tmp_path_factory.mktemp("cards")
    for name, seed in (("checkpoint", 0), ("other", 1)):
        tiny_model(seed).save_pretrained(root / name)
        tiny_tokenizer().save_pretrained(root / name)
        policy = load_policy(str(root / name), Sampling(max_tokens=8), Options(backend="transformers", batch_size=4))
        evaluate(policy, Evaluation(PROBLEMS, "three problems", Setting("compact")), root / f"run_{name}", progress=False)
    stage = {
        "kind": "sft",
        "model": "tiny",
        "data": data_record(PROBLEMS, Mixture("tag", [{"max_steps": 3}], 0, "sft"), []),
        "settings": {},
    }
    write_training_record(root / "checkpoint", style="compact", stages=[stage])
    return root


def test_the_metadata_carries_the_scores_of_this_checkpoint_only(made: Path) -> None:
    path = write_card(made / "checkpoint", [made / "run_other", made / "run_checkpoint"]).path
    card = ModelCard.load(path)
    summary = json.loads((made / "run_checkpoint" / "summary.json").read_text())
    results = {r.metric_type: r.metric_value for r in card.data.eval_results}
    assert results == {k: summary[k]["value"] for k in METRICS}
    assert (
        card.data.eval_results[0].dataset_revision == json.loads((made / "run_checkpoint" / "manifest.json").read_text())["suite"]["hash"]
    )
    assert "run_other (other weights, for comparison)" in card.text
    assert (made / "checkpoint" / "step_accuracy.png").is_file()


def test_the_text_states_the_data_and_its_disjointness(made: Path) -> None:
    text = write_card(made / "checkpoint", [made / "run_checkpoint"]).path.read_text()
    assert "with the frozen suites: 3" in text, "three suite problems were trained on, and the card says so"
    assert "max_steps=3" in text and "**SFT** from `tiny`" in text and "truncated 3" in text


def test_a_card_needs_a_run_of_its_own_weights(made: Path) -> None:
    with pytest.raises(ValueError, match="none of the runs is of the weights"):
        write_card(made / "checkpoint", [made / "run_other"])


def test_writing_twice_gives_the_same_card(made: Path) -> None:
    first = write_card(made / "checkpoint", [made / "run_checkpoint"]).path.read_text()
    assert write_card(made / "checkpoint", [made / "run_checkpoint"]).path.read_text() == first


def test_one_entry_for_each_dataset_metric_and_setting(made: Path, tmp_path: Path) -> None:
    """The same run twice, and a second run in the same setting: the later one counts."""
    later = tmp_path / "later"
    shutil.copytree(made / "run_checkpoint", later)
    manifest = json.loads((later / "manifest.json").read_text())
    (later / "manifest.json").write_text(json.dumps({**manifest, "started": "2999-01-01T00:00:00+00:00"}))
    written = write_card(made / "checkpoint", [later, made / "run_checkpoint"])
    assert len(ModelCard.load(written.path).data.eval_results) == len(METRICS)
    runs = [made / "run_checkpoint", tmp_path / "sampled", tmp_path / "worded"]
    manifest["policy"]["sampling"]["temperature"] = 0.7
    for other in runs[1:]:
        shutil.copytree(made / "run_checkpoint", other)
        (other / "manifest.json").write_text(json.dumps(manifest))
        manifest["setting"]["wording"] = "brief"
    assert len(ModelCard.load(write_card(made / "checkpoint", runs).path).data.eval_results) == 3 * len(METRICS)


def test_runs_that_differ_in_how_the_model_was_read_have_entries_of_their_own(made: Path, tmp_path: Path) -> None:
    plain = json.loads((made / "run_checkpoint" / "manifest.json").read_text())
    assert plain["policy"]["thinking"] == "template" and plain["policy"]["context_length"] == 8192
    yarn = {"rope_type": "yarn", "factor": 4.0, "rope_theta": 10000.0}
    differences = {
        "thinking": {"thinking": "off"},
        "served": {"thinking": "off, where the template has a switch", "earlier_thinking": "drop"},
        "stretched": {"rope": yarn, "context_length": 32768},
        "short": {"context_length": 4096},
    }
    for name, difference in differences.items():
        shutil.copytree(made / "run_checkpoint", tmp_path / name)
        (tmp_path / name / "manifest.json").write_text(json.dumps({**plain, "policy": {**plain["policy"], **difference}}))
    written = write_card(made / "checkpoint", [made / "run_checkpoint", *(tmp_path / name for name in differences)])
    usual = "style=compact,oracles=none,temperature=0.0,top_p=1.0,top_k=0,max_tokens=8"
    settings = {r.dataset_config for r in ModelCard.load(written.path).data.eval_results}
    more = ("context=8192", "context=4096", "thinking=off", "thinking=off,earlier_thinking=drop", "yarn=4")
    assert settings == {f"{usual},{text}" for text in more}
    (entry, *_) = ModelCard.load(write_card(made / "checkpoint", [made / "run_checkpoint"]).path).data.eval_results
    assert entry.dataset_config == usual, "alone a run needs no context to be told apart"


def test_the_hubs_result_files_hold_the_same_numbers(made: Path) -> None:
    written = write_card(made / "checkpoint", [made / "run_checkpoint"])
    (path,) = written.eval_results
    assert path.parent == made / "checkpoint" / ".eval_results" and list(path.parent.iterdir()) == [path]
    entries = parse_eval_result_entries(yaml.safe_load(path.read_text()))
    in_card = {(r.dataset_type, r.metric_type): r.metric_value for r in ModelCard.load(written.path).data.eval_results}
    assert {(e.dataset_id, e.task_id): e.value for e in entries} == in_card
    assert all("95 % interval" in e.notes and "style=compact" in e.notes for e in entries)


def test_a_score_that_is_no_number_is_refused(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import eval.report

    real = eval.report.summarise
    monkeypatch.setattr(
        eval.report, "summarise", lambda records: {**real(records), "swa_linear": {"value": math.nan, "low": 0.0, "high": 1.0, "n": 3}}
    )
    before = (made / "checkpoint" / "README.md").read_text()
    with pytest.raises(ValueError, match="swa_linear is no number"):
        write_card(made / "checkpoint", [made / "run_checkpoint"])
    assert (made / "checkpoint" / "README.md").read_text() == before


def test_the_base_model_is_named_by_its_hub_id_or_left_out_with_a_warning(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    shutil.copytree(made / "checkpoint", folder)
    runs = [made / "run_checkpoint"]
    record = json.loads((folder / "tmtrain.json").read_text())

    def card(model: str, **options: str) -> tuple[object, list[str]]:
        record["stages"][0]["model"] = model
        (folder / "tmtrain.json").write_text(json.dumps(record))
        written = write_card(folder, runs, **options)
        return ModelCard.load(written.path).data.base_model, written.warnings

    assert card("tiny") == (None, [])
    assert card("Qwen/Qwen3-0.6B") == ("Qwen/Qwen3-0.6B", [])
    base, warnings = card(str(tmp_path))
    assert base is None and "--base-model" in warnings[0]
    assert card("/gone/model")[0] is None
    assert card(str(tmp_path), base_model="Qwen/Qwen3-0.6B") == ("Qwen/Qwen3-0.6B", [])


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with fake_hub() as server:
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", server.url)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)  # its own storage, which the stand-in lacks
        monkeypatch.setenv("HF_TOKEN", "right")
        yield server


def test_pushing_uploads_the_model_the_card_and_the_results(made: Path, hub: FakeHub, capsys: pytest.CaptureFixture[str]) -> None:
    folder = made / "checkpoint"
    (folder / "optimizer.pt").write_bytes(b"x")
    command = ["card", str(folder), "--runs", str(made / "run_checkpoint"), "--push", "me/tiny-tag", "--private", "--json"]
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out)["url"] == f"{hub.url}/me/tiny-tag"
    files = hub.repos["me/tiny-tag"]
    assert files["model.safetensors"] == (folder / "model.safetensors").read_bytes()
    assert files["README.md"].decode() == (folder / "README.md").read_text()
    assert {"step_accuracy.png", ".eval_results/three-problems.yaml", "tokenizer.json", "config.json", "tmtrain.json"} <= files.keys()
    assert "optimizer.pt" not in files and hub.private["me/tiny-tag"]
    assert main(command) == 0, "into a repository that is there already"
    assert len(ModelCard(hub.repos["me/tiny-tag"]["README.md"].decode()).data.eval_results) == len(METRICS)


@pytest.mark.parametrize(
    ("repo", "token", "line"),
    [("me/tiny", "wrong", "hf auth login"), ("no name!", "right", "no repository's name"), ("me/tiny", None, "cannot")],
    ids=["token", "name", "unreachable"],
)
def test_a_push_that_fails_gets_one_line(
    repo: str, token: str | None, line: str, made: Path, hub: FakeHub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if token is None:
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    else:
        monkeypatch.setenv("HF_TOKEN", token)
    assert main(["card", str(made / "checkpoint"), "--runs", str(made / "run_checkpoint"), "--push", repo]) == 2
    err = capsys.readouterr().err
    assert line in err and err.count("\n") == 1
