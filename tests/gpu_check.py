"""Does training work on this GPU, and how fast? `python -m tests.gpu_check`: minutes on one GPU, no network, no download.

The tiny model and one of about 100 million parameters, both freshly initialised, take a few steps of SFT and of GRPO with step credit in
bf16. Checked: losses are finite and SFT moves the weights; time and memory are printed. Of several GPUs the first is used. Without a GPU
nothing is run, and that is said; `--cpu` tries the script itself with the tiny model.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import islice
from typing import Any

from envs.dataset import draw, make_params
from envs.environment import Setting
from envs.problem import Problem
from tmtrain.data import Mixture, demonstrations
from tmtrain.grpo import build_grpo_trainer
from tmtrain.recipe import GRPORecipe
from tmtrain.sft import build_sft_trainer
from tmtrain.tiny import tiny_model, tiny_tokenizer

SIZES: dict[str, dict[str, int]] = {"tiny": {}, "100M": {"hidden": 768, "layers": 14, "heads": 24}}
LEVEL = {"max_steps": 4}


def common(folder: str, *, gpu: bool, steps: int) -> dict[str, Any]:
    return {
        "output_dir": folder,
        "use_cpu": not gpu,
        "bf16": gpu,
        "gradient_checkpointing": False,
        "max_steps": steps,
        "learning_rate": 1e-4,
        "logging_steps": 1,
        "report_to": "none",
        "save_strategy": "no",
        "disable_tqdm": True,
    }


def sft(model: Any, problems: Sequence[Problem], folder: str, *, gpu: bool, steps: int) -> Any:
    from trl import SFTConfig

    rows = [row for p in problems for row in demonstrations(p, Setting("compact"))]
    config = SFTConfig(**common(folder, gpu=gpu, steps=steps), per_device_train_batch_size=32, max_length=512)
    return build_sft_trainer(model, tiny_tokenizer(), rows, config)


def grpo(model: Any, problems: Sequence[Problem], folder: str, *, gpu: bool, steps: int) -> Any:
    from trl import GRPOConfig

    config = GRPOConfig(
        **common(folder, gpu=gpu, steps=steps), per_device_train_batch_size=32, num_generations=8, max_completion_length=128
    )
    # An untrained model gets no step right; half of the credit is the reply's, for its form.
    recipe = GRPORecipe(
        levels=[LEVEL],
        eval_levels=[LEVEL],
        style="compact",
        credit="step_baseline",
        outcome_weight=0.5,
        reward={"step": 1.0, "format": 1.0},
    )
    return build_grpo_trainer(model, tiny_tokenizer(), Mixture("tag", [LEVEL], 0, "gpu"), problems, recipe, config)


def measure(kind: str, size: str, problems: Sequence[Problem], *, gpu: bool, steps: int) -> tuple[float, float, float]:
    """Seconds a step after the first, the last loss, and the most GiB of the GPU that were in use. Exits where something is wrong."""
    import torch
    from transformers import TrainerCallback

    ends: list[float] = []

    class Clock(TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            if gpu:
                torch.cuda.synchronize()
            ends.append(time.perf_counter())

    if gpu:
        torch.cuda.reset_peak_memory_stats()
    model = tiny_model(0, **SIZES[size])
    before = next(model.parameters()).detach().clone().cpu()
    with tempfile.TemporaryDirectory() as folder:
        trainer = (sft if kind == "SFT" else grpo)(model, problems, folder, gpu=gpu, steps=steps)
        trainer.add_callback(Clock())
        trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    if not all(map(math.isfinite, losses)):
        sys.exit(f"gpu_check.py: {kind} of {size}: a loss is not finite: {losses}")
    if kind == "SFT" and torch.equal(before, next(trainer.model.parameters()).detach().cpu()):
        sys.exit(f"gpu_check.py: {kind} of {size}: no weight moved")
    peak = torch.cuda.max_memory_allocated() / 2**30 if gpu else 0.0
    return (ends[-1] - ends[0]) / (len(ends) - 1), losses[-1], peak


def main() -> None:
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0")  # with more, transformers would make one process serve them all
    import torch

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cpu", action="store_true", help="try the script with the tiny model on the processor")
    given = parser.parse_args()
    gpu = torch.cuda.is_available()
    if not gpu and not given.cpu:
        print("no GPU here: nothing was run, so nothing is known of training on one")
        return
    problems = list(islice(draw("tag", make_params("tag", LEVEL), seed=0, split="gpu/0"), 256))
    print(f"on {torch.cuda.get_device_name() if gpu else 'the processor'}, torch {torch.__version__}")
    print(f"{'':12}{'parameters':>14}{'s a step':>12}{'last loss':>12}{'peak GiB':>12}")
    for size in SIZES if gpu else ["tiny"]:
        parameters = tiny_model(0, **SIZES[size]).num_parameters()
        for kind, steps in (("SFT", 8), ("GRPO", 4)):
            seconds, loss, peak = measure(kind, size, problems, gpu=gpu, steps=steps)
            print(f"{size + ' ' + kind:12}{parameters:>14,}{seconds:>12.3f}{loss:>12.4f}{peak:>12.2f}", flush=True)


if __name__ == "__main__":
    main()
