"""How a model is run, as the command line says it, and what all loaders share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from eval.backends.chat import Chat
from eval.backends.folder import Model

BACKENDS = ("auto", "vllm", "openai", "transformers")


@dataclass(frozen=True, slots=True)
class Options:
    """How a model is run.

    Attributes:
        backend: One of BACKENDS. `auto` is `openai` where there is a base URL, `vllm` where it is installed and a GPU is there, else
            `transformers`.
        base_url: Address of an OpenAI-compatible server, such as http://localhost:8000/v1.
        thinking: One of `eval.backends.chat.THINKING`.
        earlier_thinking: `keep` or `drop`, see `eval.backends.chat`.
        context: Longest sequence in tokens; None is what the model can.
        yarn: Factor by which YaRN stretches the model's context, or None.
        batch_size: Prompts decoded together by transformers.
        tensor_parallel: GPUs that vLLM splits the model over.
        retries, timeout: For a server: attempts after the first, and seconds each.
        trust_remote_code: Run code that comes with the model.
    """

    backend: str = "auto"
    base_url: str | None = None
    thinking: str = "template"
    earlier_thinking: str = "keep"
    context: int | None = None
    yarn: float | None = None
    batch_size: int = 32
    tensor_parallel: int = 1
    retries: int = 8
    timeout: float = 600.0
    trust_remote_code: bool = False

    def __post_init__(self) -> None:
        if self.backend not in BACKENDS:
            raise ValueError(f"unknown backend {self.backend!r}: choose one of {', '.join(BACKENDS)}")
        if (self.backend == "openai") != (self.base_url is not None) and self.backend != "auto":
            raise ValueError("the openai backend and --base-url go together: give both or neither")


def load_chat(model: Model, options: Options) -> Chat:
    """The tokenizer of a model and its template."""
    from transformers import AutoTokenizer

    with one_line(f"cannot load the tokenizer of {model.name}"):
        tokenizer = AutoTokenizer.from_pretrained(model.tokenizer, trust_remote_code=options.trust_remote_code)
    return Chat(tokenizer, name=model.name, thinking=options.thinking, earlier_thinking=options.earlier_thinking)


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
