"""All checks of a plan, each a finding or several."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from eval.backends.chat import Chat
from tmtrain.combinations import refused
from tmtrain.data import Mixture, held_out
from tmtrain.doctor.architectures import Architecture, architecture, find_config
from tmtrain.doctor.finding import Finding, Level
from tmtrain.doctor.lengths import Measured, measure, stand_in_tokenizer
from tmtrain.doctor.memory import GIB, Memory, activations, key_values, model_states
from tmtrain.doctor.plan import SAMPLE, Plan
from tmtrain.doctor.versions import check_versions
from tmtrain.models import check_terminator, check_tokenizer, training_tokenizer
from tmtrain.recipe import GRPORecipe
from tmtrain.templates import training_template

#: How much shorter than the real counts those of the stand-in tokenizer may be.
SLACK = 1.05
#: Share of a GPU's memory that may be planned with.
USABLE = 0.95


def diagnose(plan: Plan) -> Iterator[Finding]:
    """Everything that can be said of a plan without a GPU and without weights."""
    yield from check_versions(_extras(plan))
    yield from _combinations(plan)
    yield from _launch(plan)
    yield from _batches(plan)
    config = find_config(plan.model, trust_remote_code=plan.recipe.trust_remote_code)
    if config is None:
        yield Finding(Level.NOTE, "model", f"{plan.model} is neither here nor on a hub that answers: context and memory are not checked")
    arch = architecture(config) if config is not None else None
    yield from _data(plan, config, arch)


def _extras(plan: Plan) -> tuple[str, ...]:
    extras = ["train"]
    if plan.launch.sharding.zero_stage:
        extras.append("deepspeed")
    if plan.machine.gpus and getattr(plan.config, "use_vllm", False):
        extras.append("gpu")
    if plan.options.load_in_4bit or plan.options.load_in_8bit:
        extras.append("qlora")
    return tuple(extras)


def _combinations(plan: Plan) -> Iterator[Finding]:
    found = [Finding(Level.NO, "settings", line) for line in refused(plan.settings)]
    yield from found
    if plan.config.save_strategy == "no" and plan.machine.gpus:
        yield Finding(
            Level.NOTE, "settings", "save_strategy: no keeps nothing until the end, and a run that dies starts over: set it to steps"
        )
    if not found:
        yield Finding(Level.YES, "settings", "no two of them contradict each other")


def _launch(plan: Plan) -> Iterator[Finding]:
    launch, config = plan.launch, plan.config
    if not launch.saves_whole:
        yield Finding(
            Level.NO, "launch", "zero3_save_16bit_model (fsdp_state_dict_type): checkpoints would hold no whole weights: set it to true"
        )
    if getattr(config, "use_vllm", False) and config.vllm_mode == "colocate":
        parallel = config.vllm_tensor_parallel_size
        if max(1, launch.gpus) % parallel:
            yield Finding(
                Level.NO,
                "launch",
                f"vllm_tensor_parallel_size: {parallel} does not divide the {launch.gpus} GPUs of a machine: take a divisor",
            )
    if plan.machine.gpus and not (config.bf16 or config.fp16):
        yield Finding(Level.NO, "launch", "bf16: false computes in 32 bits on GPUs, several times slower: set it to true")
    if launch.on_cpu and config.bf16:
        text = "bf16: true pays on processors with instructions for it (AMX, or AVX-512 with BF16) and is slow on others"
        yield Finding(Level.NOTE, "launch", text)


def _batches(plan: Plan) -> Iterator[Finding]:
    config, processes = plan.config, plan.launch.gpus * plan.launch.nodes
    rows = config.per_device_train_batch_size * processes
    update = rows * config.gradient_accumulation_steps
    if not isinstance(plan.recipe, GRPORecipe):
        tokens = plan.recipe.bucket_tokens
        what = f"buckets of at most {tokens:,} tokens" if tokens else "rows"
        each = config.per_device_train_batch_size
        yield Finding(Level.YES, "batch", f"{update} {what} an update: {each} on each of {processes} processes")
        return
    generated = config.generation_batch_size
    text = (
        f"{generated} rollouts a generation, {generated // config.num_generations} groups of {config.num_generations}; {update} an update: "
        f"{config.per_device_train_batch_size} on each of {processes} processes, {config.gradient_accumulation_steps} times"
    )
    groups = generated // config.num_generations
    yield Finding(Level.YES, "batch", text)
    if plan.recipe.problems < groups:
        yield Finding(Level.NO, "batch", f"problems: {plan.recipe.problems} are fewer than the {groups} groups of one generation: raise it")


def _data(plan: Plan, config: Any, arch: Architecture | None) -> Iterator[Finding]:
    recipe = plan.recipe
    held = held_out(recipe.env, recipe.eval_levels, min(recipe.eval_problems, SAMPLE), recipe.eval_seed)
    levels = [recipe.levels] if isinstance(recipe, GRPORecipe) else [stage.levels for stage in recipe.stages]
    barred = frozenset(p.canonical for p in held)
    names = ["grpo"] if isinstance(recipe, GRPORecipe) else [f"sft/{i}" for i in range(len(levels))]
    mixtures = [Mixture(recipe.env, part, plan.config.seed, name) for part, name in zip(levels, names, strict=True)]
    problems = [p for m in mixtures for p in islice(m.problems(barred), SAMPLE // len(mixtures))]
    shared = len({p.canonical for p in problems} & barred)
    yield Finding(
        Level.NO if shared else Level.YES,
        "data",
        f"{shared} of {len(problems)} training problems drawn are among the {len(held)} held out, renamed copies included",
    )
    tokenizer, estimated = None, False
    try:
        tokenizer = training_tokenizer(plan.model, trust_remote_code=recipe.trust_remote_code)
    except ValueError as error:
        if config is None or plan.model.count("/") != 1:
            yield Finding(Level.NO, "tokenizer", f"model: {error}")
            return
        yield Finding(Level.NOTE, "tokenizer", f"that of {plan.model} is not here, so tokens are estimated and the template is not checked")
    if tokenizer is not None:
        yield from _tokenizer(plan, tokenizer, config)
        if not tokenizer.chat_template:
            return
    else:
        tokenizer, estimated = stand_in_tokenizer([*problems, *held], recipe.settings), True
    try:
        # Of a stand-in no switch is asked: it has none.
        chat = Chat(tokenizer, name=plan.model) if estimated else recipe.chat(tokenizer, plan.model, multi_turn=plan.multi_turn)
        measured = measure(chat, problems, recipe.settings, estimated=estimated)
    except ValueError as error:
        yield Finding(Level.NO, "lengths", str(error))
        return
    yield from _lengths(plan, measured, arch)
    if arch is not None and plan.machine.gpus:
        yield from _memory(plan, measured, arch)


def _tokenizer(plan: Plan, tokenizer: Any, config: Any) -> Iterator[Finding]:
    try:
        check_tokenizer(tokenizer, plan.model)
        check_terminator(tokenizer, config, plan.model)
        if not isinstance(plan.recipe, GRPORecipe):
            training_template(tokenizer, plan.model)
    except ValueError as error:
        yield Finding(Level.NO, "tokenizer", f"model: {error}")
        return
    yield Finding(Level.YES, "tokenizer", f"replies end with {tokenizer.eos_token!r}, padding is {tokenizer.pad_token!r}")


def _lengths(plan: Plan, measured: Measured, arch: Architecture | None) -> Iterator[Finding]:
    config, recipe = plan.config, plan.recipe
    factor = SLACK if measured.estimated else 1.0
    told = f"prompt {measured.prompt}; right {'episode' if plan.multi_turn else 'reply'} {measured.episode} tokens"
    needed, prompt = measured.episode.longest * factor, measured.prompt.longest * factor
    field = "max_completion_length" if isinstance(recipe, GRPORecipe) else "max_length"
    limit = getattr(config, field)
    have = needed if isinstance(recipe, GRPORecipe) else needed + prompt
    if limit is not None and have > limit:
        over = measured.share_over(int(limit / factor)) if isinstance(recipe, GRPORecipe) else 1.0
        yield Finding(Level.NO, "lengths", f"{field}: {limit} would cut {over:.1%} of right replies ({told}): raise it to {round(have)}")
    elif isinstance(recipe, GRPORecipe) and plan.multi_turn and measured.reply.longest * factor > recipe.turn_tokens:
        yield Finding(Level.NO, "lengths", f"turn_tokens: {recipe.turn_tokens} would cut right replies ({measured.reply} tokens): raise it")
    else:
        yield Finding(Level.YES, "lengths", told + (" (estimated)" if measured.estimated else ""))
    whole = prompt + (limit or needed) if isinstance(recipe, GRPORecipe) else have
    window = min(n for n in (getattr(config, "vllm_max_model_length", None), arch.context if arch else None, 10**9) if n)
    if whole > window:
        yield Finding(
            Level.NO, "lengths", f"{field}: prompt and reply may have {round(whole)} tokens, the context {window}: lower it or the levels"
        )


def _memory(plan: Plan, measured: Measured, arch: Architecture) -> Iterator[Finding]:
    parts = estimate(plan, measured, arch)
    machine, config = plan.machine, plan.config
    text = (
        f"{parts.total:.0f} of {machine.memory:.0f} GiB a GPU: weights {parts.weights:.1f}, gradients {parts.gradients:.1f}, optimizer "
        f"{parts.optimizer:.1f}, activations {parts.activations:.1f}, rollouts {parts.rollout:.1f}"
    )
    text += f"; {parts.host:.0f} GiB of the machine's own" if parts.host else ""
    if parts.total > USABLE * machine.memory:
        yield Finding(Level.NO, "memory", f"{_remedy(plan, parts)}; {text}")
    else:
        yield Finding(Level.YES, "memory", text)
    if getattr(config, "use_vllm", False) and config.vllm_mode == "colocate":
        weights = 2 * arch.parameters / config.vllm_tensor_parallel_size / GIB
        left = config.vllm_gpu_memory_utilization * machine.memory - weights - 1.5
        length = measured.prompt.longest + (config.max_completion_length or 0)
        window = config.vllm_max_model_length or arch.context
        one, full = (key_values(arch, 1, n) / config.vllm_tensor_parallel_size / GIB for n in (length, window))
        if left < full:  # vLLM starts only where the longest sequence that it is set up for would fit
            yield Finding(
                Level.NO,
                "rollouts",
                f"vllm_gpu_memory_utilization: {config.vllm_gpu_memory_utilization} leaves {max(0.0, left):.1f} GiB beside the weights of "
                f"{weights:.1f}, a sequence of {window:,} tokens needs {full:.1f}: raise it, or vllm_tensor_parallel_size, or set "
                f"vllm_max_model_length to {round(length * 1.05):,}",
            )
        else:
            yield Finding(
                Level.YES, "rollouts", f"vLLM keeps {left:.0f} GiB for keys and values: {int(left / one)} whole rollouts at a time"
            )


def estimate(plan: Plan, measured: Measured, arch: Architecture) -> Memory:
    """Memory of a GPU by part."""
    config, sharding = plan.config, plan.launch.sharding
    weights, gradients, optimizer, host = model_states(arch, plan.options, sharding, plan.machine)
    grpo = isinstance(plan.recipe, GRPORecipe)
    length = measured.prompt.longest + (config.max_completion_length or 0) if grpo else measured.prompt.longest + measured.episode.longest
    active = activations(arch, config.per_device_train_batch_size, length, checkpointing=config.gradient_checkpointing)
    rollout, shared = 0.0, False
    if grpo and config.use_vllm and config.vllm_mode == "colocate":
        rollout, shared = config.vllm_gpu_memory_utilization * plan.machine.memory * GIB, not config.vllm_enable_sleep_mode
    elif grpo and not config.use_vllm:
        batch = config.generation_batch_size // (plan.launch.gpus * plan.launch.nodes)
        rollout = key_values(arch, batch, length) + (2 * arch.parameters if sharding.sharded else 0)
    return Memory(weights / GIB, gradients / GIB, optimizer / GIB, active / GIB, rollout / GIB, host / GIB, shared)


def _remedy(plan: Plan, parts: Memory) -> str:
    """The field to change first: what takes most of what can be helped."""
    config, sharding = plan.config, plan.launch.sharding
    states = parts.weights + parts.gradients + parts.optimizer
    if not config.gradient_checkpointing and parts.activations > states / 2:
        return "gradient_checkpointing: set it to true"
    if parts.activations > 0.5 * plan.machine.memory and config.per_device_train_batch_size > 1:
        return "per_device_train_batch_size: lower it and raise gradient_accumulation_steps"
    if getattr(config, "use_vllm", False) and parts.rollout > 0 and states + parts.activations < 0.8 * plan.machine.memory:
        return "vllm_gpu_memory_utilization: lower it, or set vllm_enable_sleep_mode: true"
    if not sharding.sharded:
        return "accelerate configuration: take zero3.yaml, which spreads the weights"
    return "accelerate configuration: take more machines (zero3_multinode.yaml) or zero3_offload.yaml, or train an adapter (use_peft: true)"
