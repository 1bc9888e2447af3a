"""What the policies that see tokens share: rendering, room in the context, stop tokens, and what the manifest records of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from envs.environment import Episode, Message
from eval.backends.chat import Chat, Conversation
from eval.backends.folder import Model
from eval.backends.sampling import Sampling
from eval.episodes import Completion, OverlongPrompt, Policy, Session

#: Lengths that models were trained at, by their type and the longer one that their config says. Qwen3 was trained at 32,768 tokens, and
#: YaRN by 4 makes 131,072 of them; the config adds 8,192 for the prompt (https://huggingface.co/Qwen/Qwen3-8B#processing-long-texts).
_TRAINED_LENGTH = {("qwen3", 40_960): 32_768, ("qwen3_moe", 40_960): 32_768}


class TokenPolicy(Policy):
    """A policy that continues token sequences. Subclasses give `generate` and what is special about the engine.

    Args:
        model: What is evaluated.
        chat: Its template.
        sampling: How to decode.
        stops: Token ids that end a reply.
        context: Longest sequence in tokens, prompt and reply together, or None where there is no limit.
    """

    backend: str

    def __init__(self, model: Model, chat: Chat, sampling: Sampling, stops: Sequence[int], context: int | None) -> None:
        if not stops:
            raise ValueError(f"{model.name} names no end-of-sequence token in its tokenizer or generation config: replies would never end")
        if context is not None and sampling.max_tokens is not None and sampling.max_tokens >= context:
            raise ValueError(f"max_tokens {sampling.max_tokens} does not fit into the context of {context} tokens: lower it")
        self.name, self.model_source, self.chat, self.sampling = model.name, model, chat, sampling
        self.stops, self.context = sorted(stops), context

    @abstractmethod
    async def generate(self, prompt: list[int], max_tokens: int, seed: str) -> tuple[list[int], bool]:
        """Continues `prompt` by at most `max_tokens`: the new ids, with the terminator, and whether a limit cut them."""

    def describe(self) -> dict[str, object]:
        """What the manifest records: the settings in force, not those that were asked for."""
        return {
            "backend": self.backend,
            **self.model_source.identity(),
            **self.chat.describe(),
            "stop_token_ids": self.stops,
            "context_length": self.context,
            "sampling": self.sampling.to_json(),
        }

    def notes(self) -> list[str]:
        """What people should know before they read the scores, one line each."""
        tokenizer = self.chat.tokenizer
        notes = []
        others = [i for i in self.stops if i != tokenizer.eos_token_id]
        if tokenizer.eos_token_id is None or others:
            names = ", ".join(repr(tokenizer.convert_ids_to_tokens(i)) for i in self.stops)
            notes.append(f"the tokenizer and the generation config name different ends of a reply: it ends at any of {names}")
        return notes

    def check_prompts(self, prompts: Iterable[Sequence[Message]]) -> list[str]:
        if self.context is None:
            return []
        lengths = [len(self.chat.render(messages)) for messages in prompts]
        fitting = [n for n in lengths if n < self.context]
        if not fitting:
            raise ValueError(f"every prompt is longer than the context of {self.context} tokens (the shortest has {min(lengths)})")
        notes = []
        if over := len(lengths) - len(fitting):
            notes.append(
                f"{over} of {len(lengths)} prompts do not fit into the context of {self.context} tokens: they end as overlong_prompt"
            )
        room = self.context - max(fitting)
        if self.sampling.max_tokens is not None and room < self.sampling.max_tokens:
            raise ValueError(
                f"max_tokens {self.sampling.max_tokens} would not be in force: the longest prompt leaves room for {room} tokens of the "
                f"context of {self.context}; lower max_tokens to that or raise the context"
            )
        if room < self.sampling.token_limit:
            notes.append(f"the context of {self.context} tokens leaves {room} to the reply to the longest prompt")
        return notes

    def session(self, episode: Episode, seed: str) -> Session:
        return _TokenSession(self, seed)

    async def close(self) -> None:
        pass


class _TokenSession(Session):
    def __init__(self, policy: TokenPolicy, seed: str) -> None:
        self._policy, self._seed = policy, seed
        self._conversation: Conversation = policy.chat.conversation()
        self._turn = 0

    async def reply(self, messages: list[Message]) -> Completion:
        policy = self._policy
        prompt = self._conversation.prompt(messages)
        room = policy.sampling.token_limit
        if policy.context is not None:
            room = min(room, policy.context - len(prompt))
        if room < 1:
            raise OverlongPrompt(f"the prompt has {len(prompt)} tokens, the context {policy.context}")
        new, truncated = await policy.generate(prompt, room, f"{self._seed}/{self._turn}")
        self._turn += 1
        text = self._conversation.answered(messages, prompt, new, policy.stops)
        return Completion(text, truncated, len(prompt), len(new))


def stop_ids(generation_config: Any, tokenizer: Any) -> list[int]:
    """The union of what the tokenizer and the model's generation config call the end: chat models often name two."""
    configured = getattr(generation_config, "eos_token_id", None)
    found = {tokenizer.eos_token_id, *(configured if isinstance(configured, list) else [configured])}
    return sorted(i for i in found if i is not None)


def trained_length(config: Any) -> int:
    """The length in tokens that YaRN stretches."""
    length = int(config.max_position_embeddings)
    return _TRAINED_LENGTH.get((getattr(config, "model_type", ""), length), length)


def yarn_parameters(config: Any, factor: float, name: str) -> dict[str, Any]:
    """The rope parameters and the context length with which a model reads `factor` times as far (YaRN, arXiv 2309.00071).

    Raises:
        ValueError: For a factor that is not above 1, or a model without rotary positions, or whose positions are scaled already.
    """
    rope = getattr(config, "rope_parameters", None)
    if factor <= 1:
        raise ValueError(f"yarn takes a factor above 1, such as 4, not {factor}")
    if not isinstance(rope, dict) or "rope_theta" not in rope:
        raise ValueError(f"{name} has no rotary positions of one kind for all layers, so YaRN cannot stretch them: leave yarn out")
    if rope.get("rope_type", "default") != "default":
        raise ValueError(f"{name} scales its positions already ({rope['rope_type']}): leave yarn out")
    length = trained_length(config)
    scaled = {**rope, "rope_type": "yarn", "factor": float(factor), "original_max_position_embeddings": length}
    return {"rope_parameters": scaled, "max_position_embeddings": int(length * factor)}
