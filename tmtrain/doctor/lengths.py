"""Lengths of prompts and of right replies in tokens, measured on generated problems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np

from envs.environment import Setting
from envs.problem import Problem
from eval.backends.chat import Chat
from tmtrain.data import demonstrations_by_turns, expert_length


@dataclass(frozen=True, slots=True)
class Spread:
    """Of a sample of counts: median, 99th percentile and largest."""

    p50: int
    p99: int
    longest: int

    @classmethod
    def of(cls, counts: Sequence[int]) -> Spread:
        p50, p99 = np.percentile(counts, [50, 99])
        return cls(int(p50), int(np.ceil(p99)), max(counts))

    def __str__(self) -> str:
        return f"p50 {self.p50:,}, p99 {self.p99:,}, longest {self.longest:,}"


@dataclass(frozen=True, slots=True)
class Measured:
    """Token counts of problems: first prompts, single replies, and all that an episode adds to its first prompt.

    Attributes:
        episodes: The counts of each problem's episode.
        estimated: Whether the tokenizer was a stand-in.
    """

    prompt: Spread
    reply: Spread
    episode: Spread
    episodes: tuple[int, ...]
    estimated: bool

    def share_over(self, limit: int) -> float:
        """The share of problems whose right episode is longer than `limit` tokens."""
        return sum(n > limit for n in self.episodes) / len(self.episodes)


def measure(chat: Chat, problems: Sequence[Problem], settings: Sequence[Setting], *, estimated: bool = False) -> Measured:
    """Plays the expert on the problems, in the settings by turns.

    Raises:
        ValueError: Where its replies are not scored as right once they are tokenized.
    """
    lengths = [expert_length(chat, problem, setting) for problem, setting in zip(problems, cycle(settings))]
    return Measured(
        Spread.of([n.prompt for n in lengths]),
        Spread.of([n.reply for n in lengths]),
        Spread.of([n.episode for n in lengths]),
        tuple(n.episode for n in lengths),
        estimated,
    )


#: How large language models cut text before they merge: letters with the space before them, digits one by one, runs of punctuation.
_PIECES = r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""


def stand_in_tokenizer(problems: Sequence[Problem], settings: Sequence[Setting]) -> Any:
    """A tokenizer for counting on these problems, where the model's own is not at hand: one token for each piece before merging.

    On the prompts and right replies of all environments it counts 0.955 to 1.18 times as many tokens as the tokenizers of Qwen 3 and
    Llama 3 do.
    """
    from tokenizers import Regex, pre_tokenizers

    from tmtrain.tiny import piece_tokenizer

    cut = pre_tokenizers.Split(Regex(_PIECES), "isolated")
    texts = {m["content"] for row in demonstrations_by_turns(problems, settings) for m in row["messages"]}
    return piece_tokenizer(sorted({piece for text in texts for piece, _ in cut.pre_tokenize_str(text)}), cut)
