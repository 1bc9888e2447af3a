"""Loading what `folder.resolve` found, from a folder or the hub: tokenizer, configuration and weights, with errors of one line."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

from eval.backends.folder import Model

#: Seconds that the hub has to answer, at each try.
PATIENCE = (5.0, 20.0)


class one_line:
    """Turns what loaders raise into a ValueError of one line that begins with `what`."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, (OSError, ValueError, KeyError, RuntimeError, TypeError, ImportError)):
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise ValueError(f"{self._what}: {lines[0]}") from None


def load_tokenizer(model: Model, *, trust_remote_code: bool = False) -> Any:
    """Its tokenizer. Raises ValueError where it cannot be loaded."""
    from transformers import AutoTokenizer

    _look_for_hub(model.tokenizer)
    with one_line(f"cannot load the tokenizer of {model.name}"):
        return AutoTokenizer.from_pretrained(model.tokenizer, trust_remote_code=trust_remote_code)


def load_config(model: Model, *, trust_remote_code: bool = False) -> Any:
    """The configuration of the whole model, without an adapter. Raises ValueError where it cannot be loaded."""
    from transformers import AutoConfig

    _look_for_hub(model.base)
    with one_line(f"cannot load the configuration of {model.base}"):
        return AutoConfig.from_pretrained(model.base, trust_remote_code=trust_remote_code)


def load_base(model: Model, *, trust_remote_code: bool = False, **how: Any) -> Any:
    """The whole model, without an adapter, from safetensors only; `how` goes to transformers. Raises ValueError where that fails."""
    from transformers import AutoModelForCausalLM

    _look_for_hub(model.base)
    with one_line(f"cannot load the model {model.base}"):
        return AutoModelForCausalLM.from_pretrained(model.base, use_safetensors=True, trust_remote_code=trust_remote_code, **how)


def _look_for_hub(source: str) -> None:
    if not Path(source).is_dir():
        _go_offline_without_hub()


@cache
def _go_offline_without_hub() -> None:
    """Asks whether the hub answers, twice at most, and once a process. Where it does not, its library would try every file six times, with
    a warning each: from then on only its local cache is looked into."""
    from httpx import HTTPError
    from huggingface_hub import constants
    from huggingface_hub.utils import get_session

    if constants.is_offline_mode():
        return
    for seconds in PATIENCE:
        try:
            get_session().head(constants.ENDPOINT, timeout=seconds)
            return
        except HTTPError as error:
            why = error
    os.environ["HF_HUB_OFFLINE"] = "1"  # for processes begun later
    constants.HF_HUB_OFFLINE = True
    print(f"note: {constants.ENDPOINT} does not answer ({why}), so only the local cache is looked into", file=sys.stderr)
