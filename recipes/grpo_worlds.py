"""GRPO on multi-turn worlds: episodes played turn by turn in training, every action verified by the world.

  accelerate launch -q recipes/grpo_worlds.py                      the embedded tiny model on ListWorld
  accelerate launch -q recipes/grpo_worlds.py --env gridworld      … on another world, by recipes/worlds/tiny_gridworld_grpo.yaml
  accelerate launch -q recipes/grpo_worlds.py --credit outcome
  accelerate launch -q recipes/grpo_worlds.py --oracles plan --warmup null --model CHECKPOINT
                                                                   from a model taught with the plan: sft_worlds.py --oracles plan
  accelerate launch -q recipes/grpo_worlds.py --config my.yaml     levels may name their worlds: [{env: listworld, pops: 4, weight: 2}, …]

The story is that of `grpo_tag.py`: warm-up by SFT, evaluation, GRPO, evaluation on the same held-out problems, model card.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from grpo_tag import main

from tmtrain.launch import run_recipe


def default_file(argv: Sequence[str], kind: str) -> Path:
    """The recipe of the world that the command line names by `--env`, ListWorld's where it names none."""
    words = [part for word in argv for part in (word.split("=", 1) if word.startswith("--env=") else [word])]
    env = next((words[i + 1] for i, word in enumerate(words[:-1]) if word == "--env"), "listworld")
    return Path(__file__).parent / "worlds" / f"tiny_{env}_{kind}.yaml"


if __name__ == "__main__":
    sys.exit(run_recipe(lambda argv: main(argv, default_file(argv, "grpo"))))
