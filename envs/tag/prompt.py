"""What a model is shown and what a right reply looks like, in three styles.

`verbose` keeps the published benchmark's line shape. `compact` is for models of a few hundred thousand parameters: the task is one
line such as `2 A:CE B:B C:DCBB D:AECD E:D 30[DBEEAA]`, and the reply `30[DBEEAA]29.D:AECD[EEAAAECD]28.E:D[…]…`, where the number counts
down the steps that are left (so that where to stop can be learned), then head, word appended and the new queue.

`placed` makes every look-up one of a name: the task is `2 A₀CA₁E B₀B … 30[D⁵B⁶…]`, a step `28.A⁶A₀C⁹A₁E¹⁰[D⁸C⁹E¹⁰]`. Behind a symbol of a
queue stands its place, in the order in which symbols enter the queue; it keeps it while it is there. Before each symbol of a rule's word
stand the rule and the symbol's number. Places lie on a ring, and where they begin differs from system to system, so that short traces
show all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

from envs.tag.system import TagSystem, Trace, Word, simulate

HALT = " <halt>"
SUPERSCRIPTS, SUBSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹", "₀₁₂₃₄₅₆₇₈₉"
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
    if placed:
        rules = " ".join(_joined(system, _numbered(s, w) or [s]) for s, w in system.rules.items())
        return f"{system.m} {rules} {system.max_steps}[{_joined(system, _placed(system.init, _first_place(system)))}]"
    rules = " ".join(f"{s}:{_joined(system, w)}" for s, w in system.rules.items())
    return f"{system.m} {rules} {system.max_steps}[{_joined(system, system.init)}]"


def compact_reply(system: TagSystem, trace: Trace, *, states: Sequence[Word] | None = None, placed: bool = False) -> str:
    """The compact, or the placed, reply that states `trace`, or `states` in its place."""
    width = len(str(system.max_steps))
    place = _first_place(system) if placed else 0  # of the queue's first symbol
    pieces: list[str] = []
    before: Word = ()
    for i, queue in enumerate(trace.states() if states is None else states):
        left = f"{system.max_steps - i:0{width}d}"
        told = ""
        if i > 0:
            head, word = before[:1], system.rules[before[0]] if before else ()
            if placed:
                appended = _numbered(head[0], _placed(word, place + len(before))) if before else []
                told = "." + _joined(system, [*_placed(head, place), *appended])
            else:
                told = f".{_joined(system, head)}:{_joined(system, word)}"
            place += system.m
        pieces.append(f"{left}{told}[{_joined(system, _placed(queue, place) if placed else queue)}]")
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


def _placed(word: Word, first: int) -> list[str]:
    """The symbols of a word with their places, from `first` on."""
    return [s + str((first + k) % PLACES).translate(_RAISED) for k, s in enumerate(word)]


def _numbered(head: str, word: Sequence[str]) -> list[str]:
    """The symbols of a rule's word, before each its head with the symbol's number."""
    return [piece for k, s in enumerate(word) for piece in (head + str(k).translate(_LOWERED), s)]


def _joined(system: TagSystem, symbols: Sequence[str]) -> str:
    """Symbols in a row, with separators where some of the alphabet are longer than one character."""
    if all(len(s) == 1 for s in system.alphabet):
        return "".join(symbols)
    return (" " if any("," in s for s in system.alphabet) else ",").join(symbols)


_RAISED, _LOWERED = str.maketrans("0123456789", SUPERSCRIPTS), str.maketrans("0123456789", SUBSCRIPTS)
