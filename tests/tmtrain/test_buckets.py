"""Buckets: every row once, bounded, in the order of the stages."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmtrain.buckets import WINDOW, bucket


@given(st.lists(st.integers(1, 300), max_size=1500), st.integers(1, 2000), st.integers(0, 9))
def test_every_row_is_in_one_bucket_and_buckets_are_bounded(lengths: list[int], tokens: int, seed: int) -> None:
    buckets = bucket(lengths, tokens, random.Random(seed))
    assert sorted(row for rows in buckets for row in rows) == list(range(len(lengths)))
    for rows in buckets:
        assert len(rows) == 1 or max(lengths[row] for row in rows) * len(rows) <= tokens
        assert len({row // WINDOW for row in rows}) == 1
    windows = [rows[0] // WINDOW for rows in buckets]
    assert windows == sorted(windows)


def test_little_of_a_bucket_is_padding() -> None:
    rng = random.Random(0)
    lengths = [rng.randint(20, 1500) for _ in range(4096)]
    buckets = bucket(lengths, 8192, rng)
    padded = sum(max(lengths[row] for row in rows) * len(rows) for rows in buckets)
    assert sum(lengths) / padded > 0.95
    assert padded / len(buckets) > 0.8 * 8192


@pytest.mark.slow
def test_a_trainer_sees_each_row_once(tmp_path: Path) -> None:
    """Of two stages, all rows of the first before any of the second; what the loss sees is what it saw without buckets."""
    pytest.importorskip("trl")
    from itertools import islice

    from trl import SFTConfig

    from envs.environment import Setting
    from tmtrain.buckets import put_into_buckets
    from tmtrain.data import Mixture, demonstrations_by_turns
    from tmtrain.sft import build_sft_trainer
    from tmtrain.tiny import tiny_model, tiny_tokenizer

    problems = [p for steps in (2, 6) for p in islice(Mixture("tag", [{"max_steps": steps}], 0, f"sft/{steps}").problems(), WINDOW)]
    rows = list(demonstrations_by_turns(problems, [Setting("compact")]))
    config = SFTConfig(
        output_dir=str(tmp_path), use_cpu=True, bf16=False, report_to="none", per_device_train_batch_size=2, num_train_epochs=1
    )
    config.train_sampling_strategy = "sequential"
    trainer = build_sft_trainer(tiny_model(0), tiny_tokenizer(), rows, config)
    plain = [row["input_ids"] for row in trainer.train_dataset]
    put_into_buckets(trainer, 2048, random.Random(0))
    seen = [
        [token for token, kept in zip(ids.tolist(), mask.tolist(), strict=True) if kept]
        for batch in trainer.get_train_dataloader()
        for ids, mask in zip(batch["input_ids"], batch["attention_mask"], strict=True)
    ]
    assert sorted(seen) == sorted(plain)
    assert sorted(seen[:WINDOW]) == sorted(plain[:WINDOW])
