"""What is asked of a model's decoding, the same for every backend."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Sampling:
    """Decoding settings; nothing is taken from a model's generation defaults unless it stands here.

    Attributes:
        max_tokens: Most new tokens a reply; less where the context has less room.
        temperature: 0 is greedy.
        top_p, top_k: Truncation of the distribution; 1.0 and 0 are off.
    """

    max_tokens: int = 16_384
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, not {self.max_tokens}")
        if self.temperature < 0:
            raise ValueError(f"temperature must be at least 0, not {self.temperature}")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must lie in (0, 1], not {self.top_p}")
        if self.top_k < 0:
            raise ValueError(f"top_k must be at least 0 (0 is off), not {self.top_k}")

    def to_json(self) -> dict[str, object]:
        return asdict(self)
