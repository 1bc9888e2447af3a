"""The named lists of problems are frozen."""

from __future__ import annotations

import hashlib

import pytest

from envs.dataset import make_params
from envs.environment import ORACLES
from envs.suites import SWEEPS, load_suite, problems_hash, reserved_hashes, suite_names
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
    assert [*HASHES, *MADE_HERE, *SWEPT] == suite_names()
    assert {name: problems_hash(load_suite(name).problems()) for name in MADE_HERE} == MADE_HERE


@pytest.mark.parametrize("name", HASHES)
def test_tag_suites_hold_the_published_problems(name: str) -> None:
    problems = load_suite(name).problems()
    assert problems_hash(problems) == HASHES[name]
    ids = "\n".join(p.id for p in problems)
    assert hashlib.sha256(ids.encode()).hexdigest() == "9461de125ae2ce003897204a6afef672b770c45d7ce93f3929ef3d77eb3a0e1e"
    assert (len(problems), sum(p.horizon < 30 for p in problems), sum(p.horizon for p in problems)) == (100, 11, 2774)
    assert all(p.split == name for p in problems)


# World suites: the hash, and how many problems.
SWEPT = {
    "lumina-horizon": ("e352f44fd1884e93520027190489555c", 600),
    "lumina-listworld": ("7b8a0018c8321c6cf904e37fb0e8891e", 150),
    "lumina-treeworld": ("b4da345660467777982639c6fa700f7e", 150),
    "lumina-gridworld": ("b47a8a9e3aafde5bebfc9868f0ed3f03", 150),
    "lumina-tagworld": ("6beaf3980c5a31183dfc5413cb7a2714", 150),
    "lumina-tiny": ("08c89453a2225c64691ed10e0cba6a92", 100),
}


@pytest.mark.parametrize("name", SWEPT)
def test_sweeps_are_frozen(name: str) -> None:
    problems = load_suite(name).problems()
    assert (problems_hash(problems), len(problems)) == SWEPT[name]
    assert len({p.canonical for p in problems}) == len(problems), "no problem twice"
    assert {p.canonical for p in problems} <= reserved_hashes()
    assert load_suite(name).oracles == ORACLES


def test_each_level_of_a_sweep_has_the_knobs_that_it_is_named_by() -> None:
    counts: dict[tuple[str, str], int] = {}
    for problem in load_suite("lumina-horizon").problems():
        counts[problem.env, problem.split] = counts.get((problem.env, problem.split), 0) + 1
        knobs = dict(pair.split("=") for pair in problem.split.split("/")[1:])
        params, payload = make_params(problem.env, knobs), problem.payload
        if problem.env == "listworld":
            assert len(payload["initial"]) - len(payload["target"]) == params.pops == problem.horizon - 1
        elif problem.env == "treeworld":
            assert len(payload["values"]) == params.nodes
        elif problem.env == "gridworld":
            assert payload["size"] == params.size
        else:
            assert payload["max_steps"] == params.max_steps == problem.horizon - 1
    assert set(counts.values()) == {25} and len(counts) == sum(map(len, SWEEPS["lumina"].values()))


@pytest.mark.parametrize(("name", "first"), [("lumina-horizon", 72), ("lumina-listworld", 60), ("lumina-tiny", 20)])
def test_the_first_problems_are_spread_evenly(name: str, first: int) -> None:
    """So that `--limit` cuts every world and level alike."""
    problems = load_suite(name).problems()
    levels = {(p.env, p.split) for p in problems}
    counts = [sum((p.env, p.split) == level for p in problems[:first]) for level in levels]
    assert set(counts) == {first // len(levels)}


def test_the_worlds_suites_hold_the_same_problems_as_the_whole() -> None:
    whole = load_suite("lumina-horizon").problems()
    for world in SWEEPS["lumina"]:
        assert load_suite(f"lumina-{world}").problems() == [p for p in whole if p.env == world]


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
