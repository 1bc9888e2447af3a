"""The doctor: says yes to every recipe of the repository, and no to planted mistakes, each by its field and with the fix."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl")
pytest.importorskip("deepspeed")

import deepspeed.runtime.zero.stage3 as stage3
import deepspeed.runtime.zero.stage_1_and_2 as stage2

from envs.dataset import draw, make_params
from envs.environment import Setting
from eval.backends.chat import Chat
from tmtrain.cli import main
from tmtrain.doctor.architectures import KNOWN, architecture, find_config
from tmtrain.doctor.finding import Machine
from tmtrain.doctor.lengths import measure, stand_in_tokenizer
from tmtrain.doctor.memory import Sharding, activations, model_states
from tmtrain.tiny import tiny_model, tiny_tokenizer

ROOT = Path(__file__).parent.parent.parent
#: Recipes that say by themselves how they are launched.
LAUNCHED = {
    str(file.relative_to(ROOT)): found.group(1)
    for file in sorted((ROOT / "recipes").rglob("*.yaml"))
    if (found := re.search(r"--config_file (accelerate_configs/\w+\.yaml)", file.read_text(encoding="utf-8")))
}


def doctor(capsys: pytest.CaptureFixture[str], recipe: str | Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    code = main(["doctor", str(recipe), *arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", sorted(LAUNCHED))
def test_every_recipe_for_gpus_is_ready(recipe: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    code, said = doctor(capsys, recipe, "--accelerate", LAUNCHED[recipe])
    assert code == 0, [f for f in said["findings"] if f["level"] == "no"]
    topics = {f["topic"] for f in said["findings"]}
    assert {"versions", "settings", "batch", "data", "lengths", "memory"} <= topics


def test_there_is_a_recipe_for_every_model_and_task() -> None:
    for stem in ("qwen3_0.6b", "qwen3_1.7b", "qwen3_4b", "qwen3_8b", "qwen3_14b", "qwen3_32b", "llama3.1_8b"):
        for task in ("tag", "worlds"):
            assert {f"recipes/{task}/{stem}.yaml", f"recipes/{task}/{stem}_lora.yaml"} <= LAUNCHED.keys()


@pytest.mark.parametrize("recipe", ["recipes/tag/tiny_grpo.yaml", "recipes/tag/tiny_sft.yaml", "recipes/worlds/tiny_gridworld_grpo.yaml"])
def test_the_small_recipes_are_ready_on_a_laptop(recipe: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    code, said = doctor(capsys, recipe)
    assert code == 0, said["findings"]
    assert any(f["topic"] == "tokenizer" and f["level"] == "yes" for f in said["findings"])


Plant = Callable[[Path, pytest.MonkeyPatch], list[str]]


def changed(*fields: str) -> Plant:
    return lambda folder, patch: ["recipes/tag/qwen3_8b.yaml", *(word for f in fields for word in ("--set", f))]


def old_version(folder: Path, patch: pytest.MonkeyPatch) -> list[str]:
    real = metadata.version
    patch.setattr("tmtrain.doctor.versions.version", lambda name: "1.15.0" if name == "trl" else real(name))
    return ["recipes/tag/qwen3_8b.yaml"]


def tokenizer(change: Callable[[Any], None]) -> Plant:
    def plant(folder: Path, patch: pytest.MonkeyPatch) -> list[str]:
        made = tiny_tokenizer()
        change(made)
        tiny_model(0).save_pretrained(folder)
        made.save_pretrained(folder)
        arguments = [f"model={folder}", "style=compact", "max_completion_length=3000", "eval_max_tokens=3000", "thinking=template"]
        return ["recipes/tag/qwen3_8b.yaml", *(word for f in arguments for word in ("--set", f))]

    return plant


def partial_checkpoints(folder: Path, patch: pytest.MonkeyPatch) -> list[str]:
    text = (ROOT / "accelerate_configs" / "zero3.yaml").read_text().replace("zero3_save_16bit_model: true", "zero3_save_16bit_model: false")
    (folder / "zero3.yaml").write_text(text)
    return ["recipes/tag/qwen3_8b.yaml", "--accelerate", str(folder / "zero3.yaml")]


MISTAKES: dict[str, tuple[Plant, str]] = {
    "a misspelt field": (changed("lerning_rate=1"), r"unknown field 'lerning_rate': did you mean 'learning_rate'\?"),
    "a version that was not tested": (old_version, r"trl 1\.15\.0 .* pip install 'trl==1\.16\.0'"),
    "groups that do not divide the batch": (changed("num_generations=7"), r"generation_batch_size|num_generations"),
    "rows that the processes cannot share": (changed("batch_size=100"), r"batch_size: 100 rows .* multiple of 64"),
    "replies that would be cut": (changed("max_completion_length=600"), r"max_completion_length: 600 would cut \d+\.\d% .* raise it to \d+"),
    "more than the context": (changed("vllm_max_model_length=2048"), r"max_completion_length: .* the context 2048: lower it"),
    "too much for the GPU": (changed("gradient_checkpointing=false", "per_device_train_batch_size=16", "gradient_accumulation_steps=1"),
                             r"gradient_checkpointing: set it to true; \d+ of 80 GiB"),
    "vLLM without room": (changed("vllm_gpu_memory_utilization=0.15"), r"vllm_gpu_memory_utilization: 0\.15 leaves .* raise it"),
    "GPUs that vLLM cannot split": (changed("vllm_tensor_parallel_size=3"), r"vllm_tensor_parallel_size: 3 does not divide the 8 GPUs"),
    "truncated sampling": (changed("top_p=0.9"), r"top_p, top_k, min_p: .* leave them off"),
    "other distributions": (changed("generation_kwargs={top_p: 0.5}"), r"repetition_penalty, generation_kwargs: .* leave them off"),
    "a penalty": (changed("repetition_penalty=1.2"), r"repetition_penalty, generation_kwargs: .* leave them off"),
    "a loss over replies": (changed("loss_type=luspo"), r"loss_type: .* use grpo, dapo, bnpo, dr_grpo"),
    "ratios over sequences": (changed("importance_sampling_level=sequence"), r"importance_sampling_level: .* needs token"),
    "long episodes dropped": (changed("vllm_importance_sampling_mode=sequence_mask"), r"vllm_importance_sampling_mode: .* token_truncate"),
    "checkpoints without the weights": (partial_checkpoints, r"zero3_save_16bit_model .* set it to true"),
    "four bits trained themselves": (changed("load_in_4bit=true"), r"load_in_4bit, load_in_8bit: .* use_peft: true"),
    "four bits in vLLM": (changed("load_in_4bit=true", "use_peft=true"), r"load_in_4bit, load_in_8bit: .* set use_vllm: false"),
    "32 bits on GPUs": (changed("bf16=false"), r"bf16: .* set it to true"),
    "no template": (tokenizer(lambda t: setattr(t, "chat_template", None)), r"model: .* has no chat template: set"),
    "padding that ends": (tokenizer(lambda t: setattr(t, "pad_token", t.eos_token)), r"model: .* pads with its eos_token.* set another"),
    "two ends": (tokenizer(lambda t: setattr(t, "eos_token", "<|user|>")), r"model: .* the generation config .* make them agree"),
    "a model that is nowhere": (changed("model=runs/nowhere/checkpoint"), r"model: .*runs/nowhere/checkpoint"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_planted_mistakes_are_named_with_their_fix(
    mistake: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    plant, expected = MISTAKES[mistake]
    arguments = plant(tmp_path, monkeypatch)
    if "--accelerate" not in arguments:
        arguments += ["--accelerate", "accelerate_configs/zero3.yaml"]
    code, said = doctor(capsys, *arguments)
    refusals = [f["text"] for f in said["findings"] if f["level"] == "no"]
    assert code == 1 and not said["ready"]
    assert any(re.search(expected, text) for text in refusals), refusals


def test_known_shapes_are_the_published_sizes() -> None:
    """Parameters in billions, as on the model cards; the cards give 0.6 and 1.7 with the embedding counted once."""
    billions = {name: round(architecture(find_config(name)).parameters / 1e9, 2) for name in ("Qwen/Qwen3-0.6B", "Qwen/Qwen3-8B")}
    assert billions == {"Qwen/Qwen3-0.6B": 0.6, "Qwen/Qwen3-8B": 8.19}
    assert round(architecture(find_config("meta-llama/Llama-3.1-8B-Instruct")).parameters / 1e9, 2) == 8.03
    assert set(KNOWN) >= {f"Qwen/Qwen3-{n}" for n in ("1.7B", "4B", "14B", "32B")}


class Options:
    use_peft, lora_r, load_in_4bit, load_in_8bit, dtype = False, 16, False, False, "float32"


def test_model_states_add_up_to_deepspeeds_own_estimates() -> None:
    arch = architecture(find_config("Qwen/Qwen3-0.6B"))
    machine = Machine(8)
    *parts, host = model_states(arch, Options, Sharding(zero_stage=2), machine)
    _, expected = stage2.estimate_zero2_model_states_mem_needs(arch.parameters, 8, 1, cpu_offload=False)
    assert sum(parts) == pytest.approx(expected) and host == 0 and min(parts) > 0
    *parts, host = model_states(arch, Options, Sharding(zero_stage=3), machine)
    _, expected, _ = stage3.estimate_zero3_model_states_mem_needs(arch.parameters, arch.largest_layer, 8, 1, False, False)
    assert sum(parts) == pytest.approx(expected) and host == 0 and min(parts) > 0
    *parts, host = model_states(arch, Options, Sharding(zero_stage=3, offload=True), machine)
    assert sum(parts) == pytest.approx(4 * arch.largest_layer) and host > 18 * arch.parameters
    plain = model_states(arch, Options, Sharding(), machine)
    assert sum(plain) == 16 * arch.parameters, "weights, gradients and two moments in 32 bits on every GPU"


def test_an_adapter_leaves_little_to_learn_and_four_bits_little_to_hold() -> None:
    arch = architecture(find_config("Qwen/Qwen3-8B"))

    class Lora(Options):
        use_peft = True

    class Qlora(Lora):
        load_in_4bit = True

    lora = model_states(arch, Lora, Sharding(zero_stage=2), Machine(8))
    qlora = model_states(arch, Qlora, Sharding(zero_stage=2), Machine(8))
    assert lora[0] >= 2 * arch.parameters and sum(lora[1:]) < 0.05 * lora[0] and qlora[0] < 0.3 * lora[0]


def test_activations_are_what_a_real_backward_pass_keeps() -> None:
    """Measured by hooks on saved tensors of the tiny model, with attention that stores no scores: within a factor of two, and above."""
    import torch

    model = tiny_model(0)
    arch = architecture(model.config)
    kept = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        model(input_ids=torch.zeros(4, 128, dtype=torch.long), use_cache=False).logits.float().logsumexp(-1).sum()
    measured = sum(size for pointer, size in kept.items() if pointer not in weights)
    estimated = 2 * activations(arch, 4, 128, checkpointing=False)  # the tiny model computes in 32 bits
    assert measured / 2 <= estimated <= 2 * measured, (measured, estimated)


def test_the_stand_in_counts_what_it_sees_and_reads_it_back() -> None:
    problems = [p for _, p in zip(range(20), draw("listworld", make_params("listworld", {"pops": 3}), seed=0, split="x"), strict=False)]
    tokenizer = stand_in_tokenizer(problems, [Setting("verbose")])
    measured = measure(Chat(tokenizer, name="stand-in"), problems, [Setting("verbose")], estimated=True)
    assert 550 < measured.prompt.p50 < 750 and 50 < measured.reply.p50 < 100
    assert measured.share_over(0) == 1.0 and measured.share_over(measured.episode.longest) == 0.0


def test_the_real_tokenizer_counts_alike(root: Path) -> None:
    """SmolLM2's, where it was built: a real merged vocabulary."""
    folder = root / "runs" / "smollm2"
    if not folder.is_dir():
        pytest.skip("make smollm2 builds it")
    from eval.backends.folder import resolve
    from eval.backends.pretrained import load_tokenizer

    problems = [p for _, p in zip(range(20), draw("tag", make_params("tag", {}), seed=0, split="x"), strict=False)]
    setting = Setting("verbose")
    real = measure(Chat(load_tokenizer(resolve(str(folder))), name="smollm2"), problems, [setting])
    guess = measure(Chat(stand_in_tokenizer(problems, [setting]), name="stand-in"), problems, [setting], estimated=True)
    assert 0.85 < guess.reply.p50 / real.reply.p50 < 1.2 and 0.85 < guess.prompt.p50 / real.prompt.p50 < 1.2


def test_people_get_lines_and_the_configuration(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert main(["doctor", "recipes/tag/tiny_grpo.yaml", "--config", "--set", "top_k=5"]) == 1
    printed = capsys.readouterr().out
    assert "top_k: 5" in printed and "no    settings   top_p, top_k, min_p" in printed
    assert main(["doctor", "nowhere.yaml"]) == 2
    error = capsys.readouterr().err
    assert "cannot read the recipe nowhere.yaml" in error and error.count("\n") == 1
    assert main(["doctor", "recipes/tag/tiny_grpo.yaml", "--set", "oops"]) == 2
