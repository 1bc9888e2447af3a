"""Write a checkpoint's model card from its training record and from run directories.

  tmtrain card runs/grpo_tag/checkpoint --runs runs/grpo_tag/eval_before runs/grpo_tag/eval_after
  tmtrain card runs/mine/checkpoint --runs runs/mine/eval_after --base-model Qwen/Qwen3-0.6B --push me/qwen3-0.6b-tag

The card's metadata (`model-index`, and `.eval_results/` beside it) carries the scores of those runs that are of these very weights; the
others stand beside them in the text. With --push the folder is uploaded once what was written reads back to the same numbers.
"""

from __future__ import annotations

import argparse
import sys

SUMMARY = "write a checkpoint's model card"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoint", metavar="CHECKPOINT", help="folder with the model")
    parser.add_argument("--runs", nargs="+", required=True, metavar="RUN", help="run directories")
    parser.add_argument("--base-model", metavar="ID", help="hub id of what training started from, where the record names a folder")
    parser.add_argument("--push", metavar="REPO", help="upload to this repository of the hub")
    parser.add_argument("--private", action="store_true", help="with --push: make a new repository private")


def run(args: argparse.Namespace) -> int:
    from pathlib import Path

    from tmtrain.cards import write_card
    from tmtrain.commands.output import print_json

    written = write_card(args.checkpoint, args.runs, base_model=args.base_model)
    for warning in written.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    url = None
    if args.push:
        from tmtrain.hub import push

        url = push(Path(args.checkpoint), args.push, private=args.private)
    if args.json:
        print_json({"card": str(written.path), "eval_results": [str(p) for p in written.eval_results], "url": url})
    else:
        print(url or written.path)
    return 0
