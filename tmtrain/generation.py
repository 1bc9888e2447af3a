"""The trainer's own generation, as rollouts and held-out evaluation call it: what TRL's call for one turn leaves to its callers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

#: Prompts in, and for each the new token ids; beside them their log-probabilities, or None where the engine gives none.
Generate = Callable[[list[list[int]]], tuple[list[list[int]], "list[list[float]] | None"]]


def calls_of(trainer: Any) -> tuple[Generate, Callable[[int], int]]:
    """A trainer's generation call, which every process makes with at least one prompt, and its way to add up a count over them all."""
    engine = trainer.vllm_generation if trainer.use_vllm else None
    shared = engine is not None and (engine.mode == "server" or engine.tensor_parallel_size > 1)

    def generate(contexts: list[list[int]]) -> tuple[list[list[int]], list[list[float]] | None]:
        own = len(contexts)
        if shared:
            # TRL cuts what an engine wrote for several processes into shares as long as each one's own.
            contexts = contexts + contexts[:1] * (int(counts(own).max()) - own)
        ids, logprobs = trainer._generate_single_turn(contexts, None, {}, 1)
        return ids[:own], None if logprobs is None else logprobs[:own]

    def counts(count: int) -> torch.Tensor:
        import torch

        return trainer.accelerator.gather(torch.tensor([count], device=trainer.accelerator.device))

    return generate, lambda count: int(counts(count).sum())


@contextmanager
def awake(trainer: Any) -> Iterator[None]:
    """Keeps a vLLM engine that TRL puts to sleep after every call awake for a while: to wake it up, all weights are loaded anew."""
    engine = trainer.vllm_generation if trainer.use_vllm else None
    if engine is None or engine.mode != "colocate" or not engine.enable_sleep_mode:
        yield
        return
    if engine._llm_weights_sleeping or trainer._last_loaded_step != trainer.state.global_step:
        engine.sync_weights()
        trainer._last_loaded_step = trainer.state.global_step
    engine.llm.wake_up(tags=["kv_cache"])
    engine.enable_sleep_mode = False
    try:
        yield
    finally:
        engine.enable_sleep_mode = True
        engine.llm.sleep(level=2)
        engine._llm_weights_sleeping = True


@contextmanager
def decoding(trainer: Any, max_tokens: int, temperature: float, seed: int) -> Iterator[None]:
    """Has the trainer's generation decode as an evaluation does for a while: at a temperature, 0 being greedy, at most so many tokens a
    reply, and without dropout."""
    import torch

    device = trainer.accelerator.device
    was_training = trainer.model.training
    trainer.model.eval()
    try:
        with torch.random.fork_rng([device] if device.type == "cuda" else []):  # left to itself it would touch every GPU of the machine
            torch.manual_seed(seed)
            with (_engine_decoding if trainer.use_vllm else _model_decoding)(trainer, max_tokens, temperature):
                yield
    finally:
        trainer.model.train(was_training)


@contextmanager
def _engine_decoding(trainer: Any, max_tokens: int, temperature: float) -> Iterator[None]:
    engine = trainer.vllm_generation
    before = engine.temperature, engine.generation_kwargs
    engine.temperature, engine.generation_kwargs = temperature, {**engine.generation_kwargs, "max_tokens": max_tokens}
    try:
        yield
    finally:
        engine.temperature, engine.generation_kwargs = before


@contextmanager
def _model_decoding(trainer: Any, max_tokens: int, temperature: float) -> Iterator[None]:
    from transformers import GenerationConfig

    kept, own = trainer.generation_kwargs, trainer.generation_config
    sampled = ("do_sample", "temperature", "top_p", "top_k", "min_p")
    drawn = {"do_sample": True, "temperature": temperature, "top_p": 1.0, "top_k": 0} if temperature else {"do_sample": False}
    used = {**{k: v for k, v in kept.items() if k not in sampled}, **drawn, "max_new_tokens": max_tokens}
    trainer.generation_kwargs, trainer.generation_config = used, GenerationConfig(**used, disable_compile=True)
    try:
        yield
    finally:
        trainer.generation_kwargs, trainer.generation_config = kept, own


def hand_over_by_layer(trainer: Any) -> None:
    """Has TRL hand an adapted model's weights to its engine one layer at a time: by itself it gathers all of them at once, which under
    ZeRO-3 is the whole model on every GPU."""
    engine = trainer.vllm_generation

    def weights() -> Iterator[tuple[str, torch.Tensor]]:
        for name, weight in merged_weights(engine.model, engine._dist.gather_params):
            yield engine._fix_param_name_to_vllm(name), weight

    engine._iter_named_params = weights


def merged_weights(model: Any, gather: Callable[[list[Any]], AbstractContextManager[None]]) -> Iterator[tuple[str, torch.Tensor]]:
    """An adapted model's weights with the adapter merged in, under the names of the model below it, one layer after the other.

    Args:
        model: A PEFT model with an adapter in layers of its own, as LoRA's are.
        gather: Holds the given parameters whole on every process for a while; all processes go through all weights.
    """
    from peft.tuners.tuners_utils import BaseTunerLayer

    below = model.get_base_model()
    adapted = {name: module for name, module in below.named_modules() if isinstance(module, BaseTunerLayer)}
    for name, parameter in below.named_parameters():  # a tied weight comes once
        layer, inner, own = name.partition(".base_layer.")
        if inner:
            with gather(list(adapted[layer].parameters())):
                adapted[layer].merge()
                try:
                    # A copy: an engine that is sent many weights at once looks at them only when the adapter is out of this one again.
                    yield f"{layer}.{own}", parameter.data.clone()
                finally:
                    adapted[layer].unmerge()
        elif model.prefix not in name and ".original_module." not in name:
            with gather([parameter]):
                yield name.replace(".modules_to_save.default.", "."), parameter.data
