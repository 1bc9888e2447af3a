"""Loading what is trained: the embedded tiny model, a checkpoint folder or a model of the hub, with a tokenizer fit for training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eval.backends.folder import resolve
from eval.backends.pretrained import load_base, load_config, load_tokenizer
from tmtrain.launch import launched_sharding
from tmtrain.specialist import specialist_model, specialist_tokenizer
from tmtrain.tiny import tiny_model, tiny_tokenizer

if TYPE_CHECKING:
    from trl import ModelConfig


#: Tokens for padding that some vocabularies hold and their tokenizers do not name: Llama 3.1's.
PADS = ("<|finetune_right_pad_id|>",)
#: Models that are built here, freshly initialised: what makes the model, from a seed, and its tokenizer.
FRESH = {"tiny": (tiny_model, tiny_tokenizer), "specialist": (specialist_model, specialist_tokenizer)}


def load_for_training(name: str, seed: int, options: ModelConfig, *, trust_remote_code: bool = False) -> tuple[Any, Any]:
    """A model and its tokenizer.

    The weights are loaded in `options.dtype`, float32 unless said: bf16 belongs into the computation (`bf16: true`), since small updates
    to bf16 weights are lost by rounding.

    Args:
        name: One of `FRESH`, else a checkpoint folder, an adapter's folder or a model of the hub (safetensors only). An adapter is
            trained on.
        seed: Of the initialisation, for those of `FRESH`.
        options: How to load it.
        trust_remote_code: Whether code that comes with the model may run.

    Raises:
        ValueError: Where it cannot be loaded, or its tokenizer would spoil a run without a word: see `check_tokenizer`.
    """
    if name in FRESH:
        make_model, make_tokenizer = FRESH[name]
        return make_model(seed), make_tokenizer()
    from trl import get_quantization_config

    source = resolve(name)
    tokenizer = training_tokenizer(name, trust_remote_code=trust_remote_code)
    check_tokenizer(tokenizer, name)  # before minutes go into the weights
    loading: dict[str, Any] = {"trust_remote_code": trust_remote_code, "dtype": options.dtype}
    if options.attn_implementation:
        loading["attn_implementation"] = options.attn_implementation
    if (quantization := get_quantization_config(options)) is not None:
        loading["quantization_config"] = quantization
    model = load_base(source, **loading)
    check_terminator(tokenizer, model.generation_config, name)
    if source.adapter:
        from peft import PeftModel

        model = PeftModel.from_pretrained(model, source.adapter, is_trainable=True)
    return model, tokenizer


def new_adapter(model: Any, options: ModelConfig) -> Any:
    """The configuration of the LoRA adapter to train on a model; None where the model itself, or the adapter it has, is trained."""
    from trl import get_peft_config

    return None if getattr(model, "peft_config", None) is not None else get_peft_config(options)


def keep_adapter_precise(model: Any) -> None:
    """Puts the adapter on quantized weights back into 32 bits: TRL makes it 16, in which most steps of a usual learning rate are lost by
    rounding. DeepSpeed keeps 32 bits of its own, and FSDP spreads only weights of one type."""
    if getattr(model, "is_quantized", False) and launched_sharding() == (0, False):
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.data = parameter.data.float()


def training_config(name: str, *, trust_remote_code: bool = False) -> Any:
    """The configuration alone of what `load_for_training` loads."""
    return FRESH[name][0]().config if name in FRESH else load_config(resolve(name, weights=False), trust_remote_code=trust_remote_code)


def training_tokenizer(name: str, *, trust_remote_code: bool = False) -> Any:
    """The tokenizer alone of what `load_for_training` loads; where it names no pad token, with the one that its vocabulary keeps for it."""
    if name in FRESH:
        return FRESH[name][1]()
    tokenizer = load_tokenizer(resolve(name, weights=False), trust_remote_code=trust_remote_code)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = next((token for token in PADS if token in tokenizer.get_vocab()), None)
    return tokenizer


def check_tokenizer(tokenizer: Any, name: str) -> None:
    """Refuses tokenizers whose silent defaults spoil training.

    Raises:
        ValueError: Without a chat template, a terminator or a pad token; or where pad and terminator are one token (then the terminator
            is masked and never learned).
    """
    if not tokenizer.chat_template:
        raise ValueError(f"{name} has no chat template: set tokenizer.chat_template and save it with the model")
    if tokenizer.eos_token_id is None:
        raise ValueError(f"{name} has no eos_token: replies would never end; set it and save the tokenizer")
    if tokenizer.pad_token_id is None:
        raise ValueError(f"{name} has no pad_token: set it to a token that is not the eos_token and save the tokenizer")
    if tokenizer.pad_token_id == tokenizer.eos_token_id:
        raise ValueError(f"{name} pads with its eos_token, so ending a reply would never be learned: set another pad_token")


def check_terminator(tokenizer: Any, config: Any, name: str) -> None:
    """Raises ValueError where the tokenizer's terminator is not among those of a generation config (or a model's), so generation would run
    past it."""
    configured = getattr(config, "eos_token_id", None)
    ends = configured if isinstance(configured, list) else [configured]
    if configured is not None and tokenizer.eos_token_id not in ends:
        raise ValueError(
            f"{name}: the tokenizer ends replies with token {tokenizer.eos_token_id}, the generation config with {configured}: "
            "make them agree"
        )
