"""A recipe, a launcher's configuration and a machine, read together into what a run would be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tmtrain.combinations import Settings
from tmtrain.config import make_configs, read_settings
from tmtrain.doctor.finding import Machine
from tmtrain.doctor.memory import Sharding
from tmtrain.recipe import GRPORecipe, SFTRecipe

#: Problems of a recipe that are looked at.
SAMPLE = 400


@dataclass(frozen=True, slots=True)
class Launch:
    """What an accelerate configuration says.

    Attributes:
        gpus, nodes: Processes on each machine, and machines.
        sharding: How weights are spread.
        on_cpu: Whether the processors train.
        saves_whole: Whether a checkpoint holds the whole weights.
    """

    gpus: int
    nodes: int
    sharding: Sharding
    on_cpu: bool
    saves_whole: bool = True


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run would be.

    Attributes:
        file: The recipe.
        recipe, config, options: Its fields, TRL's, and how the model is loaded.
        model: What the tokenizer comes from: the warm-up's model where there is one.
        machine, launch: What it runs on.
        multi_turn: Whether an episode takes several replies.
        given: The fields that the recipe and the command line set, as they were read.
    """

    file: Path
    recipe: GRPORecipe | SFTRecipe
    config: Any
    options: Any
    model: str
    machine: Machine
    launch: Launch
    multi_turn: bool
    given: dict[str, Any]

    @property
    def settings(self) -> Settings:
        """As the table of combinations looks at it."""
        sharding = self.launch.sharding
        return Settings(self.recipe, self.config, self.options, self.multi_turn, sharding.zero_stage, sharding.sharded)


def read_launch(file: str | Path) -> Launch:
    """Reads an accelerate configuration. Raises ValueError where it is none."""
    try:
        said = yaml.safe_load(Path(file).read_text(encoding="utf-8"))
        kind, processes, nodes = said["distributed_type"], int(said["num_processes"]), int(said.get("num_machines", 1))
    except (OSError, yaml.YAMLError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{file} is no accelerate configuration: {' '.join(str(error).split())}") from None
    deepspeed = said.get("deepspeed_config") or {}
    stage = int(deepspeed.get("zero_stage", 2)) if kind == "DEEPSPEED" else 0
    offload = deepspeed.get("offload_optimizer_device", "none") != "none"
    sharding = Sharding(zero_stage=stage, fsdp=kind == "FSDP", offload=offload)
    whole = stage != 3 or bool(deepspeed.get("zero3_save_16bit_model", False))
    if kind == "FSDP":
        whole = (said.get("fsdp_config") or {}).get("fsdp_state_dict_type", "FULL_STATE_DICT") == "FULL_STATE_DICT"
    return Launch(processes // nodes, nodes, sharding, bool(said.get("use_cpu", False)), whole)


def read_plan(file: str | Path, overrides: Sequence[str], launch: Launch, memory: float) -> Plan:
    """Reads a recipe as its program would on that machine.

    Raises:
        ValueError: For a field that is unknown, of a wrong type, or refused, as the program itself would.
    """
    from trl import GRPOConfig, ModelConfig, SFTConfig

    from envs.registry import load_env

    settings = read_settings([*overrides, "--config", str(file)], Path(file))
    machine = Machine(0 if launch.on_cpu else launch.gpus, launch.nodes, memory)
    processes = launch.gpus * launch.nodes
    recipe_class, config_class = (SFTRecipe, SFTConfig) if "stages" in settings else (GRPORecipe, GRPOConfig)
    # The machine at hand is another one: it may have no GPU, and one process.
    planned = type(config_class.__name__, (config_class,), {"world_size": property(lambda _: processes)})
    recipe, config, options = make_configs({**settings, "use_cpu": True}, recipe_class, planned, ModelConfig, processes=processes)
    model = recipe.model
    if getattr(recipe, "warmup", None):
        model = read_settings(["--config", recipe.warmup], Path(recipe.warmup)).get("model", SFTRecipe.model)
    levels = recipe.levels if isinstance(recipe, GRPORecipe) else recipe.stages[0].levels
    multi_turn = load_env(levels[0].get("env", recipe.env)).multi_turn
    given = {name: settings[name] for name in sorted(settings) if name != "use_cpu"}
    return Plan(Path(file), recipe, config, options, model, machine, launch, multi_turn, given)
