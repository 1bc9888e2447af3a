"""Evaluate a policy on a suite or a file of problems, step by step.

MODEL is a checkpoint folder, a model of the hub, or a scripted policy: expert, random, noisy:P (errs with probability P a step), or
replay:FILE (a run's or a published file's answers). The run directory holds manifest.json, samples.jsonl, summary.json.

  tmtrain eval noisy:0.1 --suite tmbench-v1
  tmtrain eval runs/grpo_tag/checkpoint --suite tmbench-v1 -o runs/mine
  tmtrain eval Qwen/Qwen3-0.6B --problems eval.jsonl --limit 50 --temperature 0.7
"""

from __future__ import annotations

import argparse
from pathlib import Path

SUMMARY = "evaluate a model or a scripted policy"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="checkpoint folder, hub id, or expert | random | noisy:P | replay:FILE")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--suite", help="a suite, see `tmtrain envs`")
    source.add_argument("--problems", metavar="FILE", help="a file of problems")
    parser.add_argument(
        "--style", choices=("verbose", "compact"), help="prompt style (default: what the checkpoint was trained with, else verbose)"
    )
    parser.add_argument("--oracles", default="none", help="none, plan, state, plan+state, state+history or plan+state+history")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N problems")
    parser.add_argument("--samples", type=int, default=1, metavar="K", help="episodes a problem (default: 1)")
    parser.add_argument("--max-tokens", type=int, default=16_384, help="most new tokens a reply (default: 16384)")
    parser.add_argument("--temperature", type=float, default=0.0, help="sampling temperature (default: 0, greedy)")
    parser.add_argument("--top-p", type=float, default=1.0, help="nucleus (default: 1, off)")
    parser.add_argument("--top-k", type=int, default=0, help="most likely tokens kept (default: 0, off)")
    parser.add_argument("--batch-size", type=int, default=32, help="prompts decoded together (default: 32)")
    parser.add_argument("--seed", type=int, default=0, help="seed of whatever is drawn (default: 0)")
    parser.add_argument("--trust-remote-code", action="store_true", help="run code that comes with the model")
    parser.add_argument("-o", "--output", metavar="DIR", help="run directory (default: a new folder under runs/)")
    parser.add_argument("--resume", action="store_true", help="go on with an interrupted run; needs -o")


def run(args: argparse.Namespace) -> int:
    from envs.environment import Setting
    from eval.policies import scripted_policy
    from eval.runs import Evaluation, evaluate
    from tmtrain.commands.output import print_json
    from tmtrain.commands.problems import named_problems
    from tmtrain.provenance import read_training_record

    for name in ("limit", "samples", "batch_size"):
        if (value := getattr(args, name)) is not None and value < 1:
            raise ValueError(f"--{name.replace('_', '-')} must be at least 1, not {value}")
    if args.resume and not args.output:
        raise ValueError("--resume needs -o DIR, the run to go on with")
    problems = named_problems(args.suite or args.problems)[: args.limit]
    style = args.style or read_training_record(args.model).get("style", "verbose")
    setting = Setting.parse(args.oracles, style)
    policy = scripted_policy(args.model)
    if policy is None:
        from eval.backends.sampling import Sampling
        from eval.backends.transformers_backend import load_transformers

        sampling = Sampling(args.max_tokens, args.temperature, args.top_p, args.top_k)
        policy = load_transformers(
            args.model, sampling, batch_size=args.batch_size, seed=args.seed, trust_remote_code=args.trust_remote_code
        )
    directory = Path(args.output) if args.output else _new_directory(args.model, args.suite or args.problems)
    # Enough episodes at once to fill every batch while the last one is being read.
    evaluation = Evaluation(
        problems, args.suite or args.problems, setting, args.samples, args.seed, concurrency=max(256, 4 * args.batch_size)
    )
    summary = evaluate(policy, evaluation, directory, resume=args.resume, progress=not args.json)
    if args.json:
        print_json(summary)
    else:
        from tmtrain.commands.score import print_scores

        print_scores(summary)
        print(f"\nrun directory: {directory}  (tmtrain report {directory})")
    return 0


def _new_directory(model: str, source: str) -> Path:
    import re
    import time

    name = re.sub(r"[^\w.-]+", "-", f"{Path(model).name if Path(model).exists() else model}_{Path(source).stem}").strip("-")
    return Path("runs") / f"{name}_{time.strftime('%Y%m%d-%H%M%S')}"
