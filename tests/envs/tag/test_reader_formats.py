"""Every format that language models write a trace in: all true states are read, and one wrong state makes exactly that step wrong.

The formats are written here, independently of the reader: a format renders states, which may be wrong, of a true trace.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.tag.system import TagSystem, Word, simulate
from envs.tag.verify import verify_reply
from envs.verdict import Kind

T = TypeVar("T")
Render = Callable[[TagSystem, Sequence[Word]], str]


def tag(rules: dict[str, str], init: str, max_steps: int = 12, m: int = 2) -> TagSystem:
    return TagSystem(m, tuple(rules), {s: tuple(w) for s, w in rules.items()}, tuple(init), max_steps)


ROMAN = tag({"A": "CE", "B": "B", "C": "DCBB", "D": "AECD", "E": "D"}, "DBEEAA")
HALTING = tag({"A": "B", "B": "B", "C": "DCB", "D": "C", "E": "C"}, "ECAEE")
EMPTIED = tag({"A": "", "B": "A"}, "BAAABA", m=2)
SYSTEMS = {
    "roman": ROMAN,
    "halting": HALTING,
    "emptied": EMPTIED,
    "number": ROMAN.relabel(dict(zip("ABCDE", "12345", strict=True))),
    "greek": ROMAN.relabel(dict(zip("ABCDE", "αβγδε", strict=True))),
    "special": ROMAN.relabel(dict(zip("ABCDE", "@#$%&", strict=True))),
    "operators": ROMAN.relabel(dict(zip("ABCDE", "*-|+/", strict=True))),
    "words": ROMAN.relabel({"A": "cat", "B": "ox", "C": "dog", "D": "emu", "E": "bee"}),
    "numbered": ROMAN.relabel({"A": "a1", "B": "a2", "C": "a10", "D": "b1", "E": "b10"}),
    "quotes": ROMAN.relabel(dict(zip("ABCDE", "\"'`,;", strict=True))),
}


def wrong(queue: Word, alphabet: Word, rng: random.Random) -> Word:
    """Another queue: one symbol changed, lost or doubled."""
    at = rng.randrange(len(queue) + 1)
    choices = [(*queue[:at], s, *queue[at:]) for s in alphabet]
    if at < len(queue):
        choices += [(*queue[:at], s, *queue[at + 1 :]) for s in alphabet if s != queue[at]]
        if len(queue) > 1:
            choices.append(queue[:at] + queue[at + 1 :])
    return rng.choice(choices)


def check(system: TagSystem, render: Render, rng: random.Random) -> None:
    """All right as rendered; and with one state replaced exactly that step is wrong, with spans in order."""
    trace = simulate(system)
    states = list(trace.states())
    spoiled = rng.randrange(len(states))
    bad = list(states)
    bad[spoiled] = wrong(states[spoiled], system.alphabet, rng)
    for shown, expected in ((states, []), (bad, [spoiled])):
        reply = render(system, shown)
        verdict = verify_reply(system, trace, reply)
        failed = [s.index for s in verdict.steps if not s.correct]
        assert failed == expected, f"steps {failed} are not right, expected {expected}:\n{reply}"
        assert verdict.overrun == 0, reply
        end = 0
        for step in verdict.steps:
            assert step.kind in (Kind.CORRECT, Kind.WRONG), reply
            assert step.span is not None and end <= step.span[0] < step.span[1] <= len(reply), (step, reply)
            end = step.span[1]


# How a state is written ------------------------------------------------------------------------------------------------------------

Spell = Callable[[Word], str]


def joined(separator: str, quote: str = "", left: str = "[", right: str = "]") -> Spell:
    return lambda queue: left + separator.join(quote + s + quote for s in queue) + right


BRACKETED: dict[str, Spell] = {
    "spaces": joined(" "),
    "padded": joined(" ", left="[ ", right=" ]"),
    "commas": joined(", "),
    "tight commas": joined(","),
    "single quotes": joined(", ", "'"),
    "double quotes": joined(",", '"'),
    "backticks": joined(" ", "`"),
    "bars": joined(" | "),
    "hyphens": joined("-"),
    "code": joined(" ", left="`[", right="]`"),
    "bold": joined(" ", left="**[", right="]**"),
    "bold inside": joined(" ", left="[**", right="**]"),
    "bold symbols": joined(", ", "**"),
    "math": joined(" ", left="$[", right="]$"),
    "math spaces": joined("\\ ", left="$[", right="]$"),
    "display": joined(" ", left="\\[ [", right="] \\]"),
    "display dollars": joined(", ", left="$$[", right="]$$"),
    "texttt": joined(" ", left="\\texttt{[", right="]}"),
    "text symbols": lambda q: "$[" + ", ".join(f"\\text{{{s}}}" for s in q) + "]$",
    "mathtt symbols": lambda q: "[" + "\\,".join(f"\\mathtt{{{s}}}" for s in q) + "]",
    "left right": joined("\\;", left="\\left[", right="\\right]"),
    "boxed": joined(" ", left="\\boxed{[", right="]}"),
    "lbrack": joined(" ", left="\\lbrack ", right="\\rbrack"),
    "wide brackets": joined(" ", left="【", right="】"),
    "wide": lambda q: "［" + "，".join(chr(ord(s) + 0xFEE0) if len(s) == 1 and "!" <= s <= "~" else s for s in q) + "］",
    "zero width": joined("\u200b \u200b"),
    "no-break": joined("\u00a0"),
    "doubled": joined(" ", left="[[", right="]]"),
    "html code": joined(" ", left="<code>[", right="]</code>"),
    "trailing stop": joined(" ", right="]."),
    "fenced": joined(" ", left="\n```\n[", right="]\n```"),
    "next line": joined(" ", left="\n  [", right="]"),
    "wrapped": lambda q: "[" + " ".join(s + ("\n    " if i % 3 == 2 and i + 1 < len(q) else "") for i, s in enumerate(q)) + "]",
    "one a line": lambda q: "[\n" + ",\n".join(f'  "{s}"' for s in q) + "\n]" if q else "[]",
    "halt mark": joined(" ", right="] <halt>"),
    "halt remark": joined(" ", right="] (halt)"),
    "stop mark": joined(" ", right="] <stop>"),
    "length remark": joined(" ", right="] (length 3)"),
}
PLAIN_BARE: dict[str, Spell] = {
    "bare spaces": lambda q: " ".join(q) or "empty",
    "bare code": lambda q: f"`{' '.join(q) or 'empty'}`",
    "bare bold": lambda q: f"**{' '.join(q) or 'empty'}**",
    "bare math": lambda q: f"${' '.join(q) or '∅'}$",
    "bare commas": lambda q: ", ".join(q) or "(empty)",
    "bare parentheses": lambda q: f"({', '.join(q)})" if q else "∅",
    "bare angle": lambda q: f"⟨{', '.join(q)}⟩" if q else "empty queue",
    "bare halt": lambda q: (" ".join(q) or "empty") + " <halt>",
}
BARE_SINGLE: dict[str, Spell] = {
    "bare joined": lambda q: "".join(q) or "empty",
    "bare joined code": lambda q: f"`{''.join(q)}`" if q else "`empty`",
    "joined": lambda q: f"[{''.join(q)}]",
}
SPELLINGS = {**BRACKETED, **PLAIN_BARE, **BARE_SINGLE}

HEADERS = {
    "published": "### step {i}:",
    "capital": "Step {i}:",
    "upper": "## STEP {i}",
    "bold": "**Step {i}**",
    "bold colon inside": "**Step {i}:**",
    "bold colon outside": "**Step {i}**:",
    "underlined": "__Step {i}__:",
    "bullet": "- Step {i}:",
    "star bullet": "* **Step {i}:**",
    "dot bullet": "• Step {i}:",
    "listed": "{j}. **Step {i}**:",
    "listed in parentheses": "{j}) Step {i}:",
    "quoted": "> Step {i}:",
    "number sign": "#### Step #{i}",
    "number word": "Step No. {i}:",
    "dash": "Step {i} -",
    "long dash": "Step {i} — ",
    "stop": "Step {i}.",
    "parenthesis": "(Step {i})",
    "bracketed": "[Step {i}]",
    "angle": "<step {i}>",
    "code": "`Step {i}`:",
    "ruled": "=== Step {i} ===",
    "dashed": "--- Step {i} ---",
    "tight": "step{i}:",
    "equals": "step={i}",
    "underscore": "step_{i}:",
    "tick": "✅ Step {i}:",
    "arrow": "→ Step {i}:",
    "textbf": "\\textbf{{Step {i}:}}",
    "subsection": "\\subsection*{{Step {i}}}",
    "item": "\\item Step {i}:",
    "math text": "$\\text{{Step }}{i}$:",
    "html": "<b>Step {i}</b>:",
    "heading html": "<h3>Step {i}</h3>",
    "after": "After step {i}:",
    "of": "Step {i} of 12:",
    "slash": "Step {i}/12:",
    "titled": "### Step {i}: Simulation",
    "no-break": "Step\u00a0{i}:",
    "full-width": "Ｓｔｅｐ {w}：",
    "math bold": "𝗦𝘁𝗲𝗽 {b}:",
    "zero width": "\u200bStep {i}:",
    "leading zeros": "Step {i:02d}:",
}
LABELS = {
    "published": "\n   - Queue State: ",
    "bold": "\n- **Queue State:** ",
    "bold name": "\n* **Queue State**: ",
    "plain": "\nQueue: ",
    "new": "\nNew queue: ",
    "now": "\nQueue now: ",
    "result": "\n- Result: ",
    "resulting": "\nResulting queue = ",
    "becomes": "\nThe queue becomes ",
    "is": "\nThe new queue is: ",
    "arrow": "\nQueue → ",
    "code": "\n`Queue State`: ",
    "texts": "\n\\textbf{{Queue State:}} ",
    "same line": " Queue: ",
    "next line": "\nQueue State:\n",
    "blank lines": "\n\n\nQueue State:\n\n",
    "wide colon": "\nQueue State： ",
    "underscored": "\nqueue_state: ",
    "quoted": '\n"queue_state": ',
    "after": "\nQueue after step {i}: ",
    "after this step": "\nQueue after this step: ",
}
UNLABELLED = {"none": "\n", "none, same line": " ", "bullet": "\n- ", "arrow": " → ", "blank": "\n\n"}
ACTIONS = {
    "none": "",
    "published": "\n   - Head Symbol: {head}\n   - Action: Append {word} to the end of the queue. Remove {gone} from the head.",
    "brackets": "\n- Action: Append [{word}], remove [{gone}]",
    "rule": "\n- Head: {head}\n- Rule: {head} → {word}",
    "length": "\n- Queue length ({length}) >= m (2)? Yes.\n- Head: `{head}`",
    "length colon": "\n- Queue length: {length}",
    "before": "\n- Queue before: [{before}]\n- Head symbol: {head}",
    "previous": "\n- Previous queue: [{before}]",
    "prose": "\nSince the head is {head}, append [{word}] and delete the first two symbols.",
    "appended": "\n- After appending: [{before} {word}]",
}
ENDINGS = {"newline": "\n", "carriage return": "\r\n", "old mac": "\r", "blank line": "\n\n"}
WRAPS = {
    "plain": "{}",
    "introduced": "Here is the step-by-step simulation of the 2-tag system:\n\n{}\n\nThe system was simulated as asked.",
    "fenced": "```\n{}\n```",
    "unclosed fence": "```text\n{}",
    "tilde fence": "~~~\n{}\n~~~",
    "thought": "<think>\nStep 0: [X]. Let me see, step 1: [Y Z]\n</think>\n\n{}",
    "only closed": "Step 1: Queue State: [A]\n</think>\n{}",
    "thought twice": "<think>a</think>\n{}\n<think>Step 1: Queue State: [A]</think>",
    "thought unclosed": "{}\n<thinking>Step 1: Queue State: [A]",
    "ruled": "---\n\n{}\n\n---",
    "restated": "m: 2\nTransition Rules:\nA : C E\nSimulation steps:\n{}",
}
WIDE_DIGITS = str.maketrans("0123456789", "０１２３４５６７８９")
BOLD_DIGITS = str.maketrans("0123456789", "𝟬𝟭𝟮𝟯𝟰𝟱𝟲𝟳𝟴𝟵")


def sections(header: str, action: str, label: str, spell: Spell, ending: str = "\n", wrap: str = "{}") -> Render:
    def render(system: TagSystem, shown: Sequence[Word]) -> str:
        trace = simulate(system)
        blocks = []
        for i, queue in enumerate(shown):
            number = {"i": i, "j": i + 1, "w": str(i).translate(WIDE_DIGITS), "b": str(i).translate(BOLD_DIGITS)}
            block = header.format(**number)
            if i:
                before = trace.state(i - 1)
                fields = {"head": before[0], "word": " ".join(system.rules[before[0]]), "gone": " ".join(before[: system.m])}
                block += action.format(**fields, before=" ".join(before), length=len(before))
            blocks.append(block + label.format(i=i) + spell(queue))
        return wrap.replace("{}", "\n\n".join(blocks)).replace("\n", ending)

    return render


SECTION = {"header": HEADERS["published"], "action": "", "label": LABELS["published"], "spell": BRACKETED["spaces"]}


def cases(**options: dict[str, object]) -> list[object]:
    """One case for each value of each option, the others as published."""
    return [
        pytest.param({**SECTION, option: value}, id=f"{option}: {name}")
        for option, table in options.items()
        for name, value in table.items()
    ]


VARIED = cases(header=HEADERS, action=ACTIONS, label={**LABELS, **UNLABELLED}, spell=SPELLINGS, ending=ENDINGS, wrap=WRAPS)


@pytest.mark.parametrize("name", ["roman", "halting", "emptied", "greek"])
@pytest.mark.parametrize("options", VARIED)
def test_sections(options: dict[str, object], name: str) -> None:
    for seed in range(3):
        check(SYSTEMS[name], sections(**options), random.Random(seed))


@pytest.mark.parametrize("name", ["number", "special", "operators", "words", "numbered", "quotes"])
@pytest.mark.parametrize(
    "spelling", ["spaces", "padded", "code", "fenced", "next line", "wrapped", "halt mark", "halt remark", "trailing stop"]
)
@pytest.mark.parametrize("action", ["none", "published", "length", "before", "brackets"])
def test_odd_alphabets(name: str, spelling: str, action: str) -> None:
    for seed in range(3):
        render = sections(**{**SECTION, "spell": BRACKETED[spelling], "action": ACTIONS[action]})
        check(SYSTEMS[name], render, random.Random(seed))


@pytest.mark.parametrize("name", ["number", "special", "words", "numbered"])
@pytest.mark.parametrize(
    "spelling", ["commas", "tight commas", "single quotes", "double quotes", "bare commas", "bare spaces", "text symbols"]
)
def test_odd_alphabets_in_lists(name: str, spelling: str) -> None:
    for seed in range(3):
        check(SYSTEMS[name], sections(**{**SECTION, "spell": SPELLINGS[spelling]}), random.Random(seed))


def value(data: st.DataObject, table: dict[str, T]) -> T:
    return table[data.draw(st.sampled_from(sorted(table)))]


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_combined_formats(data: st.DataObject) -> None:
    labelled = data.draw(st.booleans())
    spellings = SPELLINGS if labelled else BRACKETED
    label = value(data, LABELS if labelled else UNLABELLED)
    render = sections(
        header=value(data, HEADERS),
        action=value(data, ACTIONS) if label.startswith("\n") else "",
        label=label,
        spell=value(data, spellings),
        ending=value(data, ENDINGS),
        wrap=value(data, WRAPS),
    )
    system = SYSTEMS[data.draw(st.sampled_from(["roman", "halting", "emptied", "greek"]))]
    check(system, render, random.Random(data.draw(st.integers(0, 2**32))))


# Replies that are not made of sections ---------------------------------------------------------------------------------------------


def lines(form: str, spell: Spell, head: str = "", foot: str = "", between: str = "\n") -> Render:
    """One line (or piece) a step."""

    def render(system: TagSystem, shown: Sequence[Word]) -> str:
        trace = simulate(system)
        rows = []
        for i, queue in enumerate(shown):
            before = trace.state(i - 1) if i else ()
            fields = {
                "head": before[0] if i else "-",
                "word": " ".join(system.rules[before[0]]) if i else "-",
                "gone": " ".join(before[: system.m]) if i else "-",
                "before": spell(before) if i else "-",
            }
            rows.append(form.format(i=i, j=i + 1, queue=spell(queue), length=len(queue), **fields))
        return head + between.join(rows) + foot

    return render


def as_json(indent: int | None, listed: bool, key: str = "queue", outer: bool = True) -> Render:
    def render(system: TagSystem, shown: Sequence[Word]) -> str:
        rows = [{"step": i, "head": q[0] if q else None, key: list(q) if listed else " ".join(q)} for i, q in enumerate(shown)]
        return "```json\n" + json.dumps({"steps": rows} if outer else rows, indent=indent, ensure_ascii=False) + "\n```"

    return render


BARE, BRACKET, LIST = PLAIN_BARE["bare spaces"], BRACKETED["spaces"], BRACKETED["commas"]
TABLE = "| Step | Head | Appended | Removed | Queue State |\n|---|---|---|---|---|\n"
ROW = "| {i} | {head} | {word} | {gone} | {queue} |"
LINES: dict[str, Render] = {
    "arrow lines": lines("Step {i}: {queue}", BRACKET),
    "arrow after": lines("step {i} -> {queue}", LIST),
    "bare after header": lines("Step {i}: {queue}", BARE),
    "one line": lines("Step {i}: {queue}", BRACKET, between=" "),
    "one line, stops": lines("Step {i}: {queue}.", BRACKET, between=" "),
    "one line, semicolons": lines("step {i}: {queue}", BRACKET, between="; "),
    "one line, arrows": lines("step {i}: {queue}", BRACKET, between=" → "),
    "one line, labels": lines("### step {i}: - Head Symbol: {head} - Queue State: {queue}", BRACKET, between=" "),
    "one line, actions": lines("Step {i}: head {head}, append [{word}], remove [{gone}] → {queue}", BRACKET, between=". "),
    "arrow chain in line": lines("Step {i}: {before} → append {word} → {queue}", BRACKET),
    "queue in prose": lines("After step {i}, the queue is {queue}.", BRACKET),
    "queue in prose, bold": lines("After step **{i}** the queue is **{queue}**.", BRACKET),
    "state after": lines("State after step {i}: {queue}", BRACKET),
    "queue after, bare": lines("Queue after step {i}: {queue}", BARE),
    "bold": lines("**Step {i}:** `{queue}`", BRACKET),
    "numbered": lines("{i}. {queue}", BRACKET),
    "numbered, colon": lines("{i}: {queue}", BRACKET),
    "compact": lines("{queue}", BRACKETED["spaces"], between=""),
    "table": lines(ROW, BRACKET, TABLE),
    "table, bare": lines(ROW, BARE, TABLE),
    "table, bold": lines("| **{i}** | {head} | {word} | {gone} | **{queue}** |", BARE, TABLE),
    "table, code": lines("| Step {i} | `{head}` | `{word}` | `{gone}` | `{queue}` |", BRACKET, TABLE),
    "table, open": lines("{i} | {head} | {queue}", BARE, "Step | Head | Queue\n--- | --- | ---\n"),
    "table, aligned": lines("|  {i}  |  {queue}  |", BARE, "|  Step #  |  Queue State  |\n|:---:|:---|\n"),
    "table, bold head": lines("| {i} | {queue} | {length} |", BARE, "| **Step** | **Queue** | **Length** |\n|---|---|---|\n"),
    "table, before and after": lines(
        "| {i} | {before} | {head} | {queue} |", BRACKET, "| Step | Queue before | Head | Queue after |\n|---|---|---|---|\n"
    ),
    "table, current and new": lines(
        "| {i} | {before} | {head} | {queue} |", BRACKET, "| Step | Current Queue | Head | New Queue |\n|---|---|---|---|\n"
    ),
    "table, halt marks": lines("| {i} | {queue} <halt> |", BRACKET, "| Step | Queue State |\n|---|---|\n"),
    "table, text around": lines(ROW, BRACKET, "Here is the table:\n\n" + TABLE, "\n\nThe run ends here. The queue is not empty."),
    "tabular": lines(
        "{i} & {head} & {queue} \\\\ \\hline",
        BRACKET,
        "\\begin{tabular}{|c|c|l|}\n\\hline\nStep & Head & Queue \\\\\n\\hline\n",
        "\n\\end{tabular}",
    ),
    "tab separated": lines("{i}\t{head}\t{queue}", BRACKET, "Step\tHead\tQueue\n"),
    "json": as_json(None, True),
    "json, text": as_json(None, False),
    "json, indented": as_json(2, True),
    "json, indented text": as_json(4, False),
    "json, list": as_json(2, True, "queue_state", outer=False),
    "json lines": lines('{{"step": {i}, "queue": {queue}}}', BRACKETED["double quotes"]),
    "json, keys": lines('"step_{i}": {queue}', BRACKETED["double quotes"], "{", "}", ", "),
    "python dict": lines("{{'step': {i}, 'queue': {queue}}},", BRACKETED["single quotes"], "[", "]"),
    "yaml": lines("- step: {i}\n  head: {head}\n  queue: {queue}", LIST),
    "xml": lines('<step index="{i}"><queue>{queue}</queue></step>', BRACKET),
    "python call": lines("step({i}) = {queue}", LIST),
}


@pytest.mark.parametrize("name", ["roman", "halting", "emptied", "greek"])
@pytest.mark.parametrize("form", LINES)
def test_lines(form: str, name: str) -> None:
    for seed in range(3):
        check(SYSTEMS[name], LINES[form], random.Random(seed))


@pytest.mark.parametrize("name", ["number", "words", "numbered"])
@pytest.mark.parametrize("form", [f for f in LINES if f not in ("arrow chain in line",)])
def test_lines_in_odd_alphabets(form: str, name: str) -> None:
    for seed in range(3):
        check(SYSTEMS[name], LINES[form], random.Random(seed))
