"""The documentation's console examples print what they say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
EXAMPLES = {
    file.name: "\n".join(blocks)
    for file in sorted(DOCS.glob("*.md"))
    if (blocks := re.findall(r"```console\n(.*?)```", file.read_text(), re.S))
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_print_what_the_page_says(name: str, tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    examples = re.split(r"^\$ ", EXAMPLES[name], flags=re.M)[1:]
    assert len(examples) > 3
    for example in examples:
        command, _, output = example.partition("\n")
        done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout.strip()) == (0, output.strip()), command + done.stderr
