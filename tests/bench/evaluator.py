"""The evaluator on a real 135M model through vLLM on the CPU, against calling the engine directly and against a loop that plays all
episodes turn by turn: `make bench`.

Both sides of each ratio run in turn on one engine, from an empty prefix cache, on the same problems with the same seeds, so they
generate the same tokens.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from itertools import count, islice
from pathlib import Path

from envs.dataset import draw, make_params
from envs.environment import Episode, Setting
from envs.problem import Problem
from envs.registry import load_env
from eval.backends.load import load_policy
from eval.backends.options import Options
from eval.backends.sampling import Sampling
from eval.backends.vllm_backend import VLLMPolicy
from eval.episodes import Task, play_all
from eval.records import RunDirectory
from eval.runs import Evaluation, manifest
from tests.bench.rows import Row
from tmtrain.smollm2 import build

#: Of the single-turn and of the multi-turn ratio: a round takes 16 seconds and six minutes.
ROUNDS = (7, 2)
#: Episodes in the engine at once, on both sides of the multi-turn ratio.
AT_ONCE = 4
#: Of the horizon sweep, with as many problems each, in random order.
POPS, EACH = (1, 2, 4, 8, 16), 4


def single_turn() -> list[Problem]:
    params = make_params("tag", {"max_steps": 4})
    return list(islice(draw("tag", params, seed=0, split="bench", unique=True), 32))


def multi_turn() -> list[Problem]:
    """A sweep over the horizon: between 5 and 24 turns an episode for a model that never finishes."""
    sources = [draw("listworld", make_params("listworld", {"pops": n}), seed=0, split="bench", unique=True) for n in POPS]
    problems = [problem for source in sources for problem in islice(source, EACH)]
    random.Random(0).shuffle(problems)
    return problems


async def tokens_a_second(policy: VLLMPolicy, work: Callable[[], Awaitable[int]]) -> float:
    await policy.engine.reset_prefix_cache()
    started = time.perf_counter()
    tokens = await work()
    return tokens / (time.perf_counter() - started)


async def ours(policy: VLLMPolicy, problems: list[Problem], setting: Setting, at_once: int = 256) -> int:
    """The evaluator's own loop, records written to the disk as always; returns the tokens generated."""
    with tempfile.TemporaryDirectory() as folder:
        run = RunDirectory(Path(folder) / "run", manifest(policy, Evaluation(problems, "bench", setting)))
        await play_all([Task(p) for p in problems], setting, policy, concurrency=at_once, on_record=run.append)
        run.close()
        return sum(n for record in run.finished.values() for n in record.completion_tokens if n is not None)


async def direct(policy: VLLMPolicy, prompts: list[list[int]]) -> int:
    """All prompts put to the engine at once, nothing read."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    params = SamplingParams(
        temperature=0.0, max_tokens=policy.sampling.token_limit, stop_token_ids=policy.stops, output_kind=RequestOutputKind.FINAL_ONLY
    )

    async def one(prompt: list[int], number: int) -> int:
        outputs = policy.engine.generate({"prompt_token_ids": prompt}, params, request_id=f"direct-{number}")
        return [len(output.outputs[0].token_ids) async for output in outputs][-1]

    return sum(await asyncio.gather(*(one(p, next(_NUMBERS)) for p in prompts)))


_NUMBERS = count()


async def lockstep(policy: VLLMPolicy, problems: list[Problem], setting: Setting, at_once: int) -> int:
    """Batches of episodes; within one, every live episode replies, then all go on to the next turn: the loop of many evaluators."""
    return sum([await _lockstep_batch(policy, problems[i : i + at_once], setting) for i in range(0, len(problems), at_once)])


async def _lockstep_batch(policy: VLLMPolicy, problems: list[Problem], setting: Setting) -> int:
    episodes: list[Episode] = [load_env(p.env).start(p, setting) for p in problems]
    sessions = [policy.session(e, f"0/{Task(p).key}") for e, p in zip(episodes, problems, strict=True)]
    tokens = 0
    while live := [i for i, e in enumerate(episodes) if not e.over]:
        replies = await asyncio.gather(*(sessions[i].reply(list(episodes[i].messages)) for i in live))
        for i, reply in zip(live, replies, strict=True):
            episodes[i].reply(reply.text, truncated=reply.truncated)
            tokens += reply.completion_tokens or 0
    return tokens


async def compare(
    what: str, peer: str, policy: VLLMPolicy, one: Callable[[], Awaitable[int]], other: Callable[[], Awaitable[int]], rounds: int
) -> Row:
    pairs = [(await tokens_a_second(policy, one), await tokens_a_second(policy, other)) for _ in range(rounds)]
    ratios = sorted(a / b for a, b in pairs)
    mine, theirs = (f"{statistics.median(rate):,.0f} tokens/s" for rate in zip(*pairs, strict=True))
    return Row(what, mine, peer, theirs, statistics.median(ratios), ratios[0], ratios[-1])


def rows() -> Iterator[Row]:
    model = str(build("runs/smollm2"))
    verbose, compact = Setting("verbose"), Setting("compact")

    async def both() -> list[Row]:
        policy = load_policy(model, Sampling(max_tokens=64), Options(backend="vllm", context=2048))
        assert isinstance(policy, VLLMPolicy)
        problems = single_turn()
        await ours(policy, problems[:4], verbose)  # the engine's first batch is slow
        prompts = [policy.chat.render(load_env(p.env).start(p, verbose).messages) for p in problems]
        single = await compare(
            f"{len(problems)} tag problems through SmolLM2 on vLLM",
            "the bare engine",
            policy,
            lambda: ours(policy, problems, verbose),
            lambda: direct(policy, prompts),
            ROUNDS[0],
        )
        policy.sampling = Sampling(max_tokens=32, temperature=0.7)
        worlds = multi_turn()
        turns = await compare(
            f"{len(worlds)} ListWorld episodes of 1 to 16 pops, {AT_ONCE} at once",
            "lockstep on the same engine",
            policy,
            lambda: ours(policy, worlds, compact, AT_ONCE),
            lambda: lockstep(policy, worlds, compact, AT_ONCE),
            ROUNDS[1],
        )
        await policy.close()
        return [single, turns]

    yield from asyncio.run(both())
