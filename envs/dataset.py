"""Sets of problems: drawn from named streams, kept apart from other sets, written to and read from files."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from envs.problem import RESERVED, Problem, stream
from envs.registry import load_env, nearest

#: Draws from one stream before a problem that fits is given up.
MOST_DRAWS = 20_000


def make_params(env_name: str, values: Mapping[str, Any]) -> Any:
    """The environment's knobs with these values, which may be strings as on a command line.

    Raises:
        ValueError: For an unknown knob, with the nearest right one, or a value of the wrong kind.
    """
    make = load_env(env_name).params
    fields = {f.name: f for f in dataclasses.fields(load_env(env_name).params)}
    given: dict[str, Any] = {}
    for key, value in values.items():
        if key not in fields:
            raise ValueError(f"{env_name} has no parameter {key!r}: {nearest(key, sorted(fields))}")
        kind: Any = type(fields[key].default)
        try:
            given[key] = _converted(value, kind)
        except (TypeError, ValueError):
            raise ValueError(f"{env_name}'s {key} must be of type {kind.__name__}, not {value!r}") from None
    return make(**given)


def draw(
    env_name: str, params: Any, *, seed: int, split: str, start: int = 0, forbidden: Collection[str] = (), unique: bool = False
) -> Iterator[Problem]:
    """Yields the endless stream of problems number `start`, `start` + 1, …

    Each has a random stream of its own, `env/version/split/seed/index`; a draw that does not fit is followed by the next one from
    the same stream.

    Args:
        forbidden: Canonical hashes never to yield.
        unique: Never yield a canonical hash twice. The items then depend on those before them, so `start` must be 0.

    Raises:
        ValueError: Where 20,000 draws give nothing that fits.
    """
    env = load_env(env_name)
    seen: set[str] = set()
    index = start
    while True:
        rng = stream(env.name, env.version, split, seed, index)
        for _ in range(MOST_DRAWS):
            problem = env.sample(params, rng, split)
            if problem is not None and problem.canonical not in forbidden and problem.canonical not in seen:
                break
        else:
            found = f", after {len(seen)} different ones" if unique else ""
            raise ValueError(f"no fitting {env_name} problem in {MOST_DRAWS:,} draws{found}: loosen the parameters ({params})")
        if unique:
            seen.add(problem.canonical)
        yield problem
        index += 1


def parse_problem(data: Mapping[str, Any]) -> Problem:
    """One JSON object of a problem file. Only `env` and the payload are needed; what is stated besides is checked.

    Raises:
        ValueError: Saying what is missing or wrong.
    """
    if not isinstance(data, Mapping) or "env" not in data:
        raise ValueError('a problem is a JSON object with "env" and its payload')
    for key in ("env", "id", "split"):
        if not isinstance(data.get(key, ""), str) and (key == "env" or data[key] is not None):
            raise ValueError(f"{key!r} must be text, not {data[key]!r}")
    payload = {k: v for k, v in data.items() if k not in RESERVED}
    problem = load_env(data["env"]).problem(payload, split=data.get("split") or "", id=data.get("id"))
    for key in ("canonical", "horizon"):
        computed = getattr(problem, key)
        if data.get(key, computed) != computed:
            raise ValueError(f"{key!r} is {data[key]!r}, but the payload gives {computed!r}: remove {key!r} from a file edited by hand")
    return problem


def read_problems(path: str | Path) -> list[Problem]:
    """The problems of a JSON-lines file, or of a file that holds one JSON object or a list of them.

    Raises:
        ValueError: With the file and the line that is wrong.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot read the problems in {path}: {error}") from None
    try:
        whole = json.loads(text)
    except json.JSONDecodeError:
        whole = None
    except RecursionError:
        raise ValueError(f"{path} is nested too deeply to hold problems") from None
    if whole is not None:
        items = list(enumerate(whole if isinstance(whole, list) else [whole], 1))
    else:
        items = []
        for number, line in enumerate(text.split("\n"), 1):
            if not line.strip():
                continue
            try:
                items.append((number, json.loads(line)))
            except json.JSONDecodeError as error:
                raise ValueError(f"{path}, line {number}: not JSON ({error.msg})") from None
            except RecursionError:
                raise ValueError(f"{path}, line {number}: nested too deeply") from None
    problems = []
    for number, item in items:
        try:
            problems.append(parse_problem(item))
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}") from None
    if not problems:
        raise ValueError(f"{path} holds no problems")
    return problems


def to_lines(problems: Iterable[Problem]) -> Iterator[str]:
    """The problems as JSON lines, each with its newline."""
    for problem in problems:
        yield json.dumps(problem.to_json(), ensure_ascii=False) + "\n"


def _converted(value: Any, kind: Any) -> Any:
    """A value as one of another kind. Raises TypeError or ValueError where something would be lost, as by int(2.5) or float(True)."""
    if kind is bool:
        if str(value).lower() not in _TRUTH:
            raise ValueError(value)
        return _TRUTH[str(value).lower()]
    if kind in (int, float, str) and (isinstance(value, bool) or not isinstance(value, (int, float, str))):
        raise TypeError(value)
    if kind is int and isinstance(value, float) and not value.is_integer():
        raise ValueError(value)
    return kind(value)


_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
