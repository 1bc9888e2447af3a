"""The canonical hash against a definition by brute force: the same runs, up to names of symbols."""

from __future__ import annotations

import itertools
import random

from hypothesis import given
from hypothesis import strategies as st

from envs.tag.canonical import canonical_hash
from envs.tag.system import TagSystem, Word, simulate


def system(rules: dict[str, str], init: str, m: int = 2, max_steps: int = 30) -> TagSystem:
    return TagSystem(m, tuple(rules), {s: tuple(w) for s, w in rules.items()}, tuple(init), max_steps)


@st.composite
def small(draw: st.DrawFn) -> TagSystem:
    alphabet = "ABCDE"[: draw(st.integers(1, 5))]
    rules = {s: draw(st.text(alphabet, max_size=4)) for s in alphabet}
    return system(rules, draw(st.text(alphabet, max_size=6)), m=draw(st.integers(1, 4)))


@given(small(), st.randoms(use_true_random=False))
def test_renaming_and_order_of_the_alphabet_do_not_count(one: TagSystem, rng: random.Random) -> None:
    names = rng.sample(["x", "yy", "#", "1", "A", "E", "β"], len(one.alphabet))
    other = one.relabel(dict(zip(one.alphabet, names, strict=True)))
    order = rng.sample(other.alphabet, len(other.alphabet))
    shuffled = TagSystem(other.m, tuple(order), {s: other.rules[s] for s in order}, other.init, rng.randrange(50))
    assert canonical_hash(shuffled) == canonical_hash(one)


@given(small(), st.text("ABCDE", max_size=5))
def test_rules_that_never_fire_do_not_count(one: TagSystem, word: str) -> None:
    trace = simulate(one, 1000)
    if not trace.halted:
        return
    fired = {trace.head(i) for i in range(1, trace.horizon + 1)}
    for symbol in set(one.alphabet) - fired:
        changed = {**one.rules, symbol: tuple(s for s in word if s in one.alphabet)}
        assert canonical_hash(TagSystem(one.m, one.alphabet, changed, one.init, one.max_steps)) == canonical_hash(one)


def test_unused_symbols_do_not_count() -> None:
    assert canonical_hash(system({"A": "B", "B": "A"}, "AB")) == canonical_hash(system({"A": "B", "B": "A", "C": "AC"}, "AB"))


def test_heads_ruled_out_by_arithmetic_do_not_count() -> None:
    """Every rule has even length and m is 2, so symbols at odd positions are never read, however long the run."""
    one, other = system({"A": "AB", "B": ""}, "AB"), system({"A": "AB", "B": "AABB"}, "AB")
    assert not simulate(one, 1000).halted
    assert canonical_hash(one) == canonical_hash(other)


def test_step_bound_does_not_count_and_m_does() -> None:
    assert canonical_hash(system({"A": "AA"}, "AA", max_steps=3)) == canonical_hash(system({"A": "AA"}, "AA", max_steps=30))
    assert canonical_hash(system({"A": "AA"}, "AA", m=1)) != canonical_hash(system({"A": "AA"}, "AA", m=2))


def behaviour(one: TagSystem) -> tuple[object, ...]:
    """All states of a halting run, symbols renamed by first appearance, and the rules that fired, renamed likewise."""
    names: dict[str, int] = {}

    def renamed(word: Word) -> tuple[int, ...]:
        return tuple(names.setdefault(s, len(names)) for s in word)

    return (one.m, *(renamed(q) for q in simulate(one, 1000).states()))


def test_halting_systems_share_a_hash_just_where_they_run_alike() -> None:
    """All systems of two symbols with words of up to two: as many hashes as behaviours, paired one to one."""
    words = ["", "A", "B", "AA", "AB", "BA", "BB"]
    by_hash: dict[str, set[object]] = {}
    by_behaviour: dict[object, set[str]] = {}
    for a, b, init, m in itertools.product(words, words, [*words, "ABA", "BAAB"], (1, 2, 3)):
        one = system({"A": a, "B": b}, init, m=m)
        if simulate(one, 1000).halted:
            by_hash.setdefault(canonical_hash(one), set()).add(behaviour(one))
            by_behaviour.setdefault(behaviour(one), set()).add(canonical_hash(one))
    assert len(by_hash) > 80
    assert all(len(found) == 1 for found in by_hash.values()), "one hash for systems that run differently"
    assert all(len(found) == 1 for found in by_behaviour.values()), "two hashes for systems that run alike"
