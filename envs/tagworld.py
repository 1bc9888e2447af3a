"""TagWorld: an m-tag system run turn by turn, one `state(queue="A B C")` a step."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from envs.action import DONE, Action, Parameter, Signature, shown
from envs.game import Game, Outcome
from envs.registry import load_env
from envs.tag.canonical import canonical_hash
from envs.tag.environment import TagParams
from envs.tag.prompt import compact_task
from envs.tag.system import TagSystem, Word, simulate
from envs.world import BudgetParams, World, check_fields


@dataclass(frozen=True)
class TagWorldParams(TagParams, BudgetParams):
    """The knobs of the tag environment and those of every world; T* is the number of steps + 1."""

    max_steps: int = 10

    def __post_init__(self) -> None:
        TagParams.__post_init__(self)
        BudgetParams.__post_init__(self)


class TagGame(Game[int]):
    """Runs a tag system; the state is the number of steps taken.

    Only the true next queue takes the step. Any other one is wrong, spends the turn and leaves the system where it was, so it can be put
    right in a later turn. After the last step (a halt, or `max_steps`) only `done()` is right.
    """

    initial = 0

    def __init__(self, system: TagSystem) -> None:
        self.system = system
        self.states: list[Word] = list(simulate(system).states())
        self.single = all(len(s) == 1 for s in system.alphabet)

    def fields(self) -> dict[str, Any]:
        return self.system.to_payload()

    def canonical(self) -> str:
        """The tag environment's hash, so that the same system is recognised in both."""
        return canonical_hash(self.system)

    def normal(self, action: Action) -> Action:
        """Puts one space between symbols; those of one character may also be written without any."""
        if action == DONE:
            return action
        pieces = action.args[0].split()
        if self.single:
            pieces = [symbol for piece in pieces for symbol in piece]
        return Action("state", (" ".join(pieces),))

    def written(self, action: Action, style: str) -> str:
        if style == "compact" and self.single and action != DONE:
            return str(Action("state", (action.args[0].replace(" ", ""),)))
        return str(action)

    def act(self, state: int, action: Action) -> Outcome:
        queue = tuple(action.args[0].split())
        if strange := [s for s in queue if s not in self.system.rules]:
            return Outcome(state, refusal=f"{shown(strange[0])} is not a symbol: write the queue's symbols with spaces between them")
        return Outcome(state + 1 if state + 1 < len(self.states) and queue == self.states[state + 1] else state)

    def optimal(self, state: int) -> tuple[Action, ...]:
        return (_state(self.states[state + 1]),) if state + 1 < len(self.states) else (DONE,)

    def legal(self, state: int) -> list[Action]:
        """The true next queue, what single slips would make of it, and `done()`."""
        queue, m, rules = self.states[state], self.system.m, self.system.rules
        word = rules[queue[0]] if queue else ()
        queues = [(*queue, *word)[m:], (*queue, *word), (*queue, *word)[m + 1 :], (*queue, *word)[m - 1 :], queue[m:], queue]
        queues += [(*queue, *rules[symbol])[m:] for symbol in self.system.alphabet]
        if state + 1 < len(self.states):
            true = self.states[state + 1]
            queues = [true, *queues, true[:-1], *((*true, symbol) for symbol in self.system.alphabet)]
        return [*map(_state, dict.fromkeys(queues)), DONE]

    def statement(self, style: str) -> str:
        system = self.system
        if style == "compact":
            return compact_task(system)
        rules = "\n".join(f"{s}: {' '.join(w) or '(nothing)'}" for s, w in system.rules.items())
        start = f"Initial queue: [{' '.join(system.init)}]\nSteps: at most {system.max_steps}"
        return f"m: {system.m}\nRules, as head: word to append\n{rules}\n{start}"

    def feedback(self, state: int, action: Action, after: int, style: str) -> str:
        if after == state:
            return "That is not the next queue: the system has not moved." if style == "verbose" else "x"
        return f"Right, step {after} is taken." if style == "verbose" else "."

    def state_text(self, state: int, style: str) -> str:
        if style == "compact":
            return f"{self.system.max_steps - state}[{('' if self.single else ' ').join(self.states[state])}]"
        return f"the queue after step {state} of at most {self.system.max_steps} is [{' '.join(self.states[state])}]"

    def plan_text(self, state: int, style: str) -> str:
        """Names the rule that fires."""
        queue = self.states[state]
        if state + 1 == len(self.states):
            return "the system has halted or taken its last step: call done()." if style == "verbose" else "done"
        word = self.system.rules[queue[0]]
        if style == "compact":
            return f"{queue[0]}:{('' if self.single else ' ').join(word)}"
        appended = f"append {' '.join(word)}" if word else "append nothing"
        return f"the rule of {queue[0]} fires: {appended}, then delete the first {_symbols(self.system.m)}."

    def thought(self, state: int, action: Action) -> str:
        queue, m = self.states[state], self.system.m
        now = f"The queue is [{' '.join(queue)}]."
        if action == DONE:
            return f"{now} {'It has halted' if len(queue) < m else 'The last step is taken'}."
        word = self.system.rules[queue[0]]
        return f"{now} The head {queue[0]} appends {' '.join(word) or 'nothing'}; the first {_symbols(m)} go: {' '.join(queue[:m])}."


class TagWorld(World):
    """m-tag systems turn by turn."""

    name: ClassVar[str] = "tagworld"
    version: ClassVar[int] = 1
    summary: ClassVar[str] = 'm-tag systems turn by turn: state(queue="A B C") after every step'
    params: ClassVar[Any] = TagWorldParams
    signatures: ClassVar[tuple[Signature, ...]] = (
        Signature(
            "state",
            "States the queue after the next step.",
            (Parameter("queue", str, "All symbols of the queue, first to last, with spaces between them; empty for an empty queue."),),
        ),
    )
    rules: ClassVar[str] = (
        "You run an m-tag system, one step a turn. It has a queue of symbols, a deletion number m and a rule for each symbol. "
        "A step goes like this:\n"
        "- If the queue has fewer than m symbols, the system has halted and there is no step.\n"
        "- The word of the head's rule is appended to the queue; the head is the first symbol. The word may be empty.\n"
        "- Then the first m symbols are deleted.\n"
        "Each turn, state the queue as it is after the next step. A queue that is not right is not taken: the system stays where it is. "
        "When the system has halted, or all steps that are asked for are taken, call done()."
    )
    reworded: ClassVar[Mapping[str, str]] = {
        "brief": (
            "Run an m-tag system, one step a turn: append the head symbol's word to the queue, then delete the first m symbols.\n"
            "- The head is the first symbol; its word may be empty.\n"
            "- With fewer than m symbols the system has halted.\n"
            "- Each turn, state the queue after the next step. A wrong queue is not taken; nothing moves.\n"
            "- Call done() after the halt or after the last step asked for."
        ),
        "formal": (
            "An m-tag system consists of a deletion number m, a queue of symbols, and a rule that assigns a word, possibly empty, to each "
            "symbol. One step transforms the queue as follows.\n"
            "- If the queue has fewer than m symbols, the system halts and no step is defined.\n"
            "- Otherwise the word assigned to the first symbol, called the head, is appended to the queue.\n"
            "- Subsequently the first m symbols of the queue are deleted.\n"
            "In each turn the queue that results from the next step is to be stated. An incorrect statement is rejected and the system "
            "remains where it is. After the halt, or after the prescribed number of steps, done() is to be called."
        ),
    }
    example: ClassVar[Mapping[str, Any]] = {"m": 2, "rules": {"P": "Q", "Q": "", "R": "PR"}, "init": "RPQR", "max_steps": 3}

    def game(self, fields: Mapping[str, Any]) -> TagGame:
        check_fields(fields, ("rules", "init"), ("m", "alphabet", "max_steps"))
        return TagGame(TagSystem.from_payload(fields))

    def draw(self, params: TagWorldParams, rng: random.Random) -> dict[str, Any] | None:
        problem = load_env("tag").sample(params, rng)
        return None if problem is None else dict(problem.payload)


def _state(queue: Word) -> Action:
    return Action("state", (" ".join(queue),))


def _symbols(m: int) -> str:
    return "symbol" if m == 1 else f"{m} symbols"
