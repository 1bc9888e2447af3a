"""What the doctor says of one thing."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Level(StrEnum):
    """How bad it is."""

    YES = "yes"
    NOTE = "note"
    NO = "no"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the diagnosis.

    Attributes:
        level: yes (checked and right), note (could not be checked, or worth knowing), no (the run would fail or be spoiled).
        topic: What was looked at.
        text: What was found; of a `no`, with the field and the fix.
    """

    level: Level
    topic: str
    text: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Machine:
    """What a recipe is to run on.

    Attributes:
        gpus: Of each node; 0 is the processor.
        nodes: How many there are.
        memory: Of each GPU, in GiB.
    """

    gpus: int
    nodes: int = 1
    memory: float = 80.0

    @property
    def processes(self) -> int:
        """How many processes train."""
        return max(1, self.gpus) * self.nodes
