"""Supervised fine-tuning on the expert's episodes in multi-turn worlds.

  accelerate launch recipes/sft_worlds.py                          the embedded tiny model on ListWorld
  accelerate launch recipes/sft_worlds.py --env treeworld --oracles state+history

The story is that of `sft_tag.py`. With the history oracle every turn is a row of its own, since no one conversation stands in the context.
"""

from __future__ import annotations

import sys

from grpo_worlds import default_file
from sft_tag import main

from tmtrain.launch import run_recipe

if __name__ == "__main__":
    sys.exit(run_recipe(lambda argv: main(argv, default_file(argv, "sft"))))
