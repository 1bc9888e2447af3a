"""What a model is shown, to the letter: changing it changes what all scores mean."""

from __future__ import annotations

import re
from itertools import islice

from envs.dataset import draw, make_params
from envs.tag.prompt import PLACES, SUPERSCRIPTS, compact_reply, compact_task, verbose_reply, verbose_task
from envs.tag.system import TagSystem, simulate

SYSTEM = TagSystem.from_payload({"rules": {"A": "B", "B": ""}, "init": "AAB", "max_steps": 3})

TASK = """\
## Example
m: 2
Alphabet: {P, Q, R}
Init: [Q R P]
Transition rules:
P : Q
Q : R P
R : Q P R
Simulate until the system halts, at most 4 steps.

### step 0:
- Action: Init
- Queue State: [Q R P]

### step 1:
- Head Symbol: Q
- Action: Append R P to the end of the queue. Remove Q R from the head.
- Queue State: [P R P]

### step 2:
- Head Symbol: P
- Action: Append Q to the end of the queue. Remove P R from the head.
- Queue State: [P Q]

### step 3:
- Head Symbol: P
- Action: Append Q to the end of the queue. Remove P Q from the head.
- Queue State: [Q] <halt>

## Your system
m: 2
Alphabet: {A, B}
Init: [A A B]
Transition rules:
A : B
B : (empty word)
Simulate until the system halts, at most 3 steps."""

REPLY = """\
### step 0:
- Action: Init
- Queue State: [A A B]

### step 1:
- Head Symbol: A
- Action: Append B to the end of the queue. Remove A A from the head.
- Queue State: [B B]

### step 2:
- Head Symbol: B
- Action: Append nothing. Remove B B from the head.
- Queue State: [] <halt>"""


def test_verbose() -> None:
    assert verbose_task(SYSTEM).endswith(TASK)
    assert verbose_reply(SYSTEM, simulate(SYSTEM)) == REPLY


def test_compact() -> None:
    assert compact_task(SYSTEM) == "2 A:B B: 3[AAB]"
    assert compact_reply(SYSTEM, simulate(SYSTEM)) == "3[AAB]2.A:B[BB]1.B:[]"


def test_placed() -> None:
    assert compact_task(SYSTEM, placed=True) == "2 A₀B B 3[A¹²²A¹²³B¹²⁴]"
    assert compact_reply(SYSTEM, simulate(SYSTEM), placed=True) == "3[A¹²²A¹²³B¹²⁴]2.A¹²²A₀B¹²⁵[B¹²⁴B¹²⁵]1.B¹²⁴[]"
    longer = TagSystem.from_payload({"rules": {"A": "BAB", "B": "A"}, "init": "AB", "max_steps": 1})
    assert compact_task(longer, placed=True).startswith("2 A₀BA₁AA₂B B₀A 1[A")


def test_places_lie_on_a_ring_and_begin_anywhere() -> None:
    """Every queue's places count up by one, around the ring, and heads move on by m."""
    begun = set()
    for problem in islice(draw("tag", make_params("tag", {}), seed=0, split="places"), 300):
        system = TagSystem.from_payload(problem.payload)
        reply = compact_reply(system, simulate(system), placed=True)
        queues = [
            [int(k.translate(str.maketrans(SUPERSCRIPTS, "0123456789"))) for k in re.findall(f"[{SUPERSCRIPTS}]+", queue)]
            for queue in re.findall(r"\[(.*?)\]", reply)
        ]
        first = queues[0][0]
        begun.add(first)
        for i, places in enumerate(queues):
            assert places == [(first + i * system.m + k) % PLACES for k in range(len(places))]
    assert len(begun) > 100 and max(begun) < PLACES


def test_compact_example_of_the_documentation() -> None:
    rules = {"A": "CE", "B": "B", "C": "DCBB", "D": "AECD", "E": "D"}
    system = TagSystem.from_payload({"rules": rules, "init": "DBEEAA", "max_steps": 30})
    assert compact_task(system) == "2 A:CE B:B C:DCBB D:AECD E:D 30[DBEEAA]"
    assert compact_reply(system, simulate(system)).startswith("30[DBEEAA]29.D:AECD[EEAAAECD]28.E:D[")
