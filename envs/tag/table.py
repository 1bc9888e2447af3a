"""Tables of steps in replies: Markdown's, LaTeX's and those made with tabs."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SEPARATORS = {"|": re.compile(r"(?<!\\)\|"), "&": re.compile(r"(?<!\\)&"), "\t": re.compile(r"\t")}
_STEP = re.compile(r"#|no|n|i|t|steps?\b\D*")
_QUEUE = re.compile(r"queue|state|tape|^after$|^result$")
_NOT_A_QUEUE = re.compile(r"length|size|count|head|symbol|before|previous|old|prior|number|rule|transition")
_STATEMENT = re.compile(r"[\[:]")  # no head: `Queue State: [& #]` has separators only because they are symbols
_RULER = re.compile(r"\s*(?:\\\w+\s*)+$")


@dataclass(frozen=True, slots=True)
class Table:
    """Where a table's rows hold the step's number and its state."""

    separator: str
    step: int
    state: int

    @classmethod
    def headed(cls, line: str) -> Table | None:
        """The table whose head this line is: it names a column of steps and one of queues, the last of which counts."""
        if _STATEMENT.search(line.partition("\\\\")[0]):
            return None
        for separator in _SEPARATORS:
            if separator not in line:
                continue
            names = [" ".join(re.sub(r"\\[a-z]+|[^\w# ]|_", " ", name).split()) for name in _cells(line.lower(), separator)]
            steps = [i for i, name in enumerate(names) if _STEP.fullmatch(name)]
            states = [i for i, name in enumerate(names) if _QUEUE.search(name) and not _NOT_A_QUEUE.search(name)]
            if steps and states:
                return cls(separator, steps[0], states[-1])
        return None

    def row(self, line: str) -> tuple[str, str] | None:
        """The cells of the step and of its state, both empty in a LaTeX ruler; None where the line is no row of this table."""
        cells = _cells(line, self.separator)
        if len(cells) > max(self.step, self.state):
            return cells[self.step], cells[self.state]
        return ("", "") if _RULER.match(line) else None


def _cells(line: str, separator: str) -> list[str]:
    cells = [cell.strip() for cell in _SEPARATORS[separator].split(line)]
    if len(cells) > 1 and not cells[0]:
        del cells[0]
    cells[-1] = cells[-1].partition("\\\\")[0].strip()
    return cells
