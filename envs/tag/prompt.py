"""What a model is shown and what a right reply looks like, in three styles.

`verbose` keeps the published benchmark's line shape. `compact` is for models of a few hundred thousand parameters: the task is one
line such as `2 A:CE B:B C:DCBB D:AECD E:D 30[DBEEAA]`, and the reply `30[DBEEAA]29.D:AECD[EEAAAECD]28.E:D[…]…`, where the number counts
down the steps that are left (so that where to stop can be learned), then head, word appended and the new queue. `placed` is compact with
every queue symbol's place behind it, as in `1.A⁶:C⁹E¹⁰[D⁸C⁹E¹⁰]`. Places are given in the order in which symbols enter the queue, and a
symbol keeps its place while it is there, so that copying the queue becomes looking up places. They lie on a ring, and where they begin
differs from system to system, so that short traces show all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

from envs.tag.system import TagSystem, Trace, Word, simulate

HALT = " <halt>"
SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
#: Places on the ring: more than enter the queue in the published sizes, nine symbols at first and at most five in each of thirty steps.
PLACES = 160


def verbose_task(system: TagSystem) -> str:
    """The task in full sentences, with one worked example made by `verbose_reply`."""
    example = _example()
    parts = [
        "You will run an m-tag system by hand. The system has a queue of symbols, a deletion number m, and one rule for each symbol. "
        "One step does this:\n"
        "1. If the queue has fewer than m symbols, the system has halted and no step is taken.\n"
        "2. Look at the first symbol of the queue, the head, and append the word that its rule gives to the end of the queue. "
        "A rule may give an empty word.\n"
        "3. Remove the first m symbols of the queue.\n",
        "Report every step in the format of the example: step 0 is the initial queue, then one block for each step. Write the whole queue "
        f"each time, its symbols separated by spaces. Mark the state in which the system halts with{HALT}. Stop there, or after the last "
        "step that is asked for, and leave no step out.\n",
        "## Example\n" + _statement(example) + "\n\n" + verbose_reply(example, simulate(example)) + "\n",
        "## Your system\n" + _statement(system),
    ]
    return "\n".join(parts)


def verbose_reply(system: TagSystem, trace: Trace, *, states: Sequence[Word] | None = None) -> str:
    """The reply that states `trace`, or `states` in its place (then heads and words are those that these states imply)."""
    pieces: list[str] = []
    before: Word | None = None
    for i, queue in enumerate(trace.states() if states is None else states):
        pieces.append(verbose_step(system, i, before, queue))
        before = queue
    return "\n\n".join(pieces)


def verbose_step(system: TagSystem, i: int, before: Word | None, queue: Word) -> str:
    """The lines of step i, which leads from `before` (None for step 0) to `queue`."""
    lines = [f"### step {i}:"]
    if before is None:
        lines.append("- Action: Init")
    else:
        word = system.rules[before[0]] if before else ()
        appended = f"Append {' '.join(word)} to the end of the queue. " if word else "Append nothing. "
        lines.append(f"- Head Symbol: {before[0] if before else 'none'}")
        lines.append(f"- Action: {appended}Remove {' '.join(before[: system.m])} from the head.")
    lines.append(f"- Queue State: [{' '.join(queue)}]{HALT if len(queue) < system.m else ''}")
    return "\n".join(lines)


def continuation(i: int) -> str:
    """What is said after a reply that stopped before step i."""
    return f"Go on with step {i}, in the same format, to the halt or to the last step that is asked for."


def compact_task(system: TagSystem, *, placed: bool = False) -> str:
    """The task in one line, see the module's docstring."""
    rules = " ".join(f"{s}:{_joined(system, w)}" for s, w in system.rules.items())
    return f"{system.m} {rules} {system.max_steps}[{_joined(system, system.init, _first_place(system) if placed else None)}]"


def compact_reply(system: TagSystem, trace: Trace, *, states: Sequence[Word] | None = None, placed: bool = False) -> str:
    """The compact, or the placed, reply that states `trace`, or `states` in its place."""
    width, start = len(str(system.max_steps)), _first_place(system) if placed else 0
    pieces: list[str] = []
    before: Word = ()
    for i, queue in enumerate(trace.states() if states is None else states):
        left = f"{system.max_steps - i:0{width}d}"
        first = start + i * system.m if placed else None
        state = f"[{_joined(system, queue, first)}]"
        if i == 0:
            pieces.append(f"{left}{state}")
        else:
            word = system.rules[before[0]] if before else ()
            removed = None if first is None else first - system.m
            head = _joined(system, before[:1], removed)
            appended = _joined(system, word, None if removed is None else removed + len(before))
            pieces.append(f"{left}.{head}:{appended}{state}")
        before = queue
    return "".join(pieces)


def _statement(system: TagSystem) -> str:
    rules = "\n".join(f"{s} : {' '.join(w) or '(empty word)'}" for s, w in system.rules.items())
    steps = "1 step" if system.max_steps == 1 else f"{system.max_steps} steps"
    return (
        f"m: {system.m}\nAlphabet: {{{', '.join(system.alphabet)}}}\nInit: [{' '.join(system.init)}]\nTransition rules:\n{rules}\n"
        f"Simulate until the system halts, at most {steps}."
    )


def _example() -> TagSystem:
    rules = {"P": ("Q",), "Q": ("R", "P"), "R": ("Q", "P", "R")}
    return TagSystem(2, ("P", "Q", "R"), rules, ("Q", "R", "P"), 4)


def _first_place(system: TagSystem) -> int:
    """The place of the initial queue's first symbol: any, but always the same for a system."""
    return crc32(compact_task(system).encode()) % PLACES


def _joined(system: TagSystem, word: Word, first: int | None = None) -> str:
    """The symbols of a word; with their places from `first` on, where one is given."""
    symbols = word if first is None else [s + str((first + k) % PLACES).translate(_RAISED) for k, s in enumerate(word)]
    if all(len(s) == 1 for s in system.alphabet):
        return "".join(symbols)
    return (" " if any("," in s for s in system.alphabet) else ",").join(symbols)


_RAISED = str.maketrans("0123456789", SUPERSCRIPTS)
