"""The SFT trainer's loss."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

pytest.importorskip("trl")

from envs.environment import Setting
from tmtrain.data import Mixture, demonstrations_by_turns
from tmtrain.recipe import SFTRecipe, Stage
from tmtrain.sft import build_sft_trainer
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


@pytest.mark.parametrize("name", ["bucket_tokens", "position_gap", "eval_temperature"])
def test_negative_settings_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be at least 0, not -1"):
        SFTRecipe(eval_levels=[{}], stages=[Stage([{}], 1)], **{name: -1})
