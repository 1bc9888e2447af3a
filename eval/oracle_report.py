"""The HTML page about an oracle experiment, and its figures as PNG files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eval.effects import SKILLS
from eval.horizons import shown
from eval.oracle_plots import figures
from eval.report import write_page


def write_oracle_report(analysis: Mapping[str, Any], directory: str | Path) -> Path:
    """Writes `oracles.html` and `plots/*.png` into `directory`, from what `eval.oracles.analyse` gave; returns the page's path."""
    return write_page("oracles.html", Path(directory), figures(analysis), analysis=analysis, skills=SKILLS, fit=shown)
