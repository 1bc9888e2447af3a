"""Mistakes made on purpose, for the scripted policy that errs at a known rate."""

from __future__ import annotations

import random
from collections.abc import Iterator

from envs.tag.system import TagSystem, Word


def noisy_states(system: TagSystem, queue: Word, steps: int, rng: random.Random, rate: float) -> Iterator[Word]:
    """The states that follow `queue`, at most `steps` of them, until the system halts.

    Each goes wrong with probability `rate`: a symbol of the new queue is lost or doubled, and the run goes on from there. The first such
    state is never the right one, its length being another.
    """
    for _ in range(steps):
        following = system.step(queue)
        if following is None:
            return
        queue = following
        if rng.random() < rate:
            at = rng.randrange(len(queue) + 1)
            lose = at < len(queue) and rng.random() < 0.5
            extra = queue[at] if at < len(queue) else rng.choice(system.alphabet)
            queue = queue[:at] + queue[at + 1 :] if lose else (*queue[:at], extra, *queue[at:])
        yield queue


def random_states(system: TagSystem, steps: int, rng: random.Random) -> Iterator[Word]:
    """`steps` queues of random symbols."""
    longest = max(len(system.init), 1) * 2
    return (tuple(rng.choices(system.alphabet, k=rng.randint(1, longest))) for _ in range(steps))
