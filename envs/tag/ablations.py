"""Problems of the paper's ablations (section 4.4): the deletion number varied, and runs of a thousand steps."""

from __future__ import annotations

from itertools import islice

from envs.dataset import draw
from envs.problem import Problem
from envs.tag.environment import TagParams
from envs.tag.published import COUNT, INIT_LENGTH, MAX_STEPS, RULE_LENGTH, M
from envs.tag.system import TagSystem, Trace, simulate

#: The deletion numbers of the paper's figure 3d.
DELETIONS = range(2, 21)
LONG_COUNT, LONG_STEPS = 10, 1000
#: Most symbols that the states of a long run hold in all. With separators this is 2^20 characters, about the paper's limit in tokens.
MOST_SYMBOLS = 2**19


def difficulty_problems(m: int) -> list[Problem]:
    """100 problems that differ from the published ones in m only.

    The paper does not say how it kept its other knobs. With the published lengths a larger m would end runs at once (rules are 1 to 5
    symbols long, initial queues 2 to 9), so lengths grow with m: a rule appends m - 1 to m + 3 symbols, and a queue begins with m to
    m + 7. Then the length less m, which decides when a run halts, moves by -1 to +3 a step whatever m is; for m = 2 these are the published
    lengths. Every problem runs for exactly 30 steps.

    Raises:
        ValueError: For m below 1.
    """
    more = m - M
    params = TagParams(
        m=m,
        rule_min=RULE_LENGTH[0] + more,
        rule_max=RULE_LENGTH[1] + more,
        init_min=INIT_LENGTH[0] + more,
        init_max=INIT_LENGTH[1] + more,
        max_steps=MAX_STEPS,
        min_horizon=MAX_STEPS,
    )
    return list(islice(draw("tag", params, seed=m, split="tmbench-difficulty", unique=True), COUNT))


def unbounded_problems() -> list[Problem]:
    """Ten problems with the published knobs that run for a thousand steps at least, by rejection.

    Rejected as well is a run that comes back to an earlier state, since it could be gone on with by copying, and one whose states hold
    more than 2^19 symbols in all, since stating it would take more than the paper's limit of 1,048,576 tokens.
    """
    params = TagParams(max_steps=LONG_STEPS, min_horizon=LONG_STEPS)
    drawn = draw("tag", params, seed=0, split="tmbench-unbounded", unique=True)
    fitting = (p for p in drawn if _fits(simulate(TagSystem.from_payload(p.payload))))
    return list(islice(fitting, LONG_COUNT))


def _fits(trace: Trace) -> bool:
    symbols = sum(end - trace.m * i for i, end in enumerate(trace.ends))
    return symbols <= MOST_SYMBOLS and len(set(trace.states())) == len(trace.ends)
