"""GRPO on m-tag systems, with rewards that the environment verifies step by step.

  accelerate launch recipes/grpo_tag.py                                         the whole story with the embedded tiny model
  accelerate launch recipes/grpo_tag.py --config recipes/tag/tiny_grpo.yaml --max_steps 200
  accelerate launch --config_file accelerate_configs/ddp_cpu.yaml recipes/grpo_tag.py

Warm-up by SFT (where the recipe names one), evaluation, GRPO, evaluation on the same held-out problems, model card. Every field of
`tmtrain.recipe.GRPORecipe` and of TRL's GRPOConfig can stand in the file and on the command line.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tmtrain.launch import is_main_process, run_recipe

DEFAULT = Path(__file__).parent / "tag" / "tiny_grpo.yaml"


def main(argv: Sequence[str], default: Path = DEFAULT) -> None:
    from trl import GRPOConfig, ModelConfig, SFTConfig

    from eval.records import check_free
    from eval.report import read_runs, write_report
    from tmtrain.cards import write_card
    from tmtrain.config import make_configs, read_file, read_settings
    from tmtrain.data import held_out
    from tmtrain.evaluation import before_and_after
    from tmtrain.grpo import check_settings, draw_problems, train_grpo
    from tmtrain.models import check_tokenizer, training_config, training_tokenizer
    from tmtrain.recipe import GRPORecipe, SFTRecipe
    from tmtrain.sft import train_sft

    recipe, config, options = make_configs(read_settings(argv, default), GRPORecipe, GRPOConfig, ModelConfig)
    output = Path(config.output_dir)
    runs = [output / "eval_before", output / "eval_after"]
    for run in runs:
        check_free(run, resume=recipe.resume)
    warmup = None
    if recipe.warmup:
        same = {"output_dir": str(output / "warmup"), "resume": recipe.resume, "use_cpu": config.use_cpu}
        warmup = make_configs({**read_file(Path(recipe.warmup)), **same}, SFTRecipe, SFTConfig, ModelConfig)
        for field in ("style", "oracles"):
            if (taught := getattr(warmup[0], field)) != (wanted := getattr(recipe, field)):
                raise ValueError(f"{field}: the warm-up {recipe.warmup} has {taught}, this recipe {wanted}: make them agree")
    start = Path(recipe.model)
    held = held_out(recipe.env, recipe.eval_levels, recipe.eval_problems, recipe.eval_seed)
    mixture, problems = draw_problems(recipe, config, held)
    first = warmup[0] if warmup else recipe
    tokenizer = training_tokenizer(first.model, trust_remote_code=first.trust_remote_code)
    check_tokenizer(tokenizer, first.model)
    context = getattr(training_config(first.model, trust_remote_code=first.trust_remote_code), "max_position_embeddings", None)
    check_settings(tokenizer, context, problems, recipe, config, options)

    if warmup:
        start = train_sft(*warmup, held)
    checkpoint = train_grpo(start, mixture, problems, recipe, config, options, held)

    if is_main_process():
        report = write_report(read_runs(runs), output)
        card = write_card(checkpoint, runs).path
        print(f"{before_and_after(*runs)}\n\nmodel card: {card}\nreport: {report}")


if __name__ == "__main__":
    sys.exit(run_recipe(main))
