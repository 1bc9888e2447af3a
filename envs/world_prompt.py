"""The first message of a world's episode, up to the problem's own statement."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING

from envs.environment import Setting
from envs.world_episode import WorldEpisode

if TYPE_CHECKING:
    from envs.world import World

_REPLY = (
    "Every turn, think briefly about what to do next. Then end your message with one call in a fenced block, written like this:\n"
    "```python\n{call}\n```\n"
    "Arguments may be positional or named. A message that does not hold exactly one valid call changes nothing, but still uses up 1 of "
    "the budget. The number after `Budget left:` is what remains; use no more actions than you need."
)
_PLAN = "The line `Plan:` names the subtask to solve now; it always lies on a best way to the goal."
_STATE = "The line `State:` tells exactly where things stand now."
_HISTORY = "You are not shown earlier turns: each message holds the task and where things stand now, which is all you need."


@cache
def opening(world: World, setting: Setting) -> str:
    """The world's rules, its actions, how to reply, what the oracles say, and an example that the expert plays with the same oracles.

    Compact messages have none of it: there the problem's statement comes first.
    """
    if setting.style == "compact":
        return ""
    declared = ",\n".join(json.dumps(s.to_json()) for s in world.actions.values())
    first = world.signatures[0]
    arguments = ", ".join(f"{p.name}={0 if p.kind is int else '...'!r}" for p in first.parameters)
    told = [text for text, on in ((_PLAN, setting.plan), (_STATE, setting.state), (_HISTORY, setting.history)) if on]
    parts = [
        world.rules,
        f"## Actions\n```json\n[{declared}]\n```",
        "## How to reply\n" + " ".join([_REPLY.format(call=f"{first.name}({arguments})"), *told]),
        "## Example\n" + example(world, setting),
        "## Your task\n",
    ]
    return "\n\n".join(parts)


def example(world: World, setting: Setting) -> str:
    """The world's example problem as the expert plays it, turn by turn, from the very episode that policies play."""
    problem = world.problem(world.example)
    game, budget = world.read(problem)
    episode = WorldEpisode(world, game, setting, budget, "")
    turns = [episode.messages[0]["content"]]
    while not episode.over:
        reply = episode.expert()
        episode.reply(reply)
        turns.append(f"You:\n{reply}")
        if not episode.over:
            turns.append(f"Environment:\n{episode.observation}")
    return "\n\n".join(turns)
