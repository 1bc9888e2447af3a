"""Goldens of the worlds' messages: the example problem as the expert plays it, in words and in the compact style.

After a change on purpose: `python tests/envs/test_world_prompts.py` writes the verbose goldens anew.
"""

import re
from pathlib import Path

import pytest

from envs.environment import ORACLES, WORDINGS, Setting
from envs.listworld import ListWorld
from envs.registry import load_env
from envs.world_episode import WorldEpisode

GOLDENS = Path(__file__).parent / "goldens"
NAMES = ("listworld", "treeworld", "gridworld", "tagworld")

COMPACT = {
    "listworld": [
        "474191>441 P:7#1 S:|474191",
        "pop(1)",
        ". P:1#1 S:4|4191",
        "pop(2)",
        ". P:9#1 S:44|91",
        "pop(2)",
        ". P:done S:44|1",
        "done()",
    ],
    "treeworld": [
        "n52=40 ?25 P:=40 S:n52=40|",
        'get_children("n52")',
        "n17=63 n80=12 P:=63 S:n17=63 n80=12|n52=40",
        'get_children("n17")',
        "- P:=12 S:n80=12|n52=40 n17=63",
        'get_children("n80")',
        "n31=25 P:done S:n31=25|n52=40 n17=63 n80=12",
        "done()",
    ],
    "gridworld": [
        "4 3,0>1,2 0,3 2,0 2,2 P:>3,1 S:3,0",
        "right()",
        ". P:>2,1 S:3,1",
        "up()",
        ". P:>1,1 S:2,1",
        "up()",
        ". P:>1,2 S:1,1",
        "right()",
        ". P:done S:1,2",
        "done()",
    ],
    "tagworld": [
        "2 P:Q Q: R:PR 3[RPQR] P:R:PR S:3[RPQR]",
        'state("QRPR")',
        ". P:Q: S:2[QRPR]",
        'state("PR")',
        ". P:P:Q S:1[PR]",
        'state("Q")',
        ". P:done S:0[Q]",
        "done()",
    ],
}


def played(name: str, setting: Setting) -> WorldEpisode:
    world = load_env(name)
    episode = world.start(world.problem(world.example), setting)
    while not episode.over:
        episode.reply(episode.expert())
    return episode


@pytest.mark.parametrize("name", NAMES)
def test_compact_messages(name: str) -> None:
    assert [m["content"] for m in played(name, Setting.parse("plan+state", "compact")).messages] == COMPACT[name]


@pytest.mark.parametrize("name", NAMES)
def test_the_verbose_opening(name: str) -> None:
    opening = played(name, Setting.parse("plan+state")).messages[0]["content"]
    assert opening + "\n" == (GOLDENS / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wording", WORDINGS)
def test_a_wording_changes_the_words_and_nothing_else(name: str, wording: str) -> None:
    """What the environment declares, shows in its example, says and decides is the same in every wording."""
    said, standard = (played(name, Setting.parse("plan+state", wording=w)) for w in (wording, "standard"))
    assert said.messages[1:] == standard.messages[1:] and said.verdict() == standard.verdict()
    first, usual = (e.messages[0]["content"] for e in (said, standard))
    (rules, reply), (usual_rules, usual_reply) = (_own_words(text) for text in (first, usual))
    assert first.replace(rules, usual_rules).replace(reply, usual_reply) == usual
    assert (rules == usual_rules) == (reply == usual_reply) == (wording == "standard")
    call = re.search(r"```python\n.*\n```", usual_reply)
    assert call and call.group() in reply
    for told in ("done()", "`Budget left:`", "`Plan:`", "`State:`"):
        assert told in rules + reply


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wording", WORDINGS[1:])
def test_the_words_of_each_wording(name: str, wording: str) -> None:
    opening = played(name, Setting.parse("plan+state+history", wording=wording)).messages[0]["content"]
    assert "\n\n".join(_own_words(opening)) + "\n" == (GOLDENS / f"{name}_{wording}.txt").read_text(encoding="utf-8")


def test_wordings_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown wording 'rude': choose one of standard, brief, formal"):
        Setting(wording="rude")
    with pytest.raises(ValueError, match="wordings are for verbose prompts"):
        Setting("compact", wording="brief")

    class Laconic(ListWorld):
        name = "laconic"
        reworded = {}

    with pytest.raises(ValueError, match="laconic has no wording 'brief': choose one of standard"):
        Laconic().start(Laconic().problem(Laconic.example), Setting(wording="brief"))


def _own_words(opening: str) -> tuple[str, str]:
    """The rules, and how to reply: the two sections that a wording puts in its own words."""
    rules, _, rest = opening.partition("\n\n## Actions\n")
    return rules, rest.partition("## How to reply\n")[2].partition("\n\n## Example\n")[0]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("oracles", ORACLES)
def test_the_example_is_told_in_the_same_form_as_the_task(name: str, oracles: str) -> None:
    """The task here is the example's own problem, so the transcript in the first message must be the conversation that follows."""
    episode = played(name, Setting.parse(oracles))
    opening = episode.messages[0]["content"]
    _, _, transcript = opening.partition("## Example\n")
    transcript, _, task = transcript.partition("\n\n## Your task\n")
    if "history" in oracles:
        assert transcript.endswith(f"You:\n{episode.messages[-1]['content']}")
        return
    turns = [task, *(m["content"] for m in episode.messages[1:])]
    who = ["", *["You:\n", "Environment:\n"] * len(turns)]
    assert transcript == "\n\n".join(w + t for w, t in zip(who, turns, strict=False))


if __name__ == "__main__":
    GOLDENS.mkdir(exist_ok=True)
    for name in NAMES:
        text = played(name, Setting.parse("plan+state")).messages[0]["content"]
        (GOLDENS / f"{name}.txt").write_text(text + "\n", encoding="utf-8")
        for wording in WORDINGS[1:]:
            text = played(name, Setting.parse("plan+state+history", wording=wording)).messages[0]["content"]
            (GOLDENS / f"{name}_{wording}.txt").write_text("\n\n".join(_own_words(text)) + "\n", encoding="utf-8")
