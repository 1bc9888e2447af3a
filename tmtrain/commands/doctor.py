"""Look a recipe over before it costs anything: no GPU, no weights and no network are needed.

  tmtrain doctor recipes/tag/tiny_grpo.yaml
  tmtrain doctor recipes/tag/qwen3_8b.yaml --accelerate accelerate_configs/zero3.yaml --gpu-memory 80
  tmtrain doctor recipes/tag/qwen3_8b.yaml --gpus 4 --set max_completion_length=4096

Says yes, no (with the field and the fix) or what could not be checked, of versions, settings that do not go together, batches, lengths
measured on the recipe's own problems, memory of a GPU by part, tokenizer and template, and whether training and held-out data are apart.
Exit code 1 where anything is a no, 2 where the recipe cannot be read.
"""

from __future__ import annotations

import argparse
import os

SUMMARY = "look a recipe over before it is run"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recipe", metavar="RECIPE", help="a recipe file")
    parser.add_argument("--accelerate", metavar="FILE", help="the launcher's configuration (default: plain data-parallel on --gpus)")
    parser.add_argument("--gpus", type=int, default=None, metavar="N", help="GPUs of a machine (default: the configuration's, else none)")
    parser.add_argument("--gpu-memory", type=float, default=80.0, metavar="GIB", help="of each GPU (default: %(default)s)")
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", help="a field to override; may be repeated")
    parser.add_argument("--config", action="store_true", help="also print every field that is set, with included files read in")


def run(args: argparse.Namespace) -> int:
    from dataclasses import replace
    from pathlib import Path

    os.environ.setdefault("DS_ACCELERATOR", "cpu")  # DeepSpeed looks for one when it is imported, and warns where there is none
    from tmtrain.commands.output import print_json
    from tmtrain.config import read_file
    from tmtrain.doctor.diagnosis import diagnose
    from tmtrain.doctor.finding import Finding, Level
    from tmtrain.doctor.memory import Sharding
    from tmtrain.doctor.plan import Launch, read_launch, read_plan

    if args.gpus is not None and args.gpus < 0:
        raise ValueError(f"--gpus: there cannot be {args.gpus}")
    launch = read_launch(args.accelerate) if args.accelerate else Launch(args.gpus or 1, 1, Sharding(), on_cpu=not args.gpus)
    if args.accelerate and args.gpus is not None:
        launch = replace(launch, gpus=max(1, args.gpus), on_cpu=args.gpus == 0)
    read_file(Path(args.recipe))  # what cannot be read at all is no diagnosis
    overrides = [word for pair in args.set for word in _override(pair)]
    try:
        plan = read_plan(args.recipe, overrides, launch, args.gpu_memory)
    except ValueError as error:
        findings, settings = [Finding(Level.NO, "recipe", str(error))], {}
    else:
        findings, settings = list(diagnose(plan)), plan.given
    refused = any(f.level is Level.NO for f in findings)
    if args.json:
        print_json({"recipe": args.recipe, "ready": not refused, "settings": settings, "findings": [f.to_json() for f in findings]})
        return int(refused)
    if args.config:
        for name, value in settings.items():
            print(f"      {name}: {value}")
    for finding in findings:
        print(f"{finding.level.value:5} {finding.topic:10} {finding.text}")
    return int(refused)


def _override(pair: str) -> list[str]:
    field, equals, value = pair.partition("=")
    if not equals:
        raise ValueError(f"--set takes FIELD=VALUE, not {pair!r}")
    return [f"--{field}", value]
