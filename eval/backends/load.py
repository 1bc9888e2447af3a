"""Making a policy of whatever is named on the command line: a folder, a hub id or a server's model."""

from __future__ import annotations

from importlib.util import find_spec

from eval.backends.folder import resolve
from eval.backends.options import Options, check_heeded
from eval.backends.sampling import Sampling
from eval.episodes import Policy


def load_policy(name: str, sampling: Sampling, options: Options | None = None) -> Policy:
    """The policy that runs the model `name`.

    Raises:
        ValueError: In one line, where it cannot be loaded, or would not run as asked.
    """
    options = options or Options()
    backend = chosen_backend(options)
    check_heeded(options, backend)
    if backend == "openai":
        from eval.backends.openai_backend import load_server

        return load_server(name, sampling, options)
    model = resolve(name)
    if backend == "vllm":
        from eval.backends.vllm_backend import load_vllm

        return load_vllm(model, sampling, options)
    from eval.backends.transformers_backend import load_transformers

    return load_transformers(model, sampling, options)


def chosen_backend(options: Options) -> str:
    """The backend that runs a model, `auto` resolved. Raises ValueError where there is none."""
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
