"""From a Turing machine to a 2-tag system that runs it, and back from its queue to the machine's configuration (appendix A.2).

The construction is that of Cocke and Minsky (Universality of tag systems with P = 2, Journal of the ACM 11, 1964). A configuration
(Q, M, N) is the queue `A x (a x)^M B x (b x)^N`, with symbols of their own for each state Q; x is never read. One step of the machine
is six passes through the queue, each of which reads every second symbol. For a state that writes S and moves right:

    A x (a x)^M B x (b x)^N       A → C x, or C x c x where S = 1;  a → c x c x
    B x (b x)^N C x (c x)^M'      B → S;  b → s                                        M' = 2M + S
    C x (c x)^M' S s^N            C → D E;  c → d e
    S s^N D E (d e)^M'            S → T U;  s → t u
    N odd:   D E (d e)^M' T U (t u)^((N - 1)/2)     D → A x;  d → a x;  T → B x;  t → b x      of the state Q_i1
    N even:  E (d e)^M' T U (t u)^(N/2)             E → x A x;  e → a x;  U → B x;  u → b x    of the state Q_i0

S s^N has N + 1 symbols: where that is odd, the last one read deletes the D with it, and from then on E, e, U and u are read in place of D,
d, T and t. That is how the parity of N, the symbol read after the move, chooses the next state. The first x of `x A x` is deleted with
the last u.

Where this departs from the paper as printed (D, E, T, U are its D_1, D_0, T_1, T_0, and a, b its α, β):

- Section A.1 lets the next state of a right move depend on the symbol written, S. It depends on the symbol read, N's lowest digit, as in
  A.2.
- A.1 says that a rightward move swaps M and N; leftward is meant: M' = ⌊M/2⌋, N' = 2N + S, the symbol read being M's lowest digit. Swapping
  the roles of M and N in the rules above is not enough, since the halves would come out in the order B A, in which the next state cannot
  read them. Left moves halve while the first pass reads A, double while the second reads B, and end with a pass that turns the queue:

    A x (a x)^M B x (b x)^N       A → S;  a → s
    B x (b x)^N S s^M             B → D E, or D E d e where S = 1;  b → d e d e
    S s^M D E (d e)^N'            S → T U;  s → t u                                    N' = 2N + S
    M odd:   D E (d e)^N' T U (t u)^((M - 1)/2)     D → F x;  d → f x;  T → A x;  t → a x      of the state Q_i1
    M even:  E (d e)^N' T U (t u)^(M/2)             E → x F x;  e → f x;  U → A x;  u → a x    of the state Q_i0
    F x (f x)^N' A x (a x)^M'     F → B x;  f → b x

- A.2 writes a_1, a_0 for α_1, α_0 in step 5.
- The paper does not say how a halting state stops the tag system. Here the symbols of a halting state append nothing: its queue, which
  still states the configuration, is deleted in M + N + 2 steps, and an empty queue halts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from envs.tag.system import TagSystem, Trace, Word, simulate
from envs.turing.machine import LEFT, Configuration, Machine, State

PAD = "x"


@dataclass(frozen=True, slots=True)
class Compiler:
    """Translates between a machine and its tag system. The symbols of the machine's i-th state are `A0`, `a0`, … with its number i."""

    machine: Machine

    def system(self, start: Configuration, max_steps: int) -> TagSystem:
        """The 2-tag system that runs the machine from `start`, for at most `max_steps` steps of the tag system."""
        rules: dict[str, Word] = {}
        for number, state in enumerate(self.machine.states.values()):
            rules |= self._rules(number, state)
        rules[PAD] = ()
        return TagSystem(2, tuple(rules), rules, self.encode(start), max_steps)

    def encode(self, configuration: Configuration) -> Word:
        """The queue that states a configuration. Its length is 2 (M + N + 2)."""
        i = self._numbers()[configuration.state]
        return (f"A{i}", PAD, *(f"a{i}", PAD) * configuration.left, f"B{i}", PAD, *(f"b{i}", PAD) * configuration.right)

    def decode(self, queue: Word) -> Configuration:
        """The configuration that a queue states, the inverse of `encode`.

        Raises:
            ValueError: Where the queue states none, being halfway between two.
        """
        names = list(self.machine.states)
        head = queue[0] if queue else ""
        if head.startswith("A") and head[1:].isdecimal() and int(head[1:]) < len(names) and f"B{head[1:]}" in queue:
            middle = queue.index(f"B{head[1:]}")
            found = Configuration(names[int(head[1:])], middle // 2 - 1, (len(queue) - middle) // 2 - 1)
            if self.encode(found) == queue:
                return found
        raise ValueError(f"the queue is not of the form A x (a x)^M B x (b x)^N: {' '.join(queue[:12])}{' …' if len(queue) > 12 else ''}")

    def macro_steps(self, trace: Trace) -> Iterator[tuple[int, Configuration]]:
        """The tag steps after which the queue states a configuration, with it: one for each step of the machine, and the start."""
        heads = {f"A{i}" for i in self._numbers().values()}
        for i in range(trace.horizon + 1):
            if trace.m * i < trace.ends[i] and trace.buffer[trace.m * i] in heads:
                yield i, self.decode(trace.state(i))

    def halting_system(self, start: Configuration, bound: int = 100_000) -> TagSystem:
        """The system whose step bound is exactly what it takes to halt.

        Raises:
            ValueError: Where it does not halt within `bound` steps of the tag system.
        """
        trace = simulate(self.system(start, bound))
        if not trace.halted:
            raise ValueError(f"the machine does not halt within {bound} steps of its tag system: choose a smaller input")
        return self.system(start, trace.horizon)

    def _numbers(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.machine.states)}

    def _rules(self, i: int, state: State | None) -> dict[str, Word]:
        """The rules of the symbols of state number i."""
        if state is None:
            return {f"{letter}{i}": () for letter in "AaBb"}
        numbers = self._numbers()
        even, odd = (numbers[name] for name in state.follow)
        doubled, halved = ("F", "A") if state.move == LEFT else ("A", "B")  # which part of the next queue either number becomes
        if state.move == LEFT:
            passes = {"A": "S", "a": "s", "B": "D E d e" if state.write else "D E", "b": "d e d e"}
        else:
            passes = {"A": "C x c x" if state.write else "C x", "a": "c x c x", "B": "S", "b": "s", "C": "D E", "c": "d e"}
        passes |= {"S": "T U", "s": "t u"}
        rules = {f"{head}{i}": _numbered(word, i) for head, word in passes.items()}
        for head, part, following in (("D", doubled, odd), ("E", doubled, even), ("T", halved, odd), ("U", halved, even)):
            begin = (PAD,) if head == "E" else ()
            rules[f"{head}{i}"] = (*begin, f"{part}{following}", PAD)
            rules[f"{head.lower()}{i}"] = (f"{part.lower()}{following}", PAD)
        if state.move == LEFT:
            for j in {even, odd}:
                rules |= {f"F{j}": (f"B{j}", PAD), f"f{j}": (f"b{j}", PAD)}
        return rules


def _numbered(word: str, i: int) -> Word:
    return tuple(symbol if symbol == PAD else f"{symbol}{i}" for symbol in word.split())
