"""Positions for SFT on short traces: every second reply is moved away from its prompt by a random gap.

A model that has only seen short traces has only looked up a prompt's rules from nearby, and looks in the wrong place once a trace is
longer. With a gap between the positions of prompt and reply, look-ups at the distances of longer traces are practised on short ones. At
inference positions have no gap. In the spirit of randomised positional encodings (arXiv 2305.16843), with one gap a row, so that
distances within the reply stay what they are.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any


class GapCollator:
    """Adds `position_ids` of shape (B, T) to what a collator gives.

    Args:
        collator: Gives `input_ids` and `labels` of shape (B, T), right-padded, -100 where nothing is trained.
        most: The largest gap. Half of the rows have none, as at inference; the others' are drawn from 1…most.
        rng: The stream of the draws.
    """

    def __init__(self, collator: Callable[[Sequence[Any]], dict[str, Any]], most: int, rng: random.Random) -> None:
        if most < 1:
            raise ValueError(f"the largest gap must be at least 1, not {most}")
        self._collator, self._most, self._rng = collator, most, rng

    def skip(self, rows: int) -> None:
        """Draws what it would have drawn for so many rows: a resumed run's batches begin behind them."""
        for _ in range(rows):
            self._gap()

    def __call__(self, rows: Sequence[Any]) -> dict[str, Any]:
        import torch

        batch = self._collator(rows)
        trained = batch["labels"] != -100
        positions = torch.arange(trained.size(1)).repeat(trained.size(0), 1)
        for row in range(trained.size(0)):
            start = int(trained[row].int().argmax())
            positions[row, start:] += self._gap()
        return {**batch, "position_ids": positions}

    def _gap(self) -> int:
        return self._rng.choice((0, self._rng.randint(1, self._most)))
