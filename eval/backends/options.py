"""How a model is run, as the command line says it, and what all loaders share."""

from __future__ import annotations

from dataclasses import dataclass, fields

from eval.backends.chat import Chat
from eval.backends.folder import Model
from eval.backends.pretrained import load_tokenizer

BACKENDS = ("auto", "vllm", "openai", "transformers")
#: The backends that heed an option, of those that not all heed.
_HEEDED = {
    "yarn": ("vllm", "transformers"),
    "batch_size": ("transformers",),
    "tensor_parallel": ("vllm",),
    "gpu_memory": ("vllm",),
    "retries": ("openai",),
    "timeout": ("openai",),
    "trust_remote_code": ("vllm", "transformers"),
}


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
        gpu_memory: Share of each GPU's memory that vLLM takes, 0 to 1; None is vLLM's own default.
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
    gpu_memory: float | None = None
    retries: int = 8
    timeout: float = 600.0
    trust_remote_code: bool = False

    def __post_init__(self) -> None:
        if self.backend not in BACKENDS:
            raise ValueError(f"unknown backend {self.backend!r}: choose one of {', '.join(BACKENDS)}")
        if (self.backend == "openai") != (self.base_url is not None) and self.backend != "auto":
            raise ValueError("the openai backend and --base-url go together: give both or neither")
        if self.gpu_memory is not None and not 0 < self.gpu_memory <= 1:
            raise ValueError(f"gpu_memory is a share of the GPU's memory, above 0 and at most 1, not {self.gpu_memory}")


def check_heeded(options: Options, backend: str) -> None:
    """Raises ValueError for an option that was asked for and that a backend, one of BACKENDS beside `auto`, would not heed."""
    for option in fields(options):
        heeding = _HEEDED.get(option.name, BACKENDS)
        if backend not in heeding and getattr(options, option.name) != option.default:
            # What vLLM heeds in this process, a server heeds when it is started.
            remedy = "start the server with it, and leave it out here" if backend == "openai" and "vllm" in heeding else "leave it out"
            raise ValueError(f"{option.name} is for {' and '.join(heeding)}, and the backend is {backend}: {remedy}")


def load_chat(model: Model, options: Options) -> Chat:
    """The tokenizer of a model and its template."""
    tokenizer = load_tokenizer(model, trust_remote_code=options.trust_remote_code)
    return Chat(tokenizer, name=model.name, thinking=options.thinking, earlier_thinking=options.earlier_thinking)
