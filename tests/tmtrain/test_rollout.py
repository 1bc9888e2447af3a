"""Multi-turn rollouts: token sequences, masks and rewards of episodes played on a scripted generation call."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest

pytest.importorskip("torch")

from hypothesis import given, settings
from hypothesis import strategies as st

from envs.dataset import draw, make_params
from envs.environment import Setting
from envs.problem import Problem
from envs.registry import load_env
from envs.verdict import Ending, Kind, Verdict
from eval.backends.chat import Chat
from tmtrain.rollout import Turn, WorldRollouts, join
from tmtrain.tiny import tiny_tokenizer

TOKENIZER = tiny_tokenizer()
END = TOKENIZER.eos_token_id
CHAT = Chat(TOKENIZER, name="tiny")
COMPACT = Setting("compact")


def problems(count: int, env: str = "listworld", **knobs: Any) -> list[Problem]:
    return list(islice(draw(env, make_params(env, knobs), seed=1, split="test", unique=True), count))


def rollouts(setting: Setting = COMPACT, room: int = 400, turn_tokens: int = 24) -> WorldRollouts:
    return WorldRollouts(CHAT, [END], setting, room=room, turn_tokens=turn_tokens)


class Scripted:
    """Answers contexts by `reply(last user message)`; counts its calls."""

    def __init__(self, reply: Callable[[str], str], *, ends: bool = True) -> None:
        self._reply, self._ends = reply, ends
        self.calls: list[int] = []

    def __call__(self, contexts: list[list[int]]) -> tuple[list[list[int]], None]:
        self.calls.append(len(contexts))
        texts = [TOKENIZER.decode(c, skip_special_tokens=False) for c in contexts]
        said = [self._reply(t.split("<|user|>")[-1].split("<|end|>")[0]) for t in texts]
        return [TOKENIZER(s)["input_ids"] + [END] * self._ends for s in said], None


def alone(count: int) -> int:
    return count


def play(policy: Callable[[str], str], chosen: list[Problem], setting: Setting = COMPACT, **options: Any) -> tuple[list, Scripted]:
    generate = Scripted(policy)
    return rollouts(setting, **options).play([json.dumps(p.to_json()) for p in chosen], generate, alone), generate


def test_an_experts_episode_is_one_sequence_with_its_own_words_marked() -> None:
    """The expert is asked through the plan and state oracles, which say what to do; here by replaying its own episode."""
    (problem,) = problems(1, pops=2)
    episode = load_env("listworld").start(problem, COMPACT)
    replies = []
    while not episode.over:
        replies.append(episode.expert())
        episode.reply(replies[-1])
    script = iter(replies)
    (rollout,), _ = play(lambda said: next(script), [problem])
    assert rollout.verdict.success and rollout.verdict == episode.verdict()
    assert TOKENIZER.decode([*rollout.prompt, *rollout.completion], skip_special_tokens=False) == TOKENIZER.apply_chat_template(
        [*episode.messages], tokenize=False
    )
    marked = TOKENIZER.decode([t for t, m in zip(rollout.completion, rollout.model, strict=True) if m], skip_special_tokens=False)
    assert marked == "".join(f"{r}<|end|>" for r in replies)
    steps = rollout.credited()
    assert [s.reward for s in steps] == [1.0] * len(replies)
    assert [TOKENIZER.decode(rollout.completion[s.start : s.end]) for s in steps] == [f"{r}<|end|>" for r in replies]


@settings(max_examples=40)
@given(
    replies=st.lists(st.sampled_from(["done()", "pop(0)", "pop(3)", "pop(99)", "hm", ""]), min_size=1, max_size=8), count=st.integers(1, 5)
)
def test_every_rollout_is_whole_whatever_was_said(replies: list[str], count: int) -> None:
    import itertools

    script = itertools.cycle(replies)
    found, _ = play(lambda said: next(script), problems(count, pops=3))
    for rollout in found:
        assert len(rollout.completion) == len(rollout.model) and rollout.model[-1] == 1
        assert sum(rollout.model) == sum(end - start for start, end in rollout.turns)
        assert all(rollout.model[i] for start, end in rollout.turns for i in range(start, end))
        assert len(rollout.turns) == len(rollout.verdict.steps)
        # Where the goal is out of reach nothing is right, so nothing there is judged.
        assert [s.index for s in rollout.credited()] == [s.index for s in rollout.verdict.steps if s.kind is not Kind.DEAD]


def test_episodes_of_unequal_length_are_played_together_without_waiting_for_the_longest() -> None:
    """Three episodes that end at once and one that goes on: the later calls hold that one alone."""
    chosen = problems(4, pops=3)
    patient = load_env("listworld").start(chosen[0], COMPACT).messages[0]["content"]
    found, generate = play(lambda said: "pop(99)" if said in (patient, "!") else "done()", chosen)
    assert generate.calls[0] == 4 and set(generate.calls[1:]) == {1} and len(generate.calls) == len(found[0].turns) > 1


def test_a_reply_without_an_end_is_closed_by_the_environment() -> None:
    generate = Scripted(lambda said: "pop(99)", ends=False)
    (rollout,) = rollouts().play([json.dumps(problems(1)[0].to_json())], generate, alone)
    start, end = rollout.turns[0]
    assert rollout.completion[end] == END and rollout.model[end] == 0 and END not in rollout.completion[start:end]


def test_the_token_budget_ends_an_episode_and_is_counted() -> None:
    (rollout,), _ = play(lambda said: "pop(99)", problems(1, pops=6), room=20)
    assert rollout.verdict.ending is Ending.OVERLONG_PROMPT and len(rollout.completion) <= 20 and not rollout.verdict.success


@pytest.mark.parametrize("oracles", ["plan", "state", "plan+state"])
def test_oracles_speak_in_training_too(oracles: str) -> None:
    setting = Setting.parse(oracles, "compact")
    (rollout,), _ = play(lambda said: "pop(99)", problems(1), setting)
    text = TOKENIZER.decode(rollout.prompt)
    assert ("P:" in text) == setting.plan and ("S:" in text) == setting.state


def test_the_history_oracle_is_refused() -> None:
    with pytest.raises(ValueError, match="history oracle rewrites"):
        rollouts(Setting.parse("state+history", "compact"))


@pytest.mark.parametrize("world", ["listworld", "treeworld", "gridworld", "tagworld"])
def test_every_world_is_rolled_out(world: str) -> None:
    found, _ = play(lambda said: "done()", problems(3, world))
    assert all(r.turns and len(r.credited()) == len(r.verdict.due) for r in found)


def test_processes_with_unequal_episodes_make_the_same_number_of_calls() -> None:
    """Two threads stand for two processes; the gathering of counts is a barrier, as collectives are."""
    chosen = problems(3, pops=3)
    barrier, lock = threading.Barrier(2, timeout=20), threading.Lock()
    counts = [0, 0]
    generators = [Scripted(lambda said: "done()"), Scripted(lambda said: "pop(99)")]

    def everywhere(rank: int) -> Callable[[int], int]:
        def gather(count: int) -> int:
            with lock:
                counts[rank] = count
            barrier.wait()
            total = sum(counts)
            barrier.wait()
            return total

        return gather

    results: dict[int, list] = {}

    def process(rank: int) -> None:
        texts = [json.dumps(p.to_json()) for p in chosen]
        results[rank] = rollouts().play(texts, generators[rank], everywhere(rank))

    threads = [threading.Thread(target=process, args=(rank,)) for rank in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(generators[0].calls) == len(generators[1].calls) > 3
    assert generators[0].calls == [3] + [1] * (len(generators[0].calls) - 1), "after its own episodes, calls on a dummy"
    assert len(results[0]) == len(results[1]) == 3 and all(len(r.turns) == 1 for r in results[0])


def test_another_terminator_than_the_templates_is_not_trained_on() -> None:
    verdict = Verdict((), False, Ending.WRONG)
    turns = [Turn([1, 2], [5, 6, 99], [0.1, 0.2, 0.3]), Turn([1, 2, 5, 6, END, 7], [8, END], [0.4, 0.5])]
    joined = join(turns, [END, 99], verdict)
    assert joined.completion == [5, 6, END, 7, 8, END] and joined.model == [1, 1, 0, 0, 1, 1]
    assert joined.logprobs == [0.1, 0.2, 0.0, 0.0, 0.4, 0.5] and joined.turns == [(0, 2), (4, 6)]


def test_a_context_that_was_rendered_anew_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="rendered anew"):
        join([Turn([1, 2], [5, END], None), Turn([1, 2, 55, END, 7], [8], None)], [END], Verdict((), False, Ending.WRONG))
