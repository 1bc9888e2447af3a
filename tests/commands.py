"""Commands, as a user types them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from tmtrain.cli import main


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> Any:
    """The JSON that a command prints."""
    assert main([*argv, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def check_refused(capsys: pytest.CaptureFixture[str], argv: Sequence[str], message: str) -> None:
    """Bad input gets exit code 2 and one line that says what is wrong."""
    assert main(argv) == 2
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1 and "Traceback" not in err
