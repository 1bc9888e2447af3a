"""Reading a reply: which queue it states for which step, and where. Linear in the reply's length, whatever it holds.

A reply is cut into sections at step headers (`### step 3:`, `**Step 3**`, `Step 3 - …`, JSON's `"step": 3`, …), and `envs.tag.section`
reads each. The last section that states a step wins for that step. Table rows, a step quoted with its state inside a line
(`… as in step 3: [A B]`) and, in replies without any header, the compact form and numbered lines of brackets are read as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from envs.tag.prompt import PLACES, SUPERSCRIPTS
from envs.tag.section import Section, doubted, read_bare, read_cell
from envs.tag.symbols import Alphabet
from envs.tag.system import Word
from envs.tag.table import Table
from envs.thinking import blank_thinking


@dataclass(frozen=True, slots=True)
class Statement:
    """What a reply says of one step: the queue, or None where it cannot be read; and the characters of the whole section."""

    queue: Word | None
    span: tuple[int, int]


def read_reply(text: str, alphabet: Alphabet) -> dict[int, Statement]:
    """The statement that counts for each step that the reply states."""
    text = alphabet.normalised(blank_thinking(text))
    reader = _Reader(text, alphabet)
    if reader.headers:
        return reader.statements
    return _read_compact(text, alphabet) if _COMPACT.match(text) else _read_numbered(text, alphabet)


# Markup that may stand before the word "step" at the beginning of a line.
_MARKUP = re.compile(
    r"(?:[\s#>*_~`+\-•●◦▪■►▶→⇒⇨✅|\"'({\[$=:.,;/]|\\[a-zA-Z]+|\\[^a-zA-Z\s]|</?[a-zA-Z][a-zA-Z0-9]{0,9}\s?/?>|<|\d{1,4}[.)])*"
)
_NUMBER = r"steps?(?P<gap>[\s\"'_#№*:=`~}\-({$.]{0,8})(?:(?:no|number|index|id)(?![a-z])[\s.:#=\"'*]{0,4})?(?P<n>\d{1,9})(?![^\W_]|\.\d)"
_MENTION = re.compile(r"(?<![a-z])" + _NUMBER, re.IGNORECASE)
_CLOSERS = r"[\s*_`~\"')}\]$]{0,12}"
# A range of steps ("step 1-3", "steps 1 to 3", "step 1 and step 2") is no header.
_RANGE = re.compile(r"[-–—~]\d|\s{0,3}(?:to|through|and|until)\s{1,3}(?:step\s{0,3})?\d", re.IGNORECASE)
_AFTER = re.compile(
    _CLOSERS
    + r"(?:$|[:.)\-–—|=→⇒>(\[,;/<\\{&⟨]|of\s+\d"
    + r"|(?:queue|state|head|init|initial|start|action|final|halt|result|is|gives|becomes)\b)",
    re.IGNORECASE,
)
_COLON = re.compile(_CLOSERS + r"(?:\([^()\[\]]{0,40}\)[\s*_]{0,3})?[:=|]", re.IGNORECASE)
_COLON_ENDS = re.compile(_CLOSERS + r"[:*_\s]{1,6}$")
# After the mention of a step inside a line: what makes the bracket, or the bare symbols, that follow its state.
_QUEUE_IS = r",?\s?(?:the\s)?(?:\w{1,12}\s){0,2}(?:queue|state|tape)(?:\s\w{1,8})?\s?(?:[:=]|\bis\b|\bwas\b|\bbecomes\b)"
_STATE_NEXT = re.compile(
    _CLOSERS
    + rf"(?:\([^()\[\]]{{0,40}}\)\s?)?(?P<link>{_QUEUE_IS}|[:=]|→|⇒|->|=>|\bis\b|\bgives\b|\bbecomes\b|\bwas\b)?[\s*_`$:→\-]{{0,6}}",
    re.IGNORECASE,
)
_BEFORE = re.compile(r"\b(?:before|prior to|preceding|until)\b[\s*_`]{0,4}$", re.IGNORECASE)
#: A header's own punctuation, which is no part of its state.
_HEAD_ENDS = re.compile(_CLOSERS + r"(?:->|=>|[:=.→⇒|–—\-])\*{0,3}")
_JSON_KEY = re.compile(r"[\"']\s{0,3}:")
_BOUNDARY = frozenset(".;|→⇒>)]}!?,{")
_MARKS = " *_`\"'(#"
_ASSIGNS = frozenset(":=")
_INTEGER = re.compile(r"(?<!\d)\d{1,9}(?!\d)")
_TABLE_SIGN, _TABLE_WORDS = frozenset("|&\t"), ("queue", "state", "tape", "after", "result")
_TITLE = re.compile(r"\s{0,3}#{1,6}\s+(.*)$")
_COMPACT = re.compile(r"\s*(?:[`~]{3,}\w*\s+)?\d*\[")
_BRACKETS = re.compile(r"\[{1,2}([^\[\]]*)\]")
_GROUP = re.compile(r"\[([^\[\]]*)(\]?)")
_PLACE = re.compile(rf"([{SUPERSCRIPTS}]+)")
_LOWERED = str.maketrans(SUPERSCRIPTS, "0123456789")
_NUMBERED = re.compile(r"^[\s*_`>\-+|({\"]{0,12}(\d{1,9})[*_`\"]{0,3}[.):|][\s*_`:]{0,8}(\[[^\r\n]*)", re.MULTILINE)


class _Reader:
    """Walks the lines once, keeping the open section and the open table."""

    def __init__(self, text: str, alphabet: Alphabet) -> None:
        self.text, self.alphabet = text, alphabet
        self.statements: dict[int, Statement] = {}
        self.headers = 0
        self._section: Section | None = None
        self._step = self._start = 0
        self._after_key = False  # only the key "step" of the section's JSON object has been seen
        self._table: Table | None = None
        for match in re.finditer(r"[^\r\n]+", text):
            self._line(match.start(), match[0])
        self._close(len(text))

    def _line(self, start: int, line: str) -> None:
        lowered = line.lower()
        if self._row(start, line, lowered):
            return
        mentioned = "step" in lowered
        markup = _MARKUP.match(line) if mentioned else None
        if markup and (header := _MENTION.match(line, markup.end())) and _opens(line, header.end()):
            self._open(header, start)
            ends = _HEAD_ENDS.match(line, header.end())
            self._rest(start, line, ends.end() if ends else header.end())
        elif self._section and (title := _TITLE.match(line)) and "[" not in line and self.alphabet.read(title[1]) is None:
            self._close(start)
        elif mentioned:
            self._rest(start, line, 0)
        else:
            self._body(line)

    def _rest(self, start: int, line: str, at: int) -> None:
        """The part of a line after its header, which may mention further steps: as headers, or with their states."""
        begin = at
        for mention in _MENTION.finditer(line, at):
            if mention.start() < at:
                continue
            if steps := _RANGE.match(line, mention.end()):
                at = steps.end()
                continue
            before = line[max(begin, mention.start() - 24) : mention.start()]
            if _BEFORE.search(before):
                continue
            bounded = _BOUNDARY.issuperset(before.rstrip(_MARKS)[-1:] or "x")
            if bounded and (_COLON.match(line, mention.end()) or not _ASSIGNS.isdisjoint(mention["gap"])):
                pass
            elif end := self._quoted(start, line, begin, mention):
                begin = at = end
                continue
            elif not (_COLON_ENDS if before.strip(_MARKS).lower() != "after" else _COLON).match(line, mention.end()):
                continue
            self._body(line[begin : mention.start()])
            self._open(mention, start + mention.start())
            begin = at = mention.end()
        self._body(line[begin:])

    def _quoted(self, start: int, line: str, begin: int, mention: re.Match[str]) -> int:
        """Takes the state that follows the mention of a step within a line; returns where it ends, or 0 where there is none."""
        link = _STATE_NEXT.match(line, mention.end())
        assert link is not None  # it can match nothing
        following = _MENTION.search(line, link.end())
        end = following.start() if following else len(line)
        if group := _BRACKETS.match(line, link.end()):
            if not doubted(line, group.end()):
                end = group.end()
            state = line[group.start() : end]
        elif link["link"]:
            state = line[link.end("link") : end]
            if read_bare(state, self.alphabet) is None:
                return 0
        else:
            return 0
        self._body(line[begin : mention.start()])
        step, at = int(mention["n"]), start + mention.start()
        if self._section is not None and step == self._step:
            self._section.take_labelled(state, "queue after step")
            return end
        if self._section is not None and step > self._step and self._section.stated:
            self._close(at)  # the reply has moved on
        self._state(step, read_cell(state, self.alphabet), (at, start + end))
        self.headers += 1
        return end

    def _open(self, header: re.Match[str], start: int) -> None:
        self._close(start)
        self.headers += 1
        self._section, self._step, self._start = Section(self.alphabet), int(header["n"]), start
        self._after_key = bool(_JSON_KEY.search(header.string, header.start("gap"), header.start("n")))

    def _body(self, line: str) -> None:
        if self._section is None:
            return
        if self._after_key:
            rest = line.lstrip(" \t\"',")
            if rest.startswith("}"):  # the key came last in its object, so what follows is another step's
                self._section = None
                return
            self._after_key = not rest
        self._section.take(line)

    def _close(self, end: int) -> None:
        if self._section is not None:
            self._section.end(broken_off=end == len(self.text) and not self.text[-1].isspace())
            if self._section.stated:
                self._state(self._step, self._section.queue, (self._start, end))
        self._section = None

    def _state(self, step: int, queue: Word | None, span: tuple[int, int]) -> None:
        start, end = span
        while self.text[end - 1].isspace():
            end -= 1
        self.statements[step] = Statement(queue, (start, end))

    def _row(self, start: int, line: str, lowered: str) -> bool:
        """Takes a line that belongs to a table of steps."""
        if self._table is not None:
            if (row := self._table.row(line)) is not None:
                step, state = row
                if state and (number := _INTEGER.search(step)):
                    self._state(int(number[0]), read_cell(state, self.alphabet), (start, start + len(line)))
                return True
            self._table = None
        if _TABLE_SIGN.isdisjoint(line) or not any(word in lowered for word in _TABLE_WORDS):
            return False
        self._table = Table.headed(line)
        if self._table is not None:
            self._close(start)
            self.headers += 1
        return self._table is not None


def _opens(line: str, at: int) -> bool:
    """Whether a line that begins with a step's number, which ends at `at`, is that step's header and no remark about it."""
    return not _RANGE.match(line, at) and (bool(_AFTER.match(line, at)) or "[" in line[at:])


def _read_compact(text: str, alphabet: Alphabet) -> dict[int, Statement]:
    """The compact form: the i-th bracket is the state of step i, and its section begins where the last one ended."""
    statements: dict[int, Statement] = {}
    start = len(text) - len(text.lstrip())
    for i, group in enumerate(_GROUP.finditer(text)):
        statements[i] = Statement(alphabet.read(_without_places(group[1], alphabet)) if group[2] else None, (start, group.end()))
        start = group.end()
    return statements


def _without_places(state: str, alphabet: Alphabet) -> str:
    """A state of the placed style without its places; as it is where they do not count up symbol by symbol: `A²B` may hold a power."""
    *pieces, rest = _PLACE.split(state)
    symbols, places = pieces[::2], pieces[1::2]
    if rest or not all(symbols) or not alphabet.chars.isdisjoint(SUPERSCRIPTS) or max(map(len, places), default=0) > 9:
        return state
    numbers = [int(place.translate(_LOWERED)) for place in places]
    return " ".join(symbols) if all(b == (a + 1) % PLACES for a, b in pairwise(numbers)) else state


def _read_numbered(text: str, alphabet: Alphabet) -> dict[int, Statement]:
    """Lines such as `3. [A B C]`."""
    statements: dict[int, Statement] = {}
    for item in _NUMBERED.finditer(text):
        state = item[2].rstrip()
        statements[int(item[1])] = Statement(read_cell(state, alphabet), (item.start(1), item.start(2) + len(state)))
    return statements
