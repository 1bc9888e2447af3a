"""What the tests of training share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The embedded model, untrained, saved with its tokenizer."""
    from tmtrain.tiny import tiny_model, tiny_tokenizer

    folder = tmp_path_factory.mktemp("tiny")
    tiny_model(0).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder
