"""Making a policy of whatever is named on the command line: a folder, a hub id or a server's model."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from eval.backends.chat import Chat
from eval.backends.folder import Model, resolve
from eval.backends.sampling import Sampling
from eval.episodes import Policy

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


def load_policy(name: str, sampling: Sampling, options: Options | None = None) -> Policy:
    """The policy that runs the model `name`.

    Raises:
        ValueError: In one line, where it cannot be loaded, or would not run as asked.
    """
    options = options or Options()
    backend = _chosen(options)
    if backend == "openai":
        from eval.backends.openai_backend import load_server

        return load_server(name, sampling, options)
    model = resolve(name)
    if backend == "vllm":
        from eval.backends.vllm_backend import load_vllm

        return load_vllm(model, sampling, options)
    return _load_transformers(model, sampling, options)


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


def _chosen(options: Options) -> str:
    if options.backend != "auto":
        return options.backend
    if options.base_url:
        return "openai"
    if find_spec("torch") is None or find_spec("transformers") is None:
        raise ValueError("evaluating a model needs the train extra: pip install 'tmtrain[train]' (or --base-url for a server)")
    if find_spec("vllm") is not None:
        import torch

        if torch.cuda.is_available():
            return "vllm"
    return "transformers"


def _load_transformers(model: Model, sampling: Sampling, options: Options) -> Policy:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    from eval.backends.tokens import yarn_parameters
    from eval.backends.transformers_backend import TransformersPolicy, check_yarn

    if options.tensor_parallel != 1:
        raise ValueError("tensor_parallel is for vLLM: choose --backend vllm or leave it out")
    chat = load_chat(model, options)
    trust = {"trust_remote_code": options.trust_remote_code}
    with one_line(f"cannot load {model.base!r} as a model"):
        config = AutoConfig.from_pretrained(model.base, **trust)
    if options.yarn is not None:
        for key, value in yarn_parameters(config, options.yarn, model.name).items():
            setattr(config, key, value)
    longest = getattr(config, "max_position_embeddings", None)
    if options.context is not None and longest is not None:
        if options.context > longest:
            raise ValueError(f"{model.name} reads {longest} tokens at most, so a context of {options.context} is not in force: see --yarn")
        config.max_position_embeddings = options.context
    with one_line(f"cannot load {model.base!r} as a model"):
        loaded: Any = AutoModelForCausalLM.from_pretrained(model.base, config=config, use_safetensors=True, dtype="auto", **trust)
    if model.adapter is not None:
        from peft import PeftModel

        with one_line(f"cannot put the adapter {model.adapter} on {model.base}"):
            adapted = PeftModel.from_pretrained(loaded, model.adapter)
        if adapted.active_peft_config.is_prompt_learning:
            raise ValueError(
                f"{model.adapter} is no LoRA adapter but {adapted.active_peft_config.peft_type}: merge it or evaluate it elsewhere"
            )
        loaded = adapted.get_base_model()  # with the adapter in its layers; the wrapper has a generation config of its own
    if options.yarn is not None:
        check_yarn(loaded, model.name)
    loaded.to("cuda" if torch.cuda.is_available() else "cpu")
    return TransformersPolicy(loaded, chat, sampling, source=model, batch_size=options.batch_size)
