"""The documentation's console examples print what they say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.console import examples, run

PAGES = {
    page.name: shown
    for page in sorted((Path(__file__).parents[1] / "docs").glob("*.md"))
    if page.name != "adding_an_environment.md"  # its package has to be installed first: tests/test_example.py
    if (shown := examples(page))
}


@pytest.mark.parametrize("name", PAGES)
def test_examples_print_what_the_page_says(name: str, tmp_path: Path) -> None:
    for command, output in PAGES[name]:
        assert run(command, tmp_path, os.environ) == (0, output), command


def test_there_are_examples() -> None:
    assert sum(map(len, PAGES.values())) > 10
