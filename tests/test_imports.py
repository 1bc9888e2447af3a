"""The direction of imports, and what importing costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

LAYERS = ("envs", "eval", "tmtrain")
HEAVY = ("torch", "transformers", "trl", "vllm", "datasets", "matplotlib", "accelerate", "deepspeed")


@pytest.mark.parametrize("layer", LAYERS)
def test_nothing_imports_against_the_arrow(layer: str, root: Path) -> None:
    above = {*LAYERS[LAYERS.index(layer) + 1 :], "recipes"}
    for file in (root / layer).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = (
                [a.name for a in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            assert not {n.split(".")[0] for n in names} & above, f"{file} imports {names}"


def test_importing_every_module_of_envs_and_eval_loads_nothing_heavy(root: Path) -> None:
    modules = [
        ".".join(f.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        for layer in ("envs", "eval")
        for f in (root / layer).rglob("*.py")
    ]
    code = f"import sys\nfor m in {modules!r}: __import__(m)\nprint([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    assert done.stdout.strip() == "[]"


def test_help_imports_neither_numpy_nor_anything_heavy(root: Path) -> None:
    code = f"import sys\nfrom tmtrain.cli import build_parser\nbuild_parser().format_help()\nprint([m for m in {(*HEAVY, 'numpy')!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    assert done.stdout.strip() == "[]"


def test_no_import_circle(root: Path) -> None:
    """Top-level imports among the project's modules form no circle (imports inside functions are deliberate and late)."""
    files = {
        ".".join(f.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): f
        for layer in LAYERS
        for f in (root / layer).rglob("*.py")
    }
    graph: dict[str, set[str]] = {}
    for module, file in files.items():
        targets: set[str] = set()
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ImportFrom) and node.module:
                targets |= {node.module} | {f"{node.module}.{a.name}" for a in node.names}
        graph[module] = {t for t in targets if t in files and t != module}
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, f"circle: {' -> '.join([*path, module])}"
        if module not in done:
            for target in graph[module]:
                visit(target, (*path, module))
            done.add(module)

    for module in graph:
        visit(module, ())
