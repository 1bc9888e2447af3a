"""Model cards: rendered from the checkpoint's training record and from run directories, never from memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eval.backends.folder import weights_hash
from eval.plots import step_accuracy_figure
from eval.report import Run, read_runs
from eval.statistics import percent
from tmtrain.provenance import read_training_record

#: Scores that go into the card's metadata: key of the summary, name for people.
METRICS = {
    "swa_uniform": "Step-weighted accuracy (uniform)",
    "swa_linear": "Step-weighted accuracy (linear)",
    "pass_rate": "Pass rate",
    "strict_pass_rate": "Strict pass rate",
}
PLOT = "step_accuracy.png"


def write_card(checkpoint: str | Path, runs: Sequence[str | Path]) -> Path:
    """Writes `README.md` and its plot into a checkpoint's folder.

    Only runs of these very weights go into the metadata (`model-index`); others, such as one from before the training, are shown for
    comparison.

    Raises:
        ValueError: Where the folder holds no model, a run cannot be read, or none is of this checkpoint.
    """
    from huggingface_hub import ModelCard

    folder = Path(checkpoint)
    own_hash = weights_hash(str(folder))
    if own_hash is None:
        raise ValueError(f"{checkpoint} holds no safetensors weights, so there is no model to describe")
    read = read_runs(runs)
    own = [run for run in read if run.manifest["policy"].get("weights") == own_hash]
    if not own:
        raise ValueError(f"none of the runs is of the weights in {checkpoint}: evaluate it first (tmtrain eval {checkpoint} …)")
    name = folder.parent.name if folder.name == "checkpoint" else folder.name
    record = read_training_record(folder)
    step_accuracy_figure({run.name: run.summary for run in read}).savefig(folder / PLOT, dpi=150)
    data = _metadata(name, own, record)
    card = ModelCard(f"---\n{data.to_yaml()}\n---\n\n{_body(name, own, read, record)}", ignore_metadata_errors=False)
    path = folder / "README.md"
    card.save(path)
    return path


def _metadata(name: str, own: Sequence[Run], record: dict[str, Any]) -> Any:
    from huggingface_hub import EvalResult, ModelCardData

    results = []
    for run in own:
        suite, setting = run.manifest["suite"], run.manifest["setting"]
        for key, title in METRICS.items():
            value = run.summary[key]["value"]
            if value is None or math.isnan(value):
                continue
            results.append(
                EvalResult(
                    task_type="text-generation",
                    task_name="Computational reasoning",
                    dataset_type=f"tmtrain/{Path(suite['source']).stem}",
                    dataset_name=f"{suite['source']} ({suite['problems']} problems)",
                    dataset_config=f"style={setting['style']},oracles={setting['oracles']}",
                    dataset_revision=suite["hash"],
                    metric_type=key,
                    metric_name=title,
                    metric_value=value,
                )
            )
    tags = ["computational-reasoning", *sorted({stage["kind"] for stage in record.get("stages", [])})]
    return ModelCardData(
        model_name=name, eval_results=results, library_name="transformers", pipeline_tag="text-generation", tags=["tmtrain", *tags]
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
        f"{setting['oracles']}; backend {policy['backend']}, {sampling}; weights `{policy.get('weights')}`; verifier "
        f"{run.manifest['verifier_version']}, scorer {run.manifest['scorer_version']}. Endings: {endings}."
    )
