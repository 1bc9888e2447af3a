"""Supervised fine-tuning on the expert's demonstrations, on TRL's SFTTrainer."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envs.problem import Problem, stream
from tmtrain.buckets import Buckets, put_into_buckets
from tmtrain.combinations import Settings, check_combinations
from tmtrain.data import Mixture, data_record, demonstrations_by_turns
from tmtrain.launch import check_processes, is_main_process, launched_sharding
from tmtrain.models import check_tokenizer, keep_adapter_precise, load_for_training, new_adapter, training_tokenizer
from tmtrain.positions import GapCollator
from tmtrain.provenance import read_training_record, write_training_record
from tmtrain.recipe import SFTRecipe
from tmtrain.templates import training_template

if TYPE_CHECKING:
    from trl import ModelConfig, SFTConfig, SFTTrainer


def train_sft(recipe: SFTRecipe, config: SFTConfig, options: ModelConfig, held: Sequence[Problem]) -> Path:
    """Trains on demonstrations drawn apart from `held`, and saves the checkpoint that evaluation and GRPO start from.

    Returns:
        The checkpoint's folder, `output_dir/checkpoint`.

    Raises:
        ValueError: Where settings do not go together, see `tmtrain.combinations`, or the data or the tokenizer would spoil the run, see
            `build_sft_trainer`.
    """
    checkpoint = Path(config.output_dir) / "checkpoint"
    if recipe.resume and read_training_record(checkpoint):
        return checkpoint
    zero_stage, sharded = launched_sharding()
    check_combinations(Settings(recipe, config, options, zero_stage=zero_stage, sharded=sharded))
    trust = {"trust_remote_code": recipe.trust_remote_code}
    tokenizer = training_tokenizer(recipe.model, **trust)  # looked at before minutes go into the weights
    check_tokenizer(tokenizer, recipe.model)
    training_template(tokenizer, recipe.model)
    model, tokenizer = load_for_training(recipe.model, config.seed, options, **trust)
    barred = frozenset(p.canonical for p in held)
    mixtures = [Mixture(recipe.env, stage.levels, config.seed, f"sft/{i}") for i, stage in enumerate(recipe.stages)]
    problems = [list(islice(m.problems(barred), stage.problems)) for m, stage in zip(mixtures, recipe.stages, strict=True)]
    rows = [row for part in problems for row in demonstrations_by_turns(part, recipe.settings)]
    config.train_sampling_strategy = "sequential"  # drawn at random already, and the stages' order is a curriculum
    adapter = new_adapter(model, options)
    trainer = build_sft_trainer(model, tokenizer, rows, config, adapter, whole_logits=recipe.whole_logits)
    gaps = None
    if recipe.position_gap:
        rng = stream("positions", config.seed, os.environ.get("RANK", "0"))
        trainer.data_collator = gaps = GapCollator(trainer.data_collator, recipe.position_gap, rng)
    if recipe.bucket_tokens:
        put_into_buckets(trainer, recipe.bucket_tokens, stream("buckets", config.seed))
    check_processes(trainer.accelerator)
    begun = last_checkpoint(config.output_dir) if recipe.resume else None
    if gaps is not None and begun is not None:
        gaps.skip(rows_before(trainer, begun))
    trainer.train(resume_from_checkpoint=begun)
    trainer.save_model(str(checkpoint))
    if is_main_process():
        names = ("learning_rate", "max_steps", "num_train_epochs", "per_device_train_batch_size", "seed")
        own = {name: getattr(recipe, name) for name in ("oracles", "position_gap", "bucket_tokens")}
        settings = {**own, **{name: getattr(config, name) for name in names}}
        stages = [
            {"kind": "sft", "model": recipe.model, "data": data_record(part, mixture, held), "settings": settings}
            for part, mixture in zip(problems, mixtures, strict=True)
        ]
        write_training_record(checkpoint, style=recipe.style, stages=[*read_training_record(recipe.model).get("stages", []), *stages])
    trainer.accelerator.wait_for_everyone()
    trainer.accelerator.free_memory()  # evaluation follows
    return checkpoint


def build_sft_trainer(
    model: Any, tokenizer: Any, rows: Sequence[dict[str, Any]], config: SFTConfig, adapter: Any = None, *, whole_logits: bool = False
) -> SFTTrainer:
    """An SFTTrainer that trains assistant turns and their terminators, nothing else, and cuts no row; by an `adapter` where one is given.
    With `whole_logits` the loss is transformers' own, see `SFTRecipe`.

    Raises:
        ValueError: Where a row is longer than `max_length`, or the terminator is not among the trained tokens.
    """
    from datasets import Dataset
    from trl import SFTTrainer

    # TRL would cut longer rows without a word: the length is enforced below instead.
    limit, config.max_length = config.max_length, None
    config.assistant_only_loss = True
    dataset = Dataset.from_list(list(rows))
    trainer_class = _whole_logits_trainer() if whole_logits else SFTTrainer
    template, tokenizer.chat_template = tokenizer.chat_template, training_template(tokenizer, "the tokenizer")
    trainer = trainer_class(model=model, args=config, train_dataset=dataset, processing_class=tokenizer, peft_config=adapter)
    tokenizer.chat_template = template  # the checkpoint keeps the model's own
    keep_adapter_precise(trainer.model)
    prepared: Any = trainer.train_dataset
    longest = max(len(ids) for ids in prepared["input_ids"])
    if limit is not None and longest > limit:
        raise ValueError(
            f"max_length: the longest demonstration has {longest} tokens, so {limit} would cut it: raise it or lower the level"
        )
    trained = [label for label in prepared[0]["labels"] if label != -100]
    if tokenizer.eos_token_id not in trained:
        raise ValueError(
            f"the terminator {tokenizer.eos_token!r} is not trained, so replies would not end: "
            "the chat template must put it inside {% generation %} … {% endgeneration %}"
        )
    return trainer


def _whole_logits_trainer() -> type[SFTTrainer]:
    from transformers import Trainer
    from trl import SFTTrainer

    class WholeLogitsTrainer(SFTTrainer):
        def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None) -> Any:
            return Trainer.compute_loss(self, model, {**inputs, "use_cache": False}, return_outputs, num_items_in_batch)

    return WholeLogitsTrainer


def rows_before(trainer: Any, checkpoint: str) -> int:
    """How many rows this process had in its batches before a training checkpoint was saved, the dataset being gone through in order."""
    from transformers import TrainerState

    steps = TrainerState.load_from_json(str(Path(checkpoint) / "trainer_state.json")).global_step
    data, each, accelerator = trainer.train_dataset, trainer.args.per_device_train_batch_size, trainer.accelerator
    an_epoch, accumulated = len(trainer.get_train_dataloader()), trainer.args.gradient_accumulation_steps
    epochs, rest = divmod(steps, math.ceil(an_epoch / accumulated))  # an epoch's last update may have fewer batches
    rows = 0
    for batch in range(epochs * an_epoch + rest * accumulated):
        first = (batch % an_epoch * accelerator.num_processes + accelerator.process_index) * each
        items = list(range(first, first + each))
        if accelerator.num_processes == 1:
            items = items[: len(data) - first]
        else:  # the last batches are filled up from the beginning
            items = [i % len(data) for i in items]
        rows += sum(len(data[i]) for i in items) if isinstance(data, Buckets) else len(items)
    return rows


def last_checkpoint(output_dir: str | None, *, also: Sequence[str] = ()) -> str | None:
    """The newest whole training checkpoint in a folder, or None; newer ones are named on stderr.

    A run that is stopped while it saves leaves one without its `trainer_state.json`, which is written last.

    Args:
        output_dir: The folder.
        also: Names of further files that a checkpoint of this run has. Where none has them the newest one is given all the same, for it is
            then the run that differs.
    """
    folders = [f for f in Path(output_dir).glob("checkpoint-*") if f.name.partition("-")[2].isdecimal()] if output_dir else []
    folders = sorted((f for f in folders if f.is_dir()), key=lambda f: int(f.name.partition("-")[2]), reverse=True)
    ended = [f for f in folders if _is_json(f / "trainer_state.json")]
    whole = [f for f in ended if all((f / name).is_file() for name in also)] or ended
    for folder in folders[: folders.index(whole[0])] if whole else folders:
        if is_main_process():
            print(f"note: {folder} is passed over: it was not saved to its end", file=sys.stderr)
    return str(whole[0]) if whole else None


def _is_json(path: Path) -> bool:
    try:
        json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return True
