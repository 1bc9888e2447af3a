"""The transformers backend on the tiny model, whose every token can be checked."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from envs.environment import Setting
from envs.registry import load_env
from eval.backends.chat import Chat
from eval.backends.folder import Model, weights_hash
from eval.backends.load import load_policy
from eval.backends.options import Options
from eval.backends.sampling import Sampling
from eval.backends.tokens import stop_ids, yarn_parameters
from eval.backends.transformers_backend import TransformersPolicy
from eval.episodes import Completion, OverlongPrompt
from eval.records import SAMPLES, read_records
from eval.runs import Evaluation, evaluate
from tmtrain.tiny import tiny_model, tiny_tokenizer

PROMPTS = [[{"role": "user", "content": "x" * n}] for n in (1, 30, 7, 12, 3)]


TINY = Model("tiny", "tiny")


def policy(sampling: Sampling, batch_size: int = 4) -> TransformersPolicy:
    return TransformersPolicy(tiny_model(0), Chat(tiny_tokenizer(), name="tiny"), sampling, source=TINY, batch_size=batch_size)


def replies(policy: TransformersPolicy) -> list[Completion]:
    async def all_at_once() -> list[Completion]:
        return await asyncio.gather(*(policy.session(None, str(i)).reply(p) for i, p in enumerate(PROMPTS)))  # type: ignore[arg-type]

    return asyncio.run(all_at_once())


def test_batching_and_padding_change_nothing_when_greedy() -> None:
    together, alone = replies(policy(Sampling(max_tokens=12))), replies(policy(Sampling(max_tokens=12), batch_size=1))
    assert [c.text for c in together] == [c.text for c in alone]
    assert [c.prompt_tokens for c in together] == [len(p[0]["content"]) + 3 for p in PROMPTS]


def test_greedy_is_the_argmax_of_the_bare_model() -> None:
    model, tokenizer = tiny_model(0).eval(), tiny_tokenizer()
    ids = tokenizer.apply_chat_template(PROMPTS[2], add_generation_prompt=True, return_tensors="pt", return_dict=True)["input_ids"]
    for _ in range(12):
        ids = torch.cat([ids, model(ids).logits[:, -1].argmax(-1, keepdim=True)], dim=1)
    assert replies(policy(Sampling(max_tokens=12)))[2].text == tokenizer.decode(ids[0, -12:], skip_special_tokens=True)


def test_sampling_depends_on_the_seed_and_on_nothing_else() -> None:
    state = torch.get_rng_state()
    first, same, other = (replies(policy(Sampling(max_tokens=12, temperature=1.0, seed=s))) for s in (1, 1, 2))
    assert first == same and first != other
    assert torch.equal(state, torch.get_rng_state()), "the global generator was touched"


def test_a_resumed_run_draws_what_the_whole_one_would_have(tmp_path: Path) -> None:
    """Stopped after one batch of two, of four samples of one problem: the other two neither change nor repeat the first."""
    sampled = Sampling(max_tokens=12, temperature=1.0)
    four = dataclasses.replace(evaluation([8]), samples=4, concurrency=4)
    evaluate(policy(sampled, batch_size=2), four, tmp_path / "whole", progress=False)
    whole = {r.sample: r.replies for r in read_records(tmp_path / "whole")}
    shutil.copytree(tmp_path / "whole", tmp_path / "stopped")
    samples = tmp_path / "stopped" / SAMPLES
    samples.write_text("".join(line for line in samples.read_text().splitlines(keepends=True) if json.loads(line)["sample"] < 2))
    evaluate(policy(sampled, batch_size=2), four, tmp_path / "stopped", resume=True, progress=False)
    assert {r.sample: r.replies for r in read_records(tmp_path / "stopped")} == whole
    assert len({str(reply) for reply in whole.values()}) == 4


def test_a_run_goes_on_with_another_batch_size(tmp_path: Path) -> None:
    two = evaluation([4, 8])
    whole = evaluate(policy(Sampling(max_tokens=5)), two, tmp_path, progress=False)
    samples = tmp_path / SAMPLES
    samples.write_text(samples.read_text().splitlines(keepends=True)[0])
    assert evaluate(policy(Sampling(max_tokens=5), batch_size=1), two, tmp_path, resume=True, progress=False) == whole


def test_a_full_gpu_is_one_line_that_names_the_remedy_and_the_model_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nGPU 0 has a total capacity of 1.00 GiB")

    tiny = policy(Sampling(max_tokens=5))
    own = tiny.model.generation_config
    monkeypatch.setattr(tiny.model, "generate", full)
    with pytest.raises(
        ValueError, match=r"full with 4 sequences of up to 33 tokens .* lower --batch-size, and .*--resume \(CUDA .* GiB\.\)$"
    ):
        replies(tiny)
    assert tiny.model.generation_config is own


def test_a_reply_ends_at_its_terminator_and_says_when_it_was_cut() -> None:
    tiny = policy(Sampling(max_tokens=5))
    end, letter = tiny.chat.tokenizer.eos_token_id, tiny.chat.tokenizer("a")["input_ids"][0]
    assert tiny._reply([letter, end, 0, 0]) == ([letter, end], False)
    assert tiny._reply([letter] * 5) == ([letter] * 5, True)


def test_a_prompt_longer_than_the_context_is_named_and_not_cut() -> None:
    tiny = policy(Sampling(max_tokens=5))
    short = TransformersPolicy(tiny.model, tiny.chat, Sampling(max_tokens=5), source=TINY, context=20)
    with pytest.raises(OverlongPrompt, match="33 tokens, the context 20"):
        asyncio.run(short.session(None, "").reply(PROMPTS[1]))  # type: ignore[arg-type]


def test_stop_tokens_are_the_union_of_tokenizer_and_generation_config() -> None:
    model, tokenizer = tiny_model(0), tiny_tokenizer()
    model.generation_config.eos_token_id = [7, 9]
    assert stop_ids(model.generation_config, tokenizer) == [tokenizer.eos_token_id, 7, 9]


def test_the_models_own_generation_defaults_are_not_in_force() -> None:
    tiny = policy(Sampling(max_tokens=12))
    tiny.model.generation_config.repetition_penalty = 5.0
    tiny.model.generation_config.do_sample = True
    assert [c.text for c in replies(tiny)] == [c.text for c in replies(policy(Sampling(max_tokens=12)))]


def test_a_tokenizer_without_template_is_refused() -> None:
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = None
    with pytest.raises(ValueError, match="no chat template"):
        Chat(tokenizer, name="bare")


def test_the_weights_hash_is_of_the_weights(tmp_path: Path) -> None:
    tiny_model(0).save_pretrained(tmp_path / "a")
    tiny_model(0).save_pretrained(tmp_path / "b")
    tiny_model(1).save_pretrained(tmp_path / "c")
    assert weights_hash(str(tmp_path / "a")) == weights_hash(str(tmp_path / "b")) != weights_hash(str(tmp_path / "c"))
    assert weights_hash("some/hub-id") is None


def test_a_folder_without_a_model_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ValueError) as error:
        load_policy(str(tmp_path), Sampling(), Options(backend="transformers"))
    assert "holds no model" in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("wrong", [{"max_tokens": 0}, {"temperature": -1.0}, {"top_p": 0.0}, {"top_k": -1}, {"top_p": 0.9}, {"top_k": 5}])
def test_impossible_sampling_is_refused(wrong: dict) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Sampling(**wrong)


def evaluation(lengths: list[int]) -> Evaluation:
    """Tag problems whose compact prompts have about these lengths in characters."""
    env = load_env("tag")
    problems = [
        env.problem({"m": 2, "alphabet": "AB", "rules": {"A": "A", "B": "AB"}, "init": "AB" * (n // 2), "max_steps": 2}) for n in lengths
    ]
    return Evaluation(problems, "test", Setting("compact"))


def test_prompts_and_asked_lengths_are_checked_before_anything_is_generated(tmp_path: Path) -> None:
    def limited(sampling: Sampling, context: int) -> TransformersPolicy:
        return TransformersPolicy(tiny_model(0), Chat(tiny_tokenizer(), name="tiny"), sampling, source=TINY, context=context)

    summary = evaluate(limited(Sampling(), 60), evaluation([4, 8, 100]), tmp_path / "a", progress=False)
    assert summary["endings"]["overlong_prompt"] == 1
    assert any("1 of 3 prompts do not fit" in n for n in summary["notes"]) and any("leaves" in n for n in summary["notes"])
    with pytest.raises(ValueError, match="every prompt is longer"):
        evaluate(limited(Sampling(), 60), evaluation([100]), tmp_path / "b", progress=False)
    with pytest.raises(ValueError, match=r"max_tokens 50 would not be in force.*leaves room for"):
        evaluate(limited(Sampling(max_tokens=50), 60), evaluation([4]), tmp_path / "c", progress=False)
    with pytest.raises(ValueError, match="max_tokens 60 does not fit"):
        limited(Sampling(max_tokens=60), 60)
    assert not (tmp_path / "b").exists() and not (tmp_path / "c").exists()


def test_an_adapters_folder_is_loaded_on_its_base_and_changes_the_replies(tmp_path: Path) -> None:
    from peft import LoraConfig, get_peft_model

    tiny_model(0).save_pretrained(tmp_path / "base")
    tiny_tokenizer().save_pretrained(tmp_path / "base")
    base: Any = tiny_model(0)
    base.name_or_path = base.config._name_or_path = str(tmp_path / "base")
    adapted = get_peft_model(base, LoraConfig(r=4, target_modules="all-linear", init_lora_weights=False))
    adapted.save_pretrained(tmp_path / "lora")
    options = Options(backend="transformers")
    plain, lora = (load_policy(str(tmp_path / n), Sampling(max_tokens=40), options) for n in ("base", "lora"))
    merged = TransformersPolicy(adapted.merge_and_unload(), Chat(tiny_tokenizer(), name="m"), Sampling(max_tokens=40), source=TINY)
    texts = [[c.text for c in replies(p)] for p in (plain, lora, merged)]  # type: ignore[arg-type]
    assert texts[0] != texts[1] == texts[2]
    assert all(c.completion_tokens == 40 or not c.truncated for c in replies(lora))  # type: ignore[arg-type]
    assert lora.describe()["adapter"]["base"] == str(tmp_path / "base")  # type: ignore[index]


def test_yarn_is_in_force_or_refused(tmp_path: Path) -> None:
    tiny_model(0).save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    policy = load_policy(str(tmp_path), Sampling(max_tokens=4), Options(backend="transformers", yarn=2.0))
    assert policy.context == 2 * 8192 and policy.describe()["rope"]["rope_type"] == "yarn"  # type: ignore[index]
    for options, line in [({"yarn": 1.0}, "factor above 1"), ({"context": 10_000}, "reads 8192 tokens at most")]:
        with pytest.raises(ValueError, match=line):
            load_policy(str(tmp_path), Sampling(), Options(backend="transformers", **options))  # type: ignore[arg-type]


def test_a_context_is_in_force_and_the_config_is_left_alone(tmp_path: Path) -> None:
    """Phi-3's positions are scaled by the length in the config (longrope); that of Gemma 3 stands in the config of its text model only."""
    from transformers import Gemma3Config, Gemma3ForConditionalGeneration, Phi3Config, Phi3ForCausalLM, SiglipVisionConfig

    size = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2}
    text = {**size, "vocab_size": len(tiny_tokenizer()), "pad_token_id": 0, "eos_token_id": 2, "bos_token_id": None}
    long = {"rope_type": "longrope", "rope_theta": 1e4, "short_factor": [1.0] * 8, "long_factor": [2.0] * 8, "partial_rotary_factor": 1.0}
    phi = Phi3Config(**text, max_position_embeddings=400, original_max_position_embeddings=200, rope_parameters=long)
    Phi3ForCausalLM(phi).save_pretrained(tmp_path / "phi")
    vision = SiglipVisionConfig(
        hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, image_size=14, patch_size=14
    )
    inner = {**text, "head_dim": 16, "max_position_embeddings": 400}
    gemma = Gemma3Config(text_config=inner, vision_config=vision, mm_tokens_per_image=1)
    Gemma3ForConditionalGeneration(gemma).save_pretrained(tmp_path / "gemma")
    for name in ("phi", "gemma"):
        tiny_tokenizer().save_pretrained(tmp_path / name)
        whole = load_policy(str(tmp_path / name), Sampling(), Options(backend="transformers"))
        short = load_policy(str(tmp_path / name), Sampling(), Options(backend="transformers", context=100))
        assert (whole.context, short.context) == (400, 100)  # type: ignore[attr-defined]
        assert short.model.config.get_text_config().max_position_embeddings == 400  # type: ignore[attr-defined]
        assert short.describe()["rope"] == whole.describe()["rope"]
        with pytest.raises(ValueError, match="reads 400 tokens at most"):
            load_policy(str(tmp_path / name), Sampling(), Options(backend="transformers", context=401))


def test_the_length_that_yarn_stretches() -> None:
    """Qwen3's own recipe: a factor of 4 makes 131,072 tokens of 32,768, though its config says 40,960."""
    from transformers import LlamaConfig, Qwen3Config, Qwen3MoeConfig

    for config, length in [
        (Qwen3Config(max_position_embeddings=40_960), 32_768),
        (Qwen3MoeConfig(max_position_embeddings=40_960), 32_768),
        (Qwen3Config(max_position_embeddings=262_144), 262_144),
        (LlamaConfig(max_position_embeddings=40_960), 40_960),
    ]:
        found = yarn_parameters(config, 4.0, "m")
        assert found["rope_parameters"]["original_max_position_embeddings"] == length
        assert found["max_position_embeddings"] == 4 * length


UNHEEDED = {"vllm": {"retries": 1, "timeout": 5.0, "batch_size": 8}, "transformers": {"retries": 1, "timeout": 5.0, "tensor_parallel": 2}}


@pytest.mark.parametrize(("backend", "option"), [(backend, option) for backend, options in UNHEEDED.items() for option in options])
def test_an_option_of_another_backend_is_refused_before_the_model_is_looked_for(backend: str, option: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=rf"^{option} is for \w+, and the backend is {backend}: leave it out$"):
        load_policy(str(tmp_path), Sampling(), Options(backend=backend, **{option: UNHEEDED[backend][option]}))


def test_a_tokenizer_whose_end_differs_from_the_configs_gets_a_note(tmp_path: Path) -> None:
    model = tiny_model(0)
    model.generation_config.eos_token_id = 20
    model.save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    policy = load_policy(str(tmp_path), Sampling(), Options(backend="transformers"))
    (note,) = policy.notes()
    assert "different ends" in note and "<|end|>" in note
    assert policy.describe()["stop_token_ids"] == [2, 20]


def test_a_tokenizer_without_pad_is_no_obstacle_to_evaluation() -> None:
    tokenizer = tiny_tokenizer()
    tokenizer.pad_token = None
    bare = TransformersPolicy(tiny_model(0), Chat(tokenizer, name="t"), Sampling(max_tokens=12), source=TINY, batch_size=4)
    assert [c.text for c in replies(bare)] == [c.text for c in replies(policy(Sampling(max_tokens=12)))]
