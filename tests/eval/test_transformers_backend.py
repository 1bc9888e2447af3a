"""The transformers backend on the tiny model, whose every token can be checked."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch

from eval.backends.sampling import Sampling
from eval.backends.transformers_backend import TransformersPolicy, load_transformers, stop_ids, weights_hash
from eval.episodes import Completion, OverlongPrompt
from tmtrain.tiny import tiny_model, tiny_tokenizer

PROMPTS = [[{"role": "user", "content": "x" * n}] for n in (1, 30, 7, 12, 3)]


def policy(sampling: Sampling, batch_size: int = 4, seed: int = 0) -> TransformersPolicy:
    return TransformersPolicy(tiny_model(0), tiny_tokenizer(), sampling, name="tiny", batch_size=batch_size, seed=seed)


def replies(policy: TransformersPolicy) -> list[Completion]:
    async def all_at_once() -> list[Completion]:
        return await asyncio.gather(*(policy.complete(p) for p in PROMPTS))

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
    first, same, other = (replies(policy(Sampling(max_tokens=12, temperature=1.0), seed=s)) for s in (1, 1, 2))
    assert first == same and first != other
    assert torch.equal(state, torch.get_rng_state()), "the global generator was touched"


def test_a_reply_ends_at_its_terminator_and_says_when_it_was_cut() -> None:
    tiny = policy(Sampling(max_tokens=5))
    end, letter = tiny.tokenizer.eos_token_id, tiny.tokenizer("a")["input_ids"][0]
    assert tiny._reply([letter, end, 0, 0]) == ([letter, end], False)
    assert tiny._reply([letter] * 5) == ([letter] * 5, True)


def test_a_prompt_longer_than_the_context_is_named_and_not_cut() -> None:
    tiny = policy(Sampling(max_tokens=5))
    tiny.model.config.max_position_embeddings = 20
    short = TransformersPolicy(tiny.model, tiny.tokenizer, Sampling(max_tokens=5), name="short")
    with pytest.raises(OverlongPrompt, match="33 tokens, the context 20"):
        asyncio.run(short.complete(PROMPTS[1]))


def test_stop_tokens_are_the_union_of_tokenizer_and_generation_config() -> None:
    model, tokenizer = tiny_model(0), tiny_tokenizer()
    model.generation_config.eos_token_id = [7, 9]
    assert stop_ids(model, tokenizer) == [tokenizer.eos_token_id, 7, 9]


def test_the_models_own_generation_defaults_are_not_in_force() -> None:
    tiny = policy(Sampling(max_tokens=12))
    tiny.model.generation_config.repetition_penalty = 5.0
    tiny.model.generation_config.do_sample = True
    assert [c.text for c in replies(tiny)] == [c.text for c in replies(policy(Sampling(max_tokens=12)))]


def test_a_tokenizer_without_template_is_refused() -> None:
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = None
    with pytest.raises(ValueError, match="no chat template"):
        TransformersPolicy(tiny_model(0), tokenizer, Sampling(), name="bare")


def test_the_weights_hash_is_of_the_weights(tmp_path: Path) -> None:
    tiny_model(0).save_pretrained(tmp_path / "a")
    tiny_model(0).save_pretrained(tmp_path / "b")
    tiny_model(1).save_pretrained(tmp_path / "c")
    assert weights_hash(str(tmp_path / "a")) == weights_hash(str(tmp_path / "b")) != weights_hash(str(tmp_path / "c"))
    assert weights_hash("some/hub-id") is None


def test_a_folder_without_a_model_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ValueError) as error:
        load_transformers(str(tmp_path), Sampling(), batch_size=1, seed=0)
    assert "cannot load" in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("wrong", [{"max_tokens": 0}, {"temperature": -1.0}, {"top_p": 0.0}, {"top_k": -1}])
def test_impossible_sampling_is_refused(wrong: dict) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Sampling(**wrong)
