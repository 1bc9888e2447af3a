"""Gaps between the positions of prompts and replies."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from tmtrain.positions import GapCollator
from tmtrain.tiny import tiny_model


def collated(rows: list[tuple[int, int]]) -> dict[str, Any]:
    """Rows of (prompt length, reply length), padded on the right."""
    width = max(p + r for p, r in rows)
    ids = torch.tensor([[*range(7, 7 + p + r), *[0] * (width - p - r)] for p, r in rows])
    labels = torch.tensor([[-100] * p + [7] * r + [-100] * (width - p - r) for p, r in rows])
    return {"input_ids": ids, "labels": labels, "attention_mask": (ids != 0).long()}


def test_the_reply_is_moved_as_a_whole_and_the_prompt_stays() -> None:
    gaps: Counter[int] = Counter()
    collator = GapCollator(collated, 5, random.Random(0))
    for _ in range(200):
        batch = collator([(3, 4), (6, 2)])
        for row, (prompt, reply) in enumerate([(3, 4), (6, 2)]):
            positions = batch["position_ids"][row].tolist()
            gap = positions[prompt] - prompt
            gaps[gap] += 1
            assert positions[:prompt] == list(range(prompt))
            assert positions[prompt : prompt + reply] == list(range(prompt + gap, prompt + gap + reply))
    assert set(gaps) == {0, 1, 2, 3, 4, 5} and 150 <= gaps[0] <= 250, "half of the rows have none"


def test_a_gap_is_felt_by_the_model_in_the_reply_only() -> None:
    model = tiny_model(0).eval()
    plain = collated([(3, 4), (6, 2)])
    with torch.no_grad():
        without = model(input_ids=plain["input_ids"], attention_mask=plain["attention_mask"]).logits
        batch = GapCollator(collated, 90, random.Random(5))([(3, 4), (6, 2)])
        moved = model(**{k: v for k, v in batch.items() if k != "labels"}).logits
    gaps = [int(batch["position_ids"][row, start]) - start for row, start in ((0, 3), (1, 6))]
    assert any(gaps)
    for row, start in ((0, 3), (1, 6)):
        assert torch.allclose(without[row, :start], moved[row, :start], atol=1e-5)
        assert torch.allclose(without[row, start:], moved[row, start:], atol=1e-4) is (gaps[row] == 0)


def test_the_largest_gap_is_at_least_one() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        GapCollator(collated, 0, random.Random(0))
