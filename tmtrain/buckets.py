"""Batches of a bounded number of tokens for SFT: rows of like length are put together into buckets, and a batch is made of buckets.

With rows as different in length as traces are, a batch of rows is mostly padding, and as many short rows as long ones make an update.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

#: Rows that are sorted by length together: few enough that the order of stages stays, enough that a bucket's rows are alike.
WINDOW = 512


def bucket(lengths: Sequence[int], tokens: int, rng: random.Random) -> list[list[int]]:
    """Puts rows into buckets whose longest row, times their number, is at most `tokens`; a longer row has a bucket of its own.

    Every row is in one bucket. Windows follow each other in the rows' order; within one the buckets are shuffled.
    """
    buckets: list[list[int]] = []
    for start in range(0, len(lengths), WINDOW):
        window: list[list[int]] = []
        for row in sorted(range(start, min(start + WINDOW, len(lengths))), key=lengths.__getitem__):
            if window and lengths[row] * (len(window[-1]) + 1) <= tokens:
                window[-1].append(row)
            else:
                window.append([row])
        rng.shuffle(window)
        buckets += window
    return buckets


def put_into_buckets(trainer: Any, tokens: int, rng: random.Random) -> None:
    """Has a trainer, whose dataset is tokenized and in order, make its batches of buckets."""
    import pyarrow.compute

    lengths = pyarrow.compute.list_value_length(trainer.train_dataset.data.column("input_ids")).to_pylist()
    trainer.train_dataset = Buckets(trainer.train_dataset, bucket(lengths, tokens, rng))
    trainer.data_collator = BucketCollator(trainer.data_collator)


class Buckets:
    """A dataset whose items are lists of another one's rows."""

    def __init__(self, rows: Any, buckets: Sequence[Sequence[int]]) -> None:
        self._rows, self._buckets = rows, buckets

    def __len__(self) -> int:
        return len(self._buckets)

    def __getitem__(self, item: int) -> list[Any]:
        return [self._rows[row] for row in self._buckets[item]]


class BucketCollator:
    """Collates the rows of several buckets."""

    def __init__(self, collator: Callable[[Sequence[Any]], dict[str, Any]]) -> None:
        self._collator = collator

    def __call__(self, buckets: Sequence[Sequence[Any]]) -> dict[str, Any]:
        return self._collator([row for rows in buckets for row in rows])
