"""The first message of a world's episode, up to the problem's own statement."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from envs.action import Signature
from envs.environment import Setting
from envs.world_episode import WorldEpisode


class _Words(NamedTuple):
    """What every world's prompt says, in one wording: how to reply, and what each oracle's line means."""

    reply: str
    plan: str
    state: str
    history: str


_WORDS = {
    "standard": _Words(
        "Every turn, think briefly about what to do next. Then end your message with one call in a fenced block, written like this:\n"
        "```python\n{call}\n```\n"
        "Arguments may be positional or named. A message that does not hold exactly one valid call changes nothing, but still uses up 1 of "
        "the budget. The number after `Budget left:` is what remains; use no more actions than you need.",
        "The line `Plan:` names the subtask to solve now; it always lies on a best way to the goal.",
        "The line `State:` tells exactly where things stand now.",
        "You are not shown earlier turns: each message holds the task and where things stand now, which is all you need.",
    ),
    "brief": _Words(
        "Think in a sentence or two, then close with a single call in a fenced block:\n"
        "```python\n{call}\n```\n"
        "Anything but one valid call costs 1 and does nothing. `Budget left:` is what you may still spend. Waste nothing.",
        "`Plan:` is your next subtask; it is always a best one.",
        "`State:` is the exact situation.",
        "Earlier turns are hidden. You do not need them.",
    ),
    "formal": _Words(
        "A turn consists of a short justification followed by exactly one action. The action is given at the end of the message as a "
        "function call within a fenced block of this form:\n"
        "```python\n{call}\n```\n"
        "Positional and keyword arguments are both admissible. Any other message leaves the situation unchanged and is charged 1. The "
        "remaining budget is stated after `Budget left:`. Solutions with fewer actions are preferred.",
        "The entry `Plan:` specifies the current subtask, which is part of an optimal solution.",
        "The entry `State:` specifies the current situation completely.",
        "Previous turns are omitted from the messages. Each message contains the task and the current situation, which together suffice.",
    ),
}


def opening(
    name: str, rules: Mapping[str, str], own: Sequence[Signature], actions: Mapping[str, Signature], setting: Setting, example: str
) -> str:
    """A world's rules, its actions, how to reply, what the oracles say, and an example that the expert plays with the same oracles.

    Args:
        name: The world's.
        rules: Its rules by wording.
        own: Its actions but `done()`; how to reply is shown with the first.
        actions: All of them.
        setting: How it is put.
        example: What `played` gave.

    Raises:
        ValueError: Where the world does not have the setting's wording.
    """
    if setting.wording not in rules:
        raise ValueError(f"{name} has no wording {setting.wording!r}: choose one of {', '.join(rules)}")
    words = _WORDS[setting.wording]
    declared = ",\n".join(json.dumps(s.to_json()) for s in actions.values())
    arguments = ", ".join(f"{p.name}={0 if p.kind is int else '...'!r}" for p in own[0].parameters)
    told = [text for text, on in ((words.plan, setting.plan), (words.state, setting.state), (words.history, setting.history)) if on]
    parts = [
        rules[setting.wording],
        f"## Actions\n```json\n[{declared}]\n```",
        "## How to reply\n" + " ".join([words.reply.format(call=f"{own[0].name}({arguments})"), *told]),
        "## Example\n" + example,
        "## Your task\n",
    ]
    return "\n\n".join(parts)


def played(episode: WorldEpisode) -> str:
    """An episode as the expert plays it, turn by turn: the very one that policies play."""
    turns = [episode.messages[0]["content"]]
    while not episode.over:
        reply = episode.expert()
        episode.reply(reply)
        turns.append(f"You:\n{reply}")
        if not episode.over:
            turns.append(f"Environment:\n{episode.observation}")
    return "\n\n".join(turns)
