"""What a model's name stands for, read from its files before anything is loaded: a whole model, or an adapter on one."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ADAPTER = "adapter_config.json"
_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")


@dataclass(frozen=True, slots=True)
class Model:
    """A model that can be loaded.

    Attributes:
        name: As given on the command line.
        base: The folder or hub id of the whole model.
        adapter: The folder of a LoRA adapter on it, or None.
        tokenizer: Where the tokenizer lies: beside the adapter where it was saved there, else with the base.
    """

    name: str
    base: str
    adapter: str | None = None

    @property
    def tokenizer(self) -> str:
        own = self.adapter is not None and any((Path(self.adapter) / f).is_file() for f in ("tokenizer.json", "tokenizer_config.json"))
        return self.adapter if own and self.adapter is not None else self.base

    def identity(self) -> dict[str, Any]:
        """What a manifest records: names and the hash of each folder's weights."""
        return {
            "model": self.name,
            "weights": weights_hash(self.adapter or self.base),
            "adapter": None if self.adapter is None else {"base": self.base, "base_weights": weights_hash(self.base)},
        }


def resolve(name: str, *, weights: bool = True) -> Model:
    """Finds out what `name` is; without `weights`, a folder need not hold them yet.

    Raises:
        ValueError: In one line: for a folder that holds no model, one whose download or saving was not finished, weights that are not
            safetensors, or an adapter whose base cannot be found.
    """
    path = Path(name)
    if not path.is_dir():
        if path.exists() or not _HUB_ID.fullmatch(name):
            raise ValueError(f"{name} is no folder with a model, and no name on the hub such as Qwen/Qwen3-0.6B")
        return Model(name, name)
    if not (path / ADAPTER).is_file():
        _check_model(path, weights)
        return Model(name, name)
    if weights:
        _check_weights(path, "adapter_model")
    try:
        base = json.loads((path / ADAPTER).read_text(encoding="utf-8"))["base_model_name_or_path"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{name}: cannot read base_model_name_or_path from its {ADAPTER} ({error})") from None
    if isinstance(base, str) and Path(base).is_dir():
        _check_model(Path(base), weights)
    elif not isinstance(base, str) or not _HUB_ID.fullmatch(base) or base.startswith("."):
        raise ValueError(f"{name} is an adapter on {base}, which is not there: set base_model_name_or_path in its {ADAPTER}")
    return Model(name, base, name)


def title(name: str) -> str:
    """What people call a model: its hub id, or its folder's name, which for `…/checkpoint` is that of the run that it came from."""
    path = Path(name)
    if path.name == "checkpoint" and path.parent.name:
        return path.parent.name
    return path.name if name.count("/") > 1 else name


def weights_hash(path: str) -> str | None:
    """Identity of a folder's weights: the hash over its safetensors files, or None where `path` is no such folder."""
    files = sorted(Path(path).glob("*.safetensors"))
    return _hash(tuple((file, file.stat().st_size, file.stat().st_mtime_ns) for file in files)) if files else None


@cache
def _hash(files: tuple[tuple[Path, int, int], ...]) -> str:
    """The hash over files, which are read again only where their size or time has changed."""
    digest = hashlib.sha256()
    for file, _, _ in files:
        digest.update(file.name.encode())
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()[:32]


def _check_model(path: Path, weights: bool) -> None:
    if not (path / "config.json").is_file():
        inner = [str(p.parent) for p in sorted(path.glob("*/config.json"))]
        hint = f"did you mean {inner[-1]}?" if inner else "name the folder that holds config.json and the weights"
        raise ValueError(f"{path} holds no model: {hint}")
    if weights:
        _check_weights(path, "model")


def _check_weights(path: Path, stem: str) -> None:
    """Refuses a folder whose weights are missing, cut, or in a format that could run code."""
    index = path / f"{stem}.safetensors.index.json"
    try:
        named: Iterable[str] = json.loads(index.read_text(encoding="utf-8"))["weight_map"].values() if index.is_file() else ()
    except (ValueError, KeyError, AttributeError) as error:
        raise ValueError(f"{index} cannot be read ({error}): the download or save was not finished, get the model again") from None
    files = [path / name for name in sorted(set(named))] or sorted(path.glob(f"{stem}*.safetensors"))
    if not files:
        if any(path.glob("*.bin")) or any(path.glob("*.pt")):
            raise ValueError(f"{path} holds pickled weights only, which could run code: save it again as safetensors")
        raise ValueError(f"{path} holds no weights: the download or save was not finished, get the model again")
    for file in files:
        if not file.is_file():
            raise ValueError(f"{path} lacks {file.name}: the download or save was not finished, get the model again")
        if not _whole(file):
            raise ValueError(f"{file} is cut short: the download or save was not finished, get the model again")


def _whole(file: Path) -> bool:
    """Whether a safetensors file is as long as its header says."""
    size = file.stat().st_size
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if size < 8 or length > size - 8:
            return False
        try:
            header = json.loads(stream.read(length))
            end = max((entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"), default=0)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            return False
    return size == 8 + length + end
