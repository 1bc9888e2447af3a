"""From a reply to its verdict: each stated queue against the true one, and against the one stated before it."""

from __future__ import annotations

from envs.tag.reader import Statement, read_reply
from envs.tag.symbols import Alphabet
from envs.tag.system import TagSystem, Trace, Word
from envs.verdict import Ending, Kind, StepVerdict, Verdict


def verify_reply(system: TagSystem, trace: Trace, reply: str, *, truncated: bool = False) -> Verdict:
    """Checks a reply against the true trace.

    Args:
        system: The rules, by which `faithful` is judged.
        trace: The system's run; the reply should state each of its horizon + 1 states.
        reply: The model's message, in any style.
        truncated: Whether a token limit cut it.

    Returns:
        One step verdict for each true state, then one for each step stated after the end.
        `success` is the published pass: every true state stated correctly; overrun steps do not undo it.
    """
    stated = read_reply(reply, Alphabet(system.alphabet))
    steps = [_check(system, i, stated, truth) for i, truth in enumerate(trace.states())]
    success = all(s.correct for s in steps)
    steps += [StepVerdict(i, False, Kind.OVERRUN, stated[i].span, _follows(system, i, stated)) for i in sorted(stated) if i > trace.horizon]
    if success:
        ending = Ending.COMPLETED
    elif truncated:
        ending = Ending.TRUNCATED
    else:
        ending = Ending.WRONG if stated else Ending.NO_ANSWER
    return Verdict(tuple(steps), success, ending)


def _check(system: TagSystem, i: int, stated: dict[int, Statement], truth: Word) -> StepVerdict:
    statement = stated.get(i)
    if statement is None:
        return StepVerdict(i, False, Kind.MISSING)
    if statement.queue is None:
        return StepVerdict(i, False, Kind.UNPARSED, statement.span)
    correct = statement.queue == truth
    return StepVerdict(i, correct, Kind.CORRECT if correct else Kind.WRONG, statement.span, _follows(system, i, stated))


def _follows(system: TagSystem, i: int, stated: dict[int, Statement]) -> bool | None:
    """Whether the queue stated for step i follows from the one stated for step i - 1; None where one is not stated."""
    queue = stated[i].queue
    if queue is None:
        return None
    if i == 0:
        return queue == system.init
    before = stated.get(i - 1)
    if before is None or before.queue is None:
        return None
    return system.step(before.queue) == queue
