"""`make soak`: what users' machines do to a run, many times over at random: about ten minutes.

  python -m tests.soak                 all of it
  python -m tests.soak --scale 0.01    a hundredth, to try it
  python -m tests.soak --seed 7        other draws

Every line of the table counts what was tried; the first thing that is lost, doubled, wrong or shown to a user as a traceback ends it.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr
from itertools import islice
from pathlib import Path
from typing import Any

from envs.action import Action, read_action
from envs.dataset import draw, make_params
from envs.environment import STYLES, Setting
from envs.registry import env_names, load_env
from envs.tag.published import ALPHABETS
from envs.tag.reader import read_reply
from envs.tag.symbols import Alphabet
from envs.verdict import Ending
from envs.world import World
from eval.cores import available_cores
from eval.records import read_records

ROOT = Path(__file__).parents[1]
COMMAND = [sys.executable, "-m", "tmtrain.cli"]
#: What replies are spoiled with.
SCRAPS = [
    "[",
    "]",
    "```",
    "```python\n",
    "<think>",
    "</think>",
    "step 3",
    "Step 1-2",
    "|",
    "\\text{",
    "**",
    "\n\n",
    '"',
    "'",
    "\\",
    "(",
    ")",
]
SCRAPS += ["done()", "pop(1)", "[A B]", "→", "：", "\u200b", "é", "0", "-1", "halt", "or", "...", "{", "}", ",", "=", "#", "³", "\0"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="of all counts (default: 1)")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()

    def count(whole: int) -> int:
        return max(1, round(whole * given.scale))

    trials: list[tuple[str, Callable[[int, int, Path], str], int]] = [
        ("replies read", replies, count(1_000_000)),
        ("evaluations killed", killed_evaluations, count(40)),
        ("evaluations on a full disk", full_disks, count(20)),
        ("two evaluations into one folder", one_folder, count(10)),
        ("folders that cannot be written", unwritable, 2),
        ("requests to a faulty server", faulty_server, count(3_000)),
        ("training runs killed", killed_training, count(6)),
    ]
    for name, trial, number in trials:
        started = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            told = trial(number, given.seed, Path(folder))
        print(f"{name:34}{number:>10,}   {told} ({time.perf_counter() - started:.0f} s)", flush=True)


# Readers -------------------------------------------------------------------------------------------------------------------------------


def replies(number: int, seed: int, folder: Path) -> str:
    """Right replies of every environment and style, spoiled: whatever they have become is read without an error, and in bounds."""
    cores = len(available_cores())
    with ProcessPoolExecutor(cores) as pool:
        found = sum(pool.map(_read, [number // cores] * cores, range(seed, seed + cores)), Counter())
    return ", ".join(f"{count:,} {kind}" for kind, count in sorted(found.items()))


def _read(number: int, seed: int) -> Counter[str]:
    rng, found = random.Random(seed), Counter[str]()
    alphabets = [Alphabet(list(symbols)) for symbols in ALPHABETS.values()]
    written = [(name, text) for name in env_names() for text in _expert_replies(name)]
    for _ in range(number):
        name, text = rng.choice(written)
        text = spoiled(text, rng)
        world = load_env(name)
        if isinstance(world, World):
            action = read_action(text, world.actions)
            if isinstance(action, Action):
                assert action.name in world.actions, text
                found["actions"] += 1
            else:
                assert action and len(action.splitlines()) == 1, text
                found["refusals"] += 1
            continue
        alphabet = rng.choice(alphabets)
        for step, statement in read_reply(text, alphabet).items():
            start, end = statement.span
            assert 0 <= step < 10**9 and 0 <= start < end <= len(text), text
            assert statement.queue is None or alphabet.symbols.issuperset(statement.queue), text
            found["states" if statement.queue is not None else "unread states"] += 1
    return found


def _expert_replies(name: str) -> list[str]:
    env, found = load_env(name), []
    for style in STYLES if name == "tag" else STYLES[:2]:
        for problem in islice(draw(name, make_params(name, {}), seed=0, split="soak"), 20):
            episode = env.start(problem, Setting(style))
            while not episode.over:
                found.append(episode.expert())
                episode.reply(found[-1])
    return found


def spoiled(text: str, rng: random.Random) -> str:
    """A text with up to six pieces cut, doubled, moved or replaced by scraps."""
    for _ in range(rng.randint(0, 6)):
        at = rng.randint(0, len(text))
        end = min(len(text), at + rng.randint(0, 12))
        kind = rng.randrange(4)
        piece = ("", text[at:end] * 2, rng.choice(SCRAPS), text[at:end][::-1])[kind]
        text = text[:at] + piece + text[end:]
    return text


# Evaluation ----------------------------------------------------------------------------------------------------------------------------


def _problems(folder: Path, count: int = 200) -> Path:
    file = folder / "problems.jsonl"
    run("generate", "tag", "-n", str(count), "--seed", "5", "-o", str(file))
    return file


def run(*words: str, expect: int = 0, **options: Any) -> str:
    """Runs a command that must end with this status; its error output, in which no user may find a traceback."""
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, check=False, cwd=ROOT, **options)
    assert done.returncode == expect and "Traceback" not in done.stderr, (words, done.returncode, done.stderr[-2000:])
    return done.stderr


def same(folder: Path, whole: Path) -> None:
    """A run has every record of another once, and its scores."""
    keys = [record.key for record in read_records(folder)]
    assert len(keys) == len(set(keys)) and set(keys) == {record.key for record in read_records(whole)}
    assert json.loads((folder / "summary.json").read_text()) == json.loads((whole / "summary.json").read_text())


def killed_evaluations(number: int, seed: int, folder: Path) -> str:
    rng, problems = random.Random(seed), _problems(folder, 400)
    words = ["eval", "noisy:0.05", "--problems", str(problems), "--json", "-o"]
    run(*words, str(folder / "whole"))
    torn = finished = 0
    target = folder / "killed"
    for _ in range(number):
        process = subprocess.Popen(
            [*COMMAND, *words, str(target), "--resume"], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(rng.uniform(0.2, 1.2))
        process.kill()
        if process.wait() == 0:
            same(target, folder / "whole")
            finished += 1
            shutil.rmtree(target)
        elif (target / "samples.jsonl").exists() and rng.random() < 0.5:
            with (target / "samples.jsonl").open("ab") as file:
                file.write(b'{"problem": {"id": "torn')
                torn += 1
    run(*words, str(target), "--resume")
    same(target, folder / "whole")
    return f"{torn} of them with a torn line; {finished + 1} runs came to their end, each with all records once and the whole run's scores"


def full_disks(number: int, seed: int, folder: Path) -> str:
    """A limit on the size of files stands for the disk."""
    rng, problems = random.Random(seed), _problems(folder)
    words = ["eval", "noisy:0.05", "--problems", str(problems), "--json", "-o"]
    run(*words, str(folder / "whole"))
    kept = 0
    for i in range(number):
        room = rng.randint(3_000, 150_000)

        def limit(room: int = room) -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

        target = folder / str(i)
        told = run(*words, str(target), expect=2, preexec_fn=limit, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
        assert told.count("\n") == 1, told
        kept += len(read_records(target)) if (target / "samples.jsonl").exists() else 0
        run(*words, str(target), "--resume")
        same(target, folder / "whole")
    return f"one line each; {kept:,} episodes kept, all runs went on to the whole run's scores"


def one_folder(number: int, seed: int, folder: Path) -> str:
    problems = _problems(folder)
    words = ["eval", "noisy:0.05", "--problems", str(problems), "--json", "-o"]
    run(*words, str(folder / "whole"))
    for i in range(number):
        target = folder / str(i)
        pair = [
            subprocess.Popen([*COMMAND, *words, str(target)], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            for _ in range(2)
        ]
        told = [process.communicate()[1] for process in pair]
        codes = sorted(process.returncode for process in pair)
        assert codes == [0, 2] and not any("Traceback" in text for text in told), (codes, told)
        same(target, folder / "whole")
    return "each time one of them was refused with one line"


def unwritable(number: int, seed: int, folder: Path) -> str:
    problems = _problems(folder, 5)
    (folder / "file").write_text("in the way")
    for target in ("/proc/tmtrain", str(folder / "file" / "run")):
        told = run("eval", "expert", "--problems", str(problems), "-o", target, expect=2)
        assert told.count("\n") == 1, told
    return "one line each"


def faulty_server(number: int, seed: int, folder: Path) -> str:
    """Half of the answers are right, the others every kind of fault; runs go on until every episode has its answer."""
    import openai

    from eval.backends.load import load_policy
    from eval.backends.options import Options
    from eval.backends.sampling import Sampling
    from eval.runs import Evaluation, evaluate
    from tests.eval.fake_server import CUT, GARBAGE, HANG, chat_answer, error_answer, fake_server

    openai._base_client.INITIAL_RETRY_DELAY, openai._base_client.MAX_RETRY_DELAY = 0.01, 0.05
    rng = random.Random(seed)
    problems = draw("tag", make_params("tag", {}), seed=1, split="soak", unique=True)
    chosen = list(islice(problems, max(20, number // 2)))  # each is asked twice on average
    starts = [load_env("tag").start(p, Setting("compact")) for p in chosen]
    experts = {e.messages[0]["content"]: e.expert() for e in starts}
    faults = [error_answer(s) for s in (408, 429, 500, 502, 503)] + [CUT, GARBAGE]
    served = Counter[str]()

    def answer(body: dict[str, Any]) -> Any:
        if rng.random() < 0.5:
            served["right"] += 1
            return chat_answer(experts[body["messages"][-1]["content"]])
        served["faults"] += 1
        return HANG if rng.random() < 0.01 else rng.choice(faults)

    runs = 0
    with fake_server(answer) as server:
        while True:
            runs += 1
            policy = load_policy("m", Sampling(), Options(base_url=server.url, retries=2, timeout=1.0))
            with redirect_stderr(io.StringIO()):  # its notes, a line for each run
                evaluate(policy, Evaluation(chosen, "soak", Setting("compact"), concurrency=16), folder, resume=runs > 1, progress=False)
            records = read_records(folder)
            done = [r for r in records if r.verdict.ending is not Ending.INFRASTRUCTURE_ERROR]
            assert all(r.verdict.success for r in done), "a fault was scored"
            if len({r.key for r in done}) == len(chosen):
                break
    assert len({r.key for r in records}) == len(records) == len(chosen)
    return f"{sum(served.values()):,} asked, {served['faults']:,} faults, {len(chosen)} episodes each once and right after {runs} runs"


# Training ------------------------------------------------------------------------------------------------------------------------------

SFT = """
include: {root}/recipes/tag/tiny_sft.yaml
stages: [{{levels: [{{max_steps: 1}}], problems: 3200}}]
eval_levels: [{{max_steps: 2, min_horizon: 2}}]
eval_problems: 4
save_strategy: steps
save_steps: 10
"""
GRPO = """
include: {root}/recipes/tag/tiny_grpo.yaml
warmup: {folder}/sft.yaml
levels: [{{max_steps: 1}}, {{max_steps: 2, min_horizon: 2}}]
curriculum: success
eval_levels: [{{max_steps: 2, min_horizon: 2}}]
eval_problems: 4
problems: 64
max_steps: 8
batch_size: 8
num_generations: 4
max_completion_length: 96
outcome_weight: 0.5
min_start_accuracy: 0
logging_steps: 1
save_strategy: steps
save_steps: 2
"""


def killed_training(number: int, seed: int, folder: Path) -> str:
    """SFT and GRPO in one command, killed at random times and resumed: the weights at the end are those of the run that nobody killed."""
    rng = random.Random(seed)
    (folder / "sft.yaml").write_text(SFT.format(root=ROOT))
    (folder / "grpo.yaml").write_text(GRPO.format(root=ROOT, folder=folder))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "recipes/grpo_tag.py", "--config", str(folder / "grpo.yaml"), "--output_dir"]
    options: dict[str, Any] = {"cwd": ROOT, "env": environment, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    started = time.perf_counter()
    done = subprocess.run([*words, str(folder / "whole")], check=False, **options)
    assert done.returncode == 0, done.stderr[-2000:]
    took = time.perf_counter() - started
    for _ in range(number):
        process = subprocess.Popen([*words, str(folder / "killed"), "--resume"], **options)
        try:
            told = process.communicate(timeout=rng.uniform(0.3, 1.0) * took)[1]
            assert process.returncode == 0, told[-2000:]
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
    done = subprocess.run([*words, str(folder / "killed"), "--resume"], check=False, **options)
    assert done.returncode == 0, done.stderr[-2000:]
    weights = [(folder / name / "checkpoint" / "model.safetensors").read_bytes() for name in ("whole", "killed")]
    assert weights[0] == weights[1], "the resumed run ended with other weights"
    return "resumed to the same weights, bit for bit"


if __name__ == "__main__":
    main()
