"""Models through `transformers.generate`, batched: runs wherever torch runs, and is the yardstick for the faster engines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from envs.problem import stream
from eval.backends.chat import Chat
from eval.backends.folder import Model
from eval.backends.options import Options, load_chat
from eval.backends.pretrained import load_base, load_config, one_line
from eval.backends.sampling import Sampling
from eval.backends.tokens import TokenPolicy, stop_ids, yarn_parameters
from eval.batching import Batcher


class TransformersPolicy(TokenPolicy):
    """A causal language model, already loaded.

    Args:
        model: The model; it is put into evaluation mode for each batch and back after it.
        chat: Its tokenizer and template.
        sampling: How to decode. A batch is drawn from the seeds of all its prompts, and which wait together depends on the episodes, so
            sampled runs are reproducible only where all episodes start together, as single-turn ones do.
        source: Where the model comes from.
        batch_size: Most prompts decoded together.
        context: Longest sequence in tokens, or None where there is no limit.
    """

    backend = "transformers"

    def __init__(
        self, model: Any, chat: Chat, sampling: Sampling, *, source: Model, batch_size: int = 32, context: int | None = None
    ) -> None:
        super().__init__(source, chat, sampling, stop_ids(model.generation_config, chat.tokenizer), context)
        self.model = model
        pad = chat.tokenizer.pad_token_id
        self._pad = self.stops[0] if pad is None else pad  # masked, so any token does
        self._batch_size = batch_size
        self._batcher: Batcher[tuple[list[int], int, str], tuple[list[int], bool]] = Batcher(self._generate, batch_size)

    def describe(self) -> dict[str, object]:
        return {
            **super().describe(),
            "dtype": str(self.model.dtype),
            "revision": getattr(self.model.config, "_commit_hash", None),
            "rope": getattr(self.model.config, "rope_parameters", None),
            "batch_size": self._batch_size,
        }

    async def generate(self, prompt: list[int], max_tokens: int, seed: str) -> tuple[list[int], bool]:
        return await self._batcher.ask((prompt, max_tokens, seed))

    def _generate(self, requests: Sequence[tuple[list[int], int, str]]) -> list[tuple[list[int], bool]]:
        """Decodes a batch."""
        import torch

        prompts, limits, seeds = zip(*requests, strict=True)
        width = max(map(len, prompts))
        ids = torch.tensor([[self._pad] * (width - len(p)) + p for p in prompts], device=self.model.device)
        mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts], device=self.model.device)
        # What a config passed to `generate` leaves unset is filled in from the model's own, so that one is replaced for the call.
        was_training, own_config = self.model.training, self.model.generation_config
        self.model.eval()
        self.model.generation_config = self._config(max(limits))
        devices = [self.model.device] if self.model.device.type == "cuda" else []
        try:
            with torch.random.fork_rng(devices=devices), torch.inference_mode():
                torch.manual_seed(stream("sampling", self.sampling.seed, *seeds).getrandbits(63))
                out = self.model.generate(input_ids=ids, attention_mask=mask)
        except torch.OutOfMemoryError as error:
            raise ValueError(
                f"the GPU's memory is full with {len(requests)} sequences of up to {ids.size(1)} tokens and their replies: lower "
                f"--batch-size, and go on with --resume ({str(error).splitlines()[0]})"
            ) from None
        finally:
            self.model.train(was_training)
            self.model.generation_config = own_config
        rows = out[:, width:].tolist()
        return [self._reply(row[:limit]) for row, limit in zip(rows, limits, strict=True)]

    def _reply(self, tokens: list[int]) -> tuple[list[int], bool]:
        for i, token in enumerate(tokens):
            if token in self.stops:
                return tokens[: i + 1], False
        return tokens, True

    def _config(self, max_new_tokens: int) -> Any:
        """A generation config of our own: the model's may hold penalties or truncation that nobody asked for."""
        from transformers import GenerationConfig

        greedy = self.sampling.temperature == 0
        chosen: dict[str, Any] = {"do_sample": not greedy, "num_beams": 1}
        if not greedy:
            chosen |= {"temperature": self.sampling.temperature, "top_p": self.sampling.top_p, "top_k": self.sampling.top_k}
        return GenerationConfig(max_new_tokens=max_new_tokens, eos_token_id=self.stops, pad_token_id=self._pad, **chosen)


def check_yarn(model: Any, name: str) -> None:
    """Raises ValueError where a loaded model does not use the YaRN positions that its config asks for."""
    kinds = {getattr(module, "rope_type", None) for module in model.modules()} - {None}
    if kinds != {"yarn"}:
        found = ", ".join(sorted(map(str, kinds))) or "none"
        raise ValueError(f"{name} was asked to use YaRN, but its rotary positions are of type {found}: leave yarn out")


def load_transformers(model: Model, sampling: Sampling, options: Options) -> TransformersPolicy:
    """The policy that runs a model on transformers. Raises ValueError, in one line, where it cannot be loaded as asked."""
    import torch

    chat = load_chat(model, options)
    trust = {"trust_remote_code": options.trust_remote_code}
    config = load_config(model, **trust)
    if options.yarn is not None:
        for key, value in yarn_parameters(config, options.yarn, model.name).items():
            setattr(config, key, value)
    longest = getattr(config.get_text_config(), "max_position_embeddings", None)
    if options.context is not None and longest is not None and options.context > longest:
        raise ValueError(f"{model.name} reads {longest} tokens at most, so a context of {options.context} is not in force: see --yarn")
    loaded = load_base(model, config=config, dtype="auto", **trust)
    if model.adapter is not None:
        from peft import PeftModel

        with one_line(f"cannot put the adapter {model.adapter} on {model.base}"):
            adapted = PeftModel.from_pretrained(loaded, model.adapter)
        if adapted.active_peft_config.is_prompt_learning:
            raise ValueError(
                f"{model.adapter} is no LoRA adapter but {adapted.active_peft_config.peft_type}: merge it or evaluate it elsewhere"
            )
        loaded = adapted.get_base_model()  # with the adapter in its layers; the wrapper has a generation config of its own
    if options.yarn is not None:
        check_yarn(loaded, model.name)
    with one_line(f"cannot move {model.name} to the GPU"):
        loaded.to("cuda" if torch.cuda.is_available() else "cpu")
    # The config is left alone: some models scale their positions by the length in it.
    context = options.context or longest
    return TransformersPolicy(loaded, chat, sampling, source=model, batch_size=options.batch_size, context=context)
