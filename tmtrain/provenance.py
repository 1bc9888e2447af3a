"""What a checkpoint was trained on: a small record beside its weights, read by evaluation and cards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from eval.records import write_json
from eval.runs import versions

FILE = "tmtrain.json"


def write_training_record(checkpoint: str | Path, *, style: str, stages: list[dict[str, Any]]) -> None:
    """Writes the record, the last file of a saved checkpoint: its presence says that the checkpoint is whole.

    Args:
        checkpoint: The folder that holds the weights.
        style: The prompt style trained with, which evaluation takes as its default.
        stages: What was done, in order; each with `kind` (sft, grpo), `data` (see `tmtrain.data.data_record`) and `settings`.
    """
    write_json(Path(checkpoint) / FILE, {"style": style, "stages": stages, "versions": versions()})


def read_training_record(checkpoint: str | Path) -> dict[str, Any]:
    """The record of a checkpoint folder, or {} where it has none.

    Raises:
        ValueError: Where the record is there but cannot be read.
    """
    path = Path(checkpoint) / FILE
    if not path.is_file():
        return {}
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"cannot read the training record {path}: {error}") from None
    if not isinstance(record, dict):
        raise ValueError(f"the training record {path} is no JSON object")
    return record
