"""Patterns read the same on every Python that is supported."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = [path for folder in ("envs", "eval", "tmtrain") for path in sorted((ROOT / folder).rglob("*.py"))]
#: `(…)*+`, `(…)++`, `(…)?+`, `(…){…}+` and `(?>…)`.
TAKES_GROUP = re.compile(r"(?<!\\)\)(?:[*+?]|\{[\d,]+\})\+|\(\?>")


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(ROOT)) for path in FILES])
def test_no_group_is_taken_possessively(path: Path) -> None:
    """Python before 3.11.5 goes on at the wrong place after it: `(?:ab?c)*+` matches all of "aca" there. Single characters are fine."""
    strings = [node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)]
    assert [text for text in strings if isinstance(text, str) and TAKES_GROUP.search(text)] == []
