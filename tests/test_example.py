"""The example package, installed from its folder as anyone would, and the page that walks through it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.console import examples, run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def installed(root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment variables with which the example's package is found."""
    target = tmp_path_factory.mktemp("hanoi")
    source = target / "source"
    source.mkdir()
    for file in (root / "examples" / "hanoi").glob("*.*"):
        (source / file.name).write_bytes(file.read_bytes())
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target / "site"), str(source)]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    if "No matching distribution found for setuptools" in done.stderr:
        pytest.skip("no package index is reachable to build the example with")
    assert done.returncode == 0, done.stderr
    return {**os.environ, "PYTHONPATH": f"{target / 'site'}:{root}"}


def test_the_page_prints_what_it_says(installed: dict[str, str], root: Path, tmp_path: Path) -> None:
    shown = examples(root / "docs" / "adding_an_environment.md")
    assert len(shown) > 3
    for command, output in shown:
        assert run(command, tmp_path, installed) == (0, output), command


def test_it_keeps_the_contract(installed: dict[str, str], root: Path) -> None:
    command = [sys.executable, "-m", "pytest", "tests/envs/test_world_contract.py", "-k", "hanoi"]
    done = subprocess.run(command, cwd=root, env=installed, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "passed" in done.stdout, done.stdout


def test_its_recipe_trains(installed: dict[str, str], root: Path, tmp_path: Path) -> None:
    recipe = [sys.executable, "recipes/sft_worlds.py", "--config", "examples/hanoi/hanoi_sft.yaml", "--output_dir", str(tmp_path / "run")]
    done = subprocess.run([*recipe, "--max_steps", "2"], cwd=root, env=installed, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "model card:" in done.stdout, done.stderr[-2000:]
