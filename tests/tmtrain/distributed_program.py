"""What `test_distributed.py` launches on several processes: GRPO on replies that depend on the problem and the row alone.

So the rollouts are the same however many processes there are, and losses and weights can be compared. Evaluation generates for real.
"""

from __future__ import annotations

import json
import os
import sys
from itertools import islice
from pathlib import Path
from typing import Any

from trl import GRPOConfig, ModelConfig

from envs.dataset import draw, make_params, parse_problem
from envs.environment import Setting
from envs.problem import stream
from envs.registry import load_env
from tmtrain.data import Mixture, held_out
from tmtrain.grpo import build_grpo_trainer, watch
from tmtrain.launch import is_main_process, run_recipe
from tmtrain.models import load_for_training
from tmtrain.recipe import GRPORecipe

LEVEL = {"max_steps": 3, "min_horizon": 3}


def scripted(trainer: Any) -> None:
    """Replaces single-turn generation in training by noisy experts, each row with a stream of its own."""
    real, score, tokenizer = trainer._generate_single_turn, trainer._generate_and_score_completions, trainer.processing_class
    scoring = False

    def in_training(inputs: Any) -> Any:
        nonlocal scoring
        scoring = True
        output = score(inputs)
        scoring = False
        return output

    def generate(prompts: list[list[int]], *rest: Any) -> Any:
        if not scoring:
            return real(prompts, *rest)
        replies = []
        for i, row in enumerate(trainer.rows):
            problem = parse_problem(json.loads(row["problem"]))
            episode = load_env(problem.env).start(problem, Setting("compact"))
            text = episode.noisy(stream("script", problem.id, i % trainer.num_generations), 0.3)
            replies.append([*tokenizer(text)["input_ids"], tokenizer.eos_token_id])
        return replies, None

    trainer._generate_single_turn, trainer._generate_and_score_completions = generate, in_training


def main(argv: list[str]) -> None:
    start, output, mode = argv
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    config = GRPOConfig(
        output_dir=output,
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        per_device_train_batch_size=8 // processes,
        gradient_accumulation_steps=2,
        num_generations=4,
        max_completion_length=128,
        learning_rate=1e-3,
        max_steps=3,
        logging_steps=1,
        report_to="none",
        save_strategy="no",
        disable_tqdm=True,
        ddp_find_unused_parameters=False,
    )
    recipe = GRPORecipe(
        model=start, style="compact", levels=[LEVEL], eval_levels=[LEVEL], eval_problems=6, eval_max_tokens=48, min_start_accuracy=0.0,
        credit="step_baseline",
    )  # fmt: skip
    held = held_out("tag", [LEVEL], 6, 1)
    mixture = Mixture("tag", [LEVEL], 0, "test")
    problems = list(islice(draw("tag", make_params("tag", LEVEL), seed=0, split="test/0"), 16))
    model, tokenizer = load_for_training(start, 0, ModelConfig())
    trainer = build_grpo_trainer(model, tokenizer, mixture, problems, recipe, config)
    watching = watch(trainer, start, recipe, held)
    scripted(trainer)
    if mode == "fail":
        score = trainer._generate_and_score_completions

        def failing(inputs: Any) -> Any:
            if not is_main_process() and trainer.state.global_step == 1:
                raise ValueError("this process was told to fail")
            return score(inputs)

        trainer._generate_and_score_completions = failing
    trainer.train()
    trainer.save_model(str(Path(output) / "checkpoint"))
    watching.record(str(Path(output) / "checkpoint"), Path(output) / "eval_after")
    if is_main_process():
        losses = [
            {k: entry[k] for k in ("loss", "grad_norm", "rewards/step/mean")} for entry in trainer.state.log_history if "loss" in entry
        ]
        (Path(output) / "losses.json").write_text(json.dumps(losses))


if __name__ == "__main__":
    sys.exit(run_recipe(main))
