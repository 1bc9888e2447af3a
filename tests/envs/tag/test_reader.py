"""What single replies state, case by case: what counts, what does not, and what is no answer at all."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.tag.reader import read_reply
from envs.tag.symbols import Alphabet

ROMAN, NUMBER, SPECIAL, GREEK = Alphabet("ABCDE"), Alphabet("12345"), Alphabet("@#$%&"), Alphabet("αβγδε")

#: An alphabet, a reply, and what it states of each step: a queue of single characters, or None where it cannot be told.
Case = tuple[Alphabet, str, dict[int, str | None]]

ANSWERS: list[Case] = [
    (ROMAN, "Step 1: [A B] or [A C]", {1: None}),
    (ROMAN, "Step 1:\nQueue: [A B] or [A C]", {1: None}),
    (ROMAN, "Step 1:\nQueue: [A B]\nQueue: [A C]", {1: None}),
    (ROMAN, "Step 1:\nQueue: [A B]\nWait, that is wrong.\nQueue: [A C]", {1: "AC"}),
    (ROMAN, "Step 1:\nQueue: [A C], wait: [A B]", {1: "AB"}),
    (ROMAN, "Step 1:\nQueue: [A C]\nCorrection: [A B]", {1: "AB"}),
    (ROMAN, "Step 1:\nQueue: either [A C] or [A B]", {1: None}),
    (ROMAN, "Step 1:\nQueue: [A C] / [A B]", {1: None}),
    (ROMAN, "Step 1:\nQueue: [A C] [A B]", {1: None}),
    (ROMAN, "Step 1:\nQueue: [A C], [A B]", {1: None}),
    (ROMAN, "Step 1:\nQueue: [A C]\nor: [A B]", {1: None}),
    (ROMAN, "Step 1:\nQueue: [A C]\nOr maybe Queue: [A B]", {1: None}),
    (ROMAN, "Step 1:\nQueue: [A C]\nAlternatively: [A B]", {1: None}),
    (ROMAN, "Step 1:\nQueue: A C or A B", {1: None}),
    (ROMAN, "Step 1:\n[A C]\n[A B]", {1: None}),
    (ROMAN, "Step 1:\n[A C]\nor\n[A B]", {1: None}),
    (ROMAN, "Step 1:\nQueue: [A C]\nor\n[A B]", {1: None}),
    (ROMAN, "Step 1:\nA C\nA B", {1: None}),
    (ROMAN, "Step 1:\nA C or A B", {}),
    (ROMAN, "Step 1:\nQueue State: [A C]\nor\nQueue State: [A B]", {1: None}),
    (ROMAN, "Step 1:\nQueue State: [A C]\nQueue State: [A C]", {1: "AC"}),
    (ROMAN, "Step 1:\nQueue State: [A C]\nQueue State: [A B]\nQueue State: [A C]", {1: None}),
    (ROMAN, "Step 1:\nQueue: [A C]\nAppend B.\nNew queue: [A B]", {1: "AB"}),
    (ROMAN, "Step 1:\nCurrent queue: [A C]\nAppend B.\nQueue State: [A B]", {1: "AB"}),
    (ROMAN, "Step 1:\nInitial queue: [A C]\nAppend B.\nQueue State: [A B]", {1: "AB"}),
    (ROMAN, "Step 1:\nNew queue: [A C]\nNew queue: [A B]", {1: None}),
    (ROMAN, "Step 1:\nNew queue: [A C]\nFinal queue: [A B]", {1: "AB"}),
    (ROMAN, "Step 1:\nQueue after appending: [A C B]\nQueue after removing: [B]", {1: "B"}),
    (ROMAN, "Step 1:\nQueue after append: [A C B]\nQueue after deletion: [B]", {1: "B"}),
    (ROMAN, "Step 1:\nAfter appending: [A C B]\nAfter removing: [B]", {1: "B"}),
    (ROMAN, "Step 1:\nAppend B: [A C B]\nRemove A C: [B]", {1: "B"}),
    (ROMAN, "Step 1:\n[A C] → [A C B] → [B]", {1: "B"}),
    (ROMAN, "Step 1: [A C] -> append B -> [A C B] -> remove A C -> [B]", {1: "B"}),
    (ROMAN, "Step 1: Queue: [A C] → [B]", {1: "B"}),
    (ROMAN, "Step 1:\nQueue: [A C] + [B] = [A C B], remove first two: [B]", {1: "B"}),
]

HEADERS_WITHOUT_STATE: list[Case] = [
    (ROMAN, "Step 1:\nStep 2:\nQueue: [A B]", {2: "AB"}),
    (ROMAN, "Step 1\nStep 2\n[A B]", {2: "AB"}),
    (ROMAN, "Step 1: Queue State:\nStep 2: Queue State: [A B]", {2: "AB"}),
    (ROMAN, "Step 1: Queue State: \n\n### step 2:\n[A B]", {2: "AB"}),
]

PROSE: list[Case] = [
    (ROMAN, "Step 1: [A B]\nStep 2: [B]\nAs in step 1, we stop.", {1: "AB", 2: "B"}),
    (ROMAN, "Step 1: [A B]\nStep 2: [B]\nStep 1 was wrong. Redo.\nStep 1: [A C]", {1: "AC", 2: "B"}),
    (ROMAN, "Step 1: [A B]\nStep 2:\nThe queue from step 1 was [A B].\nQueue: [B]", {1: "AB", 2: "B"}),
    (ROMAN, "Step 1: [A B]\nStep 2:\nFrom step 1: [A B], append C.\nQueue: [B]", {1: "AB", 2: "B"}),
    (ROMAN, "Step 1: [A B]\nStep 2:\nBefore step 2: [A B]\nAfter step 2: [B]", {1: "AB", 2: "B"}),
    (ROMAN, "### step 1:\nQueue: [A B]\n\n### step 2:\nQueue before step 2: [A B]\nHead: A\nQueue State: [B]", {1: "AB", 2: "B"}),
    (ROMAN, "After step 1, the queue is [A B]. After step 2, the queue is [B].", {1: "AB", 2: "B"}),
    (ROMAN, "After step 1 the queue is A B.\nAfter step 2 the queue is B.", {1: "AB", 2: "B"}),
    (ROMAN, "Steps 1-3: [A B]\nStep 4: [B]", {4: "B"}),
    (ROMAN, "Step 1 to step 3: [A B]\nStep 4: [B]", {4: "B"}),
    (ROMAN, "Step 1: [A B]\nSteps 2 through 5: same as above.", {1: "AB"}),
    (ROMAN, "I will do 30 steps.\nStep 1: [A B]", {1: "AB"}),
    (ROMAN, "Step 2: [B]\nStep 1: [A B]", {1: "AB", 2: "B"}),
]

ACTIONS: list[Case] = [
    (ROMAN, "Step 1:\nAppend [C E], remove [A A]", {}),
    (ROMAN, "Step 1:\nAppend [C E], remove [A A]\n[B C E]", {1: "BCE"}),
    (ROMAN, "Step 1:\n[B C E]\nAppend [C E], remove [A A]", {1: "BCE"}),
    (ROMAN, "Step 1:\nHead: [A]\nRule: A → [C E]\nQueue: [B C E]", {1: "BCE"}),
    (ROMAN, "Step 1:\nHead: A\nAction: append [C E]\n", {}),
    (ROMAN, "Step 1:\nThe head is A. We append [C E].", {}),
    (ROMAN, "Step 1:\nA", {1: "A"}),
    (ROMAN, "Step 1:\nHead Symbol: A\nB C", {1: "BC"}),
    (ROMAN, "Step 1:\nQueue length (5) >= m (2)? Yes.\n[A B]", {1: "AB"}),
    (NUMBER, "Step 1:\nQueue length: 5\nQueue State: [1 2]", {1: "12"}),
    (NUMBER, "Step 1:\nQueue State: [1 2]\nQueue length: 5", {1: "12"}),
    (NUMBER, "Step 1:\nQueue State: [1 2]\nLength: 5", {1: "12"}),
    (NUMBER, "Step 1:\nQueue State: [1 2]\n5", {1: "12"}),
    (NUMBER, "Step 1:\nQueue has 3 symbols.\n[1 2 3]", {1: "123"}),
    (NUMBER, "Step 1: 1 2 3", {1: "123"}),
    (NUMBER, "Step 1: 123", {1: "123"}),
    (NUMBER, "Step 1:\nQueue size = 3\n", {}),
    (NUMBER, "Step 1:\nThe queue is of length 3: [1 2 3]", {1: "123"}),
]

ABBREVIATIONS: list[Case] = [
    (ROMAN, "Step 1: [A B ...]", {1: None}),
    (ROMAN, "Step 1: [A B … C]", {1: None}),
    (ROMAN, "Step 1: [A, B, ..., C]", {1: None}),
    (ROMAN, "Step 1: [A B x3]", {1: None}),
    (ROMAN, "Step 1: [A^3 B]", {1: None}),
    (ROMAN, "Step 1: [A (x2) B]", {1: None}),
    (ROMAN, "Step 1: [A*3]", {1: None}),
    (ROMAN, "Step 1: [A B etc.]", {1: None}),
    (ROMAN, "Step 1: [A B] + 3 more", {1: None}),
    (ROMAN, "Step 1: [A B] ...", {1: None}),
    (ROMAN, "Step 1: Queue: [A B]...", {1: None}),
    (ROMAN, "Step 1: Queue: A B ...", {1: None}),
    (ROMAN, "Step 1: Queue: A B … C", {1: None}),
    (ROMAN, "Step 1: Queue: same as before", {1: None}),
    (ROMAN, "Step 1: Queue: [same as before]", {1: None}),
    (ROMAN, "Step 1: Queue: [A B F]", {1: None}),
    (ROMAN, "Step 1: Queue: [A B] [C]", {1: None}),
    (NUMBER, "Step 1: [1 2 ... 3]", {1: None}),
    (NUMBER, "Step 1: [1 2 (x3)]", {1: None}),
]

REMARKS: list[Case] = [
    (ROMAN, "Step 1: Queue State: [A] <halt>", {1: "A"}),
    (ROMAN, "Step 1: Queue State: [A] (halt)", {1: "A"}),
    (ROMAN, "Step 1: Queue State: [A] halt", {1: "A"}),
    (ROMAN, "Step 1: Queue State: A <halt>", {1: "A"}),
    (ROMAN, "Step 1: Queue State: A (halt)", {1: "A"}),
    (ROMAN, "Step 1: Queue State: A - halt", {1: "A"}),
    (ROMAN, "Step 1: Queue State: [A <halt>]", {1: "A"}),
    (ROMAN, "Step 1: Queue State: [A] (since length < m, halt)", {1: "A"}),
    (ROMAN, "Step 1: Queue State: [A B] (from [C D])", {1: "AB"}),
    (ROMAN, "Step 1: Queue State: [A B], previously [C D]", {1: "AB"}),
    (ROMAN, "Step 1: Queue State: [A B] (not [C D])", {1: "AB"}),
    (ROMAN, "Step 1: Queue State: []", {1: ""}),
    (ROMAN, "Step 1: Queue State: [ ]", {1: ""}),
    (ROMAN, "Step 1: Queue State: empty", {1: ""}),
    (ROMAN, "Step 1: Queue State: (empty)", {1: ""}),
    (ROMAN, "Step 1: Queue State: _empty_queue_", {1: ""}),
    (ROMAN, "Step 1: Queue State: now_empty", {1: None}),
    (ROMAN, "Step 1: Queue State: [empty]", {1: ""}),
    (ROMAN, "Step 1: Queue State: ∅", {1: ""}),
    *((ROMAN, f"Step 1: Queue State: [{said}]", {1: ""}) for said in ("∅ (empty)", "∅ (empty queue)", "∅, empty", "(empty) ∅", "∅ = ε")),
    (ROMAN, "Step 1: Queue State: $\\emptyset$", {1: ""}),
    (ROMAN, "Step 1: The queue is empty.", {1: ""}),
    (ROMAN, "Step 1: The queue is now empty.", {1: ""}),
    (ROMAN, "Step 1: The queue is not empty.", {1: None}),
    (ROMAN, "Step 1: empty", {1: ""}),
    (ROMAN, 'Step 1: Queue State: ""', {1: ""}),
    (ROMAN, "Step 1: Queue State: ε", {1: ""}),
    (ROMAN, "Step 1: Queue State: <empty>", {1: ""}),
    (ROMAN, "Step 1: Queue State: [] <halt>", {1: ""}),
    (ROMAN, "Step 1: Queue State: -", {1: None}),
    (GREEK, "Step 1: Queue State: [α ε]", {1: "αε"}),
    (GREEK, "Step 1: Queue State: $\\alpha \\epsilon$", {1: "αε"}),
    (GREEK, "Step 1: Queue State: $\\alpha\\varepsilon\\beta$", {1: "αεβ"}),
    (GREEK, "Step 1: Queue State: $[\\alpha, \\varepsilon, \\beta]$", {1: "αεβ"}),
    (SPECIAL, "Step 1: Queue State: [\\# \\& \\$ \\%]", {1: "#&$%"}),
    (SPECIAL, "Step 1: Queue State: [&amp; #]", {1: "&#"}),
    (SPECIAL, "Step 1: Queue State: # @ $", {1: "#@$"}),
    (SPECIAL, "### step 1:\n# @ $\n### step 2:\n@", {1: "#@$", 2: "@"}),
    (SPECIAL, "### step 1:\n# #\n### step 2:\n@", {1: "##", 2: "@"}),
    (SPECIAL, "### step 1:\n$ @ $\n", {1: "$@$"}),
    (SPECIAL, "Step 1: `# @ $`", {1: "#@$"}),
    (SPECIAL, "Step 1: $[@ #]$", {1: "@#"}),
    (SPECIAL, "| Step | Queue |\n|---|---|\n| 1 | # @ $ & |\n| 2 | @ |", {1: "#@$&", 2: "@"}),
]

LOOKALIKES: list[Case] = [
    (ROMAN, "Step 1: [А В С]", {1: "ABC"}),
    (ROMAN, "Step 1: [Α Β]", {1: "AB"}),
    (ROMAN, "Step 1: [Ａ Ｂ]", {1: "AB"}),
    (ROMAN, "Step 1: [𝐀 𝙱]", {1: "AB"}),
    (ROMAN, "Step １: [A B]", {1: "AB"}),
    (ROMAN, "Step 𝟏: [A B]", {1: "AB"}),
    (ROMAN, "Step 1: [a b]", {1: None}),
]

THINKING: list[Case] = [
    (ROMAN, "<think>Step 1: [A]</think>Step 1: [B]", {1: "B"}),
    (ROMAN, "Step 1: [A]</think>Step 1: [B]", {1: "B"}),
    (ROMAN, "Step 1: [A]</think>Step 2: [B]", {2: "B"}),
    (ROMAN, "<think>Step 1: [A]", {}),
    (ROMAN, "Step 1: [A]\n<think>Step 1: [B]", {1: "A"}),
    (ROMAN, "Step 1: Queue <think>[C]</think>: [A]", {1: "A"}),
    (ROMAN, "<THINK >Step 1: [A]</THINK >Step 1: [B]", {1: "B"}),
    (ROMAN, "<|begin_of_thought|>Step 1: [A]<|end_of_thought|>Step 1: [B]", {1: "B"}),
    (ROMAN, "[THINK]Step 1: [A][/THINK]Step 1: [B]", {1: "B"}),
    (ROMAN, "◁think▷Step 1: [A]◁/think▷Step 1: [B]", {1: "B"}),
    (ROMAN, "<|channel|>analysis<|message|>Step 1: [A]<|end|><|start|>assistant<|channel|>final<|message|>Step 1: [B]", {1: "B"}),
    (ROMAN, "<think><think>Step 1: [A]</think>Step 1: [C]</think>Step 1: [B]", {1: "B"}),
]

SHAPES: list[Case] = [
    (ROMAN, "Step 1: Queue: [A B\n C D]", {1: "ABCD"}),
    (ROMAN, "Step 1: Queue: [\nA,\nB\n]", {1: "AB"}),
    (ROMAN, 'Step 1:\n[\n"A",\n"B"\n]', {1: "AB"}),
    (ROMAN, "Step 1: Queue: A B\nC D\n", {1: "AB"}),
    (ROMAN, "Step 1: Queue: [A B", {1: None}),
    (ROMAN, "Step 1: Queue: [A B\n", {1: "AB"}),
    (ROMAN, "Step 1: Queue: A B, C", {1: "ABC"}),
    (ROMAN, "Step 1: Queue: A B D]", {1: "ABD"}),
    (ROMAN, "Step 1: [A B]\n## Summary\nFinal queue: [C]", {1: "AB"}),
    (ROMAN, "Step 1: Queue State [A B]", {1: "AB"}),
    (ROMAN, "Step 1: queue [A B]", {1: "AB"}),
    (ROMAN, "Step 1 (Head: A): [A B]", {1: "AB"}),
    (ROMAN, "Step 1 [A B]", {1: "AB"}),
    (ROMAN, "Step 1, head A, append C E: [A B]", {1: "AB"}),
    (ROMAN, "Step 1: A -> C E, queue [A B]", {1: "AB"}),
    (ROMAN, "Step 1: A → C E: B D", {}),
    (ROMAN, "1. [A B]\n2. [B]", {1: "AB", 2: "B"}),
    (ROMAN, "1) A B\n2) B", {}),
    (ROMAN, "[A B][B]", {0: "AB", 1: "B"}),
    (ROMAN, "[A B]\n[B]", {0: "AB", 1: "B"}),
    (ROMAN, "30[AB]29.A:CE[B]", {0: "AB", 1: "B"}),
    (ROMAN, "The queue: [A B], [B]", {}),
    (ROMAN, "Step 1.5: [A B]", {}),
    (ROMAN, "Step -1: [A B]", {1: "AB"}),
    (ROMAN, "Step 1a: [A B]", {}),
    (ROMAN, "step 99999999999999: [A]", {}),
    (ROMAN, '{"step": 1, "queue": ["A","B"]}', {1: "AB"}),
    (ROMAN, '{"step_number": 1, "queue": "A B"}', {1: "AB"}),
    (ROMAN, '{"step": 1, "queue": ["A","B"], "appended": ["C"], "removed": ["E"]}', {1: "AB"}),
    (ROMAN, '{"step": 1, "appended": ["C"], "removed": ["E"], "queue": ["A","B"]}', {1: "AB"}),
    (ROMAN, '{"step": 1, "appended": ["C"], "removed": ["E"]}', {}),
    (ROMAN, '{\n"step": 1,\n"appended": ["C"],\n "removed": ["E"],\n"queue": ["A","B"]\n}', {1: "AB"}),
    (ROMAN, '{\n"step": 1,\n"before": ["C"],\n"after": ["A","B"]\n}', {1: "AB"}),
    (ROMAN, "Step 1:\nBefore: [C D]\nAfter: [A B]", {1: "AB"}),
    (ROMAN, "Step 1:\nAfter: [A B]\nBefore: [C D]", {1: "AB"}),
    (ROMAN, "Step 1:\nOld queue: [C D]\nNew queue: [A B]", {1: "AB"}),
    (ROMAN, "Step 1:\nNew queue: [A B]\nOld queue: [C D]", {1: "AB"}),
    (ROMAN, "Step 1:\nInput: [C D]\nOutput: [A B]", {1: "AB"}),
    (ROMAN, "Step 1: [A B] (wait, that's wrong) [A C]", {1: "AC"}),
    (ROMAN, "Step 1: ~~[A B]~~ [A C]", {1: "AC"}),
    (ROMAN, "Step 1: Queue: ~~[A B]~~ [A C]", {1: "AC"}),
    (ROMAN, "Step 1: Queue: [A B]\nHmm, wait. Let me redo: [A C]", {1: "AC"}),
    (ROMAN, "Step 1: Queue: [A B]\nActually, the queue is [A C].", {1: "AC"}),
    (ROMAN, "Step 1: Queue: [A B]\nNo, it should be [A C].", {1: "AC"}),
    (ROMAN, "Step 1: Queue: [A B]? or maybe [A C]?", {1: None}),
    (ROMAN, "Step 1: Queue: [A B] or [A C], so [A C]", {1: "AC"}),
    (ROMAN, "Step 1: Queue: probably [A B]", {1: "AB"}),
    (ROMAN, "Step 1: Queue: I think it is [A B]", {1: "AB"}),
    (ROMAN, "Step 1: Queue: [A B] = [A B]", {1: "AB"}),
    (ROMAN, "Step 1: Queue: [A B] and [A C]", {1: None}),
    (ROMAN, "Step 1 and Step 2: [A B]", {}),
    (ROMAN, "### Step 1\n**Queue:** `A`, `B`", {1: "AB"}),
    (ROMAN, "| Step | Queue |\n|---|---|\n| 1 | [A B] or [A C] |\n| 2 | [A B ...] |\n| 3 | |\n| 4 | [A] |", {1: None, 2: None, 4: "A"}),
    (ROMAN, "| Step | Queue | Queue |\n|---|---|---|\n| 1 | [A B] | [B] |", {1: "B"}),
    (ROMAN, "| Step 1 | [A B] |\n| Step 2 | [B] |", {1: "AB", 2: "B"}),
    (ROMAN, "| step 1 | head A | [A B] |\n| step 2 | head A | [B] |", {1: "AB", 2: "B"}),
]

MORE: list[Case] = [
    # Two labels are two places: the later one counts.
    (ROMAN, "Step 1:\nCurrent: queue [C D]\nQueue State: [A B]", {1: "AB"}),
    (ROMAN, "Step 1:\nQueue State: [A]\nQueue State: [A]\nQueue State: [B]", {1: None}),
    (ROMAN, "Step 1:\nQueue after removing: [B]\nQueue after appending: [B C E]", {1: "BCE"}),
    (ROMAN, "Step 1:\nQueue after appending: [A A B C E]\nQueue State: [B C E]", {1: "BCE"}),
    (ROMAN, "Step 1:\nQueue State: [B C E]\nCheck: append [C E], remove [A A], correct.", {1: "BCE"}),
    (ROMAN, "Step 1:\nQueue State: [B C E]\nWait, the previous queue was [A A B].", {1: "BCE"}),
    # Doubt counts wherever a state stands.
    (ROMAN, "Earlier we had, after step 1: [A B] or [A C]", {1: None}),
    (ROMAN, "Earlier we had, after step 1: [A C], wait: [A B]; step 2 is [B]", {1: "AB", 2: "B"}),
    (ROMAN, "Earlier we had, after step 1: [A B]...", {1: None}),
    (ROMAN, "1. [A B] or [A C]\n2. [B] ... \n3. [A] → [B] <halt>", {1: None, 2: None, 3: "B"}),
    (ROMAN, "1. [A B\n2. [B]\n", {1: None, 2: "B"}),
    # An open bracket closes with its own line, unless the reply breaks off or only half of it can be read.
    (ROMAN, "Step 1: Queue State: [A B\nStep 2: Queue State: [B]", {1: "AB", 2: "B"}),
    (ROMAN, "Step 1: Queue State: [\nStep 2: Queue State: [B]", {1: None, 2: "B"}),
    (ROMAN, "Step 1: Queue State: [A B\nC D", {1: None}),
    (ROMAN, "Step 1: Queue State: [A B\nC D\n", {1: None}),
    (ROMAN, "Step 1: Queue State: [\nA\n...\nB\n]\n", {1: None}),
    (ROMAN, "30[AB]29.A:CE[B", {0: "AB", 1: None}),
    (ROMAN, "```\n30[AB]29.A:CE[B]\n```", {0: "AB", 1: "B"}),
    # The key of the step comes last in its object: the state that follows is the next step's.
    (ROMAN, '[{"queue": ["A"], "step": 1}, {"queue": ["B"], "step": 2}]', {}),
    (ROMAN, '[{\n"queue": ["A"],\n"step": 1\n},\n{\n"queue": ["B"],\n"step": 2\n}]', {}),
    (ROMAN, '{"step": 1, "queue": ""}', {1: ""}),
    # A rule is no state, a repeat or a power no symbol.
    (ROMAN, "Step 1: A → C E", {}),
    (ROMAN, "Step 1: A -> C E", {}),
    (ROMAN, "Step 1: [A B → B C]", {1: None}),
    (NUMBER, "Step 1: [1² 3]", {1: None}),
    (ROMAN, "Step 1: [A B] x2", {1: None}),
    (ROMAN, "Step 1: Queue: [A B] and so on", {1: None}),
    # Symbols mean themselves.
    (Alphabet("*-|"), "Step 1:\n* - |", {1: "*-|"}),
    (Alphabet("\\/"), "Step 1: Queue: [\\ / \\]", {1: "\\/\\"}),
    (Alphabet("~A"), "Step 1: Queue: [~ ~ A ~ ~]", {1: "~~A~~"}),
    (SPECIAL, "Step 1:\nQueue State: [& #]\nStep 2:\nQueue State: & # &", {1: "&#", 2: "&#&"}),
    (Alphabet("ε"), "Step 1: Queue: `ε`", {1: "ε"}),
    (Alphabet("|A"), "| Step | Queue |\n|---|---|\n| 1 | [A | A] |", {1: None}),
    (Alphabet("|A"), "| Step | Queue |\n|---|---|\n| 1 | [A \\| A] |", {1: "A|A"}),
    # Steps whose number cannot be theirs, and tables that are none.
    (ROMAN, "Step 1.5: [A B]", {}),
    (ROMAN, "| Rule | Word |\n|---|---|\n| 1 | A |", {}),
    (ROMAN, "| Step | Queue before | Head |\n|---|---|---|\n| 1 | A B | A |", {}),
    (ROMAN, "步骤 1: [A B]", {}),
]
ALL = [*ANSWERS, *HEADERS_WITHOUT_STATE, *PROSE, *ACTIONS, *ABBREVIATIONS, *REMARKS, *LOOKALIKES, *THINKING, *SHAPES, *MORE]


@pytest.mark.parametrize(("alphabet", "reply", "expected"), ALL, ids=[case[1] for case in ALL])
def test_statements(alphabet: Alphabet, reply: str, expected: dict[int, str | None]) -> None:
    stated = {step: s.queue for step, s in read_reply(reply, alphabet).items()}
    assert stated == {step: None if q is None else tuple(q) for step, q in expected.items()}


@pytest.mark.parametrize(("alphabet", "reply", "expected"), ALL, ids=[case[1] for case in ALL])
def test_spans_hold_what_was_read(alphabet: Alphabet, reply: str, expected: dict[int, str | None]) -> None:
    """The characters of a span, read alone, state the same: nothing outside it was needed."""
    for step, statement in read_reply(reply, alphabet).items():
        start, end = statement.span
        assert 0 <= start < end <= len(reply)
        spelled = alphabet.normalised(alphabet.delatexed(reply[start:end]))
        for symbol in statement.queue or ():
            assert symbol in spelled or symbol == "&"
        if "step" in reply[start:end].lower() and "|" not in reply[start:end] and "\t" not in reply[start:end]:
            assert read_reply(reply[start : end + 1], alphabet)[step].queue == statement.queue


def test_spans_to_the_letter() -> None:
    reply = "So after step 1: [A B]; then the queue in step 2 is [B].\n\n### Step 3:\n- Queue State: [C]  \n\n## End\nstep 4: [D]\n"
    spans = {step: reply[slice(*s.span)] for step, s in read_reply(reply, ROMAN).items()}
    assert spans == {1: "step 1: [A B]", 2: "step 2 is [B]", 3: "### Step 3:\n- Queue State: [C]", 4: "step 4: [D]"}


def test_multi_character_symbols() -> None:
    alphabet = Alphabet(["a", "ab", "b10", "b1"])
    for inside in ("ab a b10 b1", "ab, a, b10, b1", "'ab' 'a' 'b10' 'b1'", "ab a b₁₀ b₁"):
        assert read_reply(f"step 1: [{inside}]", alphabet)[1].queue == ("ab", "a", "b10", "b1")
    assert read_reply("step 1: [abc]", alphabet)[1].queue is None


TOKENS = (
    "step Step 1 2 30 [ ] [A [B] A B , | \n \r\n : = → -> ( ) { } \" ' ` * ** ### # - ~~ \\ \\text{ \\[ \\] $ & \t Queue State: queue: "
    "<think> </think> [THINK] <halt> ... … or wait either before after to and not append remove head rule empty | step | queue |"
).split(" ")


@settings(max_examples=600, deadline=None)
@given(pieces=st.lists(st.sampled_from(TOKENS) | st.text(max_size=3), max_size=60), glue=st.sampled_from(["", " ", "\n"]))
def test_any_text_is_read_without_an_error(pieces: list[str], glue: str) -> None:
    reply = glue.join(pieces)
    for alphabet in (ROMAN, NUMBER, SPECIAL):
        for step, statement in read_reply(reply, alphabet).items():
            start, end = statement.span
            assert 0 <= step < 10**9
            assert 0 <= start < end <= len(reply)
            assert statement.queue is None or alphabet.symbols.issuperset(statement.queue)


NASTY = [
    *(
        "[",
        "]",
        "[A ",
        "[]",
        "[\n",
        "\\a*",
        "\\",
        "\\[",
        "\\text{",
        "|",
        "||\n",
        "&",
        "&amp;",
        "\t",
        "*",
        "~~",
        "{",
        "}\n",
        "(",
        "_",
        " ",
        "\n",
        "1. [",
    ),
    *(
        "step 1 ",
        "step 1: ",
        "step 1: [",
        "step 1: [A] ",
        "step 1\n",
        "step 1-2 ",
        "step 1 to step 2 ",
        "after step 1: ",
        "step 1, the queue ",
    ),
    *("<think>", "</think>", "<", "◁", "queue state ", "queue: ", "queue is ", "Queue State: [A]\n", "| step | queue |\n", '"step": 1}, {'),
    *(
        "A ",
        "A\n",
        "[A] or ",
        "[A], [B] ",
        "rule A → [A] ",
        "append [A] ",
        "halt ",
        "...",
        "wait ",
        "either [A] ",
        "é",
        "Ａ",
        "\u200b",
        "∅",
    ),
]


@pytest.mark.parametrize(
    ("prefix", "suffix"),
    [
        ("", ""),
        ("step 1: ", ""),
        ("step 1:\nQueue State: [", ""),
        ("| step | queue |\n| 1 | ", ""),
        ("3[", "]"),
        ("3[", "x]"),
        ("3[A⁰", "]"),
    ],
)
def test_time_is_linear(prefix: str, suffix: str) -> None:
    """Eight times the text takes about eight times as long; a quadratic pattern would take sixty-four times as long, or far more."""

    def seconds(piece: str, size: int) -> float:
        reply = prefix + piece * (size // len(piece) + 1) + suffix
        best = float("inf")
        for _ in range(3):
            start = time.process_time()
            read_reply(reply, ROMAN)
            best = min(best, time.process_time() - start)
            if best < 0.02:
                break
        return best

    slow = {p: t for p in NASTY if (t := seconds(p, 16_000)) > 0.02 and t > 40 * max(seconds(p, 2_000), 0.002)}
    assert not slow


def test_a_thousand_bare_states_are_read() -> None:
    reply = "\n".join(f"### step {i}:\nQueue State: {'A B C D E ' * 3}" for i in range(1000))
    stated = read_reply(reply, ROMAN)
    assert len(stated) == 1000
    assert all(s.queue == tuple("ABCDE" * 3) for s in stated.values())


@pytest.mark.parametrize(
    ("state", "queue"),
    [
        ("A²B³A⁴", ("A", "B", "A")),
        ("B⁹A¹⁰B¹¹", ("B", "A", "B")),
        ("A¹⁵⁸B¹⁵⁹A⁰B¹", ("A", "B", "A", "B")),  # around the ring
        ("A¹⁵⁹B¹⁶⁰", None),
        ("A²B", None),  # the square of A, perhaps
        ("A²B²", None),
        ("A³B²", None),
        ("A²B³A", None),
        ("²A³", None),
        ("A" + "²" * 5000, None),
    ],
)
def test_places_are_passed_over_where_they_count_up_symbol_by_symbol(state: str, queue: tuple[str, ...] | None) -> None:
    assert read_reply(f"3[A⁰B¹]2.A⁰:B²[{state}]", Alphabet(["A", "B"]))[1].queue == queue


def test_a_superscript_of_the_alphabet_is_a_symbol() -> None:
    assert read_reply("3[A²A³]", Alphabet(["A", "²", "³"]))[0].queue == ("A", "²", "A", "³")
