"""One hash for all tag problems that differ only by names of symbols or by rules that can never fire."""

from __future__ import annotations

from math import gcd

from envs.problem import content_hash
from envs.tag.system import TagSystem, simulate

#: Steps simulated to see whether the system halts, and so exactly which rules fire. A constant: the hash must not depend on
#: a problem's own bound, or the first ten steps of an evaluation problem could be trained on unseen.
HALTING_BOUND = 1000


def canonical_hash(system: TagSystem) -> str:
    """The canonical hash: a function of m, the initial queue and the firing rules, up to renaming; `max_steps` is left out."""
    firing = _firing(system)
    names: dict[str, int] = {}

    def number(symbol: str) -> int:
        return names.setdefault(symbol, len(names))

    init = [number(s) for s in system.init]
    # Symbols are met in an order that renaming cannot change: the initial queue's, then those of each rule in that order.
    rules: list[list[int] | None] = []
    order = list(names)
    for symbol in order:  # grows while it is walked
        if symbol not in firing:
            rules.append(None)
            continue
        rules.append([number(s) for s in system.rules[symbol]])
        order.extend(list(names)[len(order) :])
    return content_hash(["tag", system.m, init, rules])


def _firing(system: TagSystem) -> set[str]:
    """The symbols whose rule fires: exactly, where the run is seen to halt; otherwise all that arithmetic does not rule out."""
    possible = _possible_heads(system)
    for bound in (50, HALTING_BOUND):  # most systems halt, or have fired all that can fire, within a few steps
        trace = simulate(system, bound)
        fired = {trace.head(i) for i in range(1, trace.horizon + 1)}
        if trace.halted or fired == possible:
            return fired
    return possible


def _possible_heads(system: TagSystem) -> set[str]:
    """The symbols that can become heads as far as arithmetic tells.

    Heads are at buffer positions divisible by m. Let g be the gcd of m and all firing rules' lengths: then each appended word
    starts at a position congruent to the initial length modulo g, and its symbol at offset j can be a head only if
    (initial length + j) is divisible by g. The least set closed under this is found by iteration.
    """
    m, length = system.m, len(system.init)
    firing = set(system.init[::m])
    while True:
        g = gcd(m, *(len(system.rules[s]) for s in firing))
        found = {s for head in firing for j, s in enumerate(system.rules[head]) if (length + j) % g == 0}
        if found <= firing:
            return firing
        firing |= found
