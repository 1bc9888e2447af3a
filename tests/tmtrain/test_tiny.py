"""The embedded model's tokenizer: right by construction."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("transformers")

from eval.backends.folder import resolve
from tmtrain.models import PADS, check_terminator, check_tokenizer, load_for_training, training_config, training_tokenizer
from tmtrain.tiny import CHARACTERS, END, PAD, SPECIAL, tiny_model, tiny_tokenizer

TOKENIZER = tiny_tokenizer()
MESSAGES = [{"role": "system", "content": "s"}, {"role": "user", "content": "a\nb"}, {"role": "assistant", "content": "c [α]"}]


@given(st.lists(st.text(CHARACTERS, max_size=10) | st.sampled_from(SPECIAL), max_size=6).map("".join))
@settings(max_examples=300)
def test_one_character_is_one_token_and_comes_back(text: str) -> None:
    """Where the text spells a special token, that token is read, as by any chat tokenizer; nothing else is more than a character."""
    ids = TOKENIZER(text, add_special_tokens=False)["input_ids"]
    pieces = re.findall("|".join(map(re.escape, SPECIAL)) + r"|[\s\S]", text)
    assert [TOKENIZER.convert_ids_to_tokens(i) for i in ids] == pieces
    assert TOKENIZER.decode(ids) == text


def test_the_template_trains_the_reply_and_its_terminator_only() -> None:
    out = TOKENIZER.apply_chat_template(MESSAGES, tokenize=True, return_dict=True, return_assistant_tokens_mask=True)
    trained = [i for i, m in zip(out["input_ids"], out["assistant_masks"], strict=True) if m]
    assert TOKENIZER.decode(trained) == "c [α]" + END
    assert TOKENIZER.decode(out["input_ids"]) == "<|system|>s<|end|><|user|>a\nb<|end|><|assistant|>c [α]<|end|>"


def test_a_prompt_is_the_beginning_of_its_continued_conversation() -> None:
    prompt = TOKENIZER.apply_chat_template(MESSAGES[:2], tokenize=False, add_generation_prompt=True)
    assert TOKENIZER.apply_chat_template(MESSAGES, tokenize=False).startswith(prompt)


def test_it_survives_saving(tmp_path: Path) -> None:
    pytest.importorskip("trl")
    from trl import ModelConfig

    TOKENIZER.save_pretrained(tmp_path)
    model = tiny_model(seed=3)
    model.save_pretrained(tmp_path)
    loaded, tokenizer = load_for_training(str(tmp_path), 0, ModelConfig())
    assert tokenizer.apply_chat_template(MESSAGES) == TOKENIZER.apply_chat_template(MESSAGES)
    assert (tokenizer.eos_token, tokenizer.pad_token) == (END, PAD)
    assert all((a == b).all() for a, b in zip(model.parameters(), loaded.parameters(), strict=True))
    assert loaded.generation_config.eos_token_id == tokenizer.eos_token_id


def test_its_size_and_its_seed() -> None:
    import torch

    state = torch.get_rng_state()
    first, same, other = tiny_model(1), tiny_model(1), tiny_model(2)
    assert torch.equal(state, torch.get_rng_state()), "the global generator was touched"
    assert first.num_parameters() == 197_952
    assert torch.equal(first.lm_head.weight, same.lm_head.weight) and not torch.equal(first.lm_head.weight, other.lm_head.weight)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"chat_template": None}, "has no chat template"),
        ({"eos_token": None}, "has no eos_token"),
        ({"pad_token": None}, "has no pad_token"),
        ({"pad_token": END}, "pads with its eos_token"),
    ],
)
def test_tokenizers_that_would_spoil_a_run_are_refused(change: dict[str, str | None], message: str) -> None:
    tokenizer = tiny_tokenizer()
    for name, value in change.items():
        setattr(tokenizer, name, value)
    with pytest.raises(ValueError, match=message):
        check_tokenizer(tokenizer, "model")


def test_a_terminator_that_the_model_does_not_stop_at_is_refused() -> None:
    tokenizer = tiny_tokenizer()
    check_terminator(tokenizer, tiny_model().generation_config, "model")
    tokenizer.eos_token = "<|user|>"
    with pytest.raises(ValueError, match="make them agree"):
        check_terminator(tokenizer, tiny_model().generation_config, "model")


def test_configuration_and_tokenizer_are_read_before_the_weights_are_there(tmp_path: Path) -> None:
    """As `tmtrain doctor` reads them."""
    tiny_model().config.save_pretrained(tmp_path)
    TOKENIZER.save_pretrained(tmp_path)
    assert training_config(str(tmp_path)).hidden_size == tiny_model().config.hidden_size
    assert training_tokenizer(str(tmp_path)).pad_token == PAD
    with pytest.raises(ValueError, match="holds no weights"):
        resolve(str(tmp_path))


def test_a_token_kept_for_padding_pads(tmp_path: Path) -> None:
    """Llama 3.1's vocabulary holds one that its tokenizer does not name."""
    tokenizer = tiny_tokenizer()
    tokenizer.add_tokens([PADS[0]], special_tokens=True)
    tokenizer.pad_token = None
    tokenizer.save_pretrained(tmp_path)
    tiny_model().save_pretrained(tmp_path)
    assert training_tokenizer(str(tmp_path)).pad_token == PADS[0]
