"""Model cards: rendered from the checkpoint's training record and from run directories, never from memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.backends.folder import resolve, title, weights_hash
from eval.plots import step_accuracy_figure
from eval.report import Run, read_runs
from eval.statistics import percent
from tmtrain.card_metadata import METRICS, check_card, entries, model_index, write_eval_results
from tmtrain.models import FRESH
from tmtrain.provenance import read_training_record

PLOT = "step_accuracy.png"


@dataclass(frozen=True, slots=True)
class WrittenCard:
    """A card on the disk.

    Attributes:
        path: The card.
        eval_results: The `.eval_results/` files beside it.
        warnings: What was left out of it, a line each.
    """

    path: Path
    eval_results: list[Path]
    warnings: list[str]


def write_card(checkpoint: str | Path, runs: Sequence[str | Path], *, base_model: str | None = None) -> WrittenCard:
    """Writes `README.md`, its plot and `.eval_results/` into a checkpoint's folder, and reads them back.

    Only runs of these very weights go into the metadata; others, such as one from before the training, are shown for comparison.

    Raises:
        ValueError: Where the folder holds no model, a run cannot be read, none is of this checkpoint, or a score is no number.
    """
    from huggingface_hub import ModelCard

    folder = Path(checkpoint)
    if not folder.is_dir():
        raise ValueError(f"{checkpoint} is no folder, so there is no place for a card")
    model = resolve(str(folder))
    read = read_runs(runs)
    own = [run for run in read if run.manifest["policy"].get("weights") == weights_hash(str(folder))]
    if not own:
        raise ValueError(f"none of the runs is of the weights in {checkpoint}: evaluate it first (tmtrain eval {checkpoint} …)")
    name = title(str(folder.resolve()))
    record = read_training_record(folder)
    scores = entries(own)
    base, warnings = _base_model(base_model, record, model.base if model.adapter else None)
    step_accuracy_figure({run.name: run.summary for run in read}).savefig(folder / PLOT, dpi=150)
    data = _metadata(name, model_index(scores), record, base, adapter=model.adapter is not None)
    card = ModelCard(f"---\n{data.to_yaml()}\n---\n\n{_body(name, own, read, record)}", ignore_metadata_errors=False)
    path = folder / "README.md"
    card.save(path)
    check_card(path, scores)
    return WrittenCard(path, write_eval_results(scores, folder), warnings)


def _base_model(asked: str | None, record: dict[str, Any], adapted: str | None) -> tuple[str | None, list[str]]:
    """The hub id of what training started from, and a warning where it has none that could be named."""
    origin = asked or adapted or next((stage["model"] for stage in record.get("stages", [])), None)
    if origin is None or origin in FRESH:
        return None, []
    if Path(origin).exists() or origin.count("/") != 1:
        return None, [f"the base model {origin} is a folder on this machine, so it is left out: name its hub id by --base-model"]
    return origin, []


def _metadata(name: str, results: list[Any], record: dict[str, Any], base: str | None, *, adapter: bool) -> Any:
    from huggingface_hub import ModelCardData

    tags = ["computational-reasoning", *sorted({stage["kind"] for stage in record.get("stages", [])})]
    return ModelCardData(
        model_name=name,
        eval_results=results,
        base_model=base,
        library_name="peft" if adapter else "transformers",
        pipeline_tag="text-generation",
        tags=["tmtrain", *tags],
    )


def _body(name: str, own: Sequence[Run], read: Sequence[Run], record: dict[str, Any]) -> str:
    parts = [
        f"# {name}",
        "A causal language model trained to carry out rules over many steps, checked step by step by the environment that made the task.",
        "## Results",
        "Percent with 95 % intervals (Wilson for rates over episodes, bootstrap clustered by problem for accuracies); greedy unless said.",
        _results_table(own, read),
        f"![Accuracy at each step, with 95 % bands]({PLOT})",
        *_horizons(read),
        "## Training",
        *(_stage(i, stage) for i, stage in enumerate(record.get("stages", []), 1)),
    ]
    if not record.get("stages"):
        parts.append("No training record lies beside the weights.")
    parts += ["## Evaluation", *(_evaluation(run) for run in own), "## Limits", _LIMITS]
    return "\n\n".join(parts) + "\n"


_LIMITS = (
    "The scores hold for the problem distribution, prompt style and decoding named above, and say nothing about other tasks. "
    "The model was not tested for any use beyond this one."
)


def _results_table(own: Sequence[Run], read: Sequence[Run]) -> str:
    lines = [f"| run | {' | '.join(METRICS.values())} | episodes |", "|" + "---|" * (len(METRICS) + 2)]
    for run in read:
        note = "" if run in own else " (other weights, for comparison)"
        cells = " | ".join(percent(run.summary[key]) for key in METRICS)
        lines.append(f"| {run.name}{note} | {cells} | {run.summary['episodes']} |")
    return "\n".join(lines)


def _horizons(read: Sequence[Run]) -> list[str]:
    levels = sorted({level["horizon"] for run in read for level in run.summary["by_horizon"]})
    if not 1 < len(levels) <= 12:
        return []
    lines = [f"| pass rate at | {' | '.join(run.name for run in read)} |", "|---" * (len(read) + 1) + "|"]
    for horizon in levels:
        found = [next((lv for lv in run.summary["by_horizon"] if lv["horizon"] == horizon), None) for run in read]
        lines.append(f"| {horizon} steps | {' | '.join(percent(lv['success_rate']) if lv else '–' for lv in found)} |")
    return ["\n".join(lines)]


def _stage(number: int, stage: dict[str, Any]) -> str:
    data, shared = stage["data"], stage["data"]["shared_canonical"]
    settings = ", ".join(f"{key} {value}" for key, value in stage["settings"].items())
    levels = "; ".join(", ".join(f"{k}={v}" for k, v in level.items()) for level in data["levels"])
    return (
        f"{number}. **{stage['kind'].upper()}** from `{stage['model']}` on {data['problems']:,} generated `{data['env']}` problems "
        f"({data['distinct_canonical']:,} distinct up to renaming; data hash `{data['hash']}`, seed {data['seed']}).\n"
        f"   Levels: {levels}.\n"
        f"   Settings: {settings}.\n"
        f"   Problems shared with the held-out set, up to renaming of symbols: {shared['held_out']}; with the frozen suites: "
        f"{shared['frozen_suites']}."
    )


def _evaluation(run: Run) -> str:
    policy, suite, setting = run.manifest["policy"], run.manifest["suite"], run.manifest["setting"]
    sampling = ", ".join(f"{key} {value}" for key, value in policy.get("sampling", {}).items())
    endings = ", ".join(f"{name} {count}" for name, count in run.summary["endings"].items())
    return (
        f"- `{run.name}`: {suite['source']}, {suite['problems']} problems (hash `{suite['hash']}`), style {setting['style']}, oracles "
        f"{setting['oracles']}; backend {policy['backend']}, {sampling}, thinking {policy.get('thinking', 'none')}, stop tokens "
        f"{policy.get('stop_token_ids')}; weights `{policy.get('weights')}`; verifier {run.manifest['verifier_version']}, scorer "
        f"{run.manifest['scorer_version']}. Endings: {endings}."
    )
