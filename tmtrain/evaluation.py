"""Evaluating a saved checkpoint from within a recipe, by the same code as `tmtrain eval`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from envs.problem import Problem
from eval.backends.chat import Chat
from eval.backends.load import Options, load_policy
from eval.backends.sampling import Sampling
from eval.compare import compare_runs
from eval.report import read_runs
from eval.runs import Evaluation, evaluate
from eval.statistics import percent, percent_difference
from tmtrain.data import expert_lengths
from tmtrain.launch import is_main_process
from tmtrain.models import load_tokenizer
from tmtrain.recipe import Recipe


def evaluate_checkpoint(checkpoint: Path, problems: Sequence[Problem], recipe: Recipe, directory: Path) -> dict[str, Any]:
    """Greedy evaluation on held-out problems; the first process does it, the others get an empty summary.

    An interrupted evaluation of the same checkpoint goes on where it stopped.
    """
    if not is_main_process():
        return {}
    tokens = recipe.eval_max_tokens
    if tokens is None:
        chat = Chat(load_tokenizer(checkpoint, trust_remote_code=recipe.trust_remote_code), name=str(checkpoint))
        tokens = expert_lengths(chat, problems, recipe.setting).reply * 3 // 2
    options = Options(backend="transformers", batch_size=recipe.eval_batch_size, trust_remote_code=recipe.trust_remote_code)
    policy = load_policy(str(checkpoint), Sampling(max_tokens=tokens), options)
    evaluation = Evaluation(problems, "held-out", recipe.setting, concurrency=4 * recipe.eval_batch_size)
    return evaluate(policy, evaluation, directory, resume=recipe.resume)


def check_start(before: Mapping[str, Any], least: float) -> None:
    """Refuses to start GRPO from a policy that is hardly ever right.

    Args:
        before: The summary of the evaluation before GRPO; empty on processes that did not make it.
        least: Least share of right steps, the first of each episode left out: it may need no rule at all.

    Raises:
        ValueError: Where fewer are right.
    """
    later = [count for count in before.get("acc", []) if count["step"] > 0]
    right, due = sum(c["correct"] for c in later), sum(c["total"] for c in later)
    if due and right < least * due:
        raise ValueError(
            f"min_start_accuracy: before GRPO {right} of {due} steps after the first are right, fewer than {least:.1%}: GRPO would have "
            "nothing to reward; warm up longer or on easier levels, or set it to 0"
        )


def before_and_after(before: Path, after: Path) -> str:
    """Two run directories on the same problems beside each other, overall and by horizon, as a table of percents with 95 % intervals.

    The difference is paired: both runs are resampled alike, so problems that are hard for both do not widen its interval.
    """
    old, new = read_runs([before, after])
    compared = compare_runs(old, new)
    rows = [
        (name, old.summary[_SUMMARY.get(key, key)], new.summary[_SUMMARY.get(key, key)], compared.scores[key])
        for key, name in _OVERALL.items()
    ]
    levels = {level["horizon"]: level for level in compared.by_horizon}
    for a, b in zip(old.summary["by_horizon"], new.summary["by_horizon"], strict=True):
        if (level := levels.get(a["horizon"])) is not None:
            rows.append((f"success, {a['horizon']} steps", a["success_rate"], b["success_rate"], level["success_rate"]))
            rows.append((f"step accuracy, {a['horizon']} steps", a["step_accuracy"], b["step_accuracy"], level["step_accuracy"]))
    lines = [f"{'% [95 % interval]':34}{'before GRPO':22}{'after GRPO':22}paired difference"]
    lines += [f"{name:34}{percent(a):22}{percent(b):22}{percent_difference(gap['difference'])}" for name, a, b, gap in rows]
    if compared.success:
        lines.append(
            f"success after only: {compared.success.only_b}, before only: {compared.success.only_a} of {compared.pairs} problems; "
            f"McNemar's exact test: p = {compared.success.p_value:.2g}"
        )
    return "\n".join(lines)


_OVERALL = {
    "swa_uniform": "step-weighted accuracy, uniform",
    "swa_linear": "step-weighted accuracy, linear",
    "success_rate": "pass rate (success)",
    "strict_success_rate": "strict pass rate",
}
#: Where the summary calls a score otherwise.
_SUMMARY = {"strict_success_rate": "strict_pass_rate"}
