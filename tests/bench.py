"""Costs against size, and against named peers, in one run: `make bench`.

Ratios within one run are what to look at; absolute figures depend on the machine and what else it does. TextArena and gymnasium play
their own FrozenLake, the game nearest to GridWorld, each through its own text.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from itertools import islice

from envs.dataset import draw, make_params
from envs.environment import Setting
from envs.registry import load_env
from envs.suites import load_suite
from envs.tag.system import TagSystem, simulate
from envs.tag.verify import verify_reply


def seconds(work: Callable[[], object], least: float = 0.3) -> float:
    """The best time of one call, over repetitions that take `least` seconds in all."""
    best, spent = float("inf"), 0.0
    while spent < least:
        start = time.perf_counter()
        work()
        best, spent = min(best, time.perf_counter() - start), spent + time.perf_counter() - start
    return best


def row(name: str, value: str, note: str = "") -> None:
    print(f"{name:58}{value:>18}  {note}")


def long_problem(steps: int) -> TagSystem:
    """A system that grows by one symbol a step."""
    rules = {"A": tuple("BAC"), "B": tuple("CBA"), "C": tuple("ACB")}
    return TagSystem(2, tuple("ABC"), rules, tuple("ABCA"), steps)


def bracket_only_score(reply: str, states: list[str]) -> list[bool]:
    """The published scorer's method on well-formed replies: split at headers, first bracket of each part."""
    parts = re.split(r"### step (\d+):", reply)
    stated = {
        int(n): (m.group(1).replace(" ", "") if (m := re.search(r"Queue State: \[(.*?)\]", body)) else None)
        for n, body in zip(parts[1::2], parts[2::2], strict=True)
    }
    return [stated.get(i) == state for i, state in enumerate(states)]


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


WORLDS = {
    "listworld": {"pops": 12},
    "treeworld": {"nodes": 30},
    "gridworld": {"size": 8, "min_distance": 8},
    "tagworld": {"max_steps": 20},
}


def main() -> None:
    row("what", "figure", "against")
    lake, arena = gymnasium_steps_a_second(), textarena_steps_a_second()
    row("gymnasium FrozenLake, text rendering", f"{lake:,.0f} steps/s")
    row("TextArena FrozenLake", f"{arena:,.0f} steps/s")
    for name, knobs in WORLDS.items():
        for oracles in ("none", "plan+state", "state+history"):
            own = world_steps_a_second(name, knobs, oracles)
            label = f"{name} ({', '.join(f'{k}={v}' for k, v in knobs.items())}), oracles {oracles}"
            row(label, f"{own:,.0f} steps/s", f"{own / arena:.1f} times TextArena, {own / lake:.2f} times gymnasium")

    env = load_env("tag")

    count = 300
    cost = seconds(lambda: list(islice(draw("tag", make_params("tag", {}), seed=0, split="bench"), count)))
    row("generate, checked and hashed", f"{count / cost:,.0f} problems/s")

    def bare_generation() -> None:
        rng = random.Random(0)
        for _ in range(count):
            rules = {s: "".join(rng.choices("ABCDE", k=rng.randint(1, 5))) for s in "ABCDE"}
            queue = "".join(rng.choices("ABCDE", k=rng.randint(2, 9)))
            states = [queue]
            while len(queue) >= 2 and len(states) < 31:
                queue = queue[2:] + rules[queue[0]]
                states.append(queue)

    peer = seconds(bare_generation)
    row("  the published method: strings, no hash", f"{count / peer:,.0f} problems/s", f"ours takes {cost / peer:.1f} times as long")

    base = None
    for steps in (1_000, 4_000, 16_000, 64_000):
        cost = seconds(lambda s=steps: simulate(long_problem(s))) / steps
        base = base or cost
        row(f"simulate {steps:,} steps", f"{1 / cost:,.0f} steps/s", f"cost a step {cost / base:.2f} of that at 1,000")

    problems = load_suite("tmbench-v1").problems()
    systems = [TagSystem.from_payload(p.payload) for p in problems]
    traces = [simulate(s) for s in systems]
    replies = []
    for p in problems:
        episode = env.start(p, Setting())
        replies.append(episode.expert())
    cost = seconds(lambda: [verify_reply(s, t, r) for s, t, r in zip(systems, traces, replies, strict=True)])
    row("read and check the suite's right replies", f"{100 / cost:,.0f} replies/s", f"{sum(map(len, replies)) / cost / 1e6:.1f} MB/s")
    truth = [["".join(q) for q in t.states()] for t in traces]
    peer = seconds(lambda: [bracket_only_score(r, t) for r, t in zip(replies, truth, strict=True)])
    row("  the published method on the same", f"{100 / peer:,.0f} replies/s", f"ours takes {cost / peer:.1f} times as long")

    base = None
    for states in (250, 1_000, 4_000):
        reply = "\n".join(f"### step {i}:\n- Queue State: {' '.join('ABCDE'[(i + j) % 5] for j in range(16))}" for i in range(states))
        cost = seconds(lambda r=reply: verify_reply(systems[0], traces[0], r)) / len(reply)
        base = base or cost
        row(
            f"read {states:,} unbracketed states ({len(reply) / 1e3:,.0f} kB)",
            f"{cost * len(reply) * 1e3:,.1f} ms",
            f"cost a character {cost / base:.2f} of that at 250",
        )


if __name__ == "__main__":
    main()
