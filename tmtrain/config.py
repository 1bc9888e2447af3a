"""Recipe settings: a YAML file and `--field value` on top of it, checked by name and by type.

A recipe file holds only what differs from the defaults of the recipe's own fields and of TRL's configuration. `include: other.yaml`
(beside the file; or a list of files, of which later ones win) is read first, so a variant states its difference only. `batch_size` counts
the rows of an update over all processes.
"""

from __future__ import annotations

import dataclasses
import os
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from envs.registry import nearest
from tmtrain.launch import machine_settings


def read_settings(argv: Sequence[str], default_file: Path) -> dict[str, Any]:
    """The settings of a command line: `--config FILE` (default: `default_file`), then each `--field value` or `--field=value`.

    Values are YAML, so `--levels '[{max_steps: 5}]'` and `--bf16 false` mean what they would in the file; a flag without a value is true.

    Raises:
        ValueError: For a file that cannot be read, or an argument that is no `--field`.
    """
    given: dict[str, Any] = {}
    arguments = list(argv)
    while arguments:
        flag = arguments.pop(0)
        if not flag.startswith("--") or len(flag) < 3:
            raise ValueError(f"unexpected argument {flag!r}: settings are given as --field value")
        field, equals, text = flag[2:].partition("=")
        if not equals:
            text = arguments.pop(0) if arguments and not arguments[0].startswith("--") else "true"
        given[field.replace("-", "_")] = _yaml(text, flag)
    file = given.pop("config", default_file)
    if not isinstance(file, (str, Path)):
        raise ValueError(f"--config needs a recipe file, such as --config {default_file}")
    file = Path(file)
    return {**machine_settings(), **_merged(read_file(file), given)}


def read_file(file: Path) -> dict[str, Any]:
    """The settings of a recipe file and of the files it includes.

    Raises:
        ValueError: Where a file cannot be read, is no mapping, or includes itself.
    """
    return _read_file(file, ())


def _read_file(file: Path, above: tuple[Path, ...]) -> dict[str, Any]:
    if file in above:
        raise ValueError(f"recipe {file} includes itself")
    try:
        settings = _yaml(file.read_text(encoding="utf-8"), str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot read the recipe {file}: {error}") from None
    if not isinstance(settings, dict):
        raise ValueError(f"the recipe {file} must hold one field a line, such as 'learning_rate: 1e-4'")
    if strange := [key for key in settings if not isinstance(key, str)]:
        raise ValueError(f"the recipe {file} has a field {strange[0]!r}, which is no name")
    included = settings.pop("include", None) or []
    included = [included] if isinstance(included, str) else included
    if not isinstance(included, list) or not all(isinstance(other, str) for other in included):
        raise ValueError(f"the recipe {file}: include names a file or a list of files, not {included!r}")
    base: dict[str, Any] = {}
    for other in included:
        base = _merged(base, _read_file(file.parent / other, (*above, file)))
    return _merged(base, settings)


def _merged(base: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """`settings` on top of `base`; the two ways to say the batch's size replace each other."""
    pair = ("batch_size", "per_device_train_batch_size")
    replaced = pair if any(name in settings for name in pair) else ()
    return {**{k: v for k, v in base.items() if k not in replaced}, **settings}


def share_out(settings: Mapping[str, Any], processes: int | None = None) -> dict[str, Any]:
    """Replaces `batch_size`, the rows of one update over all processes, by TRL's `per_device_train_batch_size`.

    So a recipe trains alike on one process and on many; where it says per_device_train_batch_size itself, that is left alone. `processes`
    is how many there are, by default as many as were launched.

    Raises:
        ValueError: Where both are given, or the processes cannot share the batch out evenly.
    """
    settings = dict(settings)
    if "batch_size" not in settings:
        return settings
    if "per_device_train_batch_size" in settings:
        raise ValueError("batch_size: give it or per_device_train_batch_size, not both: one follows from the other")
    total = _coerced("batch_size", settings.pop("batch_size"), int)
    steps = _coerced("gradient_accumulation_steps", settings.get("gradient_accumulation_steps", 1), int)
    processes = processes or int(os.environ.get("WORLD_SIZE", "1"))
    if total < 1 or total % (processes * steps):
        raise ValueError(
            f"batch_size: {total} rows an update cannot be shared out evenly over {processes} processes and {steps} accumulation steps: "
            f"take a multiple of {processes * steps}"
        )
    settings["per_device_train_batch_size"] = total // (processes * steps)
    return settings


def make_configs(settings: Mapping[str, Any], *classes: type, processes: int | None = None) -> list[Any]:
    """Instances of dataclasses, each taking the settings that are its fields; see `share_out` for `processes`.

    Raises:
        ValueError: For a field that no class has, with the nearest right name; for a value of the wrong type; and for whatever a class
            itself refuses.
    """
    settings = share_out(settings, processes)
    hints = {cls: typing.get_type_hints(cls) for cls in classes}
    fields = {cls: [f.name for f in dataclasses.fields(cls) if f.init] for cls in classes}
    known = sorted({"batch_size", *(name for names in fields.values() for name in names)})
    for name in settings:
        if name not in known:
            raise ValueError(f"unknown field {name!r}: {nearest_field(name, known)}")
    configs = []
    for cls in classes:
        values = {name: _coerced(name, settings[name], hints[cls][name]) for name in fields[cls] if name in settings}
        try:
            configs.append(cls(**values))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{' '.join(str(error).split())}") from None
    return configs


def nearest_field(name: str, known: list[str]) -> str:
    """The end of an error line about an unknown field; all fields are too many to list."""
    hint = nearest(name, known)
    return hint if hint.startswith("did you mean") else "see the recipe's docstring and TRL's configuration for the fields"


def _yaml(text: str, where: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"{where} is not YAML: {' '.join(str(error).split())}") from None


def _coerced(name: str, value: Any, hint: Any) -> Any:
    """`value` as the field's type; YAML reads 1e-4 as text, for one."""
    from pydantic import ConfigDict, TypeAdapter, ValidationError

    try:
        # A dataclass as a field's type brings its own rules, which pydantic does not let one configure from outside.
        config = None if dataclasses.is_dataclass(hint) else ConfigDict(arbitrary_types_allowed=True)
        return TypeAdapter(hint, config=config).validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(p) for p in first["loc"] if not str(p).startswith("function"))
        raise ValueError(f"{name}{'.' + place if place else ''}: {first['msg'].lower()}, got {value!r}") from None
