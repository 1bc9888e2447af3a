"""The shapes of the models that the recipes name, for a machine that cannot ask the hub; and a model of any shape without its weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tmtrain.models import training_config

_QWEN3 = {
    "model_type": "qwen3",
    "vocab_size": 151_936,
    "head_dim": 128,
    "num_key_value_heads": 8,
    "max_position_embeddings": 40_960,
}
_LLAMA3 = {
    "model_type": "llama",
    "vocab_size": 128_256,
    "head_dim": 128,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131_072,
}


def _shape(base: dict[str, Any], hidden: int, inner: int, layers: int, heads: int, *, tied: bool) -> dict[str, Any]:
    return {
        **base,
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "tie_word_embeddings": tied,
    }


#: As published in each model's config.json.
KNOWN: dict[str, dict[str, Any]] = {
    "Qwen/Qwen3-0.6B": _shape(_QWEN3, 1024, 3072, 28, 16, tied=True),
    "Qwen/Qwen3-1.7B": _shape(_QWEN3, 2048, 6144, 28, 16, tied=True),
    "Qwen/Qwen3-4B": _shape(_QWEN3, 2560, 9728, 36, 32, tied=True),
    "Qwen/Qwen3-8B": _shape(_QWEN3, 4096, 12288, 36, 32, tied=False),
    "Qwen/Qwen3-14B": _shape(_QWEN3, 5120, 17408, 40, 40, tied=False),
    "Qwen/Qwen3-32B": _shape(_QWEN3, 5120, 25600, 64, 64, tied=False),
    "meta-llama/Llama-3.1-8B-Instruct": _shape(_LLAMA3, 4096, 14336, 32, 32, tied=False),
}


@dataclass(frozen=True, slots=True)
class Architecture:
    """Sizes of a causal language model.

    Attributes:
        parameters: All of them.
        embedding: Of the token embedding, or of it and the output layer where they are not tied.
        largest_layer: Of the largest single module that holds parameters itself.
        linear_shapes: (inputs, outputs) of every linear layer in the blocks, which LoRA adapts.
        hidden, inner, layers, vocabulary: The usual sizes.
        kv_bytes: Of keys and values of one token over all layers, at two bytes a number.
        context: Longest sequence, in tokens.
    """

    parameters: int
    embedding: int
    largest_layer: int
    linear_shapes: tuple[tuple[int, int], ...]
    hidden: int
    inner: int
    layers: int
    vocabulary: int
    kv_bytes: int
    context: int


def find_config(name: str, *, trust_remote_code: bool = False) -> Any:
    """The configuration of a folder, of the hub, or of `KNOWN`; None where none of them has it."""
    from transformers import AutoConfig

    try:
        return training_config(name, trust_remote_code=trust_remote_code)
    except ValueError:
        shape = KNOWN.get(name)
        return AutoConfig.for_model(**shape) if shape else None


def architecture(config: Any) -> Architecture:
    """The sizes of a model with this configuration, which is built without memory for its weights."""
    import torch
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    own = [sum(p.numel() for p in module.parameters(recurse=False)) for module in model.modules()]
    outer = {id(m) for m in (model.get_input_embeddings(), model.get_output_embeddings())}
    linear = [m for m in model.modules() if isinstance(m, torch.nn.Linear) and id(m) not in outer]
    embedding = model.get_input_embeddings().weight.numel()
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return Architecture(
        parameters=sum(p.numel() for p in model.parameters()),
        embedding=embedding * (1 if config.tie_word_embeddings else 2),
        largest_layer=max(own),
        linear_shapes=tuple((m.in_features, m.out_features) for m in linear),
        hidden=config.hidden_size,
        inner=config.intermediate_size,
        layers=config.num_hidden_layers,
        vocabulary=config.vocab_size,
        kv_bytes=2 * config.num_hidden_layers * config.num_key_value_heads * head_dim * 2,
        context=config.max_position_embeddings,
    )
