"""Our trainer against TRL's own GRPOTrainer: seconds an update, with the same model, batches and completions: `make bench`.

The learning rate is zero, so the model stays what it is and both sample the same completions from the same seeds; everything else of an
update is done. TRL's rewards are one cheap function of the reply's length; ours check every step and lay credit on tokens.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import islice
from typing import Any

from envs.dataset import draw, make_params
from envs.problem import Problem
from tmtrain.data import Mixture, prompt_row
from tmtrain.grpo import build_grpo_trainer
from tmtrain.recipe import GRPORecipe
from tmtrain.tiny import tiny_model, tiny_tokenizer

ROUNDS = 5
UPDATES = 5


def settings(folder: str, seed: int) -> Any:
    from trl import GRPOConfig

    return GRPOConfig(
        output_dir=folder,
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        per_device_train_batch_size=32,
        num_generations=8,
        max_completion_length=128,
        learning_rate=0.0,
        max_steps=UPDATES + 1,
        seed=seed,
        report_to="none",
        save_strategy="no",
        disable_tqdm=True,
        logging_steps=1000,
    )


def ours(problems: Sequence[Problem], config: Any) -> Any:
    recipe = GRPORecipe(
        levels=[{}], eval_levels=[{}], style="compact", credit="step_baseline", reward={"step": 1.0, "success": 0.5, "format": 0.1}
    )
    return build_grpo_trainer(tiny_model(0), tiny_tokenizer(), Mixture("tag", [{}], 0, "bench"), problems, recipe, config)


def plain(problems: Sequence[Problem], config: Any) -> Any:
    from datasets import Dataset
    from trl import GRPOTrainer

    from envs.environment import Setting

    def length(completions: Any, **_: Any) -> list[float]:
        return [float(len(c[0]["content"])) for c in completions]

    rows = [{**prompt_row(p, Setting("compact")), "level": 0} for p in problems]
    return GRPOTrainer(
        model=tiny_model(0), args=config, train_dataset=Dataset.from_list(rows), processing_class=tiny_tokenizer(), reward_funcs=length
    )


def seconds_an_update(trainer: Any) -> tuple[float, list[list[int]]]:
    """The mean over the updates after the first, which warms up; and the completions."""
    from transformers import PrinterCallback, TrainerCallback

    ends: list[float] = []
    seen: list[list[int]] = []

    class Clock(TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            ends.append(time.perf_counter())

    score = trainer._generate_and_score_completions

    def scoring(inputs: Any) -> Any:
        output = score(inputs)
        seen.extend(output["completion_ids"].tolist())
        return output

    trainer._generate_and_score_completions = scoring
    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(Clock())
    trainer.train()
    return (ends[-1] - ends[0]) / (len(ends) - 1), seen


def main() -> None:
    problems = list(islice(draw("tag", make_params("tag", {"max_steps": 5}), seed=0, split="bench/0"), 64))
    ratios, costs = [], []
    for seed in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            pair = {}
            for make in (ours, plain) if seed % 2 else (plain, ours):
                pair[make] = seconds_an_update(make(problems, settings(folder, seed)))
        if pair[ours][1] != pair[plain][1]:
            sys.exit("bench_trainer.py: the two trainers sampled different completions, so their times cannot be compared")
        ratios.append(pair[ours][0] / pair[plain][0])
        costs.append((pair[ours][0], pair[plain][0]))
    mine, theirs = (statistics.median(c) for c in zip(*costs, strict=True))
    print(
        f"{'an update of GRPO, 32 completions of up to 128 tokens: ours / TRL':62}{mine:7.2f} / {theirs:.2f} s, "
        f"ratio {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
    )


if __name__ == "__main__":
    main()
