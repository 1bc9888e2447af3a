"""What is asked of a model's decoding, the same for every backend."""

from __future__ import annotations

from dataclasses import dataclass

#: Most new tokens a reply, where nothing is asked for (TMBench, appendix).
MAX_TOKENS = 16_384


@dataclass(frozen=True, slots=True)
class Sampling:
    """Decoding settings; nothing is taken from a model's generation defaults unless it stands here.

    Attributes:
        max_tokens: Most new tokens a reply, or None for the default, which is lowered where the context has less room.
        temperature: 0 is greedy.
        top_p, top_k: Truncation of the distribution; 1.0 and 0 are off.
        seed: Of the sampling; unused when greedy.

    Raises:
        ValueError: For values that make no sense, or would not be in force.
    """

    max_tokens: int | None = None
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.max_tokens is not None and self.max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, not {self.max_tokens}")
        if self.temperature < 0:
            raise ValueError(f"temperature must be at least 0, not {self.temperature}")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must lie in (0, 1], not {self.top_p}")
        if self.top_k < 0:
            raise ValueError(f"top_k must be at least 0 (0 is off), not {self.top_k}")
        if self.temperature == 0 and (self.top_p < 1 or self.top_k):
            raise ValueError("top_p and top_k have no effect at temperature 0 (greedy): leave them out or raise the temperature")

    @property
    def token_limit(self) -> int:
        """Most new tokens a reply, the default filled in."""
        return MAX_TOKENS if self.max_tokens is None else self.max_tokens

    def to_json(self) -> dict[str, object]:
        return {
            "max_tokens": self.token_limit,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "top_k": self.top_k,
            "seed": self.seed,
        }
