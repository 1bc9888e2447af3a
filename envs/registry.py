"""The registered environments, imported when used.

A third-party package registers its own under the entry-point group `tmtrain.envs`, e.g. in its pyproject.toml:

    [project.entry-points."tmtrain.envs"]
    hanoi = "my_package.hanoi:Hanoi"
"""

from __future__ import annotations

import difflib
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points

from envs.environment import Environment

_BUILT_IN = {
    "tag": "envs.tag.environment:TagEnvironment",
    "listworld": "envs.listworld:ListWorld",
    "treeworld": "envs.treeworld:TreeWorld",
    "gridworld": "envs.gridworld:GridWorld",
    "tagworld": "envs.tagworld:TagWorld",
}


@cache
def _locations() -> dict[str, str]:
    return {**{e.name: e.value for e in entry_points(group="tmtrain.envs")}, **_BUILT_IN}


def env_names() -> list[str]:
    """Names of all registered environments, sorted."""
    return sorted(_locations())


@cache
def load_env(name: str) -> Environment:
    """The environment with this name.

    Raises:
        ValueError: Where there is none, naming the nearest, or where its package cannot be imported.
    """
    location = _locations().get(name)
    if location is None:
        raise ValueError(f"unknown environment {name!r}: {nearest(name, env_names())}")
    module, _, attribute = location.partition(":")
    try:
        return getattr(import_module(module), attribute)()
    except (ImportError, AttributeError) as error:
        raise ValueError(f"environment {name!r} is registered as {location!r}, which cannot be imported: {error}") from error


def nearest(name: str, names: list[str]) -> str:
    """The end of an error line about an unknown name: the nearest right one, or all of them."""
    if close := difflib.get_close_matches(name, names, n=1):
        return f"did you mean {close[0]!r}?"
    return f"choose one of {', '.join(names)}"
