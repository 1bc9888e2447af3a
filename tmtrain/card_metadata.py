"""The scores of a card as the hub reads them: `model-index` in the card's header, and `.eval_results/*.yaml` beside it."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.report import Run

#: Scores that go into the metadata: key of the summary, name for people.
METRICS = {
    "swa_uniform": "Step-weighted accuracy (uniform)",
    "swa_linear": "Step-weighted accuracy (linear)",
    "pass_rate": "Pass rate",
    "strict_pass_rate": "Strict pass rate",
    "step_accuracy": "Step accuracy",
}
FOLDER = ".eval_results"


@dataclass(frozen=True, slots=True)
class Entry:
    """One score: what was measured, on what, how.

    Attributes:
        suite: The suite's or problem file's name, as a name on the hub may be.
        revision: Hash of the problems.
        setting: Style, oracles and decoding; wording, thinking and YaRN where they are not as usual, and the context's length where runs
            differ in nothing else.
        metric: Key of METRICS.
        value, low, high: The score and its interval, fractions.
        date: Day of the run.
        problems: How many.
    """

    suite: str
    revision: str
    setting: str
    metric: str
    value: float
    low: float
    high: float
    date: str
    problems: int

    @property
    def key(self) -> tuple[str, ...]:
        """What there may be only one score of."""
        return self.suite, self.revision, self.setting, self.metric


def entries(runs: Sequence[Run]) -> list[Entry]:
    """The scores of `runs`; where two are of the same metric on the same problems in the same setting, the later run's.

    Raises:
        ValueError: Where a score is no number.
    """
    # Every manifest has the context's length, and none says whether it was asked for or is the model's own.
    lengths: dict[tuple[str, str], set[int | None]] = defaultdict(set)
    for run in runs:
        lengths[run.manifest["suite"]["hash"], _setting(run)].add(run.manifest["policy"].get("context_length"))
    found: dict[tuple[str, ...], Entry] = {}
    for run in sorted(runs, key=lambda r: r.manifest.get("started", "")):
        setting, length = _setting(run), run.manifest["policy"].get("context_length")
        if length is not None and len(lengths[run.manifest["suite"]["hash"], setting]) > 1:
            setting += f",context={length}"
        for entry in _of_run(run, setting):
            found[entry.key] = entry
    return list(found.values())


def _setting(run: Run) -> str:
    """How a run was made, but for the length of its context."""
    setting, policy = run.manifest["setting"], run.manifest["policy"]
    sampling, rope = policy.get("sampling", {}), policy.get("rope") or {}
    how = [f"style={setting['style']}", f"oracles={setting['oracles']}"]
    if (wording := setting.get("wording", "standard")) != "standard":
        how.append(f"wording={wording}")
    how += [f"{key}={sampling[key]}" for key in ("temperature", "top_p", "top_k", "max_tokens") if key in sampling]
    if setting.get("continued"):
        how.append(f"continued=up to {setting['token_limit']} tokens" if setting["token_limit"] else "continued")
    if run.manifest["samples"] > 1:
        how.append(f"samples={run.manifest['samples']}")
    # A server's may read "off, where the template has a switch"; commas part the settings here.
    if (thinking := policy.get("thinking", "template").partition(",")[0]) != "template":
        how.append(f"thinking={thinking}")
    if policy.get("earlier_thinking") == "drop":
        how.append("earlier_thinking=drop")
    if rope.get("rope_type") == "yarn":
        how.append(f"yarn={rope['factor']:g}")
    return ",".join(how)


def _of_run(run: Run, setting: str) -> Iterator[Entry]:
    suite = run.manifest["suite"]
    for metric in METRICS:
        rate = run.summary[metric]
        if rate["value"] is None:
            continue
        if not all(math.isfinite(rate[k]) for k in ("value", "low", "high")):
            raise ValueError(f"{run.name}: its {metric} is no number ({rate}): nothing is written")
        yield Entry(
            suite=re.sub(r"[^\w.-]+", "-", Path(suite["source"]).stem),
            revision=suite["hash"],
            setting=setting,
            metric=metric,
            value=rate["value"],
            low=rate["low"],
            high=rate["high"],
            date=str(run.manifest.get("started", ""))[:10],
            problems=suite["problems"],
        )


def model_index(scores: Sequence[Entry]) -> list[Any]:
    """The scores as `huggingface_hub.EvalResult`."""
    from huggingface_hub import EvalResult

    return [
        EvalResult(
            task_type="text-generation",
            task_name="Computational reasoning",
            dataset_type=f"tmtrain/{e.suite}",
            dataset_name=f"{e.suite} ({e.problems} problems)",
            dataset_config=e.setting,
            dataset_revision=e.revision,
            metric_type=e.metric,
            metric_name=METRICS[e.metric],
            metric_value=e.value,
        )
        for e in scores
    ]


def write_eval_results(scores: Sequence[Entry], checkpoint: Path) -> list[Path]:
    """Writes one `.eval_results/SUITE.yaml` a suite and removes those of earlier cards."""
    import yaml
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    folder = checkpoint / FOLDER
    folder.mkdir(exist_ok=True)
    by_suite: dict[str, list[Any]] = {}
    for e in scores:
        by_suite.setdefault(e.suite, []).append(
            EvalResultEntry(
                dataset_id=f"tmtrain/{e.suite}",
                task_id=e.metric,
                value=e.value,
                dataset_revision=e.revision,
                date=e.date or None,
                notes=f"{e.setting}; 95 % interval {e.low:.4f} to {e.high:.4f}; {e.problems} problems",
            )
        )
    paths = []
    for suite, results in by_suite.items():
        path = folder / f"{suite}.yaml"
        path.write_text(yaml.safe_dump(eval_result_entries_to_yaml(results), sort_keys=False, allow_unicode=True), encoding="utf-8")
        paths.append(path)
    for old in set(folder.glob("*.yaml")) - set(paths):
        old.unlink()
    return paths


def check_card(path: Path, scores: Sequence[Entry]) -> None:
    """Reads a written card back.

    Raises:
        ValueError: Where the hub's library does not find the same numbers in it, or two entries for one score.
    """
    from huggingface_hub import ModelCard

    read = ModelCard.load(path).data.eval_results or []
    found = {(r.dataset_type.removeprefix("tmtrain/"), r.dataset_revision, r.dataset_config, r.metric_type): r.metric_value for r in read}
    if len(found) != len(read) or found != {e.key: e.value for e in scores}:
        raise ValueError(f"{path}: its metadata does not hold the scores that were to be written: nothing is uploaded")
