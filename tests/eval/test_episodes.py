"""The episode loop with scripted policies and with ones that fail."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from envs.environment import Episode, Message, Setting
from envs.problem import Problem
from envs.suites import load_suite
from envs.verdict import Ending
from eval.batching import Batcher
from eval.episodes import Completion, InfrastructureError, OverlongPrompt, Task, play, play_all
from eval.policies import ScriptedPolicy, scripted_policy
from eval.published import read_published
from eval.records import RunDirectory, read_manifest, read_records
from eval.report import read_runs, write_report
from eval.runs import Evaluation, evaluate, evaluate_all

PROBLEMS = load_suite("tmbench-v1").problems()


class Failing:
    """Raises what it is given."""

    name = "failing"

    def __init__(self, error: Exception) -> None:
        self.error = error

    def describe(self) -> dict[str, object]:
        return {}

    def session(self, episode: Episode, seed: str) -> Failing:
        return self

    async def reply(self, messages: list[Message]) -> Completion:
        raise self.error

    async def close(self) -> None:
        pass


@pytest.mark.parametrize("style", ["verbose", "compact"])
def test_the_expert_scores_everything(style: str, tmp_path: Path) -> None:
    summary = evaluate(scripted_policy("expert"), Evaluation(PROBLEMS, "s", Setting(style)), tmp_path / "run", progress=False)
    for key in ("swa_uniform", "swa_linear", "pass_rate", "strict_pass_rate", "step_accuracy", "faithfulness"):
        assert summary[key]["value"] == 1.0, key
    assert summary["acc"][30]["total"] == 89 and summary["endings"] == {"completed": 100}


def test_a_noisy_policy_passes_as_often_as_its_rate_says(tmp_path: Path) -> None:
    evaluation = Evaluation(PROBLEMS, "s", Setting("compact"), samples=5)
    summary = evaluate(scripted_policy("noisy:0.1"), evaluation, tmp_path / "run", progress=False)
    expected = sum(0.9**p.horizon for p in PROBLEMS) / len(PROBLEMS)
    assert summary["pass_rate"]["low"] <= expected <= summary["pass_rate"]["high"]
    assert summary["faithfulness"]["value"] == pytest.approx(0.9, abs=0.01)


def test_the_random_policy_knows_only_the_initial_queue(tmp_path: Path) -> None:
    summary = evaluate(scripted_policy("random"), Evaluation(PROBLEMS, "s", Setting()), tmp_path / "run", progress=False)
    assert summary["acc"][0]["correct"] == 100 and summary["pass_rate"]["value"] == 0.0


def test_several_settings_are_played_by_one_policy_each_into_its_own_directory(tmp_path: Path) -> None:
    """All are checked before any is played; the policy is closed once; a run that was stopped between two settings goes on."""

    class Closing(ScriptedPolicy):
        closed = 0

        async def close(self) -> None:
            self.closed += 1

    problems = load_suite("lumina-listworld").problems()[:6]
    runs = {tmp_path / name: Evaluation(problems, "s", Setting.parse(name, "compact")) for name in ("none", "plan", "state+history")}
    policy = Closing("expert", 0.0)
    summaries = evaluate_all(policy, runs, progress=False)
    assert list(summaries) == list(runs) and policy.closed == 1
    assert all(s["episodes"] == 6 and s["success_rate"]["value"] == 1 for s in summaries.values())
    assert [read_manifest(run)["setting"] for run in runs][-1] == {"style": "compact", "wording": "standard", "oracles": "state+history"}
    shutil.rmtree(tmp_path / "plan")
    with pytest.raises(ValueError, match="none holds a run already"):
        evaluate_all(policy, runs, progress=False)
    assert policy.closed == 2 and not (tmp_path / "plan").exists()
    before = (tmp_path / "none" / "samples.jsonl").read_bytes()
    assert evaluate_all(policy, runs, resume=True, progress=False) == summaries
    assert (tmp_path / "none" / "samples.jsonl").read_bytes() == before


def test_replaying_a_published_file_gives_its_score(shared: Path, tmp_path: Path) -> None:
    policy = scripted_policy(f"replay:{shared}/tmbench/results_gemini-2.5-pro.json")
    summary = evaluate(policy, Evaluation(PROBLEMS, "s", Setting()), tmp_path / "run", progress=False)
    assert summary["pass_rate"]["value"] == 0.94 and summary["strict_pass_rate"]["value"] == 0.87
    assert round(100 * summary["swa_uniform"]["value"], 1) == 96.6 and round(100 * summary["swa_linear"]["value"], 1) == 96.2
    assert [(a["correct"], a["total"]) for a in (summary["acc"][0], summary["acc"][30])] == [(99, 100), (84, 89)]
    assert summary["pass_rate"]["n"] == len(read_published(shared / "tmbench" / "results_gemini-2.5-pro.json"))


def test_what_is_known_of_published_answers_tokens_is_reported(shared: Path, tmp_path: Path) -> None:
    file = shared / "tmbench" / "results_gemini-2.5-pro.json"
    summary = evaluate(scripted_policy(f"replay:{file}"), Evaluation(PROBLEMS, "s", Setting()), tmp_path / "run", progress=False)
    counts = [sample["num_token"] for sample in json.loads(file.read_text())["samples"]]
    spread = summary["tokens"]["completion_per_turn"]
    assert (spread["total"], spread["max"]) == (sum(counts), max(counts)) and summary["tokens"]["prompt"] is None
    write_report(read_runs([tmp_path / "run"]), tmp_path / "report")
    assert (tmp_path / "report" / "plots" / "tokens.png").exists()


@pytest.mark.parametrize(("tokens", "known"), [(7, 7), (None, None), (0, None), ("many", None)])
def test_tokens_that_a_published_file_does_not_count_are_unknown(tokens: Any, known: int | None, tmp_path: Path) -> None:
    sample = {"init_str": "AB", "rule": {"A": "B", "B": "A"}, "delete_count": 2, "ans": "", "num_token": tokens}
    (tmp_path / "r.json").write_text(json.dumps({"samples": [sample], "max_step": 3}))
    assert [a.tokens for a in read_published(tmp_path / "r.json")] == [known]


class Ends(ScriptedPolicy):
    """A noisy policy that counts tokens. Every second of its episodes does not end by itself, in one way after the other, and at a later
    turn than those before."""

    ways = (Ending.TRUNCATED, Ending.OVERLONG_PROMPT, Ending.INFRASTRUCTURE_ERROR)

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("noisy", 0.01)
        self.ends = {f"0/{p.id}/0": (i // 3, self.ways[i % 3]) for i, p in enumerate(problems[::2])}

    def session(self, episode: Episode, seed: str) -> Any:
        scripted = super().session(episode, seed)
        last, ending = self.ends.get(seed, (99, Ending.WRONG))
        turns = iter(range(100))

        class Session:
            async def reply(self, messages: list[Message]) -> Completion:
                turn = next(turns)
                if turn >= last and ending is Ending.OVERLONG_PROMPT:
                    raise OverlongPrompt("9 tokens, the context 8")
                if turn >= last and ending is Ending.INFRASTRUCTURE_ERROR:
                    raise InfrastructureError("no answer from the server")
                text = (await scripted.reply(messages)).text
                text = text[: len(text) // 2] if turn >= last else text
                return Completion(text, turn >= last, prompt_tokens=100 + turn, completion_tokens=len(text))

        return Session()


@pytest.mark.parametrize(
    ("suite", "setting"),
    [("tmbench-v1", Setting()), ("lumina-listworld", Setting("compact")), ("tmbench-unbounded", Setting(continued=True))],
)
def test_replaying_a_run_gives_the_same_verdicts(suite: str, setting: Setting, tmp_path: Path) -> None:
    """However its episodes ended, with their tokens and what was said of those that were not answered."""
    problems = load_suite(suite).problems()[:20]
    limit = 10_000 if setting.continued else None
    first = evaluate(Ends(problems), Evaluation(problems, "s", setting, token_limit=limit), tmp_path / "a", progress=False)
    assert {"truncated", "overlong_prompt", "infrastructure_error"} < first["endings"].keys()
    for path in (tmp_path / "a", tmp_path / "a" / "samples.jsonl"):
        second = evaluate(scripted_policy(f"replay:{path}"), Evaluation(problems, "s", setting), tmp_path / path.name / "b", progress=False)
        assert second == first
    records, again = ({r.key: replace(r, seconds=0) for r in read_records(tmp_path / run)} for run in ("a", "a/b"))
    assert again == records


def test_a_record_without_a_count_for_each_reply_is_replayed(tmp_path: Path) -> None:
    record = asyncio.run(play(Task(PROBLEMS[0]), Setting(), scripted_policy("expert")))
    run = RunDirectory(tmp_path, {})
    run.append(replace(record, prompt_tokens=(), completion_tokens=(1, 2)))
    run.close()
    again = asyncio.run(play(Task(PROBLEMS[0]), Setting(), scripted_policy(f"replay:{tmp_path}")))
    assert (again.verdict, again.prompt_tokens, again.completion_tokens) == (record.verdict, (None,), (None,))


def test_infrastructure_errors_are_named_and_unscored() -> None:
    record = asyncio.run(play(Task(PROBLEMS[0]), Setting(), Failing(InfrastructureError("no answer from the server"))))
    assert record.verdict.ending is Ending.INFRASTRUCTURE_ERROR and not record.verdict.ending.scored
    assert record.messages[-1] == {"role": "error", "content": "no answer from the server"}


def test_half_an_emoji_is_stored_and_scored(tmp_path: Path) -> None:
    """A server's JSON may hold one half where a token limit cut; no file could take it as it is."""

    class Cut:
        name = "cut"

        def session(self, episode: Episode, seed: str) -> Any:
            class Answers:
                async def reply(self, messages: list[Message]) -> Completion:
                    return Completion(f"{episode.expert()} \ud83d", truncated=True)

            return Answers()

    record = asyncio.run(play(Task(PROBLEMS[0]), Setting(), Cut()))
    run = RunDirectory(tmp_path, {})
    run.append(record)
    run.close()
    assert read_records(tmp_path) == [record] and record.replies[0].endswith(" \ufffd")
    assert record.verdict.step_accuracy == 1


def test_overlong_prompts_are_named_and_scored() -> None:
    record = asyncio.run(play(Task(PROBLEMS[0]), Setting(), Failing(OverlongPrompt("9 tokens, the context 8"))))
    assert record.verdict.ending is Ending.OVERLONG_PROMPT and record.verdict.ending.scored and not record.verdict.success


def test_an_unforeseen_error_ends_the_run() -> None:
    with pytest.raises(KeyError):
        asyncio.run(play_all([Task(PROBLEMS[0])], Setting(), Failing(KeyError("x")), concurrency=2, on_record=lambda r: None))


@pytest.mark.parametrize("spec", ["noisy:", "noisy:x", "noisy:1.5", "noisy", "replay:/nowhere/at/all"])
def test_bad_policies_are_refused_in_one_line(spec: str) -> None:
    with pytest.raises(ValueError) as error:
        scripted_policy(spec)
    assert "\n" not in str(error.value)


def test_a_batch_holds_everything_that_waits_and_no_more_than_its_size() -> None:
    sizes = []

    def answer(batch: Sequence[int]) -> list[int]:
        sizes.append(len(batch))
        return [2 * x for x in batch]

    async def ask_all() -> list[int]:
        batcher: Batcher[int, int] = Batcher(answer, 4)

        async def twice(x: int) -> int:
            return await batcher.ask(await batcher.ask(x))

        return await asyncio.gather(*(twice(x) for x in range(10)))

    assert asyncio.run(ask_all()) == [4 * x for x in range(10)]
    assert max(sizes) == 4 and sum(sizes) == 20 and len(sizes) <= 6


def test_a_failing_batch_reaches_each_of_its_requests_and_not_the_next_batch() -> None:
    def answer(batch: Sequence[int]) -> list[int]:
        if 0 in batch:
            raise InfrastructureError("lost")
        return list(batch)

    async def ask_all() -> list[object]:
        batcher: Batcher[int, int] = Batcher(answer, 2)
        return await asyncio.gather(*(batcher.ask(x) for x in range(4)), return_exceptions=True)

    results = asyncio.run(ask_all())
    assert [type(r) for r in results[:2]] == [InfrastructureError, InfrastructureError] and results[2:] == [2, 3]
