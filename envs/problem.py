"""The frozen data of one task, its identity by content, and its line in a problem file."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: Keys of a problem's JSON line that are not payload.
RESERVED = ("env", "id", "canonical", "split", "horizon")


@dataclass(frozen=True, slots=True)
class Problem:
    """One task. Made by an environment's `problem(payload)`, which checks the payload and computes the rest.

    Attributes:
        env: Name of the environment.
        payload: What the environment needs, as plain JSON values.
        id: Content hash of env and payload (the published suites keep their published ids).
        canonical: Hash shared by all problems that differ only by a meaningless change; disjointness is judged by it.
        horizon: Number of steps of the true trace (tag) or of the optimal policy (worlds).
        split: Name of the stream it was drawn from, or "" for hand-made ones.
    """

    env: str
    payload: Mapping[str, Any]
    id: str
    canonical: str
    horizon: int
    split: str = ""

    def to_json(self) -> dict[str, Any]:
        """The problem as one flat JSON object, payload keys last."""
        head = {k: getattr(self, k) for k in RESERVED}
        return {**head, **self.payload}


def content_hash(value: Any) -> str:
    """128 bits of SHA-256 over `value` as canonical JSON, in hex: equal values give equal hashes on every machine."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def stream(*names: object) -> random.Random:
    """The random stream with this name, e.g. `stream("tag", 1, "train", 42, 7)`.

    Seeding by a string hashes it with SHA-512, so neighbouring seeds share nothing and the hash seed does not matter.
    """
    return random.Random("/".join(map(str, names)))
