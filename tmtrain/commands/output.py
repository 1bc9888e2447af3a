"""How commands print: JSON values, and tables for people."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any


def print_json(value: Any) -> None:
    """Prints one JSON value."""
    print(json.dumps(value, ensure_ascii=False, indent=2))


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints left-aligned columns with a rule below the header."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, ["─" * w for w in widths], *rows]:
        print("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip())
