"""Console examples of the documentation: what is typed after `$ `, and what it prints."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


def examples(page: Path) -> list[tuple[str, str]]:
    """The commands in a page's console blocks, in order, each with the output that the page shows."""
    blocks = "\n".join(re.findall(r"```console\n(.*?)```", page.read_text(encoding="utf-8"), re.S))
    parts = (example.partition("\n") for example in re.split(r"^\$ ", blocks, flags=re.M)[1:])
    return [(command, output.strip()) for command, _, output in parts]


def run(command: str, folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    """Exit status and output of a command line in a folder; the commands of this Python's environment come first."""
    path = {"PATH": f"{Path(sys.executable).parent}:{environment['PATH']}"}
    done = subprocess.run(["bash", "-c", command], cwd=folder, env={**environment, **path}, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.strip() or done.stderr.strip() * (done.returncode != 0)
