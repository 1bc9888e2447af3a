"""Evaluate a policy on a suite or a file of problems, step by step.

MODEL is a checkpoint folder, a LoRA adapter's folder, a model of the hub, the name of a served model (with --base-url), or a scripted
policy: expert, random, noisy:P (errs with probability P a step), replay:FILE (a run's or a published file's answers), or
weak:NAME[:AMOUNT] (an agent with a known weakness in a multi-turn world: forgets, miscounts, reexpands, lost, literal, ignores-state,
shortsighted or distracted).

With --oracles all or --wording all the model is loaded once and plays the same problems in every setting, each into a run directory of its
own under DIR, named like its setting; `tmtrain oracles DIR` then reports on them.

  tmtrain eval noisy:0.1 --suite tmbench-v1
  tmtrain eval runs/grpo_tag/checkpoint --suite tmbench-v1 -o runs/mine
  tmtrain eval Qwen/Qwen3-8B --suite tmbench-v1 --backend vllm --tensor-parallel 2 --yarn 4
  tmtrain eval Qwen/Qwen3-8B --problems list.jsonl --base-url http://localhost:8000/v1 --concurrency 128 --oracles plan+state
  tmtrain eval weak:forgets:4 --suite lumina-listworld --oracles all -o runs/forgets       the six settings, on the same problems

Where nothing else is asked for, single-turn problems are answered greedily with at most 16384 new tokens, and the turns of multi-turn
worlds are sampled at temperature 0.7 with thinking off. What was in force stands in the run's manifest.json; episodes are appended to
samples.jsonl as they end, so a run that was stopped goes on with --resume.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envs.environment import Setting
    from envs.problem import Problem
    from eval.episodes import Policy

SUMMARY = "evaluate a model or a scripted policy"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    policies = "expert | random | noisy:P | replay:FILE | weak:NAME"
    parser.add_argument("model", metavar="MODEL", help=f"folder, hub id or served name, or {policies}")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--suite", help="a suite, see `tmtrain envs`")
    source.add_argument("--problems", metavar="FILE|RUN", help="a file of problems, or a run, for the problems that it was made on")
    parser.add_argument("--oracles", default="none", help="none, plan, state, plan+state, state+history, plan+state+history, or all six")
    parser.add_argument("--wording", default="standard", help="of verbose prompts: standard, brief, formal, or all three")
    add_policy_arguments(parser)


def add_policy_arguments(parser: argparse.ArgumentParser) -> None:
    """What says how a policy is run and where the run goes, whatever it is run on."""
    from envs.environment import STYLES
    from eval.backends.options import BACKENDS

    parser.add_argument("--style", choices=STYLES, help="prompt style (default: what the checkpoint was trained with, else verbose)")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N problems")
    parser.add_argument("--samples", type=int, default=1, metavar="K", help="episodes a problem, for pass@k (default: 1)")
    parser.add_argument("--concurrency", type=int, metavar="N", help="episodes in flight (default: 256; 32 with --base-url)")
    parser.add_argument("-o", "--output", metavar="DIR", help="where to write (default: a new folder under runs/)")
    parser.add_argument("--resume", action="store_true", help="go on with what was interrupted; needs -o")

    decoding = parser.add_argument_group("decoding")
    decoding.add_argument("--max-tokens", type=int, help="most new tokens a reply (default: 16384, or what the context leaves)")
    decoding.add_argument("--temperature", type=float, help="sampling temperature; 0 is greedy (default: 0; 0.7 in worlds)")
    decoding.add_argument("--top-p", type=float, help="nucleus (default: 1, off)")
    decoding.add_argument("--top-k", type=int, help="most likely tokens kept (default: 0, off)")
    decoding.add_argument("--seed", type=int, default=0, help="seed of whatever is drawn (default: 0)")
    decoding.add_argument(
        "--thinking", choices=("on", "off", "template"), help="the chat template's switch (default: the template's own; off in worlds)"
    )
    decoding.add_argument("--earlier-thinking", choices=("keep", "drop"), help="what later turns see of earlier thinking (default: keep)")

    engine = parser.add_argument_group("engine")
    engine.add_argument("--backend", choices=BACKENDS, help="default: vllm on a GPU, else transformers")
    engine.add_argument("--base-url", metavar="URL", help="an OpenAI-compatible server; the key is read from OPENAI_API_KEY")
    engine.add_argument("--context", type=int, metavar="TOKENS", help="longest sequence (default: the model's)")
    engine.add_argument("--yarn", type=float, metavar="FACTOR", help="stretch the model's context by YaRN")
    engine.add_argument("--tensor-parallel", type=int, metavar="N", help="GPUs that vLLM splits the model over (default: 1)")
    engine.add_argument("--gpu-memory", type=float, metavar="SHARE", help="of each GPU's memory for vLLM, 0 to 1 (default: vLLM's own)")
    engine.add_argument("--batch-size", type=int, help="prompts that transformers decodes together (default: 32)")
    engine.add_argument("--retries", type=int, help="further attempts at a server (default: 8)")
    engine.add_argument("--timeout", type=float, metavar="SECONDS", help="for one answer of a server (default: 600)")
    engine.add_argument("--trust-remote-code", action="store_true", help="run code that comes with the model")
    parser.set_defaults(**model_defaults())


def model_defaults() -> dict[str, object]:
    """What says how a model runs, by option, with what holds where nothing is asked for; scripted policies draw from `--seed` alone."""
    from eval.backends.options import Options
    from eval.backends.sampling import Sampling

    stated = {field.name: field.default for kind in (Sampling, Options) for field in fields(kind) if field.name != "seed"}
    # These go by the kind of problems, and top_p by the command.
    return stated | {"temperature": None, "thinking": None, "top_p": None}


def run(args: argparse.Namespace) -> int:
    from eval.policies import scripted_policy
    from eval.records import check_free
    from eval.runs import Evaluation, evaluate_all
    from tmtrain.commands.output import print_json
    from tmtrain.commands.problems import named_problems

    check_policy_arguments(args)
    source = args.suite or args.problems
    problems = named_problems(source)[: args.limit]
    directory = Path(args.output) if args.output else new_directory(args.model, source)
    evaluations = {
        directory / name: Evaluation(problems, source, setting, args.samples, args.seed, concurrency(args))
        for name, setting in _settings(args.oracles, prompt_style(args), args.wording).items()
    }
    for run in evaluations:
        check_free(run, resume=args.resume)
    policy = scripted_policy(args.model) or model_policy(args, problems)
    summaries = evaluate_all(policy, evaluations, resume=args.resume, progress=not args.json)
    if len(summaries) > 1:
        _print_settings(directory, {run.relative_to(directory).as_posix(): s for run, s in summaries.items()}, args.json)
    elif args.json:
        print_json(summaries[directory])
    else:
        from tmtrain.commands.score import print_scores

        print_scores(summaries[directory])
        print(f"\nrun directory: {directory}  (tmtrain report {directory})")
    return 0


def _settings(oracles: str, style: str, wording: str) -> dict[str, Setting]:
    """The settings that are asked for, by the folder that each run gets below the output folder; a single one is the output folder."""
    from envs.environment import ORACLES, WORDINGS, Setting

    every_oracle, every_wording = oracles == "all", wording == "all"
    folders = {}
    for words in WORDINGS if every_wording else (wording,):
        for name in ORACLES if every_oracle else (oracles,):
            folder = "/".join([words] * every_wording + [name] * every_oracle)
            folders[folder] = Setting.parse(name, style, wording=words)
    return folders


def _print_settings(directory: Path, summaries: dict[str, dict], as_json: bool) -> None:
    from eval.statistics import percent
    from tmtrain.commands.output import print_json, print_table

    if as_json:
        print_json({"runs": summaries})
        return
    rows = [(name, percent(s["success_rate"]), percent(s["step_accuracy"]), str(s["episodes"])) for name, s in summaries.items()]
    print_table(["% [95 % interval]", "success", "step accuracy", "episodes"], rows)
    print(f"\nrun directories: {directory}/…  (tmtrain oracles {directory})")


def check_policy_arguments(args: argparse.Namespace) -> None:
    """Raises ValueError for numbers that make no sense, for resuming nothing, and for what a scripted policy would not heed."""
    from eval.policies import scripted_policy

    for name in ("limit", "samples", "batch_size", "concurrency", "tensor_parallel", "context"):
        if (value := getattr(args, name)) is not None and value < 1:
            raise ValueError(f"--{name.replace('_', '-')} must be at least 1, not {value}")
    if args.resume and not args.output:
        raise ValueError("--resume needs -o DIR, the run to go on with")
    if scripted_policy(args.model) is not None:
        for name, default in model_defaults().items():
            if getattr(args, name) != default:
                raise ValueError(f"--{name.replace('_', '-')} is for models, and {args.model} is a scripted policy: leave it out")


def prompt_style(args: argparse.Namespace) -> str:
    """The style that is asked for, or the one that the checkpoint was trained with."""
    from tmtrain.provenance import read_training_record

    return str(args.style or read_training_record(args.model).get("style", "verbose"))


def concurrency(args: argparse.Namespace) -> int:
    """Episodes in flight."""
    return int(args.concurrency or (32 if args.base_url else max(256, 4 * args.batch_size)))


def model_policy(args: argparse.Namespace, problems: Sequence[Problem]) -> Policy:
    """The policy that runs the model of the command line, with the defaults that go with the kind of problems."""
    from envs.registry import load_env
    from eval.backends.load import load_policy
    from eval.backends.options import Options
    from eval.backends.sampling import Sampling

    multi_turn = {load_env(name).multi_turn for name in {p.env for p in problems}}
    if len(multi_turn) > 1 and (args.temperature is None or args.thinking is None):
        raise ValueError("single-turn and multi-turn problems have different defaults: say --temperature and --thinking for both")
    world = multi_turn == {True}
    values = vars(args) | {
        "temperature": args.temperature if args.temperature is not None else 0.7 if world else 0.0,
        "top_p": 1.0 if args.top_p is None else args.top_p,
        "thinking": args.thinking or ("prefer-off" if world else "template"),
    }
    sampling = Sampling(**{field.name: values[field.name] for field in fields(Sampling)})
    options = Options(**{field.name: values[field.name] for field in fields(Options)})
    return load_policy(args.model, sampling, options)


def new_directory(model: str, source: str) -> Path:
    """A folder that is not there yet, under runs/."""
    import re
    import time

    from eval.backends.folder import title

    called = Path(title(model)).name if Path(model).exists() else model
    name = re.sub(r"[^\w.-]+", "-", f"{called}_{Path(source).stem}").strip("-")
    return Path("runs") / f"{name}_{time.strftime('%Y%m%d-%H%M%S')}"
