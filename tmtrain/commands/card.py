"""Write a checkpoint's model card from its training record and from run directories.

  tmtrain card runs/grpo_tag/checkpoint --runs runs/grpo_tag/eval_before runs/grpo_tag/eval_after

The card's metadata (`model-index`) carries the scores of those runs that are of these very weights; the others stand beside them.
"""

from __future__ import annotations

import argparse

SUMMARY = "write a checkpoint's model card"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoint", metavar="CHECKPOINT", help="folder with the model")
    parser.add_argument("--runs", nargs="+", required=True, metavar="RUN", help="run directories")


def run(args: argparse.Namespace) -> int:
    from tmtrain.cards import write_card
    from tmtrain.commands.output import print_json

    path = write_card(args.checkpoint, args.runs)
    if args.json:
        print_json({"card": str(path)})
    else:
        print(path)
    return 0
