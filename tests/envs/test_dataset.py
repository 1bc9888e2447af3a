"""Drawing problems apart from others, and reading and writing their files."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.dataset import draw, make_params, parse_problem, read_problems, to_lines
from envs.problem import Problem
from envs.registry import env_names

WHOLE = [p.to_json() for env in env_names() for p in itertools.islice(draw(env, make_params(env, {}), seed=1, split="fuzz"), 2)]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 300) | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=6,
)
LINE = {"env": "tag", "rules": {"A": "B", "B": "A"}, "init": "AB"}


def drawn(count: int, seed: int = 42, split: str = "train", **values: Any) -> list[Problem]:
    return list(itertools.islice(draw("tag", make_params("tag", values), seed=seed, split=split), count))


def test_an_item_depends_on_its_own_number_only() -> None:
    params = make_params("tag", {})
    assert list(itertools.islice(draw("tag", params, seed=42, split="train", start=7), 5)) == drawn(12)[7:]


@pytest.mark.parametrize(("seed", "split"), [(43, "train"), (42, "eval")])
def test_neighbouring_seeds_and_splits_share_no_more_than_chance(seed: int, split: str) -> None:
    """By chance a few of the shortest runs coincide, as they do for streams that have nothing to do with each other."""
    one, other = drawn(400), drawn(400, seed, split)
    assert not {p.id for p in one} & {p.id for p in other}
    shared = {p.canonical: p.horizon for p in one if p.canonical in {q.canonical for q in other}}
    assert len(shared) <= 8
    assert max(shared.values(), default=0) <= 5


def test_forbidden_problems_are_never_drawn() -> None:
    small = {"alphabet": "AB", "rule_max": 2, "init_max": 3, "max_steps": 5}
    forbidden = {p.canonical for p in drawn(40, split="eval", **small)}
    kept = list(itertools.islice(draw("tag", make_params("tag", small), seed=42, split="train", forbidden=forbidden), 60))
    assert forbidden & {p.canonical for p in drawn(60, **small)}
    assert not forbidden & {p.canonical for p in kept}


def test_unique_problems_run_out_with_a_reason() -> None:
    params = make_params("tag", {"alphabet": "A", "rule_max": 2, "init_max": 3, "max_steps": 2})
    with pytest.raises(ValueError, match=r"no fitting tag problem in 20,000 draws, after \d+ different ones: loosen the parameters"):
        list(itertools.islice(draw("tag", params, seed=0, split="train", unique=True), 1000))


def test_unique_problems_are() -> None:
    params = make_params("tag", {"alphabet": "AB", "rule_max": 2, "init_max": 3, "max_steps": 5})
    found = [p.canonical for p in itertools.islice(draw("tag", params, seed=0, split="train", unique=True), 50)]
    assert len(set(found)) == 50


def test_parameters_from_a_command_line() -> None:
    params = make_params("tag", {"m": "3", "alphabet": "ab,c"})
    assert (params.m, params.symbols) == (3, ["ab", "c"])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"max_step": 3}, "tag has no parameter 'max_step': did you mean 'max_steps'?"),
        ({"m": "two"}, "tag's m must be of type int, not 'two'"),
        ({"m": None}, "tag's m must be of type int, not None"),
        ({"max_steps": 2.5}, "tag's max_steps must be of type int, not 2.5"),
        ({"max_steps": True}, "tag's max_steps must be of type int, not True"),
        ({"alphabet": ["A", "B"]}, "tag's alphabet must be of type str, not ['A', 'B']"),
    ],
)
def test_bad_parameters_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as raised:
        make_params("tag", values)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("env", "values"),
    [
        ("gridworld", {"size": 0}),
        ("gridworld", {"density": 1.5}),
        ("gridworld", {"min_distance": -1}),
        ("gridworld", {"min_distance": 3, "max_distance": 2}),
        ("listworld", {"pops": -1}),
        ("listworld", {"values": 0}),
        ("treeworld", {"nodes": 0}),
        ("treeworld", {"arity": 0}),
    ],
)
def test_parameters_out_of_range_are_named_with_their_value(env: str, values: dict[str, Any]) -> None:
    name, value = list(values.items())[-1]
    with pytest.raises(ValueError, match=rf"^{name}={value} "):
        make_params(env, values)


@given(data=st.data())
@settings(max_examples=300, deadline=None)
def test_a_spoiled_problem_is_read_or_refused_in_one_line(data: st.DataObject) -> None:
    """Fields replaced by any JSON value, taken out or added: nothing but a ValueError of one line."""
    line = dict(data.draw(st.sampled_from(WHOLE)))
    for _ in range(data.draw(st.integers(1, 3))):
        field = data.draw(st.sampled_from([*line, "budget", "extra"]))
        if data.draw(st.booleans()):
            line[field] = data.draw(JSON)
        else:
            line.pop(field, None)
    try:
        assert parse_problem(line).env == line["env"]
    except ValueError as error:
        assert str(error) and "\n" not in str(error)


def test_an_id_of_null_is_none() -> None:
    assert parse_problem({**LINE, "id": None, "split": None}) == parse_problem(LINE)


def test_files_round_trip(tmp_path: Path) -> None:
    problems = drawn(20) + drawn(3, alphabet="ab,c,αβ")
    file = tmp_path / "problems.jsonl"
    file.write_text("".join(to_lines(problems)), encoding="utf-8")
    assert read_problems(file) == problems


@pytest.mark.parametrize("text", [json.dumps(LINE), json.dumps([LINE]), json.dumps(LINE) + "\n\n", json.dumps(LINE, indent=2)])
def test_files_written_by_hand(tmp_path: Path, text: str) -> None:
    file = tmp_path / "problems.json"
    file.write_text(text, encoding="utf-8")
    (problem,) = read_problems(file)
    assert (problem.env, problem.horizon, problem.split) == ("tag", 1, "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no problems"),
        ("[]", "holds no problems"),
        (json.dumps(LINE) + "\n{", "line 2: not JSON"),
        (json.dumps(LINE) + "\n" + json.dumps({**LINE, "init": "AX"}), "line 2: init has 'X'"),
        ('{"rules": {}}', 'a problem is a JSON object with "env"'),
        ("[3]", 'a problem is a JSON object with "env"'),
        (json.dumps({**LINE, "env": "tga"}), "unknown environment 'tga': did you mean 'tag'?"),
        (json.dumps({**LINE, "horizon": 3}), "'horizon' is 3, but the payload gives 1"),
        (json.dumps({**LINE, "canonical": "0"}), "'canonical' is '0'"),
    ],
)
def test_bad_files_are_refused_with_one_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "problems.jsonl"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError) as raised:
        read_problems(file)
    assert str(file) in str(raised.value)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_absent_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot read the problems in"):
        read_problems(tmp_path / "absent.jsonl")


def test_stated_id_is_kept() -> None:
    assert parse_problem({**LINE, "id": "mine"}).id == "mine"
    assert parse_problem(LINE).id == parse_problem(dict(reversed(LINE.items()))).id
