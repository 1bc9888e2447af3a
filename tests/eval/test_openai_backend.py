"""The server backend against a server that fails in every way that servers fail."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openai")

from envs.dataset import draw, make_params
from envs.environment import Setting
from envs.registry import load_env
from envs.verdict import Ending
from eval.backends.load import load_policy
from eval.backends.options import Options
from eval.backends.sampling import Sampling
from eval.records import read_manifest, read_records
from eval.runs import MOST_FAILURES, Evaluation, evaluate
from tests.eval.fake_server import CUT, GARBAGE, HANG, Answer, FakeServer, chat_answer, error_answer, fake_server

VLLM_MODEL = {"id": "m", "object": "model", "created": 0, "owned_by": "vllm", "root": "/models/m", "max_model_len": 4000}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    import openai

    monkeypatch.setattr(openai._base_client, "INITIAL_RETRY_DELAY", 0.01)
    monkeypatch.setattr(openai._base_client, "MAX_RETRY_DELAY", 0.02)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def problems(count: int, env: str = "tag", **knobs: Any) -> list:
    return list(itertools.islice(draw(env, make_params(env, knobs), seed=1, split="test", unique=True), count))


def experts(chosen: list) -> dict[str, str]:
    """The expert's reply by the prompt's text."""
    episodes = [load_env(p.env).start(p, Setting("compact")) for p in chosen]
    return {e.messages[0]["content"]: e.expert() for e in episodes}


def run(server: FakeServer, chosen: list, path: Path, sampling: Sampling | None = None, concurrency: int = 8, **options: Any) -> dict:
    made = Options(base_url=server.url, **{"retries": 4, "timeout": 1.0, **options})
    policy = load_policy("m", sampling or Sampling(), made)
    evaluation = Evaluation(chosen, "test", Setting("compact"), concurrency=concurrency)
    return evaluate(policy, evaluation, path, resume=(path / "manifest.json").exists(), progress=False)


def test_faults_are_tried_again_and_never_scored_as_zero(tmp_path: Path) -> None:
    """Every third request is answered; the others get each fault in turn."""
    chosen = problems(24)
    replies = experts(chosen)
    faults = itertools.cycle([error_answer(429, "slow down"), error_answer(500), CUT, error_answer(503), HANG, error_answer(408)])
    count = itertools.count()

    def answer(body: dict[str, Any]) -> Answer | str:
        return chat_answer(replies[body["messages"][-1]["content"]]) if next(count) % 3 == 0 else next(faults)

    with fake_server(answer) as server:
        summary = run(server, chosen, tmp_path)
    records = read_records(tmp_path)
    assert len(records) == 24
    answered = [r for r in records if r.verdict.ending is not Ending.INFRASTRUCTURE_ERROR]
    assert len(answered) >= 12 and all(r.verdict.success for r in answered)
    assert summary["success_rate"]["value"] == 1.0 and summary["episodes"] == len(answered)
    assert {tuple(r.completion_tokens) for r in answered} == {(3,)}


def test_what_got_no_answer_is_asked_again_on_resume(tmp_path: Path) -> None:
    chosen = problems(6)
    replies = experts(chosen)
    asked = chosen[2]
    broken = {next(m["content"] for m in load_env("tag").start(asked, Setting("compact")).messages)}

    def answer(body: dict[str, Any]) -> Answer | str:
        text = body["messages"][-1]["content"]
        return error_answer(500) if text in broken else chat_answer(replies[text])

    with fake_server(answer) as server:
        assert run(server, chosen, tmp_path)["endings"] == {"completed": 5, "infrastructure_error": 1}
        broken.clear()
        # The address is part of the manifest, so the run goes on with the same server only.
        assert run(server, chosen, tmp_path)["endings"] == {"completed": 6}
    assert len(read_records(tmp_path)) == 6


@pytest.mark.parametrize(
    "answered",
    [GARBAGE, (200, {"id": "x", "choices": []}, {}), chat_answer("x", finish="content_filter")],
    ids=["garbage", "no choice", "filtered"],
)
def test_answers_that_say_nothing_are_infrastructure_errors(answered: Any, tmp_path: Path) -> None:
    with fake_server(lambda body: answered) as server:
        summary = run(server, problems(2), tmp_path)
    assert summary["endings"] == {"infrastructure_error": 2} and summary["success_rate"]["value"] is None


def test_rate_limits_are_honoured(tmp_path: Path) -> None:
    first = iter([True])

    def answer(body: dict[str, Any]) -> Answer | str:
        return error_answer(429, **{"Retry-After": "1"}) if next(first, False) else chat_answer("x")

    with fake_server(answer) as server:
        run(server, problems(1), tmp_path)
    assert server.times[1] - server.times[0] >= 0.9


def test_no_more_requests_at_a_time_than_allowed(tmp_path: Path) -> None:
    def answer(body: dict[str, Any]) -> Answer | str:
        import time

        time.sleep(0.02)
        return chat_answer("x")

    with fake_server(answer) as server:
        run(server, problems(30), tmp_path, concurrency=5)
    assert 2 <= server.most_live <= 5


def test_a_dead_server_ends_the_run_with_one_line_and_nothing_lost(tmp_path: Path) -> None:
    chosen = problems(MOST_FAILURES + 40)
    replies = experts(chosen)
    alive = itertools.count()

    def answer(body: dict[str, Any]) -> Answer | str:
        return chat_answer(replies[body["messages"][-1]["content"]]) if next(alive) < 10 else error_answer(500, "down")

    with fake_server(answer) as server:
        with pytest.raises(ValueError, match=r"in a row got no answer.*--resume") as error:
            run(server, chosen, tmp_path, retries=0)
        assert "\n" not in str(error.value)
        alive = itertools.count(-1000)
        assert run(server, chosen, tmp_path, retries=1)["endings"] == {"completed": len(chosen)}


@pytest.mark.parametrize(
    ("answered", "line"),
    [
        (error_answer(400, "temperature is not supported"), "refuses the request.*temperature is not supported"),
        (error_answer(401, "expired"), "refuses the key"),
        (error_answer(404, "no such model"), "cannot serve"),
    ],
)
def test_a_refused_request_ends_the_run(answered: Answer, line: str, tmp_path: Path) -> None:
    with fake_server(lambda body: answered) as server, pytest.raises(ValueError, match=line):
        run(server, problems(3), tmp_path)


def test_a_prompt_that_the_server_finds_too_long_is_counted(tmp_path: Path) -> None:
    def answer(body: dict[str, Any]) -> Answer | str:
        return error_answer(400, "This model's maximum context length is 10 tokens", code="context_length_exceeded")

    with fake_server(answer) as server:
        assert run(server, problems(2), tmp_path)["endings"] == {"overlong_prompt": 2}


def counting(context: int, *, usage: bool = True) -> Callable[[dict[str, Any]], Answer | str]:
    """Answers as a server whose context of so many tokens, here characters, must hold the prompt and all that is asked for."""

    def answer(body: dict[str, Any]) -> Answer | str:
        length = sum(len(m["content"]) for m in body["messages"])
        if length + body["max_tokens"] > context:
            return error_answer(400, f"Requested token count exceeds the model's maximum context length of {context} tokens")
        status, said, headers = chat_answer("x")
        return status, {**said, "usage": {**said["usage"], "prompt_tokens": length}} if usage else said | {"usage": None}, headers

    return answer


@pytest.mark.parametrize("known", [True, False])
def test_a_prompt_refused_for_the_tokens_asked_for_is_not_overlong(known: bool, tmp_path: Path) -> None:
    """Where the server says its context, the reply gets what the prompt leaves of it; elsewhere the run ends and says what to lower."""
    models = [{**VLLM_MODEL, "owned_by": "sglang", "max_model_len": 4000 if known else None}]
    with fake_server(counting(4000), models=models) as server:
        if known:
            assert run(server, problems(2), tmp_path, concurrency=1)["endings"] == {"no_answer": 2}
            length = len(server.seen[0]["messages"][0]["content"])
            assert [b["max_tokens"] for b in server.seen[:3]] == [16_384, 1, 4000 - length]
        else:
            with pytest.raises(ValueError, match=r"refuses the prompt with 16384 new tokens: lower --max-tokens") as error:
                run(server, problems(2), tmp_path)
            assert "\n" not in str(error.value)
            assert run(server, problems(2), tmp_path / "lowered", Sampling(max_tokens=100))["endings"] == {"no_answer": 2}


def test_a_server_that_counts_no_tokens_leaves_the_lowering_to_the_user(tmp_path: Path) -> None:
    models = [{**VLLM_MODEL, "owned_by": "me"}]
    with fake_server(counting(4000, usage=False), models=models) as server, pytest.raises(ValueError, match="lower --max-tokens"):
        run(server, problems(2), tmp_path)


@pytest.mark.parametrize("known", [True, False])
def test_a_prompt_that_is_refused_with_one_new_token_is_overlong(known: bool, tmp_path: Path) -> None:
    models = [{**VLLM_MODEL, "owned_by": "me", "max_model_len": 8 if known else None}]
    with fake_server(counting(8), models=models) as server:
        assert run(server, problems(1), tmp_path)["endings"] == {"overlong_prompt": 1}
    assert [b["max_tokens"] for b in server.seen] == [16_384, 1]


def test_a_server_that_will_not_write_one_token_does_not_make_the_prompt_overlong(tmp_path: Path) -> None:
    def answer(body: dict[str, Any]) -> Answer | str:
        if body["max_tokens"] == 1:
            return error_answer(400, "max_tokens must be at least 16")
        return error_answer(400, "Requested token count exceeds the model's maximum context length of 4000 tokens")

    with fake_server(answer) as server, pytest.raises(ValueError, match=r"lower --max-tokens .*maximum context length"):
        run(server, problems(1), tmp_path)


def test_an_adapter_on_a_vllm_server_has_the_context_of_its_base(tmp_path: Path) -> None:
    """vLLM's own card of an adapter: no length, and the base's name."""
    card = {**VLLM_MODEL, "root": "/models/lora", "parent": "base", "max_model_len": None}
    with fake_server(counting(4000), models=[{**VLLM_MODEL, "id": "base", "parent": None}, card]) as server:
        assert run(server, problems(1), tmp_path)["endings"] == {"no_answer": 1}
    assert len(server.seen) == 1, "nothing is refused, since the prompt was counted before"
    assert read_manifest(tmp_path)["policy"]["context_length"] == 4000


def test_cut_replies_and_replies_without_text(tmp_path: Path) -> None:
    replies = iter([chat_answer("1", finish="length"), chat_answer(None, finish="length", reasoning="hm")])
    with fake_server(lambda body: next(replies)) as server:
        assert run(server, problems(2), tmp_path, concurrency=1)["endings"] == {"truncated": 2}


def test_a_vllm_server_is_told_everything_and_nothing_is_left_to_its_defaults(tmp_path: Path) -> None:
    with fake_server(lambda body: chat_answer("x"), models=[VLLM_MODEL]) as server:
        run(server, problems(1), tmp_path, Sampling(temperature=0.7, top_p=0.9, top_k=20), thinking="off")
        length = len(server.seen[0]["messages"][0]["content"])
        assert server.seen[0]["max_tokens"] == 4000 - length
    body = server.seen[0]
    assert (body["temperature"], body["top_p"], body["top_k"], body["min_p"], body["repetition_penalty"]) == (0.7, 0.9, 20, 0.0, 1.0)
    assert body["chat_template_kwargs"]["enable_thinking"] is False
    policy = read_manifest(tmp_path)["policy"]
    assert (policy["server"], policy["context_length"], policy["root"], policy["thinking"]) == ("vllm", 4000, "/models/m", "off")


def test_a_prompt_that_fills_vllms_context_is_never_sent(tmp_path: Path) -> None:
    with fake_server(lambda body: chat_answer("x"), models=[{**VLLM_MODEL, "max_model_len": 8}]) as server:
        assert run(server, problems(1), tmp_path)["endings"] == {"overlong_prompt": 1}
    assert server.seen == []


def test_worlds_are_played_turn_by_turn_with_the_whole_conversation(tmp_path: Path) -> None:
    chosen = problems(4, "listworld")
    with fake_server(lambda body: chat_answer("done()")) as server:
        run(server, chosen, tmp_path)
    assert all(b["messages"][0]["role"] == "user" for b in server.seen)
    turns = [len(r.completion_tokens) for r in read_records(tmp_path)]
    assert len(server.seen) == sum(turns)


def test_a_vllm_servers_template_is_asked_whether_it_has_the_switch() -> None:
    with fake_server(lambda body: chat_answer("x"), models=[VLLM_MODEL]) as server:
        server.has_switch = False
        with pytest.raises(ValueError, match="no thinking switch"):
            load_policy("m", Sampling(), Options(base_url=server.url, thinking="off"))
        load_policy("m", Sampling(), Options(base_url=server.url, thinking="prefer-off"))


CANNOT = {
    "nobody listens": (None, {}, {}, "cannot reach the server"),
    "another model": ([{**VLLM_MODEL, "id": "n"}], {}, {}, "does not serve 'm'"),
    "thinking on a server that may not know it": ([], {"thinking": "off"}, {}, "thinking: only servers of vLLM"),
    "top_k on a server that may not know it": ([], {}, {"temperature": 1.0, "top_k": 5}, "top_k: only servers of vLLM"),
    "another context": ([VLLM_MODEL], {"context": 9000}, {}, "a context of 9000 was asked for, the server has 4000"),
    "yarn": ([VLLM_MODEL], {"yarn": 4.0}, {}, "yarn is for vllm and transformers, and the backend is openai: start the server with it"),
    "several GPUs": ([VLLM_MODEL], {"tensor_parallel": 2}, {}, "tensor_parallel is for vllm, .* start the server with it"),
    "code of the model's": ([VLLM_MODEL], {"trust_remote_code": True}, {}, "trust_remote_code is for .* start the server with it"),
    "a batch size": ([VLLM_MODEL], {"batch_size": 8}, {}, "batch_size is for transformers, and the backend is openai: leave it out"),
    "longer replies than fit": ([VLLM_MODEL], {}, {"max_tokens": 5000}, "does not fit"),
}


@pytest.mark.parametrize("case", CANNOT)
def test_what_would_not_be_in_force_is_refused_before_anything_is_sent(case: str) -> None:
    models, options, sampling, line = CANNOT[case]
    with fake_server(lambda body: chat_answer("x"), models=models) as server:
        url = "http://127.0.0.1:9/v1" if case == "nobody listens" else server.url
        with pytest.raises(ValueError, match=line) as error:
            load_policy("m", Sampling(**sampling), Options(base_url=url, **options))
    assert "\n" not in str(error.value) and server.seen == []


def test_the_key_comes_from_the_environment_and_is_written_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_server(lambda body: chat_answer("x"), models=[VLLM_MODEL], key="secret-key") as server:
        with pytest.raises(ValueError, match="refuses the key in OPENAI_API_KEY"):
            load_policy("m", Sampling(), Options(base_url=server.url))
        monkeypatch.setenv("OPENAI_API_KEY", "secret-key")
        run(server, problems(1), tmp_path)
    assert all("secret-key" not in f.read_text() for f in tmp_path.iterdir() if f.is_file())
    assert json.loads((tmp_path / "summary.json").read_text())["episodes"] == 1
