"""Merge a LoRA adapter into its base model: a whole model that answers as the adapter on its base does.

  tmtrain merge runs/lora/checkpoint -o runs/merged

Evaluating does not need it: `tmtrain eval` takes the adapter's folder itself. Tokenizer and training record go with the weights.
"""

from __future__ import annotations

import argparse

SUMMARY = "merge a LoRA adapter into its base model"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("adapter", metavar="ADAPTER", help="an adapter's folder")
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="folder of the merged model, which must not exist")
    parser.add_argument("--trust-remote-code", action="store_true", help="run code that comes with the model")


def run(args: argparse.Namespace) -> int:
    from pathlib import Path

    from tmtrain.commands.output import print_json
    from tmtrain.merge import merge

    merge(args.adapter, Path(args.output), trust_remote_code=args.trust_remote_code)
    if args.json:
        print_json({"adapter": args.adapter, "merged": args.output})
    else:
        print(f"merged model: {args.output}")
    return 0
