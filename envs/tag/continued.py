"""A trace stated in as many replies as it takes: budget forcing until the first wrong state (section 4.4, unbounded steps)."""

from __future__ import annotations

import random
from collections.abc import Iterable

from envs.environment import Episode, Message
from envs.tag.noise import noisy_states, random_states
from envs.tag.prompt import HALT, continuation, verbose_step, verbose_task
from envs.tag.reader import Statement, read_reply
from envs.tag.symbols import Alphabet
from envs.tag.system import TagSystem, Word, simulate
from envs.verdict import Ending, Kind, StepVerdict, Verdict

#: Steps that the scripted policies state in one reply.
STEPS_A_REPLY = 30


class ContinuedEpisode(Episode):
    """Asks for the next steps after every reply that got further without a mistake, until the first wrong or skipped state.

    A reply goes on where the right states so far end; what it repeats of them is passed over. The last state of a reply, where it is
    not right and its bracket is not closed, may have been cut by a token limit: it is asked for again. A reply that gets no step further
    ends the episode. Each reply is read once and by itself, so reading and scoring are linear in what was written.

    Raises:
        ValueError: For compact prompts, whose replies do not say which step they state.
    """

    def __init__(self, system: TagSystem, style: str) -> None:
        if style != "verbose":
            raise ValueError("compact replies do not say which step they state, so they cannot be gone on with: use --style verbose")
        self.system, self.trace = system, simulate(system)
        self.messages: list[Message] = [{"role": "user", "content": verbose_task(system)}]
        self.over = False
        self._alphabet = Alphabet(system.alphabet)
        self._steps: list[StepVerdict] = []
        self._turn = 0
        self._cut = False
        self._ending: Ending | None = None

    @property
    def next_step(self) -> int:
        """The number of the step that is to be stated next."""
        return len(self._steps)

    def reply(self, text: str, *, truncated: bool = False) -> None:
        self.messages.append({"role": "assistant", "content": text})
        stated, before = read_reply(text, self._alphabet), self.next_step
        self._cut = truncated
        correct = self._take(stated, text.rstrip())
        self._turn += 1
        if not correct:
            self.end(Ending.WRONG)
        elif self.next_step > self.trace.horizon:
            self.end(Ending.COMPLETED)
        elif self.next_step == before:
            self.end(Ending.TRUNCATED if truncated else Ending.WRONG if self._steps or stated else Ending.NO_ANSWER)
        else:
            self.messages.append({"role": "user", "content": continuation(self.next_step)})

    def _take(self, stated: dict[int, Statement], text: str) -> bool:
        """Judges the steps that a reply adds; False where one of them is wrong or skipped."""
        while self.next_step <= self.trace.horizon and (statement := stated.get(self.next_step)) is not None:
            correct = statement.queue == self.trace.state(self.next_step)
            if not correct and statement.span[1] >= len(text) and not text.endswith(("]", HALT.strip())):
                return True  # cut within the state
            kind = Kind.CORRECT if correct else Kind.UNPARSED if statement.queue is None else Kind.WRONG
            # The state before it is right, so a wrong state does not follow from it.
            self._note(self.next_step, kind, statement)
            if not correct:
                return False
        later = sorted(i for i in stated if i > self.next_step)
        if self.next_step <= self.trace.horizon:
            return not later
        for i in sorted(i for i in stated if i >= self.next_step):
            self._note(i, Kind.OVERRUN, stated[i])
        return True

    def _note(self, index: int, kind: Kind, statement: Statement) -> None:
        faithful = None if statement.queue is None or kind is Kind.OVERRUN else kind is Kind.CORRECT
        self._steps.append(StepVerdict(index, kind is Kind.CORRECT, kind, statement.span, faithful, self._turn))

    def end(self, ending: Ending) -> None:
        self._ending = ending
        self.over = True

    def verdict(self) -> Verdict:
        unstated = (StepVerdict(i, False, Kind.MISSING) for i in range(self.next_step, self.trace.horizon + 1))
        steps = (*self._steps, *unstated)
        success = all(s.correct for s in steps if s.kind is not Kind.OVERRUN)
        unfinished = Ending.TRUNCATED if self._cut else Ending.NO_ANSWER
        return Verdict(steps, success, self._ending or unfinished)

    def expert(self) -> str:
        last = min(self.next_step + STEPS_A_REPLY - 1, self.trace.horizon)
        return self._written(self.trace.state(i) for i in range(self.next_step, last + 1))

    def noisy(self, rng: random.Random, rate: float) -> str:
        """As in the one-reply episode, `STEPS_A_REPLY` steps a reply."""
        if self.next_step == 0:
            return self._written([self.system.init, *noisy_states(self.system, self.system.init, STEPS_A_REPLY - 1, rng, rate)])
        remaining = self.system.max_steps + 1 - self.next_step
        steps = min(STEPS_A_REPLY, remaining)
        return self._written(noisy_states(self.system, self.trace.state(self.next_step - 1), steps, rng, rate))

    def random(self, rng: random.Random) -> str:
        first = [self.system.init] if self.next_step == 0 else []
        return self._written([*first, *random_states(self.system, STEPS_A_REPLY - len(first), rng)])

    def _written(self, states: Iterable[Word]) -> str:
        before = self.trace.state(self.next_step - 1) if self.next_step else None
        pieces = []
        for i, queue in enumerate(states, self.next_step):
            pieces.append(verbose_step(self.system, i, before, queue))
            before = queue
        return "\n\n".join(pieces)
