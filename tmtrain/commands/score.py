"""Score stored answers: a result file in the published format, or a run directory.

A run directory's replies are read and checked again, so a run graded by an older verifier gets today's verdicts; what changed is said.

  tmtrain score results_model.json
  tmtrain score results_model.json --per-sample --json
  tmtrain score runs/mine
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from envs.verdict import Verdict

SUMMARY = "score stored answers, or grade a run again"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE|RUN", help="a published result file, a run directory or its samples.jsonl")
    parser.add_argument("--per-sample", action="store_true", help="also print each sample's steps")
    parser.add_argument(
        "--no-init", action="store_true", help="start the step-weighted accuracies at step 1, leaving the initial queue out"
    )


def run(args: argparse.Namespace) -> int:
    from eval.metrics import score
    from eval.published import read_published
    from eval.records import SAMPLES
    from eval.summary import scores_json
    from tmtrain.commands.output import print_json

    changed: list[str] = []
    path = Path(args.file)
    is_run = path.is_dir() or path.name == SAMPLES
    if is_run:
        ids, verdicts, changed = _regrade(path if path.is_dir() else path.parent)
    else:
        answers = read_published(args.file)
        ids, verdicts = [a.problem.id for a in answers], [a.verdict() for a in answers]
    result: dict[str, Any] = scores_json(score(verdicts, ids, first_step=int(args.no_init)))
    if is_run:
        result["changed"] = changed
    if args.per_sample:
        result["samples"] = [_sample(id, v) for id, v in zip(ids, verdicts, strict=True)]
    if args.json:
        print_json(result)
        return 0
    print_scores(result)
    if changed:
        print(f"\n{len(changed)} verdicts differ from the stored ones: {', '.join(changed[:5])}{' …' if len(changed) > 5 else ''}")
    for sample in result.get("samples", []):
        marks = "".join("✓" if c else "✗" for c in sample["steps"])
        print(f"{sample['id'][:12]:12} {marks}{'  overrun ' + str(sample['overrun']) if sample['overrun'] else ''}")
    return 0


def print_scores(summary: Mapping[str, Any]) -> None:
    """Prints the main scores of a summary, in percent with 95 % intervals."""
    from eval.statistics import percent
    from tmtrain.commands.output import print_table

    rows = [(name, percent(summary[key])) for key, name in _NAMES.items() if summary[key]["value"] is not None]
    print_table(["score", "% [95 % interval]"], rows)
    if summary["mean_first_error"] is not None:
        print(f"mean first wrong step: {summary['mean_first_error']:.1f}")
    print("endings: " + ", ".join(f"{name} {count}" for name, count in summary["endings"].items()))


_NAMES = {
    "swa_uniform": "step-weighted accuracy, uniform",
    "swa_linear": "step-weighted accuracy, linear",
    "pass_rate": "pass rate",
    "strict_pass_rate": "strict pass rate",
    "step_accuracy": "step accuracy",
    "faithfulness": "transition faithfulness",
}


def _sample(id: str, verdict: Verdict) -> dict[str, Any]:
    return {
        "id": id,
        "steps": [s.correct for s in verdict.due],
        "passed": verdict.success,
        "strict": verdict.strict,
        "overrun": verdict.overrun,
        "kinds": [s.kind.value for s in verdict.due],
    }


def _regrade(path: Path) -> tuple[Sequence[str], Sequence[Verdict], list[str]]:
    """Problem ids, fresh verdicts, and the episodes whose verdict differs from the stored one."""
    from eval.regrade import regrade

    pairs = regrade(path)
    ids = [record.problem["id"] for record, _ in pairs]
    return ids, [verdict for _, verdict in pairs], [record.key for record, verdict in pairs if verdict != record.verdict]
