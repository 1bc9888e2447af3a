"""The embedded model: a Qwen3 of about 200,000 parameters with a character tokenizer, built here and downloaded from nowhere.

It exists so that every part of the toolkit runs for real on a laptop. Its tokenizer is right by construction: one token a character, a
terminator that the chat template puts inside the generation block (so SFT supervises it), and a pad token that is neither.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

CHARACTERS = "\n" + "".join(map(chr, range(32, 127))) + "αβγδε"
PAD, UNKNOWN, END, SYSTEM, USER, ASSISTANT = SPECIAL = ("<|pad|>", "<|unk|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>")
CONTEXT = 8192

CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{%- if message.role == 'assistant' -%}"
    "<|assistant|>{% generation %}{{ message.content }}<|end|>{% endgeneration %}"
    "{%- else -%}"
    "{{ '<|' + message.role + '|>' + message.content + '<|end|>' }}"
    "{%- endif -%}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}<|assistant|>{%- endif -%}"
)


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    """The character tokenizer: printable ASCII, newline, five Greek letters and six special tokens."""
    from tokenizers import Regex, pre_tokenizers

    cut = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    return piece_tokenizer(CHARACTERS, cut, model_max_length=CONTEXT, padding_side="left")


def piece_tokenizer(pieces: Iterable[str], cut: Any, **options: Any) -> PreTrainedTokenizerFast:
    """A tokenizer with the six special tokens and the chat template, and one token for each of `pieces`; `cut`, a pre-tokenizer of the
    tokenizers library, cuts texts into such pieces. `options` are those of `PreTrainedTokenizerFast`."""
    from tokenizers import AddedToken, Tokenizer, decoders, models
    from transformers import PreTrainedTokenizerFast

    vocabulary = {token: i for i, token in enumerate([*SPECIAL, *pieces])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer, tokenizer.decoder = cut, decoders.Fuse()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        unk_token=UNKNOWN,
        eos_token=END,
        additional_special_tokens=[SYSTEM, USER, ASSISTANT],
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
        **options,
    )


def tiny_model(seed: int = 0) -> Qwen3ForCausalLM:
    """A freshly initialised model of 197,952 parameters for `tiny_tokenizer`; see `small_model`."""
    return small_model(len(SPECIAL) + len(CHARACTERS), seed, hidden=64, inner=160, layers=3, heads=4)


def small_model(vocabulary: int, seed: int, *, hidden: int, inner: int, layers: int, heads: int) -> Qwen3ForCausalLM:
    """A freshly initialised Qwen3 (head size 32, tied embeddings, fp32) for a tokenizer of `piece_tokenizer`.

    The global torch seed is left as it was.
    """
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    end, pad = SPECIAL.index(END), SPECIAL.index(PAD)
    config = Qwen3Config(
        vocab_size=vocabulary,
        hidden_size=hidden,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        head_dim=32,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
        bos_token_id=None,
        eos_token_id=end,
        pad_token_id=pad,
        dtype="float32",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Qwen3ForCausalLM(config)
    model.generation_config.eos_token_id, model.generation_config.pad_token_id = end, pad
    return model
