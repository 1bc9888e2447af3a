"""Evaluation while training: the held-out problems played greedily on the rollout engine's current weights, by the evaluator's own loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from accelerate.utils import gather_object
from transformers import TrainerCallback

from envs.environment import Setting
from envs.problem import Problem
from eval.backends.chat import Chat
from eval.episodes import Task, play_all
from eval.records import EpisodeRecord, write_json
from eval.summary import RATES, summarise
from tmtrain.rollout import RoundPolicy, calls_of

BEST = "best"


class HeldOutEvaluation(TrainerCallback):
    """Evaluates every so many steps, logs the scores as `held_out/…`, and keeps the best checkpoint.

    The problems are shared out over the processes. Decoding is greedy, whatever the rollouts' temperature, and draws no random number, so
    a run with evaluation trains exactly as one without.

    Args:
        problems: The held-out problems.
        setting: Style and oracles.
        chat: The tokenizer's way to put them.
        stops: Token ids that end a reply.
        room, turn_tokens: Most tokens of an episode after its first prompt, and of a reply.
        every: Steps between evaluations; there is one more at the end.
        best_metric: One of `eval.summary.RATES`: the checkpoint with the highest is kept in `directory/best`.
        directory: The run's output folder; the summaries go into `directory/held_out/step_N.json`.
        batch_size: Episodes played together in each process.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        setting: Setting,
        chat: Chat,
        stops: Sequence[int],
        *,
        room: int,
        turn_tokens: int,
        every: int,
        best_metric: str,
        directory: Path,
        batch_size: int,
    ) -> None:
        self._problems, self._setting, self._chat, self._stops = problems, setting, chat, stops
        self._room, self._turn_tokens, self._every, self._metric = room, turn_tokens, every, best_metric
        self._directory, self._batch_size = directory, batch_size
        self.trainer: Any = None  # set once it is built, since it is given its callbacks first
        self._done_at = -1

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step % self._every == 0:
            self._evaluate(state.global_step)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._done_at != state.global_step:
            self._evaluate(state.global_step)

    def _evaluate(self, step: int) -> None:
        self._done_at = step
        accelerator = self.trainer.accelerator
        with _greedy(self.trainer):
            own = self._play(self._problems[accelerator.process_index :: accelerator.num_processes])
        records = [EpisodeRecord.from_json(r) for r in gather_object([r.to_json() for r in own])]
        summary = summarise(sorted(records, key=lambda r: r.key))
        scores = {f"held_out/{name}": summary[name]["value"] for name in RATES if summary[name]["value"] is not None}
        self.trainer.log(scores)
        if accelerator.is_main_process:
            folder = self._directory / "held_out"
            folder.mkdir(parents=True, exist_ok=True)
            write_json(folder / f"step_{step}.json", summary)
        self._keep_best(step, summary[self._metric]["value"])

    def _play(self, problems: Sequence[Problem]) -> list[EpisodeRecord]:
        generate, everywhere = calls_of(self.trainer)
        policy = RoundPolicy(self._chat, self._stops, generate, everywhere, room=self._room, turn_tokens=self._turn_tokens)
        records: list[EpisodeRecord] = []
        tasks = [Task(p) for p in problems]
        episodes = play_all(tasks, self._setting, policy, concurrency=self._batch_size, on_record=records.append)
        asyncio.run(policy.run(episodes, [self._chat.tokenizer.pad_token_id]))
        return records

    def _keep_best(self, step: int, value: float | None) -> None:
        """Saves the model where no step before scored as high. What was best is read from the disk, so a resumed run knows it."""
        best = self._directory / BEST
        note = best / "held_out.json"
        before = json.loads(note.read_text(encoding="utf-8"))["value"] if note.is_file() else None
        if value is None or (before is not None and value <= before):
            return
        self.trainer.accelerator.wait_for_everyone()  # all have read the note before it is written anew
        self.trainer.save_model(str(best))
        if self.trainer.accelerator.is_main_process:
            write_json(note, {"step": step, "metric": self._metric, "value": value})
        self.trainer.accelerator.wait_for_everyone()


@contextmanager
def _greedy(trainer: Any) -> Iterator[None]:
    """Has the trainer's generation decode greedily for a while."""
    if trainer.use_vllm:
        engine = trainer.vllm_generation
        before = engine.temperature
        engine.temperature = 0.0
        try:
            yield
        finally:
            engine.temperature = before
        return
    kept, own = dict(trainer.generation_kwargs), trainer.generation_config
    from transformers import GenerationConfig

    sampled = ("do_sample", "temperature", "top_p", "top_k", "min_p")
    trainer.generation_kwargs = {**{k: v for k, v in kept.items() if k not in sampled}, "do_sample": False}
    trainer.generation_config = GenerationConfig(**trainer.generation_kwargs, disable_compile=True)
    try:
        yield
    finally:
        trainer.generation_kwargs, trainer.generation_config = kept, own
