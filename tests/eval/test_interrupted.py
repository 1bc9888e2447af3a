"""Runs that are killed, or whose disk is full: nothing that was played is lost, and they go on."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from eval.records import read_records

EVAL = [sys.executable, "-m", "tmtrain.cli", "eval", "noisy:0.05", "--json"]


@pytest.fixture
def problems(tmp_path: Path) -> Path:
    file = tmp_path / "problems.jsonl"
    subprocess.run([sys.executable, "-m", "tmtrain.cli", "generate", "tag", "-n", "200", "--seed", "5", "-o", file], check=True)
    return file


def summary(path: Path) -> dict:
    return json.loads((path / "summary.json").read_text())


def test_killed_in_the_middle_it_goes_on_to_the_same_summary(problems: Path, tmp_path: Path) -> None:
    subprocess.run([*EVAL, "--problems", problems, "-o", tmp_path / "whole"], check=True, capture_output=True)
    killed = tmp_path / "killed"
    for _ in range(3):
        process = subprocess.Popen([*EVAL, "--problems", problems, "-o", killed, "--resume"], stdout=subprocess.DEVNULL)
        samples, before = killed / "samples.jsonl", len(lines(killed))
        while process.poll() is None and len(lines(killed)) < before + 20:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.wait()
        with samples.open("ab") as file:
            file.write(b'{"problem": {"id": "torn')
    assert 40 <= len(lines(killed)) < 200, "the processes were to be killed in the middle"
    subprocess.run([*EVAL, "--problems", problems, "-o", killed, "--resume"], check=True, capture_output=True)
    keys = [(r["problem"]["id"], r["sample"]) for r in map(json.loads, samples.read_text().splitlines())]
    assert len(keys) == len(set(keys)) == 200
    assert summary(killed) == summary(tmp_path / "whole")


def lines(run: Path) -> list[bytes]:
    samples = run / "samples.jsonl"
    return [line for line in samples.read_bytes().split(b"\n") if line.endswith(b"}")] if samples.exists() else []


def test_a_full_disk_ends_with_one_line_and_the_run_goes_on(problems: Path, tmp_path: Path) -> None:
    """A limit on the file's size stands for the disk: the write fails in the middle of a record."""

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    run = tmp_path / "run"
    command = [*EVAL, "--problems", str(problems), "-o", str(run)]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=limited, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "--resume" in done.stderr and "cannot write" in done.stderr
    kept = len(read_records(run))
    assert 0 < kept < 200
    subprocess.run([*command, "--resume"], check=True, capture_output=True)
    assert len(read_records(run)) == 200
    subprocess.run([*EVAL, "--problems", problems, "-o", tmp_path / "whole"], check=True, capture_output=True)
    assert summary(run) == summary(tmp_path / "whole")
