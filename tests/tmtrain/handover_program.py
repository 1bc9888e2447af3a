"""What `test_distributed.py` launches on several processes: an adapted model spread by ZeRO-3, read as TRL reads it and layer by layer."""

from __future__ import annotations

import json
import os
import sys
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from peft import LoraConfig
from trl import SFTConfig
from trl.distributed import DistributedBackend
from trl.generation.vllm_generation import VLLMGeneration

from envs.dataset import draw, make_params
from envs.environment import Setting
from tmtrain.data import demonstrations
from tmtrain.generation import merged_weights
from tmtrain.launch import is_main_process, run_recipe
from tmtrain.sft import build_sft_trainer
from tmtrain.tiny import tiny_model, tiny_tokenizer


def main(argv: list[str]) -> None:
    (output,) = argv
    config = SFTConfig(
        output_dir=output, use_cpu=True, bf16=False, gradient_checkpointing=False, per_device_train_batch_size=4, max_steps=2,
        learning_rate=1e-2, report_to="none", save_strategy="no", disable_tqdm=True,
    )  # fmt: skip
    problems = islice(draw("tag", make_params("tag", {"max_steps": 2}), seed=0, split="test/0"), 16)
    rows = [row for p in problems for row in demonstrations(p, Setting("compact"))]
    adapter = LoraConfig(r=2, init_lora_weights=False, target_modules=["q_proj", "down_proj"])
    trainer = build_sft_trainer(tiny_model(0), tiny_tokenizer(), rows, config, adapter)
    trainer.train()
    backend = DistributedBackend(trainer.accelerator)
    engine: Any = VLLMGeneration.__new__(VLLMGeneration)
    engine.__dict__ |= {"model": trainer.model, "_dist": backend}
    expected = {name: weight.clone() for name, weight in engine._iter_named_params()}
    found, again = ({n: w.clone() for n, w in merged_weights(trainer.model, backend.gather_params)} for _ in range(2))
    plain = {name: tuple(weight.shape) for name, weight in tiny_model(0).named_parameters()}
    parts = sum(parameter.numel() for parameter in trainer.model.parameters())
    result = SimpleNamespace(
        stage=backend.zero_stage,
        processes=int(os.environ["WORLD_SIZE"]),
        spread=parts < sum(map(torch.Tensor.numel, expected.values())),
        shapes={name: tuple(weight.shape) for name, weight in found.items()} == plain,
        furthest=max((found[name] - weight).abs().max().item() for name, weight in expected.items()),
        drift=max((found[name] - weight).abs().max().item() for name, weight in again.items()),
    )
    if is_main_process():
        (Path(output) / "handover.json").write_text(json.dumps(vars(result)))


if __name__ == "__main__":
    sys.exit(run_recipe(main))
