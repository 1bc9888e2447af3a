"""What every recipe does around its own story: one-line errors, threads, and who speaks among several processes."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from eval.cores import available_cores


def is_main_process() -> bool:
    """Whether this is the first of the launched processes; true before and without any distributed set-up."""
    return int(os.environ.get("RANK", "0")) == 0


def run_recipe(main: Callable[[Sequence[str]], None]) -> int:
    """Runs a recipe's `main` on the command line's arguments; a ValueError becomes one line and exit code 2."""
    if any(flag in sys.argv[1:] for flag in ("-h", "--help")):
        print(sys.modules["__main__"].__doc__)
        return 0
    try:
        use_all_cores()
        take_own_port()
        resume_on_processors()
        main(sys.argv[1:])
    except ValueError as error:
        # Every process speaks here: where one alone fails, its reason must not be lost.
        rank = "" if is_main_process() else f" (process {os.environ['RANK']})"
        print(f"{Path(sys.argv[0]).name}{rank}: {error}", file=sys.stderr, flush=True)
        return 2
    return 0


def use_all_cores() -> None:
    """Shares the processor's cores out among the processes of this machine.

    The launcher sets one thread a process unless its configuration says that it trains on a CPU, which halves the speed of a laptop.
    """
    import torch

    if not torch.cuda.is_available():
        torch.set_num_threads(max(1, len(available_cores()) // int(os.environ.get("LOCAL_WORLD_SIZE", "1"))))


def take_own_port() -> None:
    """Gives a process that was launched alone a free port: TRL would take 29500 for vLLM in it, as would a second run here."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            os.environ.setdefault("MASTER_PORT", str(probe.getsockname()[1]))


def machine_settings() -> dict[str, bool]:
    """Settings that follow from the machine: without an accelerator, `use_cpu`, or several processes would each train alone."""
    import torch

    return {} if torch.accelerator.is_available() else {"use_cpu": True}


def check_processes(accelerator: Any) -> None:
    """Refuses to train otherwise than was launched.

    Raises:
        ValueError: Where a trainer's accelerator knows of another number of processes, or does not spread weights by FSDP although the
            launcher's configuration says so: on processors it would train data-parallel instead, without a word.
    """
    launched = int(os.environ.get("WORLD_SIZE", "1"))
    if accelerator.num_processes != launched:
        raise ValueError(
            f"{launched} processes were launched, but each trains as one of {accelerator.num_processes}: use an accelerate configuration "
            "of the kind of accelerate_configs/ddp_cpu.yaml, with use_cpu: true on a machine without an accelerator"
        )
    if os.environ.get("ACCELERATE_USE_FSDP", "false").lower() in ("1", "true") and accelerator.distributed_type.value != "FSDP":
        raise ValueError(
            f"FSDP was asked for, but training would be {accelerator.distributed_type.value}: on processors use "
            "accelerate_configs/zero3_cpu.yaml"
        )


@cache
def resume_on_processors() -> None:
    """Lets torch load the optimizer of a checkpoint on several processes without an accelerator: it does not know the place `cpu:0`."""
    import torch

    torch.serialization.register_package(5, lambda _: None, lambda stored, place: stored if place.startswith("cpu:") else None)


def launched_sharding() -> tuple[int, bool]:
    """DeepSpeed's stage that the launcher was configured with (0 without it), and whether weights are spread over the processes."""
    on = {name for name in ("DEEPSPEED", "FSDP") if os.environ.get(f"ACCELERATE_USE_{name}", "false").lower() in ("1", "true")}
    stage = int(os.environ.get("ACCELERATE_DEEPSPEED_ZERO_STAGE", "2")) if "DEEPSPEED" in on else 0
    return stage, stage == 3 or "FSDP" in on
