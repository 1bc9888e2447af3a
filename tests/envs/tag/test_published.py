"""The published problems, drawn again, and the published answers, scored again."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from envs.tag.published import ALPHABETS, from_published, published, to_published
from envs.tag.system import TagSystem, simulate
from envs.tag.verify import verify_reply
from envs.verdict import Verdict

FILES = {
    "tmbench-v1": ("TMBench.json", "5a615ae9f686a70df777c6b008e2378973c70a4fb405580e876d8e7efb1656d9"),
    "tmbench-v1-number": ("TMBenchNumber.json", "af72974d418a3507876fcee12c880823c390230a37f31513ce7f46329620594f"),
    "tmbench-v1-greek": ("TMBenchGreek.json", "dd0ffb32b2a901aea2a79fb14e269a6922c84e047871df7f99b6b9f0d9c7e402"),
    "tmbench-v1-special": ("TMBenchSpecial.json", "d2bfc369d8babb15060bd776afc64ef2d359ce177dbc7e922f12e2bb31fcf0e9"),
}


@pytest.mark.parametrize("name", ALPHABETS)
def test_our_file_is_the_published_one_to_the_byte(name: str) -> None:
    text = json.dumps(to_published(list(published(ALPHABETS[name]))), indent=1)
    assert hashlib.sha256(text.encode()).hexdigest() == FILES[name][1]


@pytest.mark.parametrize("name", ALPHABETS)
def test_published_file_holds_our_problems(name: str, shared: Path) -> None:
    data = json.loads((shared / "tmbench" / FILES[name][0]).read_text(encoding="utf-8"))
    assert data == to_published(list(published(ALPHABETS[name])))
    assert [(s["id"], from_published(s, data["max_step"]).init) for s in data["samples"]] == [
        (id, system.init) for id, system in published(ALPHABETS[name])
    ]


def test_facts() -> None:
    systems = [system for _, system in published()]
    assert len(systems) == 100
    assert sum(simulate(s).horizon < 30 for s in systems) == 11


def scored(file: Path) -> list[tuple[dict[str, Any], Verdict]]:
    data = json.loads(file.read_text(encoding="utf-8"))
    systems = [from_published(s, data["max_step"]) for s in data["samples"]]
    return [(s, verify_reply(y, simulate(y), s["ans"])) for s, y in zip(data["samples"], systems, strict=True)]


def test_published_answers_score_as_published(shared: Path) -> None:
    results = scored(shared / "tmbench" / "results_gemini-2.5-pro.json")
    verdicts = [verdict for _, verdict in results]
    assert sum(v.success for v in verdicts) == 94
    assert sum(v.strict for v in verdicts) == 87
    right = [[v.due[i].correct for v in verdicts if len(v.due) > i] for i in range(31)]
    assert (sum(right[0]), len(right[0])) == (99, 100)
    assert (sum(right[30]), len(right[30])) == (84, 89)
    assert round(100 * sum(sum(r) / len(r) for r in right) / 31, 1) == 96.6
    assert round(100 * sum(i * sum(r) / len(r) for i, r in enumerate(right)) / sum(range(31)), 1) == 96.2
    hedged = next(v for s, v in results if s["id"].startswith("7fa9cf"))
    assert hedged.first_error == 1
    for sample, verdict in results:
        end = 0
        for step in verdict.steps:
            if step.span is not None:
                assert end <= step.span[0] < step.span[1] <= len(sample["ans"])
                end = step.span[1]


def test_described_replies_get_their_verdicts(shared: Path) -> None:
    for sample, verdict in scored(shared / "cases" / "tag_replies.json"):
        found = {
            "correct": [s.correct for s in verdict.due],
            "passed": verdict.success,
            "strict": verdict.strict,
            "overrun": verdict.overrun,
        }
        assert found == sample["expect"], sample["id"]


SAMPLE = {"id": "x", "init_str": "AAB", "rule": {"A": "B", "B": ""}, "delete_count": 2, "step_results": ["AAB", "BB", ""]}


def test_sample_is_read() -> None:
    assert from_published(SAMPLE, 31) == TagSystem.from_payload({"rules": SAMPLE["rule"], "init": "AAB", "max_steps": 2})


@pytest.mark.parametrize(
    ("change", "max_states", "named"),
    [
        ({"init_str": None}, 31, "'init_str'"),
        ({"rule": None}, 31, "'rule'"),
        ({"delete_count": None}, 31, "'delete_count'"),
        ({"delete_count": 0}, 31, "'m'"),
        ({"step_results": ["AAB", "BA", ""]}, 31, "'step_results'"),
        ({}, 0, "'max_step'"),
    ],
)
def test_bad_samples_are_refused(change: dict[str, Any], max_states: int, named: str) -> None:
    sample = {k: v for k, v in {**SAMPLE, **change}.items() if v is not None}
    with pytest.raises(ValueError) as raised:
        from_published(sample, max_states)
    assert named in str(raised.value)
    assert "\n" not in str(raised.value)


def test_mixed_systems_have_no_published_form() -> None:
    one = TagSystem.from_payload({"rules": {"A": "A"}, "init": "A"})
    other = TagSystem.from_payload({"rules": {"B": "B"}, "init": "B"})
    for items in ([("1", one), ("2", other)], []):
        with pytest.raises(ValueError, match="JSON lines"):
            to_published(items)
