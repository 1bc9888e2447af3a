"""Models through `transformers.generate`, batched: runs wherever torch runs, and is the yardstick for the faster engines."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from envs.environment import Episode, Message
from envs.problem import content_hash
from eval.backends.sampling import Sampling
from eval.batching import Batcher
from eval.episodes import Completion, OverlongPrompt, Policy, Session


class TransformersPolicy(Policy):
    """A causal language model and its tokenizer, already loaded.

    Args:
        model: The model; it is put into evaluation mode for each batch and back after it.
        tokenizer: Its tokenizer, with a chat template.
        sampling: How to decode.
        batch_size: Most prompts decoded together.
        seed: Seed of the sampling; unused when greedy. Batches depend on which episodes wait together, so sampled runs are reproducible
            only where all episodes start together, as single-turn ones do.

    Raises:
        ValueError: Where the tokenizer lacks a chat template or a terminator.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        sampling: Sampling,
        *,
        name: str,
        batch_size: int = 32,
        seed: int = 0,
    ) -> None:
        if not tokenizer.chat_template:
            raise ValueError(
                f"{name} has no chat template, so it cannot be prompted: evaluate an instruction-tuned model or set a template"
            )
        self.name, self.model, self.tokenizer, self.sampling = name, model, tokenizer, sampling
        self._seed, self._calls = seed, 0
        self._stops = stop_ids(model, tokenizer)
        if not self._stops:
            raise ValueError(f"{name} names no end-of-sequence token in its tokenizer or generation config, so replies would never end")
        self._pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else self._stops[0]
        self._context = int(getattr(model.config, "max_position_embeddings", 0)) or None
        self._batch_size = batch_size
        self._batcher: Batcher[list[int], tuple[list[int], bool]] = Batcher(self._generate, batch_size)

    def describe(self) -> dict[str, object]:
        return {
            "backend": "transformers",
            "model": self.name,
            "weights": weights_hash(self.name),
            "dtype": str(self.model.dtype),
            "template_hash": content_hash(self.tokenizer.chat_template),
            "stop_token_ids": self._stops,
            "context_length": self._context,
            "batch_size": self._batch_size,
            "sampling": {**self.sampling.to_json(), "seed": self._seed},
        }

    def session(self, episode: Episode, seed: str) -> Session:
        return _TransformersSession(self)

    async def close(self) -> None:
        pass

    async def complete(self, messages: list[Message]) -> Completion:
        """One reply, decoded together with whatever else waits."""
        ids = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=True, return_dict=True)["input_ids"]
        if self._context is not None and len(ids) >= self._context:
            raise OverlongPrompt(f"the prompt has {len(ids)} tokens, the context {self._context}")
        new, truncated = await self._batcher.ask(ids)
        return Completion(self.tokenizer.decode(new, skip_special_tokens=True), truncated, len(ids), len(new))

    def _generate(self, prompts: Sequence[list[int]]) -> list[tuple[list[int], bool]]:
        """Decodes a batch: each reply's token ids with its terminator, and whether it lacks one."""
        import torch

        width = max(map(len, prompts))
        room = self.sampling.max_tokens if self._context is None else min(self.sampling.max_tokens, self._context - width)
        ids = torch.tensor([[self._pad] * (width - len(p)) + p for p in prompts], device=self.model.device)
        mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts], device=self.model.device)
        # What a config passed to `generate` leaves unset is filled in from the model's own, so that one is replaced for the call.
        was_training, own_config = self.model.training, self.model.generation_config
        self.model.eval()
        self.model.generation_config = self._config(max(room, 1))
        self._calls += 1
        devices = [self.model.device] if self.model.device.type == "cuda" else []
        try:
            with torch.random.fork_rng(devices=devices), torch.inference_mode():
                torch.manual_seed(self._seed * 1_000_003 + self._calls)
                out = self.model.generate(input_ids=ids, attention_mask=mask)
        finally:
            self.model.train(was_training)
            self.model.generation_config = own_config
        return [self._reply(row) for row in out[:, width:].tolist()]

    def _reply(self, tokens: list[int]) -> tuple[list[int], bool]:
        for i, token in enumerate(tokens):
            if token in self._stops:
                return tokens[: i + 1], False
        return tokens, True

    def _config(self, max_new_tokens: int) -> Any:
        """A generation config of our own: the model's may hold penalties or truncation that nobody asked for."""
        from transformers import GenerationConfig

        greedy = self.sampling.temperature == 0
        chosen: dict[str, Any] = {"do_sample": not greedy, "num_beams": 1}
        if not greedy:
            chosen |= {"temperature": self.sampling.temperature, "top_p": self.sampling.top_p, "top_k": self.sampling.top_k}
        return GenerationConfig(max_new_tokens=max_new_tokens, eos_token_id=self._stops, pad_token_id=self._pad, **chosen)


class _TransformersSession(Session):
    def __init__(self, policy: TransformersPolicy) -> None:
        self._policy = policy

    async def reply(self, messages: list[Message]) -> Completion:
        return await self._policy.complete(messages)


def load_transformers(path: str, sampling: Sampling, *, batch_size: int, seed: int, trust_remote_code: bool = False) -> TransformersPolicy:
    """Loads a checkpoint folder or a model of the hub, from safetensors only.

    Raises:
        ValueError: In one line, where it cannot be loaded.
    """
    try:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError as error:
        raise ValueError(f"evaluating a model needs the train extra: pip install 'tmtrain[train]' ({error})") from None
    try:
        tokenizer = AutoTokenizer.from_pretrained(path, trust_remote_code=trust_remote_code)
        model: Any = AutoModelForCausalLM.from_pretrained(path, trust_remote_code=trust_remote_code, use_safetensors=True, dtype="auto")
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"cannot load {path!r} as a model: {str(error).strip().splitlines()[0]}") from None
    model.to("cuda" if torch.cuda.is_available() else "cpu")
    return TransformersPolicy(model, tokenizer, sampling, name=path, batch_size=batch_size, seed=seed)


def weights_hash(path: str) -> str | None:
    """Identity of a checkpoint folder's weights: the hash over its safetensors files, or None where `path` is no folder."""
    files = sorted(Path(path).glob("*.safetensors"))
    if not files:
        return None
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode())
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()[:32]


def stop_ids(model: Any, tokenizer: Any) -> list[int]:
    """The union of what the tokenizer and the model's generation config call the end: chat models often name two."""
    configured = getattr(model.generation_config, "eos_token_id", None)
    found = {tokenizer.eos_token_id, *(configured if isinstance(configured, list) else [configured])}
    return sorted(i for i in found if i is not None)
