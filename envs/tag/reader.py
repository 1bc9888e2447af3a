"""Reading a reply: which queue it states for which step, and where. Linear in the reply's length, whatever it holds.

A reply is cut into sections at step headers (`### step 3:`, `**Step 3**`, `Step 3 - …`, JSON's `"step": 3`, …). The last section that
states a step wins for that step. Within a section a labelled statement (`Queue State: …`, `New queue = …`) counts before an unlabelled
bracket, and that before a bare line of symbols. Table rows, a step quoted with its state inside a line (`… as in step 3: [A B]`) and, in
replies without any header, the compact form and numbered lines of brackets are read as well.

Two different answers are no answer: `[A B] or [A C]`, or the same label twice with different states, is unreadable, unless words such
as "wait" or "correction" between them say which one is meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import InitVar, dataclass, field
from itertools import pairwise

from envs.tag.symbols import Alphabet
from envs.tag.system import Word
from envs.thinking import blank_thinking


@dataclass(frozen=True, slots=True)
class Statement:
    """What a reply says of one step: the queue, or None where it cannot be read; and the characters of the whole section."""

    queue: Word | None
    span: tuple[int, int]


def read_reply(text: str, alphabet: Alphabet) -> dict[int, Statement]:
    """The statement that counts for each step that the reply states."""
    text = alphabet.normalised(blank_thinking(text))
    sections = _Sections(text, alphabet)
    if not sections.headers:
        if _COMPACT.match(text):
            return _read_compact(text, alphabet)
        return _read_numbered(text, alphabet)
    return sections.statements


# Headers ------------------------------------------------------------------------------------------------------------------------

# Markup that may stand before the word "step" at the beginning of a line. Possessive: there is only one way to match it.
_MARKUP = r"(?:[\s#>*_~`+\-•●◦▪■►▶→⇒⇨✅|\"'({\[$=:.,;/]|\\[a-zA-Z]+|\\[^a-zA-Z\s]|</?[a-zA-Z][a-zA-Z0-9]{0,9}\s?/?>|\d{1,4}[.)])*+"
_NUMBER = r"steps?(?P<gap>[\s\"'_#№*:=`~}\-({$.]{0,8})(?:(?:no|number|index)\b[\s.:#]{0,3})?(?P<n>\d{1,9})(?![\d\w])"
_HEADER = re.compile(_MARKUP + _NUMBER, re.IGNORECASE)
_INLINE = re.compile(r"(?<![a-z])" + _NUMBER, re.IGNORECASE)
_CLOSERS = r"[\s*_`~\"')}\]$]{0,12}"
# A range ("step 1-3", "steps 1 to 3") or a fraction of a step is no header.
_RANGE = re.compile(r"[-–—~]\d|\.\d|\s{0,3}(?:to|through|and|until)\s{1,3}(?:step\s{0,3})?\d", re.IGNORECASE)
_AFTER = re.compile(
    _CLOSERS + r"(?:$|[:.)\-–—|=→⇒>(\[,;/<\\{&⟨]|(?:queue|state|head|init|initial|start|action|final|halt|result|is|gives|becomes)\b)",
    re.IGNORECASE,
)
_BRACKET_NEXT = re.compile(_CLOSERS + r"(?:\([^()\[\]]{0,40}\)\s?)?(?:[:=]|→|⇒|->|=>|is|gives|becomes|was)?[\s*_`$:]{0,6}\[", re.IGNORECASE)
_COLON_NEXT = re.compile(_CLOSERS + r"(?:\([^()\[\]]{0,40}\)[\s*_]{0,3})?[:=|]", re.IGNORECASE)
_COLON_ENDS = re.compile(_CLOSERS + r"[:*_\s]{1,6}$")
_BOUNDARY = frozenset(".;|→⇒>)]}!?,{")
_TITLE = re.compile(r"\s{0,3}#{1,6}\s+(.*)$")
_FENCE = re.compile(r"\s*(?:`{3,}|~{3,})[^`~]*$")

_COMPACT = re.compile(r"\s*\d*\[")
_GROUP = re.compile(r"\[([^\[\]]*)(\]?)")
_NUMBERED = re.compile(r"^[\s*_`>\-+|(]{0,12}(\d{1,9})[*_`]{0,3}[.):|][\s*_`:]{0,8}(?=\[)", re.MULTILINE)

# Statements ---------------------------------------------------------------------------------------------------------------------

_LABEL = re.compile(
    r"(?P<old>(?:previous|prior|old|before|last)[\s\w]{0,12})?\b(?P<name>queue|state|result|tape|string|contents?)"
    r"(?P<more>[ \w\-*_`\"'\\{}()]{0,30}?)"
    r"(?:[:=](?!=)|→|⇒|->|=>|\bis\b|\bbecomes\b)",
    re.IGNORECASE,
)
_NOT_A_QUEUE = re.compile(
    r"length|size|len\b|count|head|symbol|before|previous|\bold\b|prior|number|has\b|rule|transition|after removing|after delet",
    re.IGNORECASE,
)
_ACTION = re.compile(
    r"[\W_]*(?:head|action|append|add|remov|delet|rule|read|writ|pop|drop|check|note|reason|appl|tak|since|because)", re.IGNORECASE
)
_LEADS_TO = re.compile(
    r"(?:→|⇒|->|=>|:|=|gives?|giving|becomes?|yields?|yielding|results? in|resulting in|to get|get)[\s*_`$:]{0,6}$", re.IGNORECASE
)
_HEDGE = re.compile(r"\bor\b|\beither\b|\balternatively\b|\bmaybe\b|\bperhaps\b|\bpossibly\b|\bcould\b|\bmight\b|\?|(?<!<)/", re.IGNORECASE)
_COMMENT = re.compile(
    r"append|remov|delet|\badd|\bfrom\b|since|because|\bwith\b|length|\bwas\b|previous|\bold\b|instead of|rather than|\bnot\b|compared|\(",
    re.IGNORECASE,
)
_CORRECTS = re.compile(
    r"→|⇒|⟶|->|=>|=|becomes?|gives?|yields?|\bthen\b|\bnow\b|\bwait\b|\bno\b|actually|correct|sorry|oops|should be|\bafter\b|result|\bfix|"
    r"i\.e\.|\bso\b|that is",
    re.IGNORECASE,
)
_TAKEN_BACK = re.compile(
    r"\bwait\b|correct|actually|sorry|oops|mistake|error|should (?:be|have)|\bre-?(?:do|check|calculate|compute|write)|\bfix|\bno,|wrong|"
    r"revis|instead",
    re.IGNORECASE,
)
_OUTCOME = re.compile(r"\b(?:new|updated|resulting|result|after|next|final|now)\b", re.IGNORECASE)
_HEDGED_LINE = re.compile(r"[\W_]*(?:or|alternatively|maybe|perhaps|possibly|either)\b", re.IGNORECASE)
_INNERMOST = re.compile(r"\[([^\[\]]*)\]")
_TAIL = re.compile(r"[(<].*$|[.,;:!]?\s*(?:halt(?:ed|s)?|stop(?:ped)?|done)\W*$", re.IGNORECASE | re.DOTALL)

_OUTCOME_LABEL, _LABELLED, _BRACKETED, _BARE, _UNREADABLE = 5, 4, 3, 2, 1


@dataclass(slots=True)
class _Found:
    """The best statement of a section so far: later ones of the same or a higher rank replace it.

    Not so where the same place (the same label, or a bracket alone on its line) states another queue and nothing in between took the
    first one back: that is two answers.
    """

    rank: int = 0
    queue: Word | None = None
    place: str | None = None
    taken_back: bool = False

    def offer(self, rank: int, queue: Word | None, place: str | None = None) -> None:
        if rank < self.rank:
            return
        twice = rank == self.rank and place is not None and place == self.place and queue != self.queue and not self.taken_back
        self.rank, self.queue, self.place, self.taken_back = rank, None if twice else queue, place, False


@dataclass(slots=True)
class _Held:
    """An open bracket whose end has not come yet: its lines so far, and what it would count as."""

    first: InitVar[str]
    rank: int
    place: str | None
    lines: list[str] = field(init=False)

    def __post_init__(self, first: str) -> None:
        self.lines = [first]

    def goes_on(self, line: str) -> bool:
        """Takes the next line unless it begins something new."""
        if "[" in line or _LABEL.search(line):
            return False
        self.lines.append(line)
        return True


class _Sections:
    """Walks the lines once, keeping the open section and the open table."""

    def __init__(self, text: str, alphabet: Alphabet) -> None:
        self.text, self.alphabet = text, alphabet
        self.statements: dict[int, Statement] = {}
        self.headers = 0
        self._step: int | None = None
        self._start = 0
        self._found = _Found()
        self._awaited: tuple[int, str] | None = None  # rank and place of a label whose state stands on the next line
        self._held: _Held | None = None
        self._table: tuple[str, int, int] | None = None  # separator, column of the step, column of the state
        for start, line in _lines(text):
            self._line(start, line)
        self._close(len(text))

    def _line(self, start: int, line: str) -> None:
        if self._row(start, line):
            return
        if (header := _HEADER.match(line)) and _opens(line, header.end()):
            self._open(int(header["n"]), start)
            self._rest(start, line, header.end())
            return
        if self._step is not None and (title := _TITLE.match(line)) and self.alphabet.read(title[1]) is None and "[" not in line:
            self._close(start)
            return
        self._rest(start, line, 0)

    def _rest(self, start: int, line: str, at: int) -> None:
        """The part of a line after its header, which may hold further headers."""
        begin = at
        for inline in _INLINE.finditer(line, at):
            if inline.start() < at or _RANGE.match(line, inline.end()):
                continue
            before = line[begin : inline.start()].rstrip(" *_`\"'(#")
            bounded = bool(before) and before[-1] in _BOUNDARY
            if bounded and (_COLON_NEXT.match(line, inline.end()) or "=" in inline["gap"] or ":" in inline["gap"]):
                pass
            elif quoted := _BRACKET_NEXT.match(line, inline.end()):
                end = line.find("]", quoted.end())
                if end < 0:
                    continue
                queue = self.alphabet.read(line[quoted.end() : end])
                self._body(line[begin : inline.start()])
                self._state(int(inline["n"]), queue, (start + inline.start(), start + end + 1))
                begin = at = end + 1
                continue
            elif not _COLON_ENDS.match(line, inline.end()):
                continue
            self._body(line[begin : inline.start()])
            self._open(int(inline["n"]), start + inline.start())
            begin = at = inline.end()
        self._body(line[begin:])

    def _open(self, step: int, start: int) -> None:
        self._close(start)
        self.headers += 1
        self._step, self._start = step, start

    def _close(self, end: int) -> None:
        if self._held is not None:
            if end == len(self.text) and len(self._held.lines) == 1 and not self.text[-1:].isspace():
                self._held.lines = ["…"]  # the reply breaks off inside the bracket
            self._release(closed=False)
        if self._step is not None and self._found.rank:
            self._state(self._step, self._found.queue, (self._start, end), count=False)
        self._step, self._found, self._awaited, self._held = None, _Found(), None, None

    def _state(self, step: int, queue: Word | None, span: tuple[int, int], *, count: bool = True) -> None:
        self.headers += count
        start, end = span
        while end > start and self.text[end - 1].isspace():
            end -= 1
        self.statements[step] = Statement(queue, (start, end))

    # Tables

    def _row(self, start: int, line: str) -> bool:
        """Takes a line that belongs to a table of steps."""
        if self._table is not None:
            separator, step_column, state_column = self._table
            cells = _cells(line, separator)
            if len(cells) > max(step_column, state_column):
                if (number := re.search(r"\d{1,9}", cells[step_column])) and cells[state_column]:
                    self._state(int(number[0]), self._cell(cells[state_column]), (start, start + len(line)))
                return True
            if line.strip():
                self._table = None
        for separator in ("|", "&", "\t"):
            if line.count(separator) < 1:
                continue
            names = [re.sub(r"[^\w# ]", "", c).strip().lower() for c in _cells(self.alphabet.delatexed(line), separator)]
            steps = [i for i, n in enumerate(names) if n in ("#", "no", "n", "i", "t") or n.startswith("step")]
            states = [i for i, n in enumerate(names) if re.search(r"queue|state", n) and not _NOT_A_QUEUE.search(n)]
            if steps and states and not any(re.search(r"\d", names[i]) for i in steps):
                self._close(start)
                self.headers += 1
                self._table = (separator, steps[0], states[-1])
                return True
        return False

    def _cell(self, cell: str) -> Word | None:
        self._found, kept = _Found(), self._found
        self._offer_rest(self.alphabet.delatexed(cell), _LABELLED, None)
        self._release(closed=False)
        self._found, found = kept, self._found
        return found.queue

    # Bodies

    def _body(self, line: str) -> None:
        """Looks for statements in (a part of) a line of the open section."""
        if self._step is None or not line.strip() or _FENCE.match(line):
            return
        line = self.alphabet.delatexed(line)
        if self._held is not None and self._held.goes_on(line):
            if "]" in line:
                self._release(closed=True)
            return
        self._release(closed=False)
        if _TAKEN_BACK.search(line):
            self._found.taken_back = True
        labels = [m for m in _LABEL.finditer(line) if not m["old"] and not _NOT_A_QUEUE.search(m["name"] + m["more"])]
        if self._awaited is not None and not labels:
            (rank, place), self._awaited = self._awaited, None
            if "[" in line or self.alphabet.read(line) is not None:
                self._offer_rest(line, rank, place)
                return
        for i, label in enumerate(labels):
            rest = line[label.end() : labels[i + 1].start() if i + 1 < len(labels) else len(line)]
            place = line[labels[i - 1].end() if i else 0 : label.end()]
            rank = _OUTCOME_LABEL if _OUTCOME.search(place) else _LABELLED
            place = re.sub(r"\W", "", place).lower()
            if rest.strip(" \t*_`\"'$:|"):
                self._awaited = None
                self._offer_rest(rest, rank, place)
            else:
                self._awaited = (rank, place)
        if not labels:
            self._unlabelled(line)

    def _unlabelled(self, line: str) -> None:
        brackets = list(_INNERMOST.finditer(line))
        if not brackets:
            if "[" in line and not _ACTION.match(line):
                self._held = _Held(line[line.rindex("[") + 1 :], _BRACKETED, None)
            elif bare := self.alphabet.read(line.lstrip(" \t:-–—=*_`>")):
                self._found.offer(_BARE, bare)
            return
        if _HEDGED_LINE.match(line) and self._found.rank >= _BRACKETED:
            if any(self.alphabet.read(b[1]) != self._found.queue for b in brackets):
                self._found.offer(self._found.rank, None)
            return
        if _ACTION.match(line) and not _LEADS_TO.search(line[: brackets[-1].start()]):
            return
        alone = not re.search(r"\w", line[: brackets[0].start()] + line[brackets[0].end() :])
        self._found.offer(_BRACKETED, self._choose(line, brackets, labelled=False), "" if alone else None)

    def _offer_rest(self, rest: str, rank: int, place: str | None) -> None:
        """Offers what stands after a label, or in a table's cell."""
        if brackets := list(_INNERMOST.finditer(rest)):
            self._found.offer(rank, self._choose(rest, brackets, labelled=True), place)
        elif "[" in rest:
            self._held = _Held(rest[rest.rindex("[") + 1 :], rank, place)
        elif (queue := self._bare(rest)) is not None:
            self._found.offer(rank, queue, place)
        else:
            self._found.offer(rank if _HEDGE.search(rest) else _UNREADABLE, None, place)

    def _bare(self, text: str) -> Word | None:
        """A queue written without brackets; it may be followed by a remark in parentheses or a halt mark."""
        queue = self.alphabet.read(text)
        if queue or (queue is not None and re.search(r"empty|∅", text, re.IGNORECASE)):
            return queue
        return self.alphabet.read(_TAIL.sub("", text)) or None

    def _release(self, *, closed: bool) -> None:
        """Ends an open bracket: at its bracket, or, where none came, at the end of its own line."""
        if self._held is not None:
            inside = " ".join(self._held.lines).split("]")[0] if closed else self._held.lines[0]
            self._found.offer(self._held.rank, self.alphabet.read(inside), self._held.place)
            self._held = None

    def _choose(self, line: str, brackets: list[re.Match[str]], *, labelled: bool) -> Word | None:
        """The state among the brackets of one line, or None where it offers several."""
        chosen = self.alphabet.read(brackets[0][1])
        if re.search(r"\beither\b", line[: brackets[0].start()], re.IGNORECASE):
            return None
        hedged = False
        for last, bracket in pairwise(brackets):
            between, queue = line[last.end() : bracket.start()], self.alphabet.read(bracket[1])
            if queue == chosen:
                continue
            if _HEDGE.search(between):
                hedged = True
            elif labelled and _COMMENT.search(between) and not re.search(r"→|⇒|->|=>|\bwait\b", between):
                continue
            elif _CORRECTS.search(between) or (not labelled and re.search(r"\w{2}", between)):
                chosen, hedged = queue, False
            else:
                hedged = True
        return None if hedged else chosen


def _opens(line: str, at: int) -> bool:
    """Whether a line that begins with a step's number, which ends at `at`, is that step's header and no remark about it."""
    return not _RANGE.match(line, at) and (bool(_AFTER.match(line, at)) or "[" in line[at:])


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for match in re.finditer(r"[^\r\n]+", text):
        yield match.start(), match[0]


def _cells(line: str, separator: str) -> list[str]:
    cells = re.split(r"(?<!\\)\|", line) if separator == "|" else re.split(r"(?<!\\)&", line) if separator == "&" else line.split("\t")
    if len(cells) > 1 and not cells[0].strip():
        cells = cells[1:]
    return [c.removesuffix("\\\\").strip() for c in cells]


def _read_compact(text: str, alphabet: Alphabet) -> dict[int, Statement]:
    """The compact form: the i-th bracket is the state of step i, and its section begins where the last one ended."""
    statements: dict[int, Statement] = {}
    start = len(text) - len(text.lstrip())
    for i, group in enumerate(_GROUP.finditer(text)):
        statements[i] = Statement(alphabet.read(group[1]) if group[2] else None, (start, group.end()))
        start = group.end()
    return statements


def _read_numbered(text: str, alphabet: Alphabet) -> dict[int, Statement]:
    """Lines such as `3. [A B C]`."""
    statements: dict[int, Statement] = {}
    for item in _NUMBERED.finditer(text):
        group = _GROUP.match(text, item.end())
        if group and group[2]:
            statements[int(item[1])] = Statement(alphabet.read(group[1]), (item.start(), group.end()))
    return statements
