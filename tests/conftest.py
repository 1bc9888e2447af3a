"""What all tests share: the published data where it is at hand, and no network."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("HF_HUB_OFFLINE", "1")

# A busy machine must not fail a test: what may cost how much is measured by `make bench`.
settings.register_profile("tmtrain", deadline=None)
settings.load_profile("tmtrain")

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the published problems and stored answers, which are not part of the project."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("the published data is not at hand (../shared)")
    return folder
