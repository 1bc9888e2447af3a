"""Problems, worlds and checking, against the named packages that do the nearest thing.

TextArena and gymnasium play their own FrozenLake, the game nearest to GridWorld, each through its own text. reasoning-gym makes its own
rewriting systems (`ab`), whose final state alone is asked for, and checks Towers of Hanoi, its one task whose steps are all checked. The
published benchmark's scripts are not at hand to be timed: their method is written down here again.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from itertools import islice

from envs.dataset import draw, make_params
from envs.environment import Setting
from envs.registry import load_env
from envs.suites import load_suite
from envs.tag.system import TagSystem, simulate
from envs.tag.verify import verify_reply
from tests.bench.rows import Row, rates, seconds

WORLDS = {
    "listworld": {"pops": 12},
    "treeworld": {"nodes": 30},
    "gridworld": {"size": 8, "min_distance": 8},
    "tagworld": {"max_steps": 20},
}


def rows() -> Iterator[Row]:
    yield from problem_rows()
    yield from checking_rows()
    yield from world_rows()


def problem_rows(count: int = 300) -> Iterator[Row]:
    import reasoning_gym

    env, setting = load_env("tag"), Setting("verbose")

    def generate() -> list[object]:
        return list(islice(draw("tag", make_params("tag", {}), seed=0, split="bench"), count))

    def bare() -> None:
        rng = random.Random(0)
        for _ in range(count):
            rules = {s: "".join(rng.choices("ABCDE", k=rng.randint(1, 5))) for s in "ABCDE"}
            queue = "".join(rng.choices("ABCDE", k=rng.randint(2, 9)))
            states = [queue]
            while len(queue) >= 2 and len(states) < 31:
                queue = queue[2:] + rules[queue[0]]
                states.append(queue)

    def prompts() -> list[object]:
        problems = islice(draw("tag", make_params("tag", {}), seed=0, split="bench"), count)
        return [env.start(p, setting).messages for p in problems]

    whole = seconds(generate)
    yield rates("tag problems, checked and hashed", "problems", count, whole, "published method: strings, no hash", seconds(bare))
    peer = seconds(lambda: list(reasoning_gym.create_dataset("ab", size=count, seed=0)))
    yield rates("tag problems with their prompts", "problems", count, seconds(prompts), "reasoning-gym, ab", peer)


def bracket_only_score(reply: str, states: list[str]) -> list[bool]:
    """The published scorer's method on well-formed replies: split at headers, first bracket of each part."""
    parts = re.split(r"### step (\d+):", reply)
    stated = {
        int(n): (m.group(1).replace(" ", "") if (m := re.search(r"Queue State: \[(.*?)\]", body)) else None)
        for n, body in zip(parts[1::2], parts[2::2], strict=True)
    }
    return [stated.get(i) == state for i, state in enumerate(states)]


def checking_rows() -> Iterator[Row]:
    import reasoning_gym

    env, problems = load_env("tag"), load_suite("tmbench-v1").problems()
    systems = [TagSystem.from_payload(p.payload) for p in problems]
    traces = [simulate(s) for s in systems]
    replies = [env.start(p, Setting()).expert() for p in problems]
    whole = seconds(lambda: [verify_reply(s, t, r) for s, t, r in zip(systems, traces, replies, strict=True)])
    truth = [["".join(q) for q in t.states()] for t in traces]
    peer = seconds(lambda: [bracket_only_score(r, t) for r, t in zip(replies, truth, strict=True)])
    yield rates("tag replies of 30 steps read and checked", "replies", len(replies), whole, "published method", peer)

    towers = reasoning_gym.create_dataset("tower_of_hanoi", size=100, seed=0)
    items = list(towers)
    theirs = sum(len(item["answer"]) for item in items) / seconds(lambda: [towers.score_answer(i["answer"], i) for i in items])
    steps = sum(t.horizon for t in traces)
    yield rates("steps read and checked", "steps", steps, whole, "reasoning-gym, Tower of Hanoi", steps / theirs)


def world_rows() -> Iterator[Row]:
    lake, arena = gymnasium_steps_a_second(), textarena_steps_a_second()
    for name, knobs in WORLDS.items():
        for oracles in ("none", "plan+state", "state+history"):
            own = world_steps_a_second(name, knobs, oracles)
            label = f"{name} ({', '.join(f'{k}={v}' for k, v in knobs.items())}), oracles {oracles}"
            yield rates(label, "turns", own, 1.0, "TextArena, FrozenLake", own / arena)
            if name == "gridworld":
                yield rates(label, "turns", own, 1.0, "gymnasium, FrozenLake", own / lake)


def world_steps_a_second(name: str, knobs: dict[str, int], oracles: str = "none") -> float:
    """Turns of the expert a second through the text protocol: reply written, action read, rules applied, feedback written, verdict made."""
    world, setting = load_env(name), Setting.parse(oracles)
    problems = list(islice(draw(name, make_params(name, knobs), seed=0, split="bench"), 50))

    def play() -> int:
        turns = 0
        for problem in problems:
            episode = world.start(problem, setting)
            while not episode.over:
                episode.reply(episode.expert())
            turns += len(episode.verdict().steps)
        return turns

    turns = play()
    return turns / seconds(play)


def gymnasium_steps_a_second() -> float:
    """FrozenLake with its text rendering; the action is read from a word as an agent would write it."""
    import gymnasium

    env = gymnasium.make("FrozenLake-v1", render_mode="ansi")
    words, rng = {"left": 0, "down": 1, "right": 2, "up": 3}, random.Random(0)
    choices = [rng.choice(list(words)) for _ in range(2000)]

    def play() -> None:
        env.reset(seed=0)
        for word in choices:
            _, _, terminated, truncated, _ = env.step(words[word])
            env.render()
            if terminated or truncated:
                env.reset()

    return len(choices) / seconds(play)


def textarena_steps_a_second() -> float:
    """FrozenLake through TextArena's observation and action text."""
    import textarena

    env, rng = textarena.make("FrozenLake-v0-raw"), random.Random(0)
    choices = [rng.choice(["[up]", "[down]", "[left]", "[right]"]) for _ in range(1000)]

    def play() -> None:
        env.reset(num_players=1, seed=0)
        for word in choices:
            env.get_observation()
            done, _ = env.step(word)
            if done:
                env.close()
                env.reset(num_players=1, seed=0)

    return len(choices) / seconds(play)
