"""The recipes as users launch them, shortened: every artefact is looked at, not only the exit code."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("trl")

from huggingface_hub import ModelCard

from tmtrain.cli import main

pytestmark = pytest.mark.slow

SFT = """
include: {root}/recipes/tag/tiny_sft.yaml
stages: [{{levels: [{{max_steps: 1}}], problems: 3200}}, {{levels: [{{max_steps: 2}}], problems: 640}}]
eval_levels: [{{max_steps: 2, min_horizon: 2}}]
eval_problems: 8
warmup_steps: 5
logging_steps: 10
"""
GRPO = """
include: {root}/recipes/tag/tiny_grpo.yaml
warmup: {folder}/sft.yaml
levels: [{{max_steps: 2, min_horizon: 2}}]
eval_levels: [{{max_steps: 2, min_horizon: 2}}]
problems: 64
max_steps: 2
batch_size: 8
num_generations: 4
max_completion_length: 96
eval_problems: 8
# So short a warm-up gets no step right, where step credit is zero: half of the credit is the reply's, for its form.
outcome_weight: 0.5
min_start_accuracy: 0
lr_scheduler_type: constant
warmup_steps: 0
logging_steps: 1
"""


def launch(root: Path, recipe: str, *arguments: str, config: str = "cpu.yaml") -> subprocess.CompletedProcess[str]:
    """`accelerate launch` on one thread a process: two were found slower than one under contention."""
    return subprocess.run(
        [sys.executable, "-m", "accelerate.commands.launch", "-q", "--config_file", f"accelerate_configs/{config}", f"recipes/{recipe}", *arguments],
        cwd=root, capture_output=True, text=True, timeout=900, env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip


@pytest.fixture(scope="module")
def recipes(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    folder = tmp_path_factory.mktemp("recipes")
    (folder / "sft.yaml").write_text(SFT.format(root=root))
    (folder / "grpo.yaml").write_text(GRPO.format(root=root, folder=folder))
    return folder


@pytest.fixture(scope="module", params=["cpu.yaml", "ddp_cpu.yaml"])
def finished(request: pytest.FixtureRequest, recipes: Path, root: Path) -> tuple[Path, str, int]:
    """The whole GRPO recipe with one process and with two; output folder, what it printed, number of processes."""
    output = recipes / request.param.removesuffix(".yaml")
    done = launch(root, "grpo_tag.py", "--config", str(recipes / "grpo.yaml"), "--output_dir", str(output), config=request.param)
    assert done.returncode == 0, done.stderr[-3000:]
    return output, done.stdout, 2 if "ddp" in request.param else 1


def test_the_whole_story_leaves_everything_behind(finished: tuple[Path, str, int], capsys: pytest.CaptureFixture[str]) -> None:
    output, printed, _ = finished
    assert "before GRPO" in printed and printed.count("after GRPO") == 1, "one process speaks"
    for run in ("eval_before", "eval_after"):
        assert len((output / run / "samples.jsonl").read_text().splitlines()) == 8
        assert json.loads((output / run / "summary.json").read_text())["episodes"] == 8
    before, after = (json.loads((output / run / "manifest.json").read_text())["policy"] for run in ("eval_before", "eval_after"))
    assert before["weights"] != after["weights"], "training changed nothing"
    record = json.loads((output / "checkpoint" / "tmtrain.json").read_text())
    assert [s["kind"] for s in record["stages"]] == ["sft", "sft", "grpo"] and record["style"] == "compact"
    assert all(s["data"]["shared_canonical"] == {"held_out": 0, "frozen_suites": 0} for s in record["stages"])
    card = ModelCard.load(output / "checkpoint" / "README.md")
    summary = json.loads((output / "eval_after" / "summary.json").read_text())
    assert {r.metric_type: r.metric_value for r in card.data.eval_results}["swa_uniform"] == summary["swa_uniform"]["value"]
    assert (output / "report.html").is_file() and list(output.glob("**/events.out.tfevents*")), "no report or no TensorBoard log"
    # The product's own command on the saved model gives the recipe's own verdicts.
    problems = output / "problems.jsonl"
    samples = [json.loads(line) for line in (output / "eval_after" / "samples.jsonl").read_text().splitlines()]
    problems.write_text("".join(json.dumps(s["problem"]) + "\n" for s in samples))
    arguments = ["--problems", str(problems), "--max-tokens", "60", "-o", str(output / "again"), "--json"]
    assert main(["eval", str(output / "checkpoint"), *arguments]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["swa_uniform"]["value"] == pytest.approx(summary["swa_uniform"]["value"], abs=0.1)
    assert json.loads((output / "again" / "manifest.json").read_text())["setting"]["style"] == "compact", "the checkpoint's own style"


def test_a_finished_run_resumes_to_the_same_end(finished: tuple[Path, str, int], recipes: Path, root: Path) -> None:
    output, _, processes = finished
    if processes == 2:
        pytest.skip("one process shows it")
    weights = (output / "checkpoint" / "model.safetensors").read_bytes()
    done = launch(root, "grpo_tag.py", "--config", str(recipes / "grpo.yaml"), "--output_dir", str(output), "--resume")
    assert done.returncode == 0, done.stderr[-3000:]
    assert (output / "checkpoint" / "model.safetensors").read_bytes() == weights


def test_a_finished_run_is_not_run_over(finished: tuple[Path, str, int], recipes: Path, root: Path) -> None:
    output, _, processes = finished
    if processes == 2:
        pytest.skip("one process shows it")
    before = {f: f.stat().st_mtime_ns for f in sorted(output.rglob("*")) if f.is_file()}
    done = launch(root, "grpo_tag.py", "--config", str(recipes / "grpo.yaml"), "--output_dir", str(output))
    assert done.returncode != 0 and "eval_before holds a run already: add --resume" in done.stderr
    assert {f: f.stat().st_mtime_ns for f in sorted(output.rglob("*")) if f.is_file()} == before, "nothing may be touched"


def test_a_policy_that_is_never_right_is_not_trained_on(finished: tuple[Path, str, int], recipes: Path, root: Path, tmp_path: Path) -> None:
    output, _, processes = finished
    if processes == 2:
        pytest.skip("one process shows it")
    shutil.copytree(output / "warmup", tmp_path / "warmup")
    arguments = ["--config", str(recipes / "grpo.yaml"), "--output_dir", str(tmp_path), "--resume", "--min_start_accuracy", "1"]
    done = launch(root, "grpo_tag.py", *arguments)
    assert "min_start_accuracy: before GRPO" in done.stderr and "Traceback" not in done.stderr and "before GRPO  " not in done.stdout


def test_the_sft_recipe_alone(recipes: Path, root: Path) -> None:
    done = launch(root, "sft_tag.py", "--config", str(recipes / "sft.yaml"), "--output_dir", str(recipes / "sft"))
    assert done.returncode == 0, done.stderr[-3000:]
    assert "model card" in done.stdout and (recipes / "sft" / "checkpoint" / "README.md").is_file()


WORLD_SFT = """
include: {root}/recipes/worlds/tiny_listworld_sft.yaml
learning_rate: 3e-3
stages: [{{levels: [{{pops: 1}}], problems: 3840}}]
oracles: plan
eval_levels: [{{pops: 1}}]
eval_problems: 8
warmup_steps: 2
logging_steps: 5
"""
WORLD_GRPO = """
include: {root}/recipes/worlds/tiny_listworld_grpo.yaml
warmup: {folder}/sft.yaml
oracles: plan
levels: [{{pops: 1}}, {{env: gridworld, size: 3}}]
eval_levels: [{{pops: 1}}]
problems: 32
max_steps: 2
batch_size: 8
num_generations: 4
eval_problems: 8
min_start_accuracy: 0
# So short a warm-up gets the form right now and then, hardly more.
outcome_weight: 0.5
reward: {{step: 1, format: 1}}
logging_steps: 1
"""


@pytest.mark.parametrize("config", ["cpu.yaml", "ddp_cpu.yaml"])
def test_worlds_are_trained_on_turn_by_turn_on_one_process_and_on_two(config: str, root: Path, tmp_path: Path) -> None:
    """With an oracle, and with problems of two worlds whose episodes differ in length."""
    (tmp_path / "sft.yaml").write_text(WORLD_SFT.format(root=root))
    (tmp_path / "grpo.yaml").write_text(WORLD_GRPO.format(root=root, folder=tmp_path))
    output = tmp_path / "out"
    done = launch(root, "grpo_worlds.py", "--config", str(tmp_path / "grpo.yaml"), "--output_dir", str(output), config=config)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "model card" in done.stdout and "turns/mean" in done.stdout
    record = json.loads((output / "checkpoint" / "tmtrain.json").read_text())
    assert record["stages"][-1]["data"]["env"] == "gridworld, listworld" and record["stages"][-1]["settings"]["oracles"] == "plan"
    manifests = [json.loads((output / run / "manifest.json").read_text()) for run in ("eval_before", "eval_after")]
    assert [m["setting"]["oracles"] for m in manifests] == ["plan", "plan"]
    assert manifests[0]["policy"]["weights"] != manifests[1]["policy"]["weights"]


def test_a_killed_run_resumed_equals_the_uninterrupted_one(root: Path, tmp_path: Path) -> None:
    """Weights, data order, curriculum and sampling: all go on bit for bit."""
    (tmp_path / "sft.yaml").write_text(WORLD_SFT.format(root=root))
    more = "\ncurriculum: success\nmax_steps: 6\nsave_strategy: steps\nsave_steps: 2\nlevels: [{pops: 1}, {pops: 2, from: 0.5}]\n"
    settings = [line for line in WORLD_GRPO.format(root=root, folder=tmp_path).splitlines() if not line.startswith(("levels", "max_steps"))]
    (tmp_path / "grpo.yaml").write_text("\n".join(settings) + more)
    arguments = ["--config", str(tmp_path / "grpo.yaml"), "--output_dir"]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    done = launch(root, "grpo_worlds.py", *arguments, str(whole))
    assert done.returncode == 0, done.stderr[-3000:]

    shutil.copytree(whole / "warmup", killed / "warmup")
    command = [sys.executable, "recipes/grpo_worlds.py", *arguments, str(killed), "--resume"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(root)}
    process = subprocess.Popen(command, cwd=root, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(3000):
        if (killed / "checkpoint-4" / "curriculum.json").exists() or process.poll() is not None:
            break
        time.sleep(0.1)
    process.kill()
    process.wait()
    assert not (killed / "checkpoint").exists(), "it was to be killed before the end"
    done = launch(root, "grpo_worlds.py", *arguments, str(killed), "--resume")
    assert done.returncode == 0, done.stderr[-3000:]
    weights = [(folder / "checkpoint" / "model.safetensors").read_bytes() for folder in (whole, killed)]
    assert weights[0] == weights[1] != (whole / "warmup" / "checkpoint" / "model.safetensors").read_bytes()
    states = [json.loads((folder / "checkpoint-6" / "curriculum.json").read_text()) for folder in (whole, killed)]
    assert states[0] == states[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--lerning_rate", "1"], "unknown field 'lerning_rate': did you mean 'learning_rate'?"),
        (["--max_completion_length", "20"], "max_completion_length: right replies need up to"),
        (["--max_completion_length", "8190"], "more than the model's context of 8192"),
        (["--top_p", "0.9"], "rollouts must be drawn from the whole distribution"),
        (["--num_generations", "3"], "num_generations"),
        (["--style", "verbose", "--max_completion_length", "9999"], "style: the warm-up"),
        (["--levels", "[{max_stebs: 2}]"], "did you mean 'max_steps'?"),
        (["--config", "/nowhere.yaml"], "cannot read the recipe"),
    ],
)
def test_mistakes_end_before_anything_is_trained(arguments: list[str], message: str, recipes: Path, root: Path, tmp_path: Path) -> None:
    config = [] if "--config" in arguments else ["--config", str(recipes / "grpo.yaml")]
    done = subprocess.run(
        [sys.executable, "recipes/grpo_tag.py", *config, "--output_dir", str(tmp_path / "out"), *arguments],
        cwd=root, capture_output=True, text=True, timeout=300, env={**os.environ, "PYTHONPATH": str(root)},
    )  # fmt: skip
    assert done.returncode == 2, done.stderr[-3000:]
    assert message in done.stdout + done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "out" / "warmup").exists()
