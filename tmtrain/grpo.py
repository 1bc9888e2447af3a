"""GRPO with rewards that the environment verifies step by step, on TRL's GRPOTrainer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envs.problem import Problem, stream
from envs.registry import load_env
from eval.backends.tokens import stop_ids
from tmtrain.combinations import Settings, check_combinations
from tmtrain.data import Mixture, data_record, expert_lengths, prompt_row
from tmtrain.evaluation import most_reply_tokens
from tmtrain.launch import check_processes, is_main_process, launched_sharding
from tmtrain.models import keep_adapter_precise, load_for_training, new_adapter
from tmtrain.provenance import read_training_record, write_training_record
from tmtrain.recipe import GRPORecipe
from tmtrain.rewards import PARTS, VerdictRewards
from tmtrain.sft import last_checkpoint

if TYPE_CHECKING:
    from trl import GRPOConfig, ModelConfig

    from tmtrain.held_out import HeldOutEvaluation


def draw_problems(recipe: GRPORecipe, config: GRPOConfig, held: Sequence[Problem]) -> tuple[Mixture, list[Problem]]:
    """The training problems, none of them in `held` or a frozen suite, and the mixture they come from."""
    mixture = Mixture(recipe.env, recipe.levels, config.seed, "grpo")
    return mixture, list(islice(mixture.problems(frozenset(p.canonical for p in held)), recipe.problems))


def check_settings(
    tokenizer: Any, context: int | None, problems: Sequence[Problem], recipe: GRPORecipe, config: GRPOConfig, options: ModelConfig
) -> None:
    """Refuses what would spoil the run, before anything is trained, a warm-up included.

    Args:
        tokenizer, context: Of the model that is trained; its longest sequence in tokens, None where it sets no bound.
        problems: What GRPO trains on.
        recipe, config, options: The run's settings.

    Raises:
        ValueError: For settings that do not go together (see `tmtrain.combinations`), and where the expert's reply to a problem would not
            fit into `max_completion_length`, or prompt and rollout not into the context together.
    """
    if config.max_steps < 1:
        raise ValueError("max_steps: say for how many updates to train; levels and learning rate follow it")
    zero_stage, sharded = launched_sharding()
    check_combinations(Settings(recipe, config, options, is_multi_turn(problems), zero_stage, sharded))
    if len({load_env(p.env).multi_turn for p in problems}) > 1:
        raise ValueError("levels: single-turn and multi-turn environments cannot be mixed in one run: they are rolled out differently")
    chat = recipe.chat(tokenizer, str(recipe.model), multi_turn=is_multi_turn(problems))
    needed = expert_lengths(chat, problems, recipe.setting)
    limit = config.max_completion_length
    if limit is None:
        raise ValueError(f"max_completion_length: say how long a rollout may become; the expert needs {needed.episode} tokens")
    if needed.episode > limit:
        raise ValueError(
            f"max_completion_length: right {'episodes' if is_multi_turn(problems) else 'replies'} need up to {needed.episode} tokens, so "
            f"{limit} would cut them: raise it or lower the level"
        )
    if context is not None and needed.prompt + limit > context:
        raise ValueError(
            f"max_completion_length: prompts of up to {needed.prompt} tokens and rollouts of {limit} are more than the model's context of "
            f"{context}: lower it or the level"
        )
    if is_multi_turn(problems) and needed.reply > recipe.turn_tokens:
        raise ValueError(f"turn_tokens: right replies need up to {needed.reply} tokens, so {recipe.turn_tokens} would cut them: raise it")


def is_multi_turn(problems: Sequence[Problem]) -> bool:
    """Whether an episode of these problems takes several replies."""
    return load_env(problems[0].env).multi_turn


def train_grpo(
    start: Path,
    mixture: Mixture,
    problems: Sequence[Problem],
    recipe: GRPORecipe,
    config: GRPOConfig,
    options: ModelConfig,
    held: Sequence[Problem],
) -> Path:
    """Trains the model in `start` on `problems`, which `draw_problems` gave and `check_settings` passed.

    Leaves the run directories `eval_before` and `eval_after` in the output folder, both on `held`.

    Returns:
        The checkpoint's folder, `output_dir/checkpoint`.
    """
    checkpoint = Path(config.output_dir) / "checkpoint"
    if recipe.resume and read_training_record(checkpoint):
        return checkpoint
    from tmtrain.trainer import CURRICULUM, restore_curriculum

    model, tokenizer = load_for_training(str(start), config.seed, options, trust_remote_code=recipe.trust_remote_code)
    trainer = build_grpo_trainer(model, tokenizer, mixture, problems, recipe, config, new_adapter(model, options))
    check_processes(trainer.accelerator)
    if not any(p.requires_grad for p in trainer.model.parameters()):
        raise ValueError(f"no parameter of {start} can be trained: unfreeze the model, or add an adapter")
    watching = watch(trainer, start, recipe, held)
    also = [CURRICULUM] if trainer.curriculum is not None else []
    begun = last_checkpoint(config.output_dir, also=also) if recipe.resume else None
    restore_curriculum(trainer.curriculum, begun)
    trainer.train(resume_from_checkpoint=begun)
    trainer.save_model(str(checkpoint))
    watching.record(str(checkpoint), Path(config.output_dir) / "eval_after")
    if is_main_process():
        names = ("learning_rate", "max_steps", "per_device_train_batch_size", "num_generations", "temperature", "beta", "loss_type", "seed")
        settings = {
            "oracles": recipe.setting.oracles,
            "credit": recipe.credit,
            "curriculum": recipe.curriculum,
            "outcome_weight": recipe.outcome_weight,
            "reward": recipe.reward,
            **{name: getattr(config, name) for name in names},
        }
        stage = {"kind": "grpo", "model": str(start), "data": data_record(problems, mixture, held), "settings": settings}
        write_training_record(checkpoint, style=recipe.style, stages=[*read_training_record(start).get("stages", []), stage])
    trainer.accelerator.wait_for_everyone()
    return checkpoint


def watch(trainer: Any, start: str | Path, recipe: GRPORecipe, held: Sequence[Problem]) -> HeldOutEvaluation:
    """Has a trainer evaluate on `held` before it trains, and as it goes where the recipe says `eval_every`."""
    from tmtrain.held_out import HeldOutEvaluation

    model, config = trainer.model, trainer.args
    chat = recipe.chat(trainer.processing_class, str(start), multi_turn=is_multi_turn(held))
    stops = stop_ids(model.generation_config, trainer.processing_class)
    watching = HeldOutEvaluation(
        trainer,
        held,
        recipe,
        chat,
        stops,
        reply_tokens=most_reply_tokens(recipe, chat, held),
        context=(config.vllm_max_model_length if config.use_vllm else None) or getattr(model.config, "max_position_embeddings", None),
        start=str(start),
        directory=Path(config.output_dir),
    )
    trainer.add_callback(watching)
    return watching


def build_grpo_trainer(
    model: Any,
    tokenizer: Any,
    mixture: Mixture,
    problems: Sequence[Problem],
    recipe: GRPORecipe,
    config: GRPOConfig,
    adapter: Any = None,
) -> Any:
    """The trainer for these problems, with the recipe's rewards and credit; multi-turn ones are played turn by turn.

    Where an `adapter` is given, it is trained instead of the model.
    """
    from datasets import Dataset

    from tmtrain.curriculum import Curriculum
    from tmtrain.guards import Guards
    from tmtrain.rollout import WorldRollouts
    from tmtrain.trainer import VerdictTrainer, generation_batches

    config.reward_weights = [float(recipe.reward.get(part, 0.0)) for part in PARTS]
    stops = stop_ids(model.generation_config, tokenizer)
    rollouts = None
    chat = recipe.chat(tokenizer, str(recipe.model), multi_turn=is_multi_turn(problems))
    config.chat_template_kwargs = {**(config.chat_template_kwargs or {}), **chat.switch}
    if is_multi_turn(problems):
        os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")  # the pinned version's hook is what the tests hold
        assert config.max_completion_length is not None  # checked by `check_settings`
        rollouts = WorldRollouts(chat, stops, recipe.setting, room=config.max_completion_length, turn_tokens=recipe.turn_tokens)
        key = "max_tokens" if config.use_vllm else "max_new_tokens"
        config.generation_kwargs = {**(config.generation_kwargs or {}), key: recipe.turn_tokens}
    curriculum = None
    if recipe.curriculum != "none" or any(mixture.starts):
        levels = [mixture.level(p) for p in problems]
        batches, rng = generation_batches(config), stream("curriculum", config.seed)
        curriculum = Curriculum(levels, mixture.weights, mixture.starts, kind=recipe.curriculum, batches=batches, rng=rng)
    trainer = VerdictTrainer(
        model=model,
        callbacks=[Guards()],
        args=config,
        train_dataset=Dataset.from_list([{**prompt_row(p, recipe.setting), "level": mixture.level(p)} for p in problems]),
        processing_class=tokenizer,
        mode=recipe.credit,
        outcome_weight=recipe.outcome_weight,
        checker=VerdictRewards(recipe.setting, stops),
        curriculum=curriculum,
        rollouts=rollouts,
        peft_config=adapter,
    )
    keep_adapter_precise(trainer.model)
    return trainer
