"""Supervised fine-tuning on m-tag systems.

  accelerate launch recipes/sft_tag.py                                          the embedded tiny model
  accelerate launch recipes/sft_tag.py --config recipes/tag/tiny_sft.yaml --learning_rate 1e-3

Every field of `tmtrain.recipe.SFTRecipe` and of TRL's SFTConfig can stand in the file and on the command line.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tmtrain.launch import is_main_process, run_recipe

DEFAULT = Path(__file__).parent / "tag" / "tiny_sft.yaml"


def main(argv: Sequence[str], default: Path = DEFAULT) -> None:
    from trl import ModelConfig, SFTConfig

    from eval.records import check_free
    from tmtrain.cards import write_card
    from tmtrain.commands.score import print_scores
    from tmtrain.config import make_configs, read_settings
    from tmtrain.data import held_out
    from tmtrain.evaluation import evaluate_checkpoint
    from tmtrain.recipe import SFTRecipe
    from tmtrain.sft import train_sft

    recipe, config, options = make_configs(read_settings(argv, default), SFTRecipe, SFTConfig, ModelConfig)
    run = Path(config.output_dir) / "eval"
    check_free(run, resume=recipe.resume)
    held = held_out(recipe.env, recipe.eval_levels, recipe.eval_problems, recipe.eval_seed)
    checkpoint = train_sft(recipe, config, options, held)
    summary = evaluate_checkpoint(checkpoint, held, recipe, run)
    if is_main_process():
        card = write_card(checkpoint, [run]).path
        print_scores(summary)
        print(f"model card: {card}")


if __name__ == "__main__":
    sys.exit(run_recipe(main))
