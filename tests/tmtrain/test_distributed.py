"""The same training on one process and on two, under every way to spread a model that runs on processors."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl")
pytest.importorskip("deepspeed")

import torch
from safetensors.torch import load_file

from envs.environment import Setting
from eval.backends.load import load_policy
from eval.backends.options import Options
from eval.backends.sampling import Sampling
from eval.runs import Evaluation, evaluate
from tmtrain.data import held_out

pytestmark = pytest.mark.slow
SPREAD = ["ddp_cpu", "zero2_cpu", "zero3_cpu"]

SFT = """
include: {root}/recipes/tag/tiny_sft.yaml
stages: [{{levels: [{{max_steps: 1}}], problems: 640}}]
position_gap: 0
eval_levels: [{{max_steps: 2, min_horizon: 2}}]
eval_problems: 8
eval_max_tokens: 16
warmup_steps: 2
logging_steps: 1
max_steps: 4
save_strategy: steps
save_steps: 2
disable_tqdm: true
"""


def launch(root: Path, config: str, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The launcher now and then fails at the interpreter's exit, after all is done: artefacts are looked at instead of its code."""
    return subprocess.run(
        [sys.executable, "-m", "accelerate.commands.launch", "-q", "--config_file", f"accelerate_configs/{config}.yaml", program, *arguments],
        cwd=root, capture_output=True, text=True, timeout=600,
        env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(root)},
    )  # fmt: skip


def weights(folder: Path) -> dict[str, torch.Tensor]:
    tensors = load_file(folder / "model.safetensors")
    return {name: t.float() for name, t in tensors.items() if name != "lm_head.weight"}  # tied: the embedding's own


def assert_same_weights(a: Path, b: Path, within: float) -> None:
    one, other = weights(a), weights(b)
    assert one.keys() == other.keys()
    assert max((one[k] - other[k]).abs().max().item() for k in one) <= within


@pytest.fixture(scope="module")
def sft(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Any:
    """Runs the SFT recipe under a configuration, once each; its folder and losses."""
    folder, done = tmp_path_factory.mktemp("sft"), {}
    (folder / "sft.yaml").write_text(SFT.format(root=root))

    def run(config: str, *more: str) -> tuple[Path, list[str]]:
        output = folder / config
        if config not in done or more:
            printed = launch(root, config, "recipes/sft_tag.py", "--config", str(folder / "sft.yaml"), "--output_dir", str(output), *more)
            assert (output / "eval" / "summary.json").is_file(), printed.stderr[-3000:]
            done[config] = re.findall(r"'loss': '([0-9.e-]+)'", printed.stdout)
        return output, done[config]

    return run


@pytest.mark.parametrize("config", SPREAD)
def test_sft_reaches_the_same_weights_and_resumes_to_them(config: str, sft: Any) -> None:
    reference, losses = sft("cpu")
    output, own = sft(config)
    assert len(own) == 4 and [float(x) for x in own] == pytest.approx([float(x) for x in losses], rel=1e-3)
    assert_same_weights(output / "checkpoint", reference / "checkpoint", 1e-5)
    whole = output.with_name(f"{config}_whole")
    shutil.copytree(output / "checkpoint", whole)
    for name in ("checkpoint", "checkpoint-4", "eval"):
        shutil.rmtree(output / name)
    sft(config, "--resume")
    assert_same_weights(output / "checkpoint", whole, 1e-6)


@pytest.fixture(scope="module")
def grpo(tmp_path_factory: pytest.TempPathFactory, root: Path, tiny_folder: Path) -> Any:
    folder, done = tmp_path_factory.mktemp("grpo"), set()

    def run(config: str) -> Path:
        output = folder / config
        if config not in done:
            printed = launch(root, config, "tests/tmtrain/distributed_program.py", str(tiny_folder), str(output), "run")
            assert (output / "losses.json").is_file(), printed.stderr[-3000:]
            done.add(config)
        return output

    return run


@pytest.mark.parametrize("config", SPREAD)
def test_grpo_with_step_credit_takes_the_same_steps(config: str, grpo: Any, tmp_path: Path) -> None:
    reference, output = grpo("cpu"), grpo(config)
    expected, found = (json.loads((folder / "losses.json").read_text()) for folder in (reference, output))
    assert len(found) == 3 and any(abs(e["loss"]) > 1e-4 for e in expected)
    for one, other in zip(expected, found, strict=True):
        assert other == {k: pytest.approx(v, rel=1e-3, abs=1e-6) for k, v in one.items()}
    assert_same_weights(output / "checkpoint", reference / "checkpoint", 1e-4)
    # Evaluated by the trainer, over its processes, and from the gathered checkpoint by the evaluator: the same replies.
    policy = load_policy(str(output / "checkpoint"), Sampling(max_tokens=48), Options(backend="transformers"))
    problems = held_out("tag", [{"max_steps": 3, "min_horizon": 3}], 6, 1)
    evaluate(policy, Evaluation(problems, "held-out", Setting("compact")), tmp_path / "run", progress=False)

    def replies(run: Path) -> dict[str, Any]:
        lines = [json.loads(line) for line in (run / "samples.jsonl").read_text().splitlines()]
        return {line["problem"]["id"]: line["messages"][-1]["content"] for line in lines}

    assert replies(output / "eval_after") == replies(tmp_path / "run") and len(replies(tmp_path / "run")) == 6


WORLDS = """
include: {root}/recipes/worlds/tiny_listworld_grpo.yaml
warmup: null
model: {model}
levels: [{{pops: 1}}, {{pops: 4}}, {{env: gridworld, size: 3}}]
eval_levels: [{{pops: 1}}, {{env: gridworld, size: 3}}]
problems: 32
max_steps: 2
batch_size: 8
num_generations: 4
eval_problems: 5
eval_max_tokens: 12
min_start_accuracy: 0
logging_steps: 1
disable_tqdm: true
"""


def test_unequal_episodes_under_zero_3_neither_hang_nor_crash(tiny_folder: Path, root: Path, tmp_path: Path) -> None:
    (tmp_path / "grpo.yaml").write_text(WORLDS.format(root=root, model=tiny_folder))
    printed = launch(
        root, "zero3_cpu", "recipes/grpo_worlds.py", "--config", str(tmp_path / "grpo.yaml"), "--output_dir", str(tmp_path / "out")
    )
    assert (tmp_path / "out" / "checkpoint" / "README.md").is_file(), printed.stderr[-3000:]
    for run in ("eval_before", "eval_after"):
        assert len((tmp_path / "out" / run / "samples.jsonl").read_text().splitlines()) == 10


def test_an_adapted_model_under_zero_3_is_read_layer_by_layer(root: Path, tmp_path: Path) -> None:
    printed = launch(root, "zero3_cpu", "tests/tmtrain/handover_program.py", str(tmp_path))
    assert (tmp_path / "handover.json").is_file(), printed.stderr[-3000:]
    found = json.loads((tmp_path / "handover.json").read_text())
    assert (found["stage"], found["processes"], found["spread"], found["shapes"]) == (3, 2, True, True)
    assert found["furthest"] <= 1e-6 and found["drift"] <= 1e-6


def test_a_process_that_fails_stops_the_others_and_says_why(tiny_folder: Path, root: Path, tmp_path: Path) -> None:
    started = time.monotonic()
    printed = launch(root, "ddp_cpu", "tests/tmtrain/distributed_program.py", str(tiny_folder), str(tmp_path / "out"), "fail")
    assert printed.returncode != 0 and time.monotonic() - started < 300
    assert "(process 1): this process was told to fail" in printed.stderr
    assert not (tmp_path / "out" / "losses.json").exists()
