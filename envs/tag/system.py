"""The m-tag system and its exact simulation (section 3.2, equation 1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Word = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TagSystem:
    """A tag system with its initial queue and a bound on the steps.

    Attributes:
        m: Deletion number, at least 1.
        alphabet: Distinct symbols, each of one or more characters without white space or square brackets.
        rules: The word appended for each symbol of the alphabet; may be empty.
        init: The queue of step 0.
        max_steps: Most steps to run, at least 0.
    """

    m: int
    alphabet: Word
    rules: Mapping[str, Word]
    init: Word
    max_steps: int

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> TagSystem:
        """Reads and checks a payload. Words are strings where all symbols are single characters, else lists of symbols.

        Raises:
            ValueError: Naming the field that is missing, unknown or wrong.
        """
        fields = {"m", "alphabet", "rules", "init", "max_steps"}
        if missing := sorted({"rules", "init"} - payload.keys()):
            raise ValueError(f"a tag problem needs {missing[0]!r}")
        if unknown := sorted(payload.keys() - fields):
            raise ValueError(f"a tag problem has no field {unknown[0]!r}; it has {', '.join(sorted(fields))}")
        rules_in = payload["rules"]
        if not isinstance(rules_in, Mapping):
            raise ValueError("'rules' must be an object from symbol to word")
        alphabet = _word(payload.get("alphabet", list(rules_in)), "alphabet")
        if len(set(alphabet)) != len(alphabet) or not alphabet:
            raise ValueError("'alphabet' must hold at least one symbol, each once")
        for symbol in alphabet:
            if not symbol or any(c.isspace() or c in "[]" for c in symbol):
                raise ValueError(f"symbol {symbol!r} is empty or has white space or a square bracket, which delimit states")
        known = set(alphabet)
        if lacking := [s for s in alphabet if s not in rules_in]:
            raise ValueError(f"'rules' lacks the symbol {lacking[0]!r}")
        if extra := sorted(rules_in.keys() - known):
            raise ValueError(f"'rules' has {extra[0]!r}, which is not in the alphabet")
        rules = {s: _word(rules_in[s], f"rules[{s!r}]") for s in alphabet}
        init = _word(payload["init"], "init")
        for where, word in [("init", init), *((f"rules[{s!r}]", w) for s, w in rules.items())]:
            if strange := [s for s in word if s not in known]:
                raise ValueError(f"{where} has {strange[0]!r}, which is not in the alphabet")
        return cls(_integer(payload.get("m", 2), "m", 1), alphabet, rules, init, _integer(payload.get("max_steps", 30), "max_steps", 0))

    def to_payload(self) -> dict[str, Any]:
        """The payload as plain JSON values, the inverse of `from_payload`."""
        plain = all(len(s) == 1 for s in self.alphabet)

        def written(word: Word) -> Any:
            return "".join(word) if plain else list(word)

        return {
            "m": self.m,
            "alphabet": written(self.alphabet),
            "rules": {s: written(w) for s, w in self.rules.items()},
            "init": written(self.init),
            "max_steps": self.max_steps,
        }

    def relabel(self, names: Mapping[str, str]) -> TagSystem:
        """The same system with every symbol renamed."""

        def renamed(word: Word) -> Word:
            return tuple(names[s] for s in word)

        rules = {names[s]: renamed(w) for s, w in self.rules.items()}
        return TagSystem(self.m, renamed(self.alphabet), rules, renamed(self.init), self.max_steps)

    def step(self, queue: Word) -> Word | None:
        """The queue after one step, or None where fewer than m symbols are left or the head has no rule."""
        if len(queue) < self.m or not queue or queue[0] not in self.rules:
            return None
        return (*queue, *self.rules[queue[0]])[self.m :]


@dataclass(frozen=True, slots=True)
class Trace:
    """A run: every symbol ever queued, in order, and where the queue ended at each step.

    State i is `buffer[m * i : ends[i]]`, so memory is linear in the symbols written, not in the sum of the queue lengths.
    """

    m: int
    buffer: Sequence[str]
    ends: Sequence[int]

    @property
    def horizon(self) -> int:
        """Number of steps taken."""
        return len(self.ends) - 1

    @property
    def halted(self) -> bool:
        """Whether the last state has fewer than m symbols."""
        return self.ends[-1] - self.m * self.horizon < self.m

    def state(self, i: int) -> Word:
        """The queue after step i, for i in 0…horizon."""
        return tuple(self.buffer[self.m * i : self.ends[i]])

    def states(self) -> Iterator[Word]:
        """All queues, from step 0."""
        return (self.state(i) for i in range(len(self.ends)))

    def head(self, i: int) -> str:
        """The symbol read by step i, for i in 1…horizon."""
        return self.buffer[self.m * (i - 1)]


def simulate(system: TagSystem, max_steps: int | None = None) -> Trace:
    """Runs the system until it halts or has taken `max_steps` steps (default: the system's own bound)."""
    m, rules, bound = system.m, system.rules, system.max_steps if max_steps is None else max_steps
    buffer = list(system.init)
    end, head = len(buffer), 0
    ends = [end]
    for _ in range(bound):
        if end - head < m:
            break
        buffer += rules[buffer[head]]
        end = len(buffer)
        ends.append(end)
        head += m
    return Trace(m, buffer, ends)


def stalls(trace: Trace) -> bool:
    """Whether some state equals the next one, after which nothing ever changes."""
    length = [end - trace.m * i for i, end in enumerate(trace.ends)]
    return any(length[i] == length[i + 1] and trace.state(i) == trace.state(i + 1) for i in range(trace.horizon))


def _word(value: Any, where: str) -> Word:
    if isinstance(value, str):
        return tuple(value)
    if isinstance(value, (list, tuple)) and all(isinstance(s, str) for s in value):
        return tuple(value)
    raise ValueError(f"{where} must be a string of symbols or a list of symbols, not {value!r}")


def _integer(value: Any, where: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{where!r} must be a whole number of at least {least}, not {value!r}")
    return value
