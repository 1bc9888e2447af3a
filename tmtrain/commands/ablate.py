"""Run one of the paper's ablations on a policy: one evaluation a setting, and a figure of them all.

KIND is alphabets (the published problems in roman, number, greek and special symbols, or any five of your own), temperature (0 to 3, with
top-p 0.8), difficulty (the deletion number m from 2 to 20, all else alike) or unbounded (ten problems of 1,000 steps: an answer that stops
is asked to go on until its first wrong state, its context's end or --token-limit).

  tmtrain ablate difficulty noisy:0.01 -o runs/difficulty
  tmtrain ablate alphabets Qwen/Qwen3-8B --values roman greek VWXYZ -o runs/alphabets
  tmtrain ablate unbounded Qwen/Qwen3-8B --base-url http://localhost:8000/v1 -o runs/unbounded
  tmtrain ablate temperature Qwen/Qwen3-0.6B --beside runs/other -o runs/temperature     another policy's curve in the same figure

DIR gets a run directory for each setting, ablation.json and ablation.png.
"""

from __future__ import annotations

import argparse
import copy
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tmtrain.commands.eval import add_policy_arguments, check_policy_arguments, concurrency, model_policy, new_directory, prompt_style

if TYPE_CHECKING:
    from eval.episodes import Policy
    from eval.tmbench.ablations import Ablation, Point

SUMMARY = "run one of the paper's ablations, and draw its figure"

KINDS = ("alphabets", "temperature", "difficulty", "unbounded")
FILE = "ablation.json"
#: Of the temperature ablation (section 4.4).
TOP_P = 0.8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", choices=KINDS, metavar="KIND", help=" | ".join(KINDS))
    parser.add_argument("model", metavar="MODEL", help="folder, hub id or served name, or expert | random | noisy:P | replay:FILE")
    parser.add_argument("--values", nargs="+", metavar="VALUE", help="settings to run in place of the paper's")
    parser.add_argument("--token-limit", type=int, metavar="N", help="unbounded: most tokens of an episode's replies (paper: 1048576)")
    parser.add_argument("--beside", nargs="+", default=[], metavar="DIR", help="ablations of the same kind to draw in the figure")
    add_policy_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from eval.records import check_free, write_json
    from eval.tmbench.ablations import KINDS as ABLATIONS
    from tmtrain.commands.output import print_json

    check_policy_arguments(args)
    ablation = ABLATIONS[args.kind]
    points = [ablation.point(value) for value in dict.fromkeys(args.values or ablation.defaults)]
    _check(args, ablation)
    beside = [_read(path, args.kind) for path in args.beside]
    directory = Path(args.output) if args.output else new_directory(args.model, args.kind)
    for point in points:
        check_free(directory / point.folder, resume=args.resume)
    summaries = _evaluate(args, ablation, points, directory)
    result = _result(args, ablation, points, summaries, directory)
    write_json(directory / FILE, result)
    figure = _draw(ablation, [*beside, result], directory)
    if args.json:
        print_json({**result, "figure": str(figure)})
    else:
        _print(result)
        print(f"\n{figure}\nrun directories: {directory}/*  (tmtrain report {directory}/* -o {directory})")
    return 0


def _check(args: argparse.Namespace, ablation: Ablation) -> None:
    """Refuses what would not be in force, before anything is loaded."""
    from eval.policies import scripted_policy

    scripted = scripted_policy(args.model) is not None
    if args.kind == "temperature" and args.temperature is not None:
        raise ValueError("the temperature is what varies here: give --values in place of --temperature")
    if args.kind == "temperature" and scripted:
        print(f"note: {args.model} samples nothing, so it is the same policy at every temperature", file=sys.stderr)
    if args.token_limit is not None and (not ablation.continued or scripted):
        raise ValueError("--token-limit is for models in the unbounded ablation: leave it out")
    if args.token_limit is not None and args.token_limit < 1:
        raise ValueError(f"--token-limit must be at least 1, not {args.token_limit}")
    if ablation.continued and args.values and len(args.values) > 1:
        raise ValueError("the unbounded ablation takes one suite as its --values")


def _evaluate(args: argparse.Namespace, ablation: Ablation, points: Sequence[Point], directory: Path) -> list[dict[str, Any]]:
    """Plays the points and returns their summaries. Those that are sampled alike share one policy: a model is loaded once for them all."""
    from envs.environment import Setting
    from eval.policies import scripted_policy
    from eval.runs import Evaluation, evaluate_all

    setting = Setting.parse("none", prompt_style(args), continued=ablation.continued)
    how = (setting, args.samples, args.seed, concurrency(args), args.token_limit)
    summaries: dict[Path, dict[str, Any]] = {}
    for temperature in dict.fromkeys(point.temperature for point in points):
        alike = [point for point in points if point.temperature == temperature]
        evaluations = {directory / point.folder: Evaluation(point.problems[: args.limit], point.source, *how) for point in alike}
        # Named by nothing here, a model is gone from the GPU before the next one is loaded.
        summaries |= evaluate_all(
            scripted_policy(args.model) or _model(args, alike[0]), evaluations, resume=args.resume, progress=not args.json
        )
    return [summaries[directory / point.folder] for point in points]


def _model(args: argparse.Namespace, point: Point) -> Policy:
    """The model, decoded as the point says."""
    own = copy.copy(args)
    if point.temperature is not None:
        own.temperature = point.temperature
        # At temperature 0 there is no nucleus to cut.
        own.top_p = 1.0 if point.temperature == 0 else TOP_P if args.top_p is None else args.top_p
    return model_policy(own, point.problems)


def _result(
    args: argparse.Namespace, ablation: Ablation, points: Sequence[Point], summaries: Sequence[Mapping[str, Any]], directory: Path
) -> dict[str, Any]:
    """What `ablation.json` holds."""
    from eval.records import read_records
    from eval.tmbench.ablations import last_correct_steps, point_json, survival

    rows = [point_json(point, point.folder, summary) for point, summary in zip(points, summaries, strict=True)]
    result = {"kind": args.kind, "policy": args.model, "points": rows}
    if ablation.continued:
        result |= {
            "last_correct": last_correct_steps(read_records(directory / points[0].folder)),
            "survival": survival(summaries[0]["acc"], samples=args.samples),
        }
    return result


def _read(path: str, kind: str) -> dict[str, Any]:
    """Another ablation's `ablation.json`. Raises ValueError where it is none of this kind."""
    import json

    try:
        found = json.loads((Path(path) / FILE).read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} holds no ablation: cannot read its {FILE} ({error})") from None
    if found.get("kind") != kind:
        raise ValueError(f"{path} is an ablation of {found.get('kind')}, not of {kind}")
    return dict(found)


def _draw(ablation: Ablation, results: Sequence[Mapping[str, Any]], directory: Path) -> Path:
    from eval.tmbench.figures import ablation_figure, unbounded_figure

    names = [r["policy"] for r in results]
    named = {n if names.count(n) == 1 else f"{n} ({i})": r for i, (n, r) in enumerate(zip(names, results, strict=True), 1)}
    if ablation.continued:
        figure = unbounded_figure({n: r["last_correct"] for n, r in named.items()}, {n: r["survival"] for n, r in named.items()})
    else:
        figure = ablation_figure({n: r["points"] for n, r in named.items()}, ablation.axis)
    path = directory / "ablation.png"
    figure.savefig(path, dpi=150, metadata={"Software": None})
    return path


def _print(result: Mapping[str, Any]) -> None:
    from eval.statistics import percent
    from tmtrain.commands.output import print_table

    header = ["setting", "episodes", "pass rate, %", "SWA uniform, %", "SWA linear, %"]
    keys = ("pass_rate", "swa_uniform", "swa_linear")
    print_table(header, [(p["label"], str(p["episodes"]), *(percent(p[key]) for key in keys)) for p in result["points"]])
    if "last_correct" in result:
        steps = [e["last_correct"] for e in result["last_correct"]]
        rows = [(e["id"][:12], str(e["sample"]), f"{e['last_correct']} of {e['horizon']}") for e in result["last_correct"]]
        print()
        print_table(["problem", "sample", "last correct step"], rows)
        print(f"earliest first error after step {min(steps)}, latest after step {max(steps)}" if steps else "no episode was scored")
