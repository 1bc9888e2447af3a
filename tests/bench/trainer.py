"""Our trainer against TRL's own GRPOTrainer: seconds an update, with the same model, batches and completions.

Both start from one model that was shown the trace format for a minute. The learning rate is zero, so it stays what it is and both sample
the same completions from the same seeds; everything else of an update is done. They take turns, an update each, so that a machine that
slows down slows both. TRL's rewards are one cheap function of the reply's length; ours check every step and lay credit on tokens.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from copy import deepcopy
from itertools import islice
from typing import Any

import numpy as np

from envs.dataset import draw, make_params
from envs.environment import Setting
from envs.problem import Problem
from tests.bench.rows import Row
from tmtrain.data import Mixture, demonstrations, prompt_row
from tmtrain.grpo import build_grpo_trainer
from tmtrain.recipe import GRPORecipe
from tmtrain.sft import build_sft_trainer
from tmtrain.tiny import tiny_model, tiny_tokenizer

UPDATES = 40
WARM = 4  # of these, updates that are not counted
KNOBS = {"alphabet": "ABC", "rule_max": 3, "init_max": 5, "max_steps": 4}
COMPACT = Setting("compact")


def problems(split: str, number: int) -> list[Problem]:
    return list(islice(draw("tag", make_params("tag", KNOBS), seed=0, split=split), number))


def shared_settings(folder: str) -> dict[str, Any]:
    quiet = {"report_to": "none", "save_strategy": "no", "disable_tqdm": True, "logging_steps": 1000}
    return {"output_dir": folder, "use_cpu": True, "bf16": False, "gradient_checkpointing": False, **quiet}


def shown_the_format(folder: str) -> Any:
    """The tiny model after a minute of demonstrations: it writes traces, most of them wrong."""
    from trl import SFTConfig

    rows = [row for problem in problems("bench/sft", 12_800) for row in demonstrations(problem, COMPACT)]
    config = SFTConfig(**shared_settings(folder), per_device_train_batch_size=64, num_train_epochs=1, learning_rate=2e-3, seed=0)
    trainer = build_sft_trainer(tiny_model(0), tiny_tokenizer(), rows, config)
    trainer.train()
    return trainer.model


def settings(folder: str) -> Any:
    from trl import GRPOConfig

    return GRPOConfig(
        **shared_settings(folder),
        per_device_train_batch_size=32,
        num_generations=8,
        max_completion_length=128,
        learning_rate=0.0,
        max_steps=UPDATES,
        seed=0,
    )


def ours(model: Any, config: Any) -> Any:
    recipe = GRPORecipe(
        levels=[KNOBS], eval_levels=[KNOBS], style="compact", credit="step_baseline", reward={"step": 1.0, "success": 0.5, "format": 0.1}
    )
    return build_grpo_trainer(model, tiny_tokenizer(), Mixture("tag", [KNOBS], 0, "bench"), problems("bench/0", 512), recipe, config)


def plain(model: Any, config: Any) -> Any:
    from datasets import Dataset
    from trl import GRPOTrainer

    def length(completions: Any, **_: Any) -> list[float]:
        return [float(len(c[0]["content"])) for c in completions]

    rows = [{**prompt_row(p, COMPACT), "level": 0} for p in problems("bench/0", 512)]
    return GRPOTrainer(
        model=model, args=config, train_dataset=Dataset.from_list(rows), processing_class=tiny_tokenizer(), reward_funcs=length
    )


class Turns:
    """Two trainers in threads of their own, of which one works at a time, an update each in turn."""

    def __init__(self) -> None:
        self.free = [threading.Semaphore(1), threading.Semaphore(0)]
        self.ready = threading.Barrier(2)  # setting a trainer up seeds and draws from the one generator, so no step begins before
        self.seconds: list[list[float]] = [[], []]
        self.seen: list[list[list[int]]] = [[], []]
        self.failed: list[BaseException] = []

    def run(self, trainers: Sequence[Any]) -> None:
        threads = [threading.Thread(target=self._train, args=(i, t)) for i, t in enumerate(trainers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.failed:
            raise self.failed[0]

    def _train(self, number: int, trainer: Any) -> None:
        try:
            self._watch(number, trainer)
            trainer.train()
        except BaseException as error:
            self.failed.append(error)
        finally:
            self.ready.abort()
            for semaphore in self.free:  # nobody waits for a trainer that has ended
                semaphore.release(UPDATES)

    def _watch(self, number: int, trainer: Any) -> None:
        import torch
        from transformers import PrinterCallback, TrainerCallback

        turns = self
        score = trainer._generate_and_score_completions

        def scoring(inputs: Any) -> Any:
            output = score(inputs)
            turns.seen[number].extend(output["completion_ids"].tolist())
            return output

        class Clock(TrainerCallback):
            """Hands the machine over, and keeps its own state of torch's one generator of random numbers."""

            random = torch.Generator().manual_seed(0).get_state()

            def on_train_begin(self, *_: Any, **__: Any) -> None:
                self.begun = False

            def on_step_begin(self, *_: Any, **__: Any) -> None:
                if not self.begun:
                    turns.ready.wait()
                    self.begun = True
                turns.free[number].acquire()
                torch.set_rng_state(self.random)
                self.started = time.perf_counter()

            def on_step_end(self, *_: Any, **__: Any) -> None:
                turns.seconds[number].append(time.perf_counter() - self.started)
                self.random = torch.get_rng_state()
                turns.free[1 - number].release()

        trainer._generate_and_score_completions = scoring
        trainer.remove_callback(PrinterCallback)
        trainer.add_callback(Clock())


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        model = shown_the_format(f"{folder}/sft")
        trainers = [ours(deepcopy(model), settings(f"{folder}/ours")), plain(deepcopy(model), settings(f"{folder}/trl"))]
        turns = Turns()
        turns.run(trainers)
    if turns.seen[0] != turns.seen[1]:
        raise RuntimeError("the two trainers sampled different completions, so their times cannot be compared")
    mine, theirs = (np.array(seconds[WARM:]) for seconds in turns.seconds)
    chosen = np.random.default_rng(0).integers(0, len(mine), (2000, len(mine)))
    low, high = np.percentile(theirs[chosen].sum(1) / mine[chosen].sum(1), [2.5, 97.5])
    what = "an update of GRPO, 32 completions of up to 128 tokens"
    times = (f"{statistics.mean(seconds):.2f} s" for seconds in (mine, theirs))
    yield Row(what, next(times), "plain TRL", next(times), theirs.sum() / mine.sum(), low, high)
