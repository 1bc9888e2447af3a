"""Content hashes and named random streams."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

from envs.problem import Problem, content_hash, stream


def test_content_hash_is_of_the_value_not_of_its_spelling() -> None:
    assert content_hash({"b": [1, "ε"], "a": None}) == content_hash({"a": None, "b": (1, "ε")})
    assert content_hash({"b": [1, "ε"], "a": None}) == hashlib.sha256('{"a":null,"b":[1,"ε"]}'.encode()).hexdigest()[:32]
    assert len({content_hash(v) for v in ([1], ["1"], [True], {"1": 1}, "1", 1)}) == 6


def test_streams_are_named_and_independent() -> None:
    names = [
        ("tag", 1, "train", 42, 0),
        ("tag", 1, "train", 42, 1),
        ("tag", 1, "train", 43, 0),
        ("tag", 2, "train", 42, 0),
        ("tag", 1, "eval", 42, 0),
    ]
    first = [stream(*name).random() for name in names]
    assert len(set(first)) == len(names)
    assert first == [stream(*name).random() for name in names]


def test_json_line_is_flat_with_the_payload_last() -> None:
    problem = Problem("tag", {"init": "A"}, "i", "c", 3, "train")
    assert list(problem.to_json()) == ["env", "id", "canonical", "split", "horizon", "init"]


def test_problems_are_the_same_in_every_process(root: Path) -> None:
    """Neither hash randomisation nor what was drawn before changes a byte."""
    program = (
        "import hashlib, itertools\nfrom envs.dataset import draw, make_params, to_lines\n"
        "lines = to_lines(itertools.islice(draw('tag', make_params('tag', {}), seed=42, split='train'), 200))\n"
        "print(hashlib.sha256(''.join(lines).encode()).hexdigest())"
    )
    for hash_seed in ("0", "1", "random"):
        run = subprocess.run(
            [sys.executable, "-c", program], cwd=root, env={"PYTHONHASHSEED": hash_seed}, capture_output=True, text=True, check=True
        )
        assert run.stdout.strip() == "c2202a298662d4e253c64f2ecb0e19e59d2d5b7cc138b6506dc95e73be03892c"
