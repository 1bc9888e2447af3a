"""Model cards: what they say is what was run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")

from huggingface_hub import ModelCard

from envs.environment import Setting
from envs.suites import load_suite
from eval.backends.load import Options, load_policy
from eval.backends.sampling import Sampling
from eval.runs import Evaluation, evaluate
from tmtrain.cards import write_card
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
    path = write_card(made / "checkpoint", [made / "run_other", made / "run_checkpoint"])
    card = ModelCard.load(path)
    summary = json.loads((made / "run_checkpoint" / "summary.json").read_text())
    results = {r.metric_type: r.metric_value for r in card.data.eval_results}
    assert results == {k: summary[k]["value"] for k in ("swa_uniform", "swa_linear", "pass_rate", "strict_pass_rate")}
    assert (
        card.data.eval_results[0].dataset_revision == json.loads((made / "run_checkpoint" / "manifest.json").read_text())["suite"]["hash"]
    )
    assert "run_other (other weights, for comparison)" in card.text
    assert (made / "checkpoint" / "step_accuracy.png").is_file()


def test_the_text_states_the_data_and_its_disjointness(made: Path) -> None:
    text = write_card(made / "checkpoint", [made / "run_checkpoint"]).read_text()
    assert "with the frozen suites: 3" in text, "three suite problems were trained on, and the card says so"
    assert "max_steps=3" in text and "**SFT** from `tiny`" in text and "truncated 3" in text


def test_a_card_needs_a_run_of_its_own_weights(made: Path) -> None:
    with pytest.raises(ValueError, match="none of the runs is of the weights"):
        write_card(made / "checkpoint", [made / "run_other"])


def test_writing_twice_gives_the_same_card(made: Path) -> None:
    first = write_card(made / "checkpoint", [made / "run_checkpoint"]).read_text()
    assert write_card(made / "checkpoint", [made / "run_checkpoint"]).read_text() == first
