"""SFT: the trainer's loss, and going on."""

from __future__ import annotations

import shutil
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl")

from envs.environment import Setting
from tmtrain.config import make_configs
from tmtrain.data import Mixture, demonstrations_by_turns
from tmtrain.recipe import SFTRecipe, Stage
from tmtrain.sft import build_sft_trainer, last_checkpoint, train_sft
from tmtrain.tiny import tiny_model, tiny_tokenizer


@pytest.mark.slow
def test_whole_logits_give_the_same_losses_and_weights(tmp_path: Path) -> None:
    """Of unequal rows, with accumulation: each update weighs its tokens alike either way."""
    import torch
    from trl import SFTConfig

    rows = list(demonstrations_by_turns(islice(Mixture("tag", [{"max_steps": 3}], 0, "sft").problems(), 32), [Setting("compact")]))
    losses, weights = [], []
    for whole in (False, True):
        config = SFTConfig(
            output_dir=str(tmp_path), use_cpu=True, bf16=False, report_to="none", save_strategy="no", max_steps=4, logging_steps=1,
            per_device_train_batch_size=4, gradient_accumulation_steps=2, learning_rate=1e-3, gradient_checkpointing=False,
        )  # fmt: skip
        trainer = build_sft_trainer(tiny_model(0), tiny_tokenizer(), rows, config, whole_logits=whole)
        trainer.train()
        losses.append([entry["loss"] for entry in trainer.state.log_history if "loss" in entry])
        weights.append(torch.cat([p.detach().flatten() for p in trainer.model.parameters()]))
    assert len(losses[0]) == 4 and losses[0] == pytest.approx(losses[1], rel=1e-3)
    assert (weights[0] - weights[1]).abs().max() < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("bucket_tokens", [0, 900])
def test_a_resumed_run_goes_on_with_the_gaps_that_it_would_have_had(bucket_tokens: int, tmp_path: Path) -> None:
    from safetensors.torch import load_file
    from trl import ModelConfig, SFTConfig

    def run(folder: str, resume: bool = False) -> dict[str, Any]:
        settings = {
            "output_dir": str(tmp_path / folder), "style": "compact", "eval_levels": [{}], "position_gap": 64, "bucket_tokens": bucket_tokens,
            "stages": [{"levels": [{"max_steps": 3}], "problems": 90}], "batch_size": 4 if bucket_tokens else 8, "save_strategy": "steps",
            "save_steps": 4, "learning_rate": 1e-3, "use_cpu": True, "bf16": False, "gradient_checkpointing": False, "report_to": "none",
            "num_train_epochs": 2, "gradient_accumulation_steps": 2 if bucket_tokens else 1, "resume": resume, "disable_tqdm": True,
        }  # fmt: skip
        return load_file(train_sft(*make_configs(settings, SFTRecipe, SFTConfig, ModelConfig), []) / "model.safetensors")

    whole = run("whole")
    saved = sorted((tmp_path / "whole").glob("checkpoint-*"), key=lambda p: int(p.name.partition("-")[2]))
    middle = saved[len(saved) // 2]
    shutil.copytree(middle, tmp_path / "resumed" / middle.name)
    resumed = run("resumed", resume=True)
    assert all(whole[name].equal(resumed[name]) for name in whole)


def saved(folder: Path, step: int, *files: str) -> str:
    """A training checkpoint that holds these files besides its weights."""
    checkpoint = folder / f"checkpoint-{step}"
    checkpoint.mkdir()
    for name in ("model.safetensors", *files):
        (checkpoint / name).write_text("{}")
    return str(checkpoint)


def test_a_checkpoint_that_was_not_saved_to_its_end_is_passed_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert last_checkpoint(None) is None and last_checkpoint(str(tmp_path / "none")) is None
    torn = saved(tmp_path, 4)
    assert last_checkpoint(str(tmp_path)) is None, "the run begins anew"
    whole = saved(tmp_path, 2, "trainer_state.json")
    saved(tmp_path, 1, "trainer_state.json")
    (tmp_path / "checkpoint").mkdir()
    capsys.readouterr()
    assert last_checkpoint(str(tmp_path)) == whole
    assert capsys.readouterr().err == f"note: {torn} is passed over: it was not saved to its end\n"
    (tmp_path / "checkpoint-4" / "trainer_state.json").write_text('{"global_step": ')
    assert last_checkpoint(str(tmp_path)) == whole
    (tmp_path / "checkpoint-4" / "trainer_state.json").write_text("{}")
    assert last_checkpoint(str(tmp_path)) == torn
    ten = saved(tmp_path, 10, "trainer_state.json")
    assert last_checkpoint(str(tmp_path)) == ten, "by number, not by name"


def test_a_checkpoint_without_its_curriculum_is_passed_over(tmp_path: Path) -> None:
    first, second = saved(tmp_path, 2, "trainer_state.json"), saved(tmp_path, 4, "trainer_state.json")
    assert last_checkpoint(str(tmp_path), also=["curriculum.json"]) == second, "so that a run begun without one is refused"
    (tmp_path / "checkpoint-2" / "curriculum.json").write_text("{}")
    assert last_checkpoint(str(tmp_path), also=["curriculum.json"]) == first
    assert last_checkpoint(str(tmp_path)) == second


@pytest.mark.parametrize("name", ["bucket_tokens", "position_gap", "eval_temperature"])
def test_negative_settings_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be at least 0, not -1"):
        SFTRecipe(eval_levels=[{}], stages=[Stage([{}], 1)], **{name: -1})
