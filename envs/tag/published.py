"""The published benchmark's 100 problems in four alphabets, drawn again from one seed (section 4.1), and its file format."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

from envs.tag.system import TagSystem, simulate, stalls

ROMAN = "ABCDE"
#: The suites' names and alphabets; symbols correspond in order.
ALPHABETS = {"tmbench-v1": ROMAN, "tmbench-v1-number": "12345", "tmbench-v1-greek": "αβγδε", "tmbench-v1-special": "@#$%&"}
COUNT, M, MAX_STEPS = 100, 2, 30
RULE_LENGTH, INIT_LENGTH = (1, 5), (2, 9)


def published(alphabet: Sequence[str] = ROMAN) -> Iterator[tuple[str, TagSystem]]:
    """Yields the 100 pairs of published id and system, relabelled to `alphabet` (five symbols).

    The ids are those of the Roman problems in every alphabet, as published.
    """
    rng = random.Random(1)
    names = dict(zip(ROMAN, alphabet, strict=True))
    seen: set[str] = set()
    while len(seen) < COUNT:
        rules = {s: rng.choices(ROMAN, k=rng.randint(*RULE_LENGTH)) for s in ROMAN}
        init = rng.choices(ROMAN, k=rng.randint(*INIT_LENGTH))
        words = {s: "".join(w) for s, w in rules.items()}
        id = hashlib.sha256(("".join(init) + json.dumps(words, sort_keys=True)).encode()).hexdigest()
        system = TagSystem(M, tuple(ROMAN), {s: tuple(w) for s, w in rules.items()}, tuple(init), MAX_STEPS)
        if id in seen or stalls(simulate(system)):
            continue
        seen.add(id)
        yield id, system.relabel(names)


def to_published(items: Sequence[tuple[str, TagSystem]]) -> dict[str, Any]:
    """A file in the published format, for systems that share alphabet, m and bound.

    Raises:
        ValueError: Where they do not, or there are none: the format states these once for all.
    """
    if len({(s.alphabet, s.m, s.max_steps) for _, s in items}) != 1:
        raise ValueError("the published format holds one alphabet, one m and one step bound for all problems: write JSON lines instead")
    first = items[0][1]
    rule_lengths = [len(w) for _, s in items for w in s.rules.values()]
    init_lengths = [len(s.init) for _, s in items]
    samples = []
    for id, system in items:
        payload = system.to_payload()
        states = ["".join(q) if isinstance(payload["init"], str) else list(q) for q in simulate(system).states()]
        samples.append(
            {
                "id": id,
                "init_str": payload["init"],
                "rule": payload["rules"],
                "delete_count": system.m,
                "step_results": states,
            }
        )
    return {
        "symbol_set": list(first.alphabet),
        "rule_min_length": min(rule_lengths),
        "rule_max_length": max(rule_lengths),
        "str_min_length": min(init_lengths),
        "str_max_length": max(init_lengths),
        "max_step": first.max_steps + 1,
        "delete_count": first.m,
        "samples": samples,
    }


def from_published(sample: dict[str, Any], max_states: int) -> TagSystem:
    """The system of one published sample; `max_states` is the file's `max_step` (states, so one more than steps).

    Raises:
        ValueError: Where a field is missing or wrong, or the stated `step_results` are not this system's run.
    """
    for key in ("init_str", "rule", "delete_count"):
        if key not in sample:
            raise ValueError(f"sample {sample.get('id', '?')!r} has no {key!r}")
    if not isinstance(max_states, int) or max_states < 1:
        raise ValueError(f"'max_step' must be a whole number of at least 1, not {max_states!r}")
    if not isinstance(sample.get("id", ""), str) and sample["id"] is not None:
        raise ValueError(f"a sample's 'id' must be text, not {sample['id']!r}")
    stated = sample.get("step_results")
    if stated is not None and not (isinstance(stated, list) and all(isinstance(queue, (list, str)) for queue in stated)):
        raise ValueError(f"sample {sample.get('id', '?')!r}: its 'step_results' must be a list of queues")
    system = TagSystem.from_payload(
        {"m": sample["delete_count"], "rules": sample["rule"], "init": sample["init_str"], "max_steps": max_states - 1}
    )
    if stated is not None:
        system = TagSystem(system.m, system.alphabet, system.rules, system.init, min(system.max_steps, len(stated) - 1))
        if [tuple(q) for q in stated] != list(simulate(system).states()):
            raise ValueError(f"sample {sample.get('id', '?')!r}: its 'step_results' are not the run of its own rules")
    return system
