"""The named lists of problems are frozen."""

from __future__ import annotations

import hashlib

import pytest

from envs.suites import load_suite, problems_hash, suite_names
from envs.tag.published import ALPHABETS

HASHES = {
    "tmbench-v1": "2c65187296d4b42910549cc02f2f2520",
    "tmbench-v1-number": "7f924ae0a9145382a39ad01abd995bf8",
    "tmbench-v1-greek": "c3bceecebcf9ca461364074c5e45a863",
    "tmbench-v1-special": "42938d642e476c46771d67ca7c826355",
}

MADE_HERE = {
    "tmbench-difficulty": "9259b70adc08e4cc9da8570e1ed1faf3",
    "tmbench-unbounded": "42e6ba8a3692c255048916cd0022b7d5",
    "turing-unary-increment": "52b037a6314acb6f14b9939f3e6def6a",
    "turing-binary-increment": "39ef94115cce21f6d243d7cb7db33df9",
    "turing-parity": "6fe463544423a6d8fbfc56012d34dc9e",
    "turing-busy-beaver": "96fd2d93321b0b0707443446cba37861",
    "turing-copying": "fb8794480ae46aaad8eae88590555974",
}


def test_no_suite_is_without_a_frozen_hash() -> None:
    assert [*HASHES, *MADE_HERE] == suite_names()
    assert {name: problems_hash(load_suite(name).problems()) for name in MADE_HERE} == MADE_HERE


@pytest.mark.parametrize("name", HASHES)
def test_tag_suites_hold_the_published_problems(name: str) -> None:
    problems = load_suite(name).problems()
    assert problems_hash(problems) == HASHES[name]
    ids = "\n".join(p.id for p in problems)
    assert hashlib.sha256(ids.encode()).hexdigest() == "9461de125ae2ce003897204a6afef672b770c45d7ce93f3929ef3d77eb3a0e1e"
    assert (len(problems), sum(p.horizon < 30 for p in problems), sum(p.horizon for p in problems)) == (100, 11, 2774)
    assert all(p.split == name for p in problems)


def test_alphabets_relabel_the_same_problems() -> None:
    canonical = [[p.canonical for p in load_suite(name).problems()] for name in ALPHABETS]
    assert all(c == canonical[0] for c in canonical)
    assert len(set(canonical[0])) == 100


def test_every_suite_has_a_summary_of_one_line() -> None:
    for name in suite_names():
        suite = load_suite(name)
        assert suite.name == name
        assert suite.summary
        assert "\n" not in suite.summary


def test_unknown_suite_names_the_nearest() -> None:
    with pytest.raises(ValueError, match="unknown suite 'tmbench': did you mean 'tmbench-v1'"):
        load_suite("tmbench")


def test_hash_of_a_list_depends_on_its_order() -> None:
    problems = load_suite("tmbench-v1").problems()
    assert problems_hash(problems) != problems_hash(problems[::-1])
