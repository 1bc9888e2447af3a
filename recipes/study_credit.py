"""Credit modes compared: the tiny model on tag and on ListWorld, GRPO under each mode with three seeds, all from one warm-up.

  python recipes/study_credit.py                           all of it, as many runs at a time as there are cores; ends in docs/
  python recipes/study_credit.py --output runs/my_study --seeds 3 4 5 --docs runs/my_study

Within a seed all modes draw the same problems in the same order, see as many rollouts and differ in `credit` alone. `outcome` also
rewards success and format (the recipes' `reward`), which step credit does not. A study that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import Any

import numpy as np

from eval.cores import available_cores
from tmtrain.credit import MODES
from tmtrain.provenance import read_training_record

HERE = Path(__file__).parent
#: Of each environment: the recipe programs and their files, for the warm-up and for GRPO.
ENVIRONMENTS = {
    "tag": (("sft_tag.py", "tag/study_sft.yaml"), ("grpo_tag.py", "tag/study_grpo.yaml")),
    "listworld": (("sft_worlds.py", "worlds/tiny_listworld_sft.yaml"), ("grpo_worlds.py", "worlds/study_listworld_grpo.yaml")),
}
SCORES = {"success_rate": "success", "step_accuracy": "step accuracy"}
#: Updates between evaluations.
EVERY = 20

Curve = list[tuple[int, float]]  # rollouts seen, score


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--output", type=Path, default=Path("runs/study_credit"), help="where the runs go (default: %(default)s)")
    arguments.add_argument("--docs", type=Path, default=Path("docs"), help="where table and plot go (default: %(default)s)")
    arguments.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="default: 0 1 2")
    arguments.add_argument("--envs", nargs="+", choices=ENVIRONMENTS, default=list(ENVIRONMENTS), help="default: all")
    given = arguments.parse_args()

    starts = {env: given.output / env / "warmup" for env in given.envs}
    run_all([command(env, 0, folder) for env, folder in starts.items()])
    runs = {(env, seed, mode): given.output / env / f"{mode}_{seed}" for env in starts for seed in given.seeds for mode in MODES}
    run_all(
        [
            command(
                *(env, 1, folder, "--seed", str(seed), "--credit", mode, "--eval_every", str(EVERY)),
                *("--warmup", "null", "--model", str(starts[env] / "checkpoint")),
            )
            for (env, seed, mode), folder in runs.items()
        ]
    )

    curves = {key: read_curves(folder) for key, folder in runs.items()}
    given.docs.mkdir(parents=True, exist_ok=True)
    (given.docs / "credit_study.md").write_text(table(curves, given.envs, given.seeds), encoding="utf-8")
    figure(curves, given.envs, given.seeds).savefig(given.docs / "credit_study.png", dpi=120)
    print(given.docs / "credit_study.md")


def command(env: str, stage: int, folder: Path, *more: str) -> list[str]:
    """The command line of one run: stage 0 is the warm-up, 1 is GRPO."""
    program, file = ENVIRONMENTS[env][stage]
    settings = ["--config", str(HERE / file), "--output_dir", str(folder), "--resume", "true"]
    return [sys.executable, str(HERE / program), *settings, *more]


def run_all(commands: Sequence[Sequence[str]]) -> None:
    """Runs the commands, one on each core at a time: this is faster than one run on all cores. Output goes to `log.txt` in each folder."""
    cores: Queue[int] = Queue()
    for core in available_cores() if hasattr(os, "sched_setaffinity") else [0]:
        cores.put(core)

    def run(words: Sequence[str]) -> None:
        folder = Path(words[words.index("--output_dir") + 1])
        folder.mkdir(parents=True, exist_ok=True)
        core = cores.get()
        try:
            with (folder / "log.txt").open("a", encoding="utf-8") as log:
                done = subprocess.run(words, stdout=log, stderr=log, preexec_fn=lambda: keep_to(core), check=False)
        finally:
            cores.put(core)
        if done.returncode:
            raise SystemExit(f"study_credit.py: a run failed, see {folder / 'log.txt'}; run the study again to go on")
        print(f"done: {folder}", flush=True)

    with ThreadPoolExecutor(cores.qsize()) as pool:
        list(pool.map(run, commands))


def keep_to(core: int) -> None:
    """Keeps this process to one core, where the system can do that."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})


def read_curves(folder: Path) -> dict[str, Curve]:
    """Each score against the rollouts seen: before training, and at every evaluation in it."""
    settings = read_training_record(folder / "checkpoint")["stages"][-1]["settings"]
    points = [(0, folder / "eval_before" / "summary.json")]
    points += [(int(f.stem.removeprefix("step_")), f) for f in (folder / "held_out").glob("step_*.json")]
    summaries = [(step * settings["per_device_train_batch_size"], json.loads(f.read_text(encoding="utf-8"))) for step, f in sorted(points)]
    return {score: [(seen, summary[score]["value"]) for seen, summary in summaries] for score in SCORES}


def student(values: Sequence[float]) -> tuple[float, float]:
    """Mean and half width of the 95 % interval of Student's t; infinite for a single value."""
    from scipy.stats import t

    if len(values) < 2:
        return float(values[0]), float("inf")
    return float(np.mean(values)), float(t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values)))


def table(curves: Mapping[tuple[str, int, str], dict[str, Curve]], envs: Sequence[str], seeds: Sequence[int]) -> str:
    """The scores at the end of training, and how the step modes differ from outcome credit, seed by seed."""
    lines = ["| | credit | " + " | ".join(f"{name}, before | after | less outcome's" for name in SCORES.values()) + " |"]
    lines.append("|---|---|" + "---|" * 3 * len(SCORES))
    for env in envs:
        for mode in MODES:
            cells = []
            for score in SCORES:
                ends = [curves[env, seed, mode][score] for seed in seeds]
                cells += [f"{100 * ends[0][0][1]:.1f}", percent([c[-1][1] for c in ends])]
                gaps = [curves[env, s, mode][score][-1][1] - curves[env, s, "outcome"][score][-1][1] for s in seeds]
                cells.append("" if mode == "outcome" else percent(gaps, sign="+"))
            lines.append(f"| {env} | `{mode}` | " + " | ".join(cells) + " |")
    seen = {env: curves[env, seeds[0], MODES[0]]["success_rate"][-1][0] for env in envs}
    per_run = ", ".join(f"{count:,} on {env}" for env, count in seen.items())
    return (
        "# Credit modes compared\n\n"
        f"Made by `python recipes/study_credit.py --envs {' '.join(envs)}`. Held-out scores in percent (tag greedily, ListWorld at\n"
        f"temperature 1): the mean of {len(seeds)} seeds with the 95 % interval of Student's t over seeds. All runs start from one\n"
        f"warm-up; the differences are paired: all modes of a seed see the same problems. Rollouts a run: {per_run}.\n\n"
        + "\n".join(lines)
        + "\n\n![Held-out scores against rollouts seen](credit_study.png)\n\nThin lines are the seeds, thick ones their mean.\n"
    )


def percent(values: Sequence[float], sign: str = "") -> str:
    """For the table: `63.5 ± 4.1`."""
    mean, half = student(values)
    return f"{100 * mean:{sign}.1f} ± {100 * half:.1f}"


def figure(curves: Mapping[tuple[str, int, str], dict[str, Curve]], envs: Sequence[str], seeds: Sequence[int]) -> Any:
    """A row for each environment, a column for each score."""
    from eval.plots import COLOURS, finish, new_figure

    drawn = new_figure(9, 3.2 * len(envs))
    panels = drawn.subplots(len(envs), len(SCORES), squeeze=False)
    for row, env in zip(panels, envs, strict=True):
        for axes, (score, name) in zip(row, SCORES.items(), strict=True):
            for mode, colour in zip(MODES, COLOURS, strict=False):
                lines = [curves[env, seed, mode][score] for seed in seeds]
                seen = [x for x, _ in lines[0]]
                values = 100 * np.array([[y for _, y in line] for line in lines])
                axes.plot(seen, values.T, color=colour, alpha=0.35, linewidth=0.8)
                axes.plot(seen, values.mean(axis=0), color=colour, linewidth=2.2, label=mode)
            axes.set(title=env, xlabel="rollouts seen", ylabel=f"held-out {name} (%)")
            finish(axes)
    return drawn


if __name__ == "__main__":
    main()
