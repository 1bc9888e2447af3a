"""Memory of a GPU in training, part by part. Estimates, meant to be a little too large; every formula is stated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tmtrain.doctor.architectures import Architecture
from tmtrain.doctor.finding import Machine

GIB = 2**30
#: What CUDA, its libraries and fragmentation take, in GiB.
OVERHEAD = 3.0
#: Bytes a weight of four bits takes with its scales.
FOUR_BITS = 0.56


@dataclass(frozen=True, slots=True)
class Sharding:
    """How the launcher spreads a model.

    Attributes:
        zero_stage: DeepSpeed's stage; 0 without it.
        fsdp: PyTorch's own sharding.
        offload: Whether optimizer and weights lie in the machine's own memory.
    """

    zero_stage: int = 0
    fsdp: bool = False
    offload: bool = False

    @property
    def sharded(self) -> bool:
        """Whether no process holds all weights."""
        return self.fsdp or self.zero_stage == 3


@dataclass(frozen=True, slots=True)
class Memory:
    """GiB of each GPU, by part.

    Attributes:
        rollout: Of what generates: vLLM's share, or keys and values.
        host: Of the machine's own memory, which offloading takes.
        rollouts_stay: Whether what generates keeps its memory while the model learns.
    """

    weights: float
    gradients: float
    optimizer: float
    activations: float
    rollout: float
    host: float = 0.0
    rollouts_stay: bool = False

    @property
    def total(self) -> float:
        """The larger of what learning and generating take, which happen in turn. Gradients are freed between updates."""
        kept = self.weights + self.optimizer + OVERHEAD
        learning = kept + self.gradients + self.activations + (self.rollout if self.rollouts_stay else 0.0)
        return max(learning, kept + self.rollout)


def trainable(arch: Architecture, options: Any) -> int:
    """How many parameters are trained: all, or r·(inputs + outputs) for each linear layer that LoRA adapts."""
    if not options.use_peft:
        return arch.parameters
    return sum(options.lora_r * (i + o) for i, o in arch.linear_shapes)


def model_states(arch: Architecture, options: Any, sharding: Sharding, machine: Machine) -> tuple[float, float, float, float]:
    """Bytes of weights, gradients and optimizer on each GPU, and of the machine's own memory.

    With DeepSpeed these are its own estimators' sums: 16-bit weights, 16- and 32-bit gradients, 32-bit master weights and Adam's two
    moments. Without it everything is kept in 32 bits (or in `dtype`), and only gradients and optimizer where an adapter is trained.
    """
    count, total = machine.processes, arch.parameters
    trained = trainable(arch, options)
    frozen = total if options.use_peft else 0
    width = FOUR_BITS if options.load_in_4bit else 1.1 if options.load_in_8bit else 2.0 if options.dtype in ("bfloat16", "float16") else 4.0
    if sharding.zero_stage in (2, 3):
        width = min(width, 2.0)
        states, host = _deepspeed(arch, trained, sharding, machine)
        shards = count if sharding.zero_stage == 3 else 1
        layer = 4 * arch.largest_layer if sharding.zero_stage == 3 else 0
        held = 0 if sharding.offload else 1
        weights = width * (frozen or trained) / shards * held + layer
        gradients = (6 if sharding.zero_stage == 2 else 4) * trained / count * held
        own = states - layer - (2 * trained / shards) * held if not options.use_peft else states - layer
        return weights, gradients, max(0.0, own - gradients), host
    if sharding.fsdp:
        layer = 2 * max(arch.largest_layer, (total - arch.embedding) // max(1, arch.layers))
        return width * (frozen or trained) / count + layer, 4 * trained / count, 8 * trained / count, 0.0
    return width * (frozen or trained), 4 * trained, 8 * trained + (4 * trained if options.use_peft else 0), 0.0


def _deepspeed(arch: Architecture, trained: int, sharding: Sharding, machine: Machine) -> tuple[float, float]:
    """DeepSpeed's estimate of the bytes of model states on a GPU, and on a machine."""
    gpus = max(1, machine.gpus)
    if sharding.zero_stage == 2:
        from deepspeed.runtime.zero.stage_1_and_2 import estimate_zero2_model_states_mem_needs as stage_2

        host, gpu = stage_2(trained, gpus, machine.nodes, cpu_offload=sharding.offload)
        return float(gpu), float(host if sharding.offload else 0)
    from deepspeed.runtime.zero.stage3 import estimate_zero3_model_states_mem_needs as stage_3

    host, gpu, _ = stage_3(
        trained, arch.largest_layer, gpus, machine.nodes, cpu_offload=sharding.offload, cpu_offload_params=sharding.offload, zero_init=True
    )
    return float(gpu), float(host if sharding.offload else 0)


def activations(arch: Architecture, batch: int, length: int, *, checkpointing: bool) -> float:
    """Bytes of the activations of `batch` sequences of `length` tokens in 16 bits, with attention that stores no scores.

    34 bytes a hidden unit, layer and token (Korthikanti et al., arXiv 2205.05198, equation 2 without its attention term), the inner layer
    taken at its real width; with checkpointing one layer's, and 2 bytes for each layer's input. The output layer adds logits in 16 bits,
    their gradient, and a copy in 32.
    """
    tokens = batch * length
    layer = tokens * (18 * arch.hidden + 8 * arch.inner)
    blocks = layer + 2 * tokens * arch.hidden * arch.layers if checkpointing else layer * arch.layers
    return float(blocks + 8 * tokens * arch.vocabulary)


def key_values(arch: Architecture, sequences: int, length: int) -> float:
    """Bytes of keys and values of so many sequences."""
    return float(arch.kv_bytes * sequences * length)
