"""What one section of a reply, the lines below one step header, states as that step's queue.

A labelled statement (`Queue State: …`, `New queue = …`) counts before an unlabelled bracket, and that before a bare line of symbols;
among equals the last counts. Brackets that hold a head, a rule, appended or removed symbols or the queue before the step are no statement.

Two different answers are no answer: `[A B] or [A C]`, or the same label twice with different states, is unreadable, unless words such
as "wait" or "correction" between them say which one is meant.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from envs.tag.symbols import Alphabet
from envs.tag.system import Word

_LABEL = re.compile(
    r"\b(?:queue|state|result|tape|string|contents?)[ \w\-*_`\"'\\{}()]{0,30}?"
    r"(?:[:=](?!=)|→|⇒|->|=>|(?:\bis\b|\bbecomes\b)(?:\snow\b)?\s?:?)",
    re.IGNORECASE,
)
_LABEL_WORDS = ("queue", "state", "result", "tape", "string", "content")
_NOT_A_QUEUE = re.compile(r"length|size|len\b|count|head|symbol|before|previous|\bold\b|prior|number|has\b|rule|transition", re.IGNORECASE)
_OLD = re.compile(r"\b(?:previous|prior|old|before|last)\b[\s\w*_`]{0,12}$", re.IGNORECASE)
_HALFWAY = re.compile(r"\bafter\s(?:the\s)?(?:append|add|remov|delet|pop|concat)", re.IGNORECASE)

# What the words before an unlabelled bracket make of it.
_GIVES = re.compile(
    r"(?:→|⇒|->|=>|=|gives?|giving|becomes?|yields?|yielding|results? in|resulting in|get)[\s*_`$:\"']{0,6}$", re.IGNORECASE
)
_NAMES = re.compile(r"[\"'*_`)]{0,4}\s?:[\s*_`$\"']{0,6}$")
_RULE = re.compile(r"\b(?:rules?|transitions?|head)\b.*\w", re.IGNORECASE)
_OTHER_NAME = re.compile(
    r"\b(?:append(?:ed)?|add(?:ed)?|remove[ds]?|deleted?|popped|head|rule|action|words?|symbols?|was|from|not|input)"
    r"(?:\s(?:symbols?|words?|queue|state))?$|\b(?:previous(?:ly)?|before|prior|old)\b[\s\w]{0,16}$",
    re.IGNORECASE,
)
_ACTION = re.compile(
    r"append|\badd(?:s|ed|ing)?\b|remov|delet|\bpop|\bdrop|\bhead\b|\brule|\btransition|\bappl(?:y|ied)\b|previous|\bbefore\b|\bold\b|\bprior\b",
    re.IGNORECASE,
)

# What the words between two brackets make of the second.
_HEDGE = re.compile(r"\bor\b|\beither\b|\balternatively\b|\bmaybe\b|\bperhaps\b|\bpossibly\b|\bcould\b|\bmight\b|\?|(?<!<)/", re.IGNORECASE)
_EITHER = re.compile(r"\beither\b", re.IGNORECASE)
_COMMENT = re.compile(
    r"append|remov|delet|\badd|\bfrom\b|since|because|\bwith\b|length|\bwas\b|previous|\bold\b|instead of|rather than|\bnot\b|compared|\(",
    re.IGNORECASE,
)
_CORRECTS = re.compile(
    r"→|⇒|⟶|->|=>|=|becomes?|gives?|yields?|\bget\b|\bthen\b|\bnow\b|\bwait\b|\bno\b|actually|correct|sorry|oops|should be|\bafter\b|"
    r"result|\bfix|i\.e\.|\bso\b|that is",
    re.IGNORECASE,
)
_TAKEN_BACK = re.compile(
    r"\bwait\b|correct|actually|sorry|oops|mistake|error|should (?:be|have)|\bre-?(?:do|check|calculate|compute|write)|\bfix|\bno,|wrong|"
    r"revis|instead",
    re.IGNORECASE,
)
_HEDGED_LINE = re.compile(r"[\W_]*(?:or|alternatively|maybe|perhaps|possibly|either)\b", re.IGNORECASE)
_ABBREVIATED = re.compile(r"\s{0,3}(?:\.\.|…|\+|[x×^*]\s?\d|,?\s?etc\b|,?\s?and (?:so|\d))", re.IGNORECASE)
_DOUBTED = re.compile(
    r"[\s,.;*_`(–—-]{0,4}(?:or\b|/|\?|maybe|perhaps|alternatively|wait|no\b|correct|actually)|" + _ABBREVIATED.pattern, re.IGNORECASE
)

_INNERMOST = re.compile(r"\[([^\[\]]*)\]")
_STRUCK = re.compile(r"~~[^~]+~~")
_FENCE = re.compile(r"\s*(?:`{3,}|~{3,})[^`~]*$")
_SAYS_EMPTY = re.compile(r"empty|[∅ελ]|\"\"|''|\(\s?\)|\{\s?\}|⟨\s?⟩", re.IGNORECASE)
_TAIL = re.compile(r"[(<].*$|(?<![.\s])[.!]\s*$|[.,;:!–—-]?\s{0,3}(?:halt(?:ed|s)?|stop(?:ped)?|done)\W*$", re.IGNORECASE | re.DOTALL)

_LABELLED, _BRACKETED, _BARE, _UNREADABLE = 4, 3, 2, 1
_ALONE = ""  #: the place of a state that has its line to itself


class Section:
    """Takes the lines of a section one by one, keeping the statement that counts so far.

    Attributes:
        stated: Whether anything was stated, readable or not.
        queue: The queue stated, or None where it cannot be read or two were offered.
    """

    def __init__(self, alphabet: Alphabet) -> None:
        self.queue: Word | None = None
        self._alphabet = alphabet
        self._rank = 0
        self._place: str | None = None
        self._taken_back = self._hedged = False
        self._awaited: str | None = None  # a label whose state stands on the next line
        self._open: tuple[int, str | None, list[str]] | None = None  # rank, place and lines so far of a bracket not closed yet

    @property
    def stated(self) -> bool:
        return self._rank > 0

    def take(self, line: str) -> None:
        """Looks for statements in the next line, or part of a line."""
        if not line.strip() or _FENCE.match(line):
            return
        line = self._alphabet.delatexed(line)
        if "~~" in line and "~" not in self._alphabet.chars:
            line = _STRUCK.sub(" ", line)
        if self._goes_on(line):
            return
        self.end()
        if self.stated:
            self._taken_back = self._taken_back or bool(_TAKEN_BACK.search(line))
            self._hedged = self._hedged or bool(_HEDGED_LINE.match(line))
        labels = _labels(line)
        place, self._awaited = self._awaited, None
        if place is not None and not labels and ("[" in line or self._alphabet.read(line) is not None):
            self.take_labelled(line, place)
            return
        begin = 0
        for i, label in enumerate(labels):
            place, rest = line[begin : label.end()], line[label.end() : labels[i + 1].start() if i + 1 < len(labels) else len(line)]
            begin = label.end()
            if rest.strip(" \t*_`$:|\"'") or '""' in rest or "''" in rest:
                self.take_labelled(rest, place)
            else:
                self._awaited = place
        if not labels:
            self._unlabelled(line)

    def take_labelled(self, text: str, place: str = "") -> None:
        """Takes what stands after a label, or in a table's cell."""
        rank = _BRACKETED if _HALFWAY.search(place) else _LABELLED
        place = re.sub(r"\W", "", place).lower()
        if brackets := list(_INNERMOST.finditer(text)):
            first, states = brackets[0], self._states(text, brackets)
            self._offer(rank, self._choose(text, [first, *(b for b in states if b is not first)], labelled=True), place)
        elif "[" in text:
            self._open = (rank, place, [text[text.rindex("[") + 1 :]])
        elif (queue := read_bare(text, self._alphabet)) is not None:
            self._offer(rank, queue, place)
        else:
            self._offer(rank if _HEDGE.search(text) else _UNREADABLE, None, place)

    def end(self, *, broken_off: bool = False) -> None:
        """Ends a bracket that no line has closed: it closes with its own line, unless the reply broke off there."""
        if self._open is not None:
            rank, place, lines = self._open
            self._open = None
            self._offer(rank, None if broken_off or len(lines) > 1 else self._alphabet.read(lines[0]) or None, place)

    def _goes_on(self, line: str) -> bool:
        """Takes the next line into the open bracket, if it holds nothing but symbols."""
        inside, closed, _ = line.partition("]")
        if self._open is None or not (self._alphabet.read(inside) or (closed and not inside.strip())):
            return False
        rank, place, lines = self._open
        lines.append(inside)
        if closed:
            self._open = None
            self._offer(rank, self._alphabet.read(" ".join(lines)), place)
        return True

    def _unlabelled(self, line: str) -> None:
        brackets = list(_INNERMOST.finditer(line))
        if not brackets:
            if "[" in line and self._is_state(line[: line.rindex("[")]):
                self._open = (_BRACKETED, None, [line[line.rindex("[") + 1 :]])
            elif (bare := read_bare(line, self._alphabet)) is not None:
                self._offer(_BARE, bare, _ALONE)
        elif states := self._states(line, brackets):
            alone = not re.search(r"\w", line[: states[0].start()] + line[states[0].end() :])
            self._offer(_BRACKETED, self._choose(line, states, labelled=False), _ALONE if alone else None)

    def _states(self, line: str, brackets: Sequence[re.Match[str]]) -> list[re.Match[str]]:
        """The brackets that the words before them do not make something other than a state."""
        starts = [0, *(b.end() for b in brackets)]
        return [b for start, b in zip(starts, brackets, strict=False) if self._is_state(line[start : b.start()])]

    @staticmethod
    def _is_state(lead: str) -> bool:
        lead = lead.rpartition("|")[2]
        if gives := _GIVES.search(lead):
            return not _RULE.search(lead[: gives.start()])
        if name := _NAMES.search(lead):
            return not _OTHER_NAME.search(lead[: name.start()])
        return not _ACTION.search(lead)

    def _choose(self, line: str, brackets: Sequence[re.Match[str]], *, labelled: bool) -> Word | None:
        """The state among the brackets of one line, or None where it offers several."""
        chosen = self._read(line, brackets[0])
        if _EITHER.search(line, 0, brackets[0].start()):
            return None
        hedged = False
        for last, bracket in pairwise(brackets):
            between, queue = line[last.end() : bracket.start()], self._read(line, bracket)
            if queue == chosen:
                continue
            if _HEDGE.search(between):
                hedged = True
            elif labelled and _COMMENT.search(between):
                if _GIVES.search(between) or _NAMES.search(between) or "wait" in between:
                    chosen, hedged = queue, False
            elif _CORRECTS.search(between) or (not labelled and re.search(r"\w{2}", between)):
                chosen, hedged = queue, False
            else:
                hedged = True
        return None if hedged else chosen

    def _read(self, line: str, bracket: re.Match[str]) -> Word | None:
        return None if _ABBREVIATED.match(line, bracket.end()) else self._alphabet.read(bracket[1])

    def _offer(self, rank: int, queue: Word | None, place: str | None = None) -> None:
        """Later statements replace those of the same or a lower rank, and a correction replaces any.

        Not so where the same place (the same label, or a line of its own) states another queue and nothing in between took the first
        one back: that is two answers.
        """
        different = self.stated and queue != self.queue
        if self._hedged and different and min(rank, self._rank) >= _BARE:
            self.queue = None
        elif rank >= self._rank or (self._taken_back and rank == _BRACKETED):
            twice = different and rank == self._rank and place is not None and place == self._place and not self._taken_back
            self._place, self.queue = place, None if twice else queue
        else:
            return
        self._rank = max(rank, self._rank)
        self._taken_back = self._hedged = False


def read_cell(text: str, alphabet: Alphabet) -> Word | None:
    """The queue in a table's cell, or None where it cannot be read."""
    section = Section(alphabet)
    section.take_labelled(alphabet.delatexed(text))
    return section.queue


def doubted(line: str, end: int) -> bool:
    """Whether the bracket that ends here is taken back, set beside another one, or not the whole state."""
    return bool(_DOUBTED.match(line, end))


def read_bare(text: str, alphabet: Alphabet) -> Word | None:
    """A queue written without brackets; it may be followed by a remark in parentheses or a halt mark."""
    head, closed, tail = text.partition("]")
    if closed and not re.search(r"\w", tail):
        text = head
    queue = alphabet.read(text)
    if queue is None and (shorter := _TAIL.sub("", text)) != text:
        queue, text = alphabet.read(shorter), shorter
    return queue if queue or _SAYS_EMPTY.search(text) else None


def _labels(line: str) -> list[re.Match[str]]:
    """The labels of a queue in a line: not those of its length or of the queue before the step."""
    lowered = line.lower()
    if not any(word in lowered for word in _LABEL_WORDS):
        return []
    found = _LABEL.finditer(line)
    return [m for m in found if not _NOT_A_QUEUE.search(m[0]) and not _OLD.search(line, max(0, m.start() - 24), m.start())]
