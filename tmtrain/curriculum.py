"""Which level the next training problems come from: a fixed schedule, or where groups are informative.

A group of rollouts teaches nothing where all are alike: all right, or all wrong. With `success`, a level's share follows how often its
groups differed lately, so training moves on from what the model can do to what it is beginning to do. The state is plain data that
checkpoints carry; a resumed run draws what the interrupted one would have drawn.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

KINDS = ("none", "success")
#: A level keeps at least this share of its weight, so that it is noticed when it becomes informative.
FLOOR = 0.1
#: How much of the estimate one group moves.
PACE = 0.1


class Curriculum:
    """Draws rows by level.

    Args:
        levels: The level of each row.
        weights: Of each level.
        starts: At which share of the training (0…1) each level joins in.
        kind: `none` keeps the weights, `success` follows the share of informative groups.
        batches: How many batches the whole training draws.
        rng: Its own stream.
    """

    def __init__(
        self,
        levels: Sequence[int],
        weights: Sequence[float],
        starts: Sequence[float],
        *,
        kind: str,
        batches: int,
        rng: random.Random,
    ) -> None:
        if kind not in KINDS:
            raise ValueError(f"curriculum: unknown kind {kind!r}; the kinds are {', '.join(KINDS)}")
        if not any(w > 0 and s <= 0 for w, s in zip(weights, starts, strict=True)):
            raise ValueError("levels: at least one must have a weight and take part from the start")
        self._rows: list[list[int]] = [[] for _ in weights]
        for row, level in enumerate(levels):
            self._rows[level].append(row)
        for level, (rows, weight) in enumerate(zip(self._rows, weights, strict=True)):
            if weight > 0 and not rows:
                raise ValueError(f"levels: level {level} has a weight but no problem was drawn from it: raise 'problems'")
        self._weights, self._starts, self._kind, self._batches, self._rng = weights, starts, kind, batches, rng
        self.informative = [1.0] * len(weights)
        self._drawn: list[list[int]] = []
        self._queues: list[list[int]] = [[] for _ in weights]

    def batch(self, number: int, size: int) -> list[int]:
        """The rows of batch `number`: the same when asked again, else drawn with the present shares."""
        while len(self._drawn) <= number:
            shares = self.shares(len(self._drawn) / self._batches)
            chosen = self._rng.choices(range(len(shares)), shares, k=size)
            self._drawn.append([self._next(level) for level in chosen])
        return self._drawn[number]

    def shares(self, progress: float) -> list[float]:
        """The present share of each level, summing to 1."""
        open_ = [w if s <= progress else 0.0 for w, s in zip(self._weights, self._starts, strict=True)]
        if self._kind == "success":
            open_ = [w * max(FLOOR, i) for w, i in zip(open_, self.informative, strict=True)]
        return [w / sum(open_) for w in open_]

    def observe(self, groups: Sequence[tuple[int, bool]]) -> None:
        """Takes the level of each group just played, and whether its rollouts differed in their rewards."""
        for level, differed in groups:
            self.informative[level] += PACE * (float(differed) - self.informative[level])

    def state(self) -> dict[str, Any]:
        """All that drawing on depends on, as JSON values."""
        version, internal, gauss = self._rng.getstate()
        return {
            "informative": list(self.informative),
            "drawn": [list(b) for b in self._drawn],
            "queues": [list(q) for q in self._queues],
            "rng": [version, list(internal), gauss],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Goes on from what `state` gave."""
        self.informative = list(state["informative"])
        self._drawn = [list(b) for b in state["drawn"]]
        self._queues = [list(q) for q in state["queues"]]
        version, internal, gauss = state["rng"]
        self._rng.setstate((version, tuple(internal), gauss))

    def _next(self, level: int) -> int:
        """The level's next row; all are used before one comes again."""
        queue = self._queues[level]
        if not queue:
            queue.extend(self._rng.sample(self._rows[level], len(self._rows[level])))
        return queue.pop()


class CurriculumSampler:
    """The order of rows that TRL's GRPO sampler would give, with the rows chosen by a curriculum.

    Each batch of `prompts` rows is repeated `generations` times each for a group, and the whole batch `repeats` times for the updates that
    reuse it. Iterating again goes on with the next batches.
    """

    def __init__(self, curriculum: Curriculum, *, prompts: int, generations: int, repeats: int, batches: int) -> None:
        self._curriculum, self._prompts, self._generations, self._repeats, self._batches = (
            curriculum,
            prompts,
            generations,
            repeats,
            batches,
        )
        self._number = 0

    def __iter__(self) -> Iterator[int]:
        for _ in range(self._batches):
            rows = self._curriculum.batch(self._number, self._prompts)
            self._number += 1
            for _ in range(self._repeats):
                for row in rows:
                    yield from [row] * self._generations

    def __len__(self) -> int:
        return self._batches * self._prompts * self._generations * self._repeats
