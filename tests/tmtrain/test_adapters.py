"""Adapters: trained by the recipes, saved alone, evaluated as they are, trained on, and merged to the same answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl")

import torch
from peft import LoraConfig, get_peft_model
from trl import ModelConfig, SFTConfig

from tmtrain.cli import main
from tmtrain.models import keep_adapter_precise, load_for_training, new_adapter
from tmtrain.recipe import SFTRecipe, Stage
from tmtrain.sft import train_sft
from tmtrain.tiny import tiny_model, tiny_tokenizer

LORA = "use_peft: true\nlora_r: 4\nlora_alpha: 8\nlora_dropout: 0.0\nlora_target_modules: [all-linear]\n"


def test_what_cannot_be_trained_is_refused_before_it_is_loaded(tiny_folder: Path, tmp_path: Path) -> None:
    config = SFTConfig(output_dir=str(tmp_path), use_cpu=True, bf16=False)
    tiny, saved = (SFTRecipe(model=m, stages=[Stage([{}], 1)], eval_levels=[{}]) for m in ("tiny", str(tiny_folder)))
    for recipe, options, message in (
        (tiny, ModelConfig(use_peft=True), "use_peft: an adapter on the freshly initialised model could not be loaded again"),
        (saved, ModelConfig(load_in_4bit=True), "quantized weights cannot be trained themselves: add use_peft: true"),
        (saved, ModelConfig(dtype="bfloat16"), "dtype: weights kept in 16 bits .* lose small updates"),
        (saved, ModelConfig(dtype="auto"), "dtype: weights kept in 16 bits .* lose small updates"),
    ):
        with pytest.raises(ValueError, match=message):
            train_sft(recipe, config, options, [])
    model, _ = load_for_training(str(tiny_folder), 0, ModelConfig())
    assert new_adapter(model, ModelConfig()) is None and new_adapter(model, ModelConfig(use_peft=True)).r == 16


def test_weights_are_kept_in_32_bits_whatever_they_were_saved_in(tmp_path: Path) -> None:
    tiny_model(0).to(torch.bfloat16).save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    model, _ = load_for_training(str(tmp_path), 0, ModelConfig())
    assert {p.dtype for p in model.parameters()} == {torch.float32}


def test_an_adapters_folder_is_trained_on(tiny_folder: Path, tmp_path: Path) -> None:
    from peft import LoraConfig, get_peft_model

    plain, tokenizer = load_for_training(str(tiny_folder), 0, ModelConfig())
    get_peft_model(plain, LoraConfig(r=2, target_modules="all-linear", task_type="CAUSAL_LM")).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    model, _ = load_for_training(str(tmp_path), 0, ModelConfig())
    trained = [name for name, p in model.named_parameters() if p.requires_grad]
    assert trained and all("lora_" in name for name in trained) and new_adapter(model, ModelConfig(use_peft=True)) is None


def test_merging_needs_an_adapter_and_a_free_folder(tiny_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["merge", str(tiny_folder), "-o", str(tmp_path / "out")]) == 2
    assert "is a whole model already" in capsys.readouterr().err


SFT = """
include: {root}/recipes/tag/tiny_sft.yaml
model: {base}
stages: [{{levels: [{{max_steps: 1}}], problems: 256}}]
position_gap: 0
eval_levels: [{{max_steps: 2, min_horizon: 2}}]
eval_problems: 6
eval_max_tokens: 24
max_steps: 3
learning_rate: 1e-2
"""
GRPO = """
include: {root}/recipes/tag/tiny_grpo.yaml
warmup: null
levels: [{{max_steps: 1}}]
eval_levels: [{{max_steps: 2, min_horizon: 2}}]
problems: 16
max_steps: 1
batch_size: 8
num_generations: 4
max_completion_length: 64
eval_problems: 6
eval_max_tokens: 24
min_start_accuracy: 0
"""


def run(root: Path, program: str, *arguments: str) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, f"recipes/{program}", *arguments], cwd=root, capture_output=True, text=True, env=environment, timeout=600
    )
    assert done.returncode == 0, done.stderr[-3000:]


def replies(directory: Path) -> dict[str, Any]:
    lines = [json.loads(line) for line in (directory / "samples.jsonl").read_text().splitlines()]
    return {line["problem"]["id"]: line["messages"][-1]["content"] for line in lines}


@pytest.mark.slow
def test_an_adapter_from_sft_through_grpo_to_a_merged_model(tiny_folder: Path, root: Path, tmp_path: Path) -> None:
    (tmp_path / "sft.yaml").write_text(SFT.format(root=root, base=tiny_folder) + LORA)
    (tmp_path / "grpo.yaml").write_text(GRPO.format(root=root) + LORA)
    run(root, "sft_tag.py", "--config", str(tmp_path / "sft.yaml"), "--output_dir", str(tmp_path / "sft"))
    adapter = tmp_path / "sft" / "checkpoint"
    assert (adapter / "adapter_model.safetensors").is_file() and not (adapter / "model.safetensors").exists()
    assert json.loads((adapter / "adapter_config.json").read_text())["base_model_name_or_path"] == str(tiny_folder)
    assert "library_name: peft" in (adapter / "README.md").read_text()

    run(root, "grpo_tag.py", "--config", str(tmp_path / "grpo.yaml"), "--model", str(adapter), "--output_dir", str(tmp_path / "grpo"))
    further = tmp_path / "grpo" / "checkpoint"
    assert json.loads((further / "adapter_config.json").read_text())["r"] == 4 and not (further / "model.safetensors").exists()
    assert [s["kind"] for s in json.loads((further / "tmtrain.json").read_text())["stages"]] == ["sft", "grpo"]
    # The adapter in training, the adapter on its base and the merged model answer alike.
    assert main(["merge", str(further), "-o", str(tmp_path / "merged")]) == 0
    problems = tmp_path / "held_out.jsonl"
    lines = [json.loads(line)["problem"] for line in (tmp_path / "grpo" / "eval_after" / "samples.jsonl").read_text().splitlines()]
    problems.write_text("".join(json.dumps(p) + "\n" for p in lines))
    for name, model in (("adapter", further), ("merged", tmp_path / "merged")):
        arguments = ["--problems", str(problems), "--max-tokens", "24", "-o", str(tmp_path / f"run_{name}")]
        assert main(["eval", str(model), *arguments]) == 0
    assert replies(tmp_path / "run_adapter") == replies(tmp_path / "run_merged") == replies(tmp_path / "grpo" / "eval_after")
    ids = torch.tensor([tiny_tokenizer()(lines[0]["init"] if isinstance(lines[0]["init"], str) else "ABC")["input_ids"]])
    with torch.no_grad():
        whole, adapted, plain = (
            load_for_training(str(f), 0, ModelConfig())[0].eval()(ids).logits for f in (tmp_path / "merged", further, tiny_folder)
        )
    assert torch.allclose(whole, adapted, atol=1e-5) and not torch.allclose(whole, plain, atol=1e-3)


def test_an_adapter_on_quantized_weights_is_trained_in_32_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    def adapted() -> Any:
        model = get_peft_model(tiny_model(0), LoraConfig(r=4, target_modules=["q_proj"])).to(torch.bfloat16)
        model.base_model.model.is_quantized = True
        return model

    model = adapted()
    keep_adapter_precise(model)
    assert {p.dtype for p in model.parameters() if p.requires_grad} == {torch.float32}
    assert {p.dtype for p in model.parameters() if not p.requires_grad} == {torch.bfloat16}
    monkeypatch.setenv("ACCELERATE_USE_DEEPSPEED", "true")
    keep_adapter_precise(spread := adapted())
    assert {p.dtype for p in spread.parameters()} == {torch.bfloat16}, "DeepSpeed keeps 32 bits of its own"
