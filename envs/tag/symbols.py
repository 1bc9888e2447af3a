"""Reading symbols: from the text that a model wrote for a queue to the queue, or to None where it cannot be told.

What is forgiven is spelling: separators, quotes, markdown, LaTeX, HTML escapes, compatibility forms and look-alikes of letters. What
is not forgiven is meaning: an ellipsis, a repeat count or a stranger among the symbols makes the state unreadable.
A symbol of the alphabet always means itself, even where it would otherwise be markup.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Sequence

from envs.tag.system import Word

# Letters that look the same in most fonts. Each is read as the other only where the alphabet has that other one and not this.
_LOOKALIKES = {
    **dict(zip("АВСЕНІЈКМОРЅТХУ", "ABCEHIJKMOPSTXY", strict=True)),  # Cyrillic capitals
    **dict(zip("асеіјорѕху", "aceijopsxy", strict=True)),  # Cyrillic small letters
    **dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΧΥ", "ABEZHIKMNOPTXY", strict=True)),  # Greek capitals
    **dict(zip("ɑßɣẟɛ", "αβγδε", strict=True)),  # Latin letters shaped like Greek ones
    "Ꭺ": "A", "Ᏼ": "B", "Ꮯ": "C", "Ꭰ": "D", "Ꭼ": "E",  # Cherokee
    "∈": "ε", "є": "ε", "∂": "δ",
    "∗": "*", "−": "-", "‐": "-", "‑": "-", "∣": "|",
}  # fmt: skip
_PUNCTUATION = {"【": "[", "】": "]", "〔": "[", "〕": "]", "⟦": "[", "⟧": "]", "、": ",", "“": '"', "”": '"', "„": '"', "‘": "'", "’": "'"}
_INVISIBLE = dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff\ufe0e\ufe0f\u00a0\u2007\u202f\u200e\u200f", " ")

_GREEK_NAMES = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau upsilon phi chi psi omega".split()
)
_SMALL = "αβγδεζηθικλμνξοπρστυφχψω"
_GREEK = {
    **dict(zip(_GREEK_NAMES, _SMALL, strict=True)),
    **{name.capitalize(): letter.upper() for name, letter in zip(_GREEK_NAMES, _SMALL, strict=True)},
    "varepsilon": "ε",
    "vartheta": "θ",
    "varphi": "φ",
}
_COMMAND = re.compile(r"\\([a-zA-Z]+)")
_SPACING = re.compile(r"\\[ ,;:!~]")
#: LaTeX commands that only set the type, the size or the space of what they hold.
_SETTING = frozenset(
    "text texttt textbf textit textsf textrm textup textnormal mathtt mathrm mathbf mathsf mathit mathbb mathcal mathfrak mathnormal "
    "emph underline operatorname boxed fbox mbox hbox left right big Big bigl bigr Bigl Bigr bigg Bigg quad qquad enspace thinspace "
    "displaystyle verb ensuremath".split()
)
_NAMED = {
    "lbrack": "[", "rbrack": "]", "langle": "[", "rangle": "]", "lbrace": "{", "rbrace": "}", "textdollar": "$", "textbackslash": "\\",
    "to": "→", "rightarrow": "→", "Rightarrow": "→", "implies": "→", "longrightarrow": "→", "ldots": "…", "dots": "…", "cdots": "…",
}  # fmt: skip
_MARK = re.compile(r"<[ /]{0,2}(?:halt|stop|end|eos)[^<>\[\]]{0,40}>|\((?:halt|halted|halts|stop|stopped|end)\)", re.IGNORECASE)
_NOISE = frozenset(" \t\r\n\f\v,;\"'`*_~|{}()<>$\\-–—·⋅⟨⟩«»")
_SAID = r"(?:(?<=\\)(?:emptyset|varnothing|(?:var)?epsilon|lambda)|(?:now )?empty(?: (?:queue|word|string))?|nothing|ε|λ)"
#: ∅, a word for it, or ∅ and then a word. What stands around them is taken as it comes and never given back, so the time is linear. (Only
#: single characters are taken so: taking groups, Python before 3.11.5 goes on at the wrong place.)
_EMPTY = re.compile(rf"[^\w∅]*+(?:∅\W*+{_SAID}?|{_SAID})\W*+", re.IGNORECASE)
_UNDERSCORE = re.compile(r"(?<!now)_", re.IGNORECASE)


class Alphabet:
    """The symbols of one system, ready for reading."""

    def __init__(self, symbols: Sequence[str]) -> None:
        self.symbols = frozenset(symbols)
        self.chars = frozenset("".join(symbols))
        self._lengths = sorted({len(s) for s in symbols}, reverse=True)

    def normalised(self, text: str) -> str:
        """`text` with compatibility forms, look-alikes and odd brackets and spaces replaced, character by character.

        The length stays, so offsets do.
        """
        if text.isascii():
            return text
        table: dict[int, str] = {}
        for char in set(text):
            if char.isascii() or char in self.chars:
                continue
            if unicodedata.decomposition(char).startswith("<super>"):  # a power is no symbol
                continue
            plain = _INVISIBLE.get(char) or _PUNCTUATION.get(char) or unicodedata.normalize("NFKC", char)
            if len(plain) != 1:
                continue
            if plain not in self.chars:
                other = _LOOKALIKES.get(char, _LOOKALIKES.get(plain, ""))
                if other in self.chars or (other and not other.isalpha()):
                    plain = other
            if plain != char:
                table[ord(char)] = plain
        return text.translate(table)

    def delatexed(self, text: str) -> str:
        """`text` with LaTeX commands replaced by what they show; lengths may change."""
        if "\\" not in text or "\\" in self.chars:
            return text

        def shown(match: re.Match[str]) -> str:
            name = match.group(1)
            if name in _SETTING:
                return " "
            if name in _NAMED:
                return _NAMED[name]
            if (greek := _GREEK.get(name)) is not None and greek in self.symbols:
                return f" {greek} "
            return match.group(0)

        text = _SPACING.sub(" ", text)
        text = text.replace("\\[", " [").replace("\\]", "] ").replace("\\(", " ").replace("\\)", " ")
        return _COMMAND.sub(shown, text)

    def read(self, text: str) -> Word | None:
        """The queue that `text` (without its brackets) states, or None where it states none for certain."""
        plain = tuple(text.split())
        if self.symbols.issuperset(plain):
            return plain
        text = self.delatexed(text)
        if ("<" in text or "(" in text) and self.chars.isdisjoint("<("):
            text = _MARK.sub(" ", text)
        word = self._spelled(text)
        if word is None and "&" in text:
            word = self._spelled(html.unescape(text))
        if word is None and _EMPTY.fullmatch(_UNDERSCORE.sub(" ", text)):
            return ()
        return word

    def _spelled(self, text: str) -> Word | None:
        if ("->" in text or "=>" in text or "<-" in text) and self.chars.isdisjoint("<>"):
            return None  # a rule, or the way from one state to another
        word: list[str] = []
        at, size = 0, len(text)
        while at < size:
            if (symbol := self._symbol_at(text, at)) is not None:
                word.append(symbol)
                at += len(symbol)
            elif text[at] in _NOISE:
                at += 1
            else:
                return None
        return tuple(word)

    def _symbol_at(self, text: str, at: int) -> str | None:
        for length in self._lengths:  # the longest symbol first
            if (piece := text[at : at + length]) in self.symbols:
                return piece
        return None
