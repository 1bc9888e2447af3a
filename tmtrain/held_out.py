"""Evaluation before, while and after training: the held-out problems played on the rollout engine's current weights, by the evaluator's
own loop and shared out over the processes, so that no process waits for one that evaluates alone."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from accelerate.utils import broadcast_object_list, gather_object
from transformers import TrainerCallback

from envs.problem import Problem
from eval.backends.chat import Chat
from eval.backends.folder import Model, resolve
from eval.backends.sampling import Sampling
from eval.episodes import Task, play_all
from eval.records import SUMMARY, EpisodeRecord, RunDirectory, check_free, write_json
from eval.runs import Evaluation, manifest
from eval.summary import RATES, summarise
from tmtrain.generation import awake, calls_of, decoding
from tmtrain.recipe import GRPORecipe
from tmtrain.rollout import RoundPolicy

BEST = "best"


class HeldOutEvaluation(TrainerCallback):
    """Evaluates before the first step, every so many steps and when it is told to.

    Before the first step it leaves a run directory, and refuses to train a policy that is hardly ever right. Every so many steps it logs
    the scores as `held_out/…` and keeps the best checkpoint. It decodes at the recipe's `eval_temperature`, whatever the rollouts' is, and
    leaves torch's stream of random numbers where it was, so a run with evaluation trains exactly as one without.

    Args:
        trainer: Whose model is evaluated.
        problems: The held-out problems.
        recipe: Says how they are put, how often, and which score keeps a checkpoint.
        chat: The tokenizer's way to put them.
        stops: Token ids that end a reply.
        reply_tokens: Most tokens of a reply.
        context: The longest sequence that the rollout engine takes, in tokens.
        start: The checkpoint that training starts from.
        directory: The run's output folder: `eval_before` and, of the evaluations between, `held_out/step_N.json` and `best`.
    """

    def __init__(
        self,
        trainer: Any,
        problems: Sequence[Problem],
        recipe: GRPORecipe,
        chat: Chat,
        stops: Sequence[int],
        *,
        reply_tokens: int,
        context: int | None,
        start: str,
        directory: Path,
    ) -> None:
        self._trainer, self._problems, self._recipe, self._chat, self._stops = trainer, problems, recipe, chat, stops
        self._reply_tokens, self._context, self._start, self._directory = reply_tokens, context, start, directory
        self._done_at = -1

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step == 0:
            check_start(self.record(self._start, self._directory / "eval_before"), self._recipe.min_start_accuracy)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._recipe.eval_every and state.global_step % self._recipe.eval_every == 0:
            self._evaluate(state.global_step)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._recipe.eval_every and self._done_at != state.global_step:
            self._evaluate(state.global_step)

    def record(self, model: str, directory: Path) -> dict[str, Any]:
        """Evaluates into a run directory, as the weights that lie in `model`; the summary.

        Where a run is resumed that was cut off before its first checkpoint, what it left in the directory is replaced.

        Raises:
            ValueError: Where the directory holds a run and nothing is resumed; asked before anything is trained, see `check_free`.
        """
        policy, records = self._play()
        if self._trainer.accelerator.is_main_process:
            check_free(directory, resume=self._recipe.resume)
            shutil.rmtree(directory, ignore_errors=True)
            policy.name, policy.model_source = model, resolve(model) if Path(model).is_dir() else Model(model, model)
            run = RunDirectory(directory, manifest(policy, Evaluation(self._problems, "held-out", self._recipe.setting)))
            for record in records:
                run.append(record)
            run.close()
            write_json(directory / SUMMARY, {**summarise(records), "notes": policy.notes()})
        return summarise(records)

    def _evaluate(self, step: int) -> None:
        self._done_at = step
        summary = summarise(self._play()[1])
        scores = {f"held_out/{name}": summary[name]["value"] for name in RATES if summary[name]["value"] is not None}
        self._trainer.log(scores)
        if self._trainer.accelerator.is_main_process:
            folder = self._directory / "held_out"
            folder.mkdir(parents=True, exist_ok=True)
            write_json(folder / f"step_{step}.json", summary)
        self._keep_best(step, summary[self._recipe.best_metric]["value"])

    def _play(self) -> tuple[RoundPolicy, list[EpisodeRecord]]:
        """Plays this process's share of the problems; the policy, and the records of all processes in the problems' order."""
        accelerator = self._trainer.accelerator
        generate, everywhere = calls_of(self._trainer)
        policy = RoundPolicy(
            self._chat,
            self._stops,
            generate,
            everywhere,
            room=None,
            sampling=Sampling(max_tokens=self._reply_tokens, temperature=self._recipe.eval_temperature, seed=self._recipe.eval_seed),
            context=self._context,
            engine="vllm" if self._trainer.use_vllm else "transformers",
        )
        own: list[EpisodeRecord] = []
        tasks = [Task(p) for p in self._problems[accelerator.process_index :: accelerator.num_processes]]
        episodes = play_all(tasks, self._recipe.setting, policy, concurrency=self._recipe.eval_batch_size, on_record=own.append)
        seed = self._recipe.eval_seed + accelerator.process_index
        with awake(self._trainer), decoding(self._trainer, self._reply_tokens, self._recipe.eval_temperature, seed):
            asyncio.run(policy.run(episodes, [self._chat.tokenizer.pad_token_id]))
        played = {r.key: r for r in map(EpisodeRecord.from_json, gather_object([r.to_json() for r in own]))}
        return policy, [played[Task(p).key] for p in self._problems]

    def _keep_best(self, step: int, value: float | None) -> None:
        """Saves the model where no step before scored as high. What was best is read from the disk, so a resumed run knows it; by one
        process, since a shared folder may show others an older note."""
        best = self._directory / BEST
        note = best / "held_out.json"
        is_main = self._trainer.accelerator.is_main_process
        before = [json.loads(note.read_text(encoding="utf-8"))["value"] if is_main and note.is_file() else None]
        broadcast_object_list(before)
        if value is None or (before[0] is not None and value <= before[0]):
            return
        self._trainer.save_model(str(best))
        if is_main:
            write_json(note, {"step": step, "metric": self._recipe.best_metric, "value": value})
        self._trainer.accelerator.wait_for_everyone()


def check_start(before: Mapping[str, Any], least: float) -> None:
    """Refuses to start GRPO from a policy that is hardly ever right.

    Args:
        before: The summary of the evaluation before GRPO.
        least: Least share of right steps, the first of each episode left out: it may need no rule at all.

    Raises:
        ValueError: Where fewer are right.
    """
    later = [count for count in before["acc"] if count["step"] > 0]
    right, due = sum(c["correct"] for c in later), sum(c["total"] for c in later)
    if due and right < least * due:
        raise ValueError(
            f"min_start_accuracy: before GRPO {right} of {due} steps after the first are right, fewer than {least:.1%}: GRPO would have "
            "nothing to reward; warm up longer or on easier levels, or set it to 0"
        )
