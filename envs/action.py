"""Actions of the worlds: how they are declared, written, and read from a reply. Replies are parsed, never evaluated."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from envs.thinking import blank_thinking

#: A fenced block that is longer is not read.
LONGEST_BLOCK = 20_000


class Action(NamedTuple):
    """One call; the arguments are whole numbers and text. Equal actions are written alike, whichever way the reply gave the arguments."""

    name: str
    args: tuple[Any, ...] = ()

    def __str__(self) -> str:
        """The canonical writing: positional arguments, text in double quotes, e.g. `get_children("n3")`."""
        return f"{self.name}({', '.join([_quoted(a) if isinstance(a, str) else str(a) for a in self.args])})"


_quoted = json.JSONEncoder(ensure_ascii=False).encode

DONE = Action("done")


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument of an action: its name, its type (`int` or `str`) and what it means."""

    name: str
    kind: type[int] | type[str]
    description: str


@dataclass(frozen=True, slots=True)
class Signature:
    """An action that can be called, with all its arguments; none is optional."""

    name: str
    description: str
    parameters: tuple[Parameter, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}({', '.join(p.name for p in self.parameters)})"

    def to_json(self) -> dict[str, object]:
        """The declaration that prompts show."""
        parameters = {p.name: {"type": _TYPES[p.kind], "description": p.description} for p in self.parameters}
        return {"name": self.name, "description": self.description, "parameters": parameters}


_TYPES = {int: "integer", str: "string"}

_NO_BLOCK = "no fenced block with an action: end the reply with one call in a ```python block"

# What nearly every good reply looks like; the pattern accepts nothing that the full reading below would read otherwise.
_PLAIN = r'(\w+)\((?:(?:(\w+)=)?(?:([0-9]{1,9})|"([^"\\\n`]*+)"))?\)'
_PLAIN_FENCED = re.compile(r"```python\n" + _PLAIN + r"\n```\s*+\Z")
_PLAIN_BARE = re.compile(_PLAIN)

_FENCE = re.compile(r"`{3,}+")
_TAG_LINE = re.compile(r"[ \t]*+[\w+#.-]++[ \t]*+\r?\n")
_TAG = re.compile(r"[\w+#.-]++(?=\s)(?!\s*+\()")
_BLANK = re.compile(r"(?:\s++|#[^\n]*+)*")
_NAME = re.compile(r"([^\W\d]\w*+)[ \t]*+\(")
_BARE = re.compile(r"\s*+[^\W\d]\w*+[ \t]*+\(")
_KEYWORD = re.compile(r"([^\W\d]\w*+)\s*+=(?!=)")
_INTEGER = re.compile(r"([+-]?)([0-9]++)(?![\w.])")
_TEXT = re.compile(r"""\"([^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*)"|'([^'\\\n]*+(?:\\[^\n][^'\\\n]*+)*)'""")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def read_action(text: str, signatures: Mapping[str, Signature]) -> Action | str:
    """Reads the one action of a reply, in time linear in its length.

    The action is the only call in the last fenced block, whatever the block's language tag; a last fence that is not closed counts
    if something follows it. A reply without any fence may be a bare call and nothing else. Thinking blocks are dropped first.
    Arguments are whole numbers or quoted text, positional or by keyword. Comments and a closing semicolon are skipped.

    Args:
        text: The reply; any text is allowed.
        signatures: The actions by name.

    Returns:
        The action, its arguments in the signature's order; or, where the reply does not hold exactly one well-formed call, one line
        that says why.
    """
    if "<" in text:
        text = blank_thinking(text)
    at = text.rfind("```python\n")
    plain = _PLAIN_FENCED.match(text, at) if at >= 0 else _PLAIN_BARE.fullmatch(text)
    if plain is not None and (action := _plain_action(plain, signatures)) is not None:
        return action
    block = _last_block(text)
    if block is None:
        return _NO_BLOCK
    if len(block) > LONGEST_BLOCK:
        return f"the action's block is longer than {LONGEST_BLOCK} characters"
    try:
        return _Reader(block, signatures).call()
    except _Unreadable as error:
        return str(error)


def shown(value: int | str) -> str:
    """An argument as error messages quote it: on one line, cut where it is long."""
    written = json.dumps(value)
    return written if len(written) <= 40 else written[:37] + "..."


def _plain_action(match: re.Match[str], signatures: Mapping[str, Signature]) -> Action | None:
    name, keyword, number, quoted = match.groups()
    signature = signatures.get(name)
    if signature is None:
        return None
    parameters = signature.parameters
    if number is None and quoted is None:
        return Action(name) if not parameters else None
    if len(parameters) != 1 or keyword not in (None, parameters[0].name):
        return None
    if number is not None:
        return Action(name, (int(number),)) if parameters[0].kind is int else None
    return Action(name, (quoted,)) if parameters[0].kind is str else None


def _last_block(text: str) -> str | None:
    """The last fenced block without its language tag; a text without fences that starts like a call, whole; otherwise None.

    A fence with a tag alone on its line opens a block even inside another one, which ends there: its own closing fence was forgotten.
    """
    last: tuple[int, int] | None = None
    opened: int | None = None
    fence: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opened is None or _TAG_LINE.match(text, fence.end()):
            if opened is not None:
                last = (opened, fence.start())
            opened = fence.end()
        else:
            last, opened = (opened, fence.start()), None
    if opened is not None and not text[opened:].isspace() and opened < len(text):
        last = (opened, len(text))
    if fence is None:
        return text if _BARE.match(text) else None
    if last is None:
        return None
    tag = _TAG.match(text, *last)
    return text[tag.end() if tag else last[0] : last[1]]


class _Unreadable(Exception):
    """Says on one line why a block is not one call."""


class _Reader:
    """Reads one call from the start of a block to its end; `at` is how far it has come."""

    def __init__(self, text: str, signatures: Mapping[str, Signature]) -> None:
        self.text, self.signatures, self.at = text, signatures, 0

    def call(self) -> Action:
        self.skip_blank()
        name = _NAME.match(self.text, self.at)
        if name is None:
            raise _Unreadable("no action: the block must hold one call and nothing else")
        self.at = name.end()
        signature = self.signatures.get(name.group(1))
        if signature is None:
            known = ", ".join(map(str, self.signatures.values()))
            raise _Unreadable(f"unknown action {shown(name.group(1))}: the actions are {known}")
        given = self.arguments(signature)
        self.skip_blank()
        if self.peek() == ";":
            self.at += 1
            self.skip_blank()
        if self.at < len(self.text):
            raise _Unreadable("more than one call: the block must hold one call and nothing else")
        return Action(signature.name, tuple(given[p.name] for p in signature.parameters))

    def arguments(self, signature: Signature) -> dict[str, int | str]:
        """The values by name, from after the opening bracket to after the closing one."""
        given: dict[str, int | str] = {}
        kinds = {p.name: p.kind for p in signature.parameters}
        keywords = False
        while True:
            self.skip_blank()
            if self.peek() == ")":
                break
            if keyword := _KEYWORD.match(self.text, self.at):
                name, keywords, self.at = keyword.group(1), True, keyword.end()
                self.skip_blank()
            elif keywords:
                raise _Unreadable(f"{signature}: a positional argument follows a keyword argument")
            elif len(given) == len(kinds):
                raise _Unreadable(f"{signature}: too many arguments")
            else:
                name = signature.parameters[len(given)].name
            if name not in kinds:
                raise _Unreadable(f"{signature}: there is no argument {shown(name)}")
            if name in given:
                raise _Unreadable(f"{signature}: the argument {shown(name)} is given twice")
            given[name] = self.value(signature, name, kinds[name])
            self.skip_blank()
            if self.peek() == ",":
                self.at += 1
            elif self.peek() != ")":
                raise _Unreadable(f"{signature}: the call is not closed after the argument {shown(name)}")
        self.at += 1
        if missing := [p.name for p in signature.parameters if p.name not in given]:
            raise _Unreadable(f"{signature}: the argument {shown(missing[0])} is missing")
        return given

    def value(self, signature: Signature, name: str, kind: type[int] | type[str]) -> int | str:
        found: int | str
        if integer := _INTEGER.match(self.text, self.at):
            sign, digits = integer.groups()
            if len(digits) > 18:
                raise _Unreadable(f"{signature}: the argument {shown(name)} is too large a number")
            found, self.at = int(sign + digits), integer.end()
        elif quoted := _TEXT.match(self.text, self.at):
            found, self.at = _ESCAPE.sub(_unescape, quoted.group(quoted.lastindex or 0)), quoted.end()
        else:
            raise _Unreadable(f"{signature}: the argument {shown(name)} must be {_WRITTEN[kind]}")
        if not isinstance(found, kind):
            raise _Unreadable(f"{signature}: the argument {shown(name)} must be {_WRITTEN[kind]}")
        return found

    def skip_blank(self) -> None:
        match = _BLANK.match(self.text, self.at)
        if match is not None:
            self.at = match.end()

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]


_WRITTEN = {int: "a whole number", str: "text in quotes"}


def _unescape(match: re.Match[str]) -> str:
    code = match.group(1)
    return chr(int(code[1:], 16)) if len(code) == 5 else _ESCAPED.get(code, code)
