"""vLLM in this process and behind `vllm serve`, on the CPU: the same greedy replies as transformers, from the same token ids."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed: make setup-vllm-cpu")

from envs.dataset import draw, make_params
from envs.environment import Setting
from envs.problem import Problem
from eval.backends.load import load_policy
from eval.backends.options import Options
from eval.backends.sampling import Sampling
from eval.backends.vllm_backend import _allowed_rank, _check_in_force
from eval.compare import compare_runs
from eval.records import read_manifest, read_records
from eval.report import read_runs
from eval.runs import Evaluation, evaluate
from tmtrain.tiny import tiny_model, tiny_tokenizer

pytestmark = pytest.mark.slow  # the quick ones as well: vLLM is installed for the slow tests

SAMPLING = Sampling(max_tokens=24)
#: The `vllm` command asks for the version of a package of that name, which the CPU build does not have.
VLLM_COMMAND = """
import importlib.metadata as metadata
found = metadata.version
metadata.version = lambda name: found("vllm-cpu") + "+cpu" if name == "vllm" else found(name)
from vllm.entrypoints.cli.main import main
main()
"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model with a head of its own (tied to the embeddings, a random model repeats its last token), and an adapter on it."""
    import torch
    from peft import LoraConfig, get_peft_model

    root = tmp_path_factory.mktemp("models")
    model: Any = tiny_model(0)
    model.config.tie_word_embeddings = False
    head = torch.randn(model.lm_head.weight.shape, generator=torch.Generator().manual_seed(0))
    model.lm_head.weight = torch.nn.Parameter(head)
    model.save_pretrained(root / "base")
    tiny_tokenizer().save_pretrained(root / "base")
    model.name_or_path = str(root / "base")
    get_peft_model(model, LoraConfig(r=8, target_modules=["q_proj", "v_proj"], init_lora_weights=False)).save_pretrained(root / "lora")
    return root


def problems() -> list[Problem]:
    def some(env: str, count: int, **knobs: Any) -> list[Problem]:
        return list(itertools.islice(draw(env, make_params(env, knobs), seed=1, split="test", unique=True), count))

    return [*some("tag", 6, max_steps=3), *some("listworld", 4, pops=2)]


def play(path: Path, model: str, **options: Any) -> Path:
    options = {"backend": "vllm", "context": 1024, **options}
    evaluate(load_policy(model, SAMPLING, Options(**options)), Evaluation(problems(), "t", Setting("compact")), path, progress=False)
    return path


def same(a: Path, b: Path) -> bool:
    found = compare_runs(*read_runs([a, b]))
    return found.pairs == found.same_text == len(problems()) and found.verdicts_differ == ()


def first_replies(path: Path) -> dict[str, str]:
    return {r.key: r.replies[0] for r in read_records(path)}


def test_the_engine_replies_as_transformers_does(folders: Path, tmp_path: Path) -> None:
    """Single-turn and multi-turn; the contexts of later turns are the very tokens of the earlier ones."""
    ours = play(tmp_path / "vllm", str(folders / "base"))
    assert same(ours, play(tmp_path / "transformers", str(folders / "base"), backend="transformers"))
    policy = read_manifest(ours)["policy"]
    assert (policy["context_length"], policy["dtype"], policy["prefix_caching"]) == (1024, "torch.float32", True)
    assert len(set(first_replies(ours).values())) > 3, "replies that are all alike would compare nothing"
    assert any(len(r.replies) > 1 for r in read_records(ours))


def test_adapters_are_served_and_samples_depend_on_the_seed_alone(folders: Path, tmp_path: Path) -> None:
    lora = play(tmp_path / "vllm", str(folders / "lora"))
    assert same(lora, play(tmp_path / "transformers", str(folders / "lora"), backend="transformers"))
    assert not same(lora, play(tmp_path / "base", str(folders / "base"), backend="transformers"))

    policy = load_policy(str(folders / "lora"), Sampling(max_tokens=24, temperature=1.0), Options(backend="vllm", context=1024))

    async def sampled() -> tuple[list[str], list[str], list[str]]:
        async def one(name: str) -> str:
            return (await policy.session(None, name).reply([{"role": "user", "content": "abc"}])).text  # type: ignore[arg-type]

        names = [str(i) for i in range(6)]
        together = await asyncio.gather(*map(one, names))
        apart = [await one(n) for n in reversed(names)][::-1]
        others = await asyncio.gather(*(one(n + "x") for n in names))
        await policy.close()
        return together, apart, others

    together, apart, others = asyncio.run(sampled())
    assert together == apart and together != others and len(set(together)) > 1


def test_a_served_model_replies_as_the_engine_does(folders: Path, tmp_path: Path) -> None:
    """With a generation config beside it that asks for much: the requests say everything, so nothing of it is in force."""
    import json
    import shutil

    model = tmp_path / "model"
    shutil.copytree(folders / "base", model)
    config = json.loads((model / "generation_config.json").read_text())
    wanted = {"do_sample": True, "temperature": 1.5, "repetition_penalty": 3.0, "top_k": 3}
    (model / "generation_config.json").write_text(json.dumps({**config, **wanted}))
    with serve(model) as url:
        served = play(tmp_path / "served", "tiny", backend="openai", base_url=url, context=1024)
    here = play(tmp_path / "transformers", str(folders / "base"), backend="transformers")
    # Later turns may differ: a server is sent text, and the special tokens that a random model writes are none.
    assert first_replies(served) == first_replies(here)
    policy = read_manifest(served)["policy"]
    assert (policy["server"], policy["context_length"], policy["root"]) == ("vllm", 1024, str(model))


@contextmanager
def serve(model: Path) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-c", VLLM_COMMAND, "serve", str(model), "--served-model-name", "tiny", "--port", str(port)]
    environment = {**os.environ, "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1"}
    log = model.parent / "serve.log"
    with log.open("w") as out:
        options = ["--host", "127.0.0.1", "--max-model-len", "1024", "--dtype", "float32", "--enforce-eager"]
        server = subprocess.Popen([*command, *options], stdout=out, stderr=out, env=environment, start_new_session=True)
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1).close()
                break
            except OSError:
                assert server.poll() is None, log.read_text()[-3000:]
                time.sleep(1)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGTERM)
            try:
                server.wait(20)
            finally:
                os.killpg(server.pid, signal.SIGKILL)


def engine(length: int, rope: dict[str, Any] | None = None) -> Any:
    return SimpleNamespace(max_model_len=length, hf_config=SimpleNamespace(rope_parameters=rope))


def test_what_the_engine_does_not_do_is_refused() -> None:
    model = SimpleNamespace(max_position_embeddings=1000)
    yarn = {"rope_type": "yarn"}
    _check_in_force(engine(500), model, Options(context=500), "m")
    _check_in_force(engine(4000, yarn), model, Options(yarn=4.0), "m")
    for config, options in [
        (engine(400), Options(context=500)),
        (engine(4000, {"rope_type": "default"}), Options(yarn=4.0)),
        (engine(1000, yarn), Options(yarn=4.0)),
    ]:
        with pytest.raises(ValueError, match="was asked for"):
            _check_in_force(config, model, options, "m")
    qwen = SimpleNamespace(model_type="qwen3", max_position_embeddings=40_960)
    _check_in_force(engine(131_072, yarn), qwen, Options(yarn=4.0), "m")


def test_adapter_ranks() -> None:
    assert [_allowed_rank(r) for r in (1, 4, 8, 17, 64)] == [1, 8, 8, 32, 64]
    with pytest.raises(ValueError, match="rank 1000"):
        _allowed_rank(1000)
