"""The processor's cores."""

from __future__ import annotations

import os


def available_cores() -> list[int]:
    """The cores that this process may run on; where the system does not say, all of the machine's."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
