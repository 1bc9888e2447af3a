"""Settings that do not go together, in one table: recipes refuse them before they start, and `tmtrain doctor` names them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tmtrain.models import FRESH
from tmtrain.recipe import GRPORecipe, Recipe

if TYPE_CHECKING:
    from trl import GRPOConfig, ModelConfig, SFTConfig

#: Losses of TRL that are sums over tokens, so that each token may have an advantage of its own.
STEP_LOSSES = ("grpo", "dapo", "bnpo", "dr_grpo")
#: Of `generation_kwargs`: what would change the distribution that tokens are drawn from.
SAMPLING_KEYS = frozenset(
    "do_sample temperature top_p top_k min_p typical_p repetition_penalty presence_penalty frequency_penalty no_repeat_ngram_size "
    "num_beams logit_bias bad_words bad_words_ids".split()
)


@dataclass(frozen=True, slots=True)
class Settings:
    """What a run was configured with.

    Attributes:
        recipe, config, options: The recipe's own fields, TRL's, and how the model is loaded.
        multi_turn: Whether an episode takes several replies.
        zero_stage: DeepSpeed's stage; 0 without DeepSpeed.
        sharded: Whether weights are spread over the processes, by ZeRO-3 or FSDP.
    """

    recipe: Recipe
    config: GRPOConfig | SFTConfig
    options: ModelConfig
    multi_turn: bool = False
    zero_stage: int = 0
    sharded: bool = False


@dataclass(frozen=True, slots=True)
class Combination:
    """Settings that are refused together.

    Attributes:
        field: What to change.
        holds: Whether a run has them.
        why: What is wrong and what to do.
    """

    field: str
    holds: Callable[[Settings], bool]
    why: str


def refused(settings: Settings) -> Iterator[str]:
    """A line for each refused combination that a run has."""
    table = (*_BOTH, *(_GRPO if isinstance(settings.recipe, GRPORecipe) else ()))
    return (f"{c.field}: {c.why}" for c in table if c.holds(settings))


def check_combinations(settings: Settings) -> None:
    """Raises ValueError for the first refused combination."""
    if (first := next(refused(settings), None)) is not None:
        raise ValueError(first)


def _by_step(s: Settings) -> bool:
    return s.recipe.credit != "outcome"  # type: ignore[attr-defined]


def _quantized(s: Settings) -> bool:
    return s.options.load_in_4bit or s.options.load_in_8bit


def _engine(s: Settings) -> bool:
    return s.config.use_vllm  # type: ignore[union-attr]


_BOTH = (
    Combination(
        "dtype",
        lambda s: s.options.dtype != "float32" and s.zero_stage == 0 and not (s.options.use_peft or s.sharded),
        "weights kept in 16 bits (as auto does where they were saved so) lose small updates by rounding: leave it at float32 and "
        "compute in 16 bits by bf16: true",
    ),
    Combination(
        "load_in_4bit, load_in_8bit",
        lambda s: _quantized(s) and not s.options.use_peft,
        "quantized weights cannot be trained themselves: add use_peft: true",
    ),
    Combination(
        "bnb_4bit_quant_storage",
        lambda s: s.options.load_in_4bit and s.sharded and s.options.bnb_4bit_quant_storage is None,
        "weights of four bits are spread over processes only where they are stored as the type that is computed in: set it to bfloat16",
    ),
    Combination(
        "use_peft",
        lambda s: s.options.use_peft and s.recipe.model in FRESH and getattr(s.recipe, "warmup", None) is None,
        "an adapter on the freshly initialised model could not be loaded again: train a saved checkpoint",
    ),
)

_GRPO = (
    Combination(
        "loss_type",
        lambda s: _by_step(s) and s.config.loss_type not in STEP_LOSSES,
        f"it weighs whole replies, which credit by step does not fit: use {', '.join(STEP_LOSSES)}",
    ),
    Combination(
        "importance_sampling_level",
        lambda s: _by_step(s) and s.config.importance_sampling_level != "token",
        "credit by step needs token, since advantages differ within a reply",
    ),
    Combination(
        "top_p, top_k, min_p",
        lambda s: bool(s.config.top_p < 1 or s.config.top_k > 0 or s.config.min_p),
        "rollouts must be drawn from the whole distribution, or the gradient is biased: leave them off",
    ),
    Combination(
        "repetition_penalty, generation_kwargs",
        lambda s: s.config.repetition_penalty != 1 or bool(SAMPLING_KEYS & (s.config.generation_kwargs or {}).keys()),
        "they change what rollouts, and evaluation while training, are drawn from: leave them off; the temperature is 'temperature'",
    ),
    Combination(
        "reward_weights",
        lambda s: s.config.reward_weights is not None,
        "the parts are weighed by 'reward', such as {step: 1, success: 0.5, format: 0.1}",
    ),
    Combination(
        "oracles",
        lambda s: s.multi_turn and s.recipe.setting.history,
        "the history oracle rewrites the context every turn, so an episode is no one sequence to train on: leave history out, or use SFT",
    ),
    Combination(
        "load_in_4bit, load_in_8bit",
        lambda s: _quantized(s) and _engine(s),
        "TRL would have vLLM load weights of the same kind, which this vLLM cannot: set use_vllm: false",
    ),
    Combination(
        "vllm_importance_sampling_mode",
        lambda s: _engine(s) and s.config.vllm_importance_sampling_correction and s.config.vllm_importance_sampling_mode == "sequence_mask",
        "sequence_mask drops long episodes, whose small differences add up: set it to token_truncate",
    ),
    Combination(
        "mask_truncated_completions",
        lambda s: s.config.mask_truncated_completions and s.multi_turn,
        "it looks at the last token only, which in an episode of several turns may be the environment's: leave it off",
    ),
    Combination(
        "use_transformers_continuous_batching",
        lambda s: bool(s.config.use_transformers_continuous_batching),
        "it was not tried with this trainer: leave it off, or use vllm",
    ),
)
