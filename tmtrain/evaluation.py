"""Evaluating a saved checkpoint from within a recipe, by the same code as `tmtrain eval`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from envs.problem import Problem
from eval.backends.chat import Chat
from eval.backends.folder import resolve
from eval.backends.load import chosen_backend
from eval.backends.options import Options
from eval.backends.pretrained import load_tokenizer
from eval.compare import compare_runs
from eval.report import read_runs
from eval.statistics import percent, percent_difference
from tmtrain.data import expert_lengths
from tmtrain.launch import is_main_process
from tmtrain.recipe import Recipe

#: Shares of a GPU: what vLLM takes by itself, and what is left free beside all that is known to be in use.
VLLM_SHARE, SPARE = 0.92, 0.02


def evaluate_checkpoint(checkpoint: Path, problems: Sequence[Problem], recipe: Recipe, directory: Path) -> dict[str, Any]:
    """Evaluation on held-out problems by `tmtrain eval`; the first process has it done, the others get an empty summary.

    It runs in a process of its own, which knows nothing of the launched ones, and on a GPU takes what the trainer left. An interrupted
    evaluation of the same checkpoint goes on where it stopped.

    Raises:
        ValueError: Where the evaluation failed; it says why itself.
    """
    if not is_main_process():
        return {}
    chat = Chat(load_tokenizer(resolve(str(checkpoint)), trust_remote_code=recipe.trust_remote_code), name=str(checkpoint))
    tokens = most_reply_tokens(recipe, chat, problems)
    file = directory.with_name("held_out.jsonl")
    file.write_text("".join(json.dumps(p.to_json(), ensure_ascii=False) + "\n" for p in problems), encoding="utf-8")
    words = [sys.executable, "-m", "tmtrain.cli", "eval", str(checkpoint), "--problems", str(file), "-o", str(directory)]
    words += ["--style", recipe.style, "--oracles", recipe.setting.oracles]
    words += ["--max-tokens", str(tokens), "--temperature", str(recipe.eval_temperature)]
    from accelerate.utils import release_memory

    release_memory()  # of the trainer that is gone
    if chosen_backend(Options()) == "transformers":
        words += ["--batch-size", str(recipe.eval_batch_size)]
    else:
        words += ["--gpu-memory", f"{free_gpu_memory():.3f}"]
    words += ["--concurrency", str(4 * recipe.eval_batch_size)]
    words += ["--thinking", recipe.thinking] if recipe.thinking != "template" else []
    words += ["--trust-remote-code"] * recipe.trust_remote_code + ["--resume"] * recipe.resume
    launched = ("RANK", "LOCAL_", "GROUP_", "ROLE_", "WORLD_SIZE", "MASTER_", "TORCHELASTIC_", "ACCELERATE_", "FSDP_", "OMP_NUM_THREADS")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(launched)}
    if subprocess.run(words, env=environment, stdout=subprocess.DEVNULL, check=False).returncode:
        raise ValueError(f"the evaluation of {checkpoint} failed, for the reason above; the checkpoint itself is whole")
    return read_runs([directory])[0].summary


def free_gpu_memory() -> float:
    """The share of this process's GPU that vLLM can take beside it; vLLM's own default, where that is less."""
    import torch

    free, total = torch.cuda.mem_get_info()
    return min(VLLM_SHARE, free / total - SPARE)


def most_reply_tokens(recipe: Recipe, chat: Chat, problems: Sequence[Problem]) -> int:
    """How long a reply may become in evaluation: half as long again as the expert's longest, where the recipe does not say."""
    return recipe.eval_max_tokens or expert_lengths(chat, problems, recipe.setting).reply * 3 // 2


def before_and_after(before: Path, after: Path) -> str:
    """Two run directories on the same problems beside each other, overall and by horizon, as a table of percents with 95 % intervals.

    The difference is paired: both runs are resampled alike, so problems that are hard for both do not widen its interval.
    """
    old, new = read_runs([before, after])
    compared = compare_runs(old, new)
    rows = [
        (name, old.summary[_SUMMARY.get(key, key)], new.summary[_SUMMARY.get(key, key)], compared.scores.get(key))
        for key, name in _OVERALL.items()
    ]
    levels = {level["horizon"]: level for level in compared.by_horizon}
    for a, b in zip(old.summary["by_horizon"], new.summary["by_horizon"], strict=True):
        if (level := levels.get(a["horizon"])) is not None:
            rows.append((f"success, {a['horizon']} steps", a["success_rate"], b["success_rate"], level.get("success_rate")))
            rows.append((f"step accuracy, {a['horizon']} steps", a["step_accuracy"], b["step_accuracy"], level.get("step_accuracy")))
    lines = [f"{'% [95 % interval]':34}{'before GRPO':22}{'after GRPO':22}paired difference"]
    lines += [f"{name:34}{percent(a):22}{percent(b):22}{percent_difference(gap['difference']) if gap else '–'}" for name, a, b, gap in rows]
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
