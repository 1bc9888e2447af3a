"""A run directory: what was run (`manifest.json`), every episode (`samples.jsonl`, one line each) and the scores (`summary.json`).

Lines are only ever appended, and flushed as episodes end, so killing the process loses no finished episode. Opened again, a torn last
line is dropped, finished episodes are skipped, infrastructure errors are played again (the later line of an episode counts), and a
manifest that differs refuses to go on.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from envs.environment import Message
from envs.verdict import Ending, Verdict

MANIFEST, SAMPLES, SUMMARY = "manifest.json", "samples.jsonl", "summary.json"
#: Manifest entries that say where, when and how fast, not what: they may differ when a run goes on.
_INCIDENTAL = ("started", "versions", "git_commit", "platform", "batch_size")


@dataclass(frozen=True, slots=True)
class EpisodeRecord:
    """One played and checked episode.

    Attributes:
        problem: The problem's JSON object, so that a run can be graded again from its directory alone.
        sample: Which of the problem's samples this is.
        messages: Every message shown or answered, in order. Where the history oracle rewrites the context, what was dropped from it
            still stands here, so the i-th assistant message is turn i.
        prompt_tokens, completion_tokens: Lengths of each turn's context and reply, None where unknown.
        verdict: The check.
        seconds: Wall time, from first request to last reply.
    """

    problem: Mapping[str, Any]
    sample: int
    messages: tuple[Message, ...]
    prompt_tokens: tuple[int | None, ...]
    completion_tokens: tuple[int | None, ...]
    verdict: Verdict
    seconds: float

    @property
    def key(self) -> str:
        return f"{self.problem['id']}/{self.sample}"

    @property
    def replies(self) -> list[str]:
        """The policy's message of each turn."""
        return [m["content"] for m in self.messages if m["role"] == "assistant"]

    def to_json(self) -> dict[str, Any]:
        return {
            "problem": dict(self.problem),
            "sample": self.sample,
            "messages": list(self.messages),
            "prompt_tokens": list(self.prompt_tokens),
            "completion_tokens": list(self.completion_tokens),
            "verdict": self.verdict.to_json(),
            "seconds": self.seconds,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> EpisodeRecord:
        return cls(
            data["problem"],
            data["sample"],
            tuple(data["messages"]),
            tuple(data["prompt_tokens"]),
            tuple(data["completion_tokens"]),
            Verdict.from_json(data["verdict"]),
            data["seconds"],
        )


class RunDirectory:
    """A run directory opened for writing, held by one process at a time."""

    def __init__(self, path: str | Path, manifest: Mapping[str, Any], *, resume: bool = False) -> None:
        """Creates the directory, or with `resume` goes on with it.

        Raises:
            ValueError: Where the directory holds a run already and `resume` is off, or its manifest differs from `manifest`, or
                another process is writing to it.
        """
        self.path = Path(path)
        self.finished: dict[str, EpisodeRecord] = {}
        held = self.path / MANIFEST
        check_free(path, resume=resume)
        self.path.mkdir(parents=True, exist_ok=True)
        self._file: IO[bytes] = (self.path / SAMPLES).open("ab+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise ValueError(f"another process is writing to {path}: wait for it, or choose another folder with -o") from None
        if held.exists():
            before = json.loads(held.read_text(encoding="utf-8"))
            if changed := sorted(changed_settings(before, json.loads(json.dumps(manifest)))):
                self._file.close()
                raise ValueError(f"{path} was run with other settings, so it cannot go on: {'; '.join(changed)}")
            self._recover()
        else:
            write_json(held, manifest)

    def append(self, record: EpisodeRecord) -> None:
        """Writes one record and flushes it to the disk. Raises ValueError where the disk does not take it."""
        try:
            self._file.write(json.dumps(record.to_json(), ensure_ascii=False).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise ValueError(f"cannot write to {self.path}: {error.strerror}; mend that and go on with --resume") from None
        self.finished[record.key] = record

    def close(self) -> None:
        with contextlib.suppress(OSError):  # what a full disk refused is still in the buffer
            self._file.close()

    def _recover(self) -> None:
        """Cuts off a torn last line and notes which episodes are finished."""
        self._file.seek(0)
        data = self._file.read()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            self._file.truncate(len(whole))
        records = _latest(whole.decode(errors="replace"))
        self.finished = {k: r for k, r in records.items() if r.verdict.ending is not Ending.INFRASTRUCTURE_ERROR}


def check_free(path: str | Path, *, resume: bool) -> None:
    """Raises ValueError where a folder holds a run already and `resume` is off."""
    if not resume and (Path(path) / MANIFEST).exists():
        raise ValueError(f"{path} holds a run already: add --resume to go on with it, or choose another folder")


def read_records(path: str | Path) -> list[EpisodeRecord]:
    """The records of a run directory, one for each episode. Raises ValueError where it is none."""
    samples = Path(path) / SAMPLES
    if not samples.is_file():
        raise ValueError(f"{path} is no run directory: it has no {SAMPLES}")
    return list(_latest(samples.read_text(encoding="utf-8", errors="replace")).values())


def read_manifest(path: str | Path) -> dict[str, Any]:
    """The manifest of a run directory. Raises ValueError where it is none."""
    try:
        manifest = json.loads((Path(path) / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} is no run directory: cannot read its {MANIFEST} ({error})") from None
    for key in ("policy", "suite", "setting"):
        if not isinstance(manifest, dict) or not isinstance(manifest.get(key), dict):
            raise ValueError(f"{path} is no run directory: its {MANIFEST} does not say the {key}")
    return manifest


def write_json(path: Path, value: Any) -> None:
    """Writes JSON so that the file is either the old or the new one, never half."""
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    part.replace(path)


def _latest(text: str) -> dict[str, EpisodeRecord]:
    """The last whole record of each episode, by key; lines torn by a crash are passed over."""
    records: dict[str, EpisodeRecord] = {}
    for line in text.split("\n"):
        try:
            record = EpisodeRecord.from_json(json.loads(line))
        except (ValueError, KeyError, TypeError):
            continue
        records[record.key] = record
    return records


def changed_settings(before: Mapping[str, Any], after: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """In what two manifests differ, beside where, when and how fast they were run: a line each."""
    for key in before.keys() | after.keys():
        if key in _INCIDENTAL:
            continue
        old, new = before.get(key), after.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from changed_settings(old, new, f"{prefix}{key}.")
        elif old != new:
            yield f"{prefix}{key} was {json.dumps(old, ensure_ascii=False)} and is {json.dumps(new, ensure_ascii=False)}"
