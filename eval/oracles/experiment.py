"""The oracle experiment as it lies on the disk: run directories of one or several models, arranged by model, world and oracle setting."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from envs.environment import ORACLES, WORDINGS
from envs.registry import load_env
from eval.backends.folder import title
from eval.records import MANIFEST, EpisodeRecord, read_manifest, read_records

#: Into so many levels a world's problems are cut at most.
MOST_LEVELS = 6


@dataclass(frozen=True)
class Experiment:
    """One model's episodes in one prompt style and wording.

    Attributes:
        name: What figures call it: the model, with the wording and the folder where that is needed to tell it from another one.
        model: What the policy is called.
        identity: The same for all runs of this model in this style, whatever the wording.
        style, wording: How problems were put.
        cells: The scored episodes by world and oracle setting.
        left_out: Episodes that are not scored.
    """

    name: str
    model: str
    identity: str
    style: str
    wording: str
    cells: dict[tuple[str, str], list[EpisodeRecord]] = field(default_factory=dict)
    left_out: int = 0

    @property
    def worlds(self) -> list[str]:
        return list(dict.fromkeys(world for world, _ in self.cells))

    def settings(self, world: str) -> list[str]:
        """The oracle settings that were run in a world, in the order of `ORACLES`."""
        return [o for o in ORACLES if (world, o) in self.cells]

    def successes(self, world: str, oracles: str) -> dict[str, float]:
        """The share of a problem's samples that succeed, by problem id."""
        return by_problem(self.cells[world, oracles], [float(r.verdict.success) for r in self.cells[world, oracles]])


@dataclass(frozen=True, slots=True)
class Level:
    """Problems of a world with horizons in `low`…`high`."""

    low: int
    high: int

    def __str__(self) -> str:
        return str(self.low) if self.low == self.high else f"{self.low}–{self.high}"

    def __contains__(self, record: EpisodeRecord) -> bool:
        return self.low <= record.problem["horizon"] <= self.high


def read_experiments(paths: Sequence[str | Path]) -> list[Experiment]:
    """Reads run directories, and all those in folders.

    Raises:
        ValueError: Where a path holds no run directory, or a model has no scored episode; where two runs hold the same episode in the
            same setting; for runs of single-turn environments, in which no oracle can speak.
    """
    found: dict[tuple[str, str], list[tuple[Path, dict[str, Any]]]] = defaultdict(list)
    for folder in _run_directories(paths):
        manifest = read_manifest(folder)
        setting = manifest["setting"]
        identity = json.dumps([manifest["policy"], setting["style"], manifest.get("seed", 0)], sort_keys=True)
        found[identity, setting.get("wording", "standard")].append((folder, manifest))
    models = {key: _model(runs[0][1]["policy"]) for key, runs in found.items()}
    worded = {wording for _, wording in found} != {"standard"}
    names = {key: f"{model} ({key[1]})" if worded else model for key, model in models.items()}
    for where in (lambda folder: folder.name, str):  # tells apart what is called alike, such as two checkpoints
        for name, count in Counter(names.values()).items():
            if count > 1:
                names |= {key: f"{name} in {where(_of_all_settings(found[key][0][0]))}" for key in found if names[key] == name}
    return [_experiment(names[key], models[key], *key, runs) for key, runs in found.items()]


def by_problem(records: Iterable[EpisodeRecord], values: Iterable[float]) -> dict[str, float]:
    """The mean of each problem's values, by problem id."""
    found: dict[str, list[float]] = defaultdict(list)
    for record, value in zip(records, values, strict=True):
        found[record.problem["id"]].append(value)
    return {problem: sum(some) / len(some) for problem, some in found.items()}


def levels(records: Iterable[EpisodeRecord]) -> list[Level]:
    """Cuts problems into levels by horizon: one for each, or, of more than `MOST_LEVELS`, about equally many problems in each."""
    horizons = {r.problem["id"]: r.problem["horizon"] for r in records}
    every = sorted(horizons.values())
    tops = sorted(set(every))
    if len(tops) > MOST_LEVELS:
        shares = np.arange(1, MOST_LEVELS + 1) / MOST_LEVELS
        tops = sorted(set(np.quantile(every, shares, method="inverted_cdf").tolist()))
    lows = [every[0], *(min(h for h in every if h > top) for top in tops[:-1])]
    return [Level(low, top) for low, top in zip(lows, tops, strict=True)]


def _run_directories(paths: Sequence[str | Path]) -> list[Path]:
    folders: dict[Path, None] = {}
    for path in paths:
        inside = sorted(file.parent for file in Path(path).rglob(MANIFEST))
        if not inside:
            raise ValueError(f"{path} holds no run directory: give one, or a folder with some, see tmtrain eval --oracles all")
        folders |= dict.fromkeys(folder.resolve() for folder in inside)
    return list(folders)


def _of_all_settings(folder: Path) -> Path:
    """The folder given to `tmtrain eval -o`: above those that are named like a setting."""
    while folder.name in (*ORACLES, *WORDINGS):
        folder = folder.parent
    return folder


def _model(policy: Mapping[str, Any]) -> str:
    return title(str(policy.get("model") or policy.get("policy")))


def _experiment(name: str, model: str, identity: str, wording: str, runs: Sequence[tuple[Path, Mapping[str, Any]]]) -> Experiment:
    style = runs[0][1]["setting"]["style"]
    cells: dict[tuple[str, str], dict[str, EpisodeRecord]] = defaultdict(dict)
    left_out = 0
    for folder, manifest in runs:
        oracles = manifest["setting"]["oracles"]
        for record in read_records(folder):
            world = record.problem["env"]
            if not load_env(world).multi_turn:
                raise ValueError(f"{folder} holds problems of {world}, which are answered in one reply: no oracle can speak there")
            cell = cells[world, oracles]
            if record.key in cell:
                raise ValueError(f"{folder} and another run both hold {record.key} of {name} with oracles {oracles}: leave one out")
            if record.verdict.ending.scored:
                cell[record.key] = replace(record, messages=())  # long, and not looked at here
            else:
                left_out += 1
    filled = {key: list(cell.values()) for key, cell in sorted(cells.items()) if cell}
    if not filled:
        raise ValueError(f"the runs of {name} hold no episode that is scored: {', '.join(str(folder) for folder, _ in runs)}")
    return Experiment(name, model, identity, style, wording, filled, left_out)
