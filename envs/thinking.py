"""Thinking blocks in replies: what a model only thought is never scored."""

from __future__ import annotations

import re

_NAMES = "think(?:ing)?|thoughts?|reasoning|reflection|scratchpad"
#: `<think>`, `</thinking >`, `<|begin_of_thought|>`, `[THINK]`, `◁/think▷` and their like; a group has matched in closing tags.
_TAG = re.compile(
    rf"(?i:<\|?\s{{0,3}}(?:begin_of_|(/|end_of_))?\s{{0,3}}(?:{_NAMES})\s{{0,3}}\|?>|◁(/)?think▷)|\[(/)?THINK\]",
)


def blank_thinking(text: str) -> str:
    """`text` with every thinking block replaced by as many spaces, so that all offsets stay.

    An unclosed block reaches to the end. A closing tag without an opening one closes a block that the chat template opened, so
    everything before it goes.
    """
    kept: list[str] = []
    before = 0  # so much at the beginning goes
    shown = 0  # where the text that is not thinking goes on
    opened: int | None = None
    for tag in _TAG.finditer(text):
        if tag.lastindex is None:
            if opened is None:
                opened = tag.start()
            continue
        if opened is None:
            kept, before = [], tag.end()
        else:
            kept += [text[shown:opened], " " * (tag.end() - opened)]
        shown, opened = tag.end(), None
    if opened is None:
        kept.append(text[shown:])
    else:
        kept += [text[shown:opened], " " * (len(text) - opened)]
    return "".join([" " * before, *kept])
