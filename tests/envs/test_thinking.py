"""Thinking blocks vanish, and everything else keeps its place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs.thinking import blank_thinking


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("answer", "answer"),
        ("<think>a</think>b", "b"),
        ("a<think>b</think>c", "ac"),
        ("<think>a", ""),
        ("a<think>b", "a"),
        ("a</think>b", "b"),
        ("a</think>b</think>c", "c"),
        ("<think>a</think>b<think>c</think>d", "bd"),
        ("<think><think>a</think>b</think>c", "c"),
        ("<think>a<think>b</think>c", "c"),
        ("a<think></think>b", "ab"),
        ("<THINK>a</Think >b", "b"),
        ("<thinking>a</thinking>b", "b"),
        ("<reasoning>a</reasoning>b", "b"),
        ("<|begin_of_thought|>a<|end_of_thought|>b", "b"),
        ("[THINK]a[/THINK]b", "b"),
        ("◁think▷a◁/think▷b", "b"),
        ("[think] <thinker> think> <think", "[think] <thinker> think> <think"),
    ],
)
def test_what_is_kept(text: str, kept: str) -> None:
    blanked = blank_thinking(text)
    assert blanked.strip() == kept or blanked.replace(" ", "") == kept
    assert len(blanked) == len(text)


@given(st.lists(st.sampled_from(["<think>", "</think>", "a", " ", "\n", "<", "step 1"]), max_size=40).map("".join))
def test_every_character_stays_or_becomes_a_space(text: str) -> None:
    blanked = blank_thinking(text)
    assert len(blanked) == len(text)
    assert all(b in (" ", t) for b, t in zip(blanked, text, strict=True))
    assert "<think>" not in blanked
    assert "</think>" not in blanked
