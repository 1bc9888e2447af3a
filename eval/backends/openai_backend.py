"""Models behind an OpenAI-compatible server: an API, or `vllm serve` with as many data-parallel engines as there are GPUs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from envs.environment import Episode, Message
from envs.problem import stream
from eval.backends.chat import SWITCHES, without_thinking
from eval.backends.folder import weights_hash
from eval.backends.options import Options
from eval.backends.sampling import Sampling
from eval.episodes import Completion, InfrastructureError, OverlongPrompt, Policy, Session

if TYPE_CHECKING:
    import openai

KEY = "OPENAI_API_KEY"
#: Finish reasons of a reply that is whole, and of one that a limit cut. Any other says nothing about the model's ability.
_WHOLE, _CUT = ("stop", "eos", "end_turn"), ("length", "max_tokens")


class ServerPolicy(Policy):
    """A served model.

    Transport faults, rate limits and server errors are tried again with growing pauses, as the server asks where it does; an episode that
    still gets no answer ends as an infrastructure error. A refusal of the request itself (key, model, parameters) ends the run, since no
    other request would fare better.

    Args:
        client: The library's AsyncOpenAI.
        model: The name under which the server knows the model.
        facts: What the server says of itself, see `load_server`.
    """

    def __init__(self, client: Any, model: str, sampling: Sampling, options: Options, facts: dict[str, Any]) -> None:
        self.name, self._client, self.sampling, self._options, self._facts = model, client, sampling, options, facts
        self.context: int | None = facts["context_length"]
        if self.context is not None and sampling.max_tokens is not None and sampling.max_tokens >= self.context:
            raise ValueError(f"max_tokens {sampling.max_tokens} does not fit into the server's context of {self.context} tokens: lower it")

    def describe(self) -> dict[str, object]:
        thinking = self._options.thinking
        if thinking == "prefer-off":
            thinking = "off, where the template has a switch" if self._facts["server"] == "vllm" else "template"
        return {
            "backend": "openai",
            "model": self.name,
            # What a server on this machine loaded lies on this machine.
            "weights": weights_hash(root) if (root := self._facts["root"]) and _is_local(self._facts["base_url"]) else None,
            **self._facts,
            "thinking": thinking,
            "earlier_thinking": self._options.earlier_thinking,
            "sampling": self.sampling.to_json(),
        }

    def notes(self) -> list[str]:
        if self._facts["server"] == "vllm":
            return []
        return ["the server does not say what it adds to the request: its template, stop tokens and further sampling defaults are its own"]

    def session(self, episode: Episode, seed: str) -> Session:
        return _ServerSession(self, seed)

    async def close(self) -> None:
        await self._client.close()

    async def complete(self, messages: list[Message], seed: str) -> Completion:
        """One reply."""
        import openai

        if self._options.earlier_thinking == "drop":
            messages = without_thinking(messages)
        limit = self.sampling.token_limit
        try:
            try:
                limit = await self._room(messages)
                response = await self._ask(messages, limit, seed)
            except openai.BadRequestError as error:
                if not _is_overlong(error):
                    raise
                response = await self._ask(messages, await self._room_beside(messages, limit, seed, error), seed)
        except openai.BadRequestError as error:
            if _is_overlong(error):
                raise ValueError(
                    f"{self.name}: the server refuses the prompt with {limit} new tokens: lower --max-tokens ({_line(error)})"
                ) from None
            raise ValueError(f"{self.name}: the server refuses the request: {_line(error)}") from None
        except (openai.AuthenticationError, openai.PermissionDeniedError) as error:
            raise ValueError(f"{self.name}: the server refuses the key in {KEY}: {_line(error)}") from None
        except (openai.NotFoundError, openai.UnprocessableEntityError) as error:
            raise ValueError(f"{self.name}: the server cannot serve this: {_line(error)}") from None
        except OverlongPrompt:
            raise
        except (openai.OpenAIError, ValueError) as error:  # a reply that is no JSON is a ValueError
            raise InfrastructureError(f"no answer after {self._options.retries} retries: {_line(error)}") from None
        return _completion(response)

    async def _ask(self, messages: list[Message], limit: int, seed: str) -> Any:
        return await self._client.chat.completions.create(model=self.name, messages=messages, **self._arguments(limit, seed))

    async def _room_beside(self, messages: list[Message], limit: int, seed: str, refusal: openai.BadRequestError) -> int:
        """Most new tokens beside a prompt that was refused as too long with `limit` of them.

        Many servers add what is asked for to the prompt, so the refusal alone does not say that the prompt is too long.

        Raises:
            OverlongPrompt: Where the prompt is refused with a single new token as well.
            openai.BadRequestError: The refusal, where it is the new tokens', and how many would fit is unknown.
        """
        import openai

        try:
            response = await self._ask(messages, 1, seed)
        except openai.BadRequestError as error:
            if _is_overlong(error):
                raise OverlongPrompt(_line(refusal)) from None
            raise refusal from None
        used = getattr(getattr(response, "usage", None), "prompt_tokens", None)
        if self.context is None or not used or not 0 < self.context - used < limit:
            raise refusal
        return int(self.context - used)

    async def _room(self, messages: list[Message]) -> int:
        """Most new tokens. vLLM counts the prompt for us, so nothing is cut, and nothing refused for being asked too much."""
        limit = self.sampling.token_limit
        if self._facts["server"] != "vllm" or self.context is None:
            return limit
        body = {"model": self.name, "messages": messages, "add_generation_prompt": True, **self._template_arguments()}
        counted = await self._client.post(f"{_root(str(self._client.base_url))}/tokenize", body=body, cast_to=object)
        room = self.context - int(counted["count"])
        if room < 1:
            raise OverlongPrompt(f"the prompt has {counted['count']} tokens, the context {self.context}")
        return min(limit, room)

    def _arguments(self, limit: int, seed: str) -> dict[str, Any]:
        sampling = self.sampling
        # The name that OpenAI's own newer models insist on is unknown to many other servers.
        length = "max_completion_tokens" if self._facts["server"] == "openai" else "max_tokens"
        arguments: dict[str, Any] = {length: limit, "temperature": sampling.temperature, "top_p": sampling.top_p}
        if sampling.temperature > 0:
            arguments["seed"] = stream("sampling", sampling.seed, seed).getrandbits(31)
        if self._facts["server"] == "vllm":
            # Said in full: what a request leaves out, vLLM takes from the model's generation config.
            neutral = {"top_k": sampling.top_k, "min_p": 0.0, "repetition_penalty": 1.0, "skip_special_tokens": True}
            arguments |= {"presence_penalty": 0.0, "frequency_penalty": 0.0, "extra_body": {**neutral, **self._template_arguments()}}
        return arguments

    def _template_arguments(self) -> dict[str, Any]:
        if self._options.thinking == "template":
            return {}
        on = self._options.thinking == "on"
        return {"chat_template_kwargs": dict.fromkeys(SWITCHES, on)}


class _ServerSession(Session):
    def __init__(self, policy: ServerPolicy, seed: str) -> None:
        self._policy, self._seed, self._turn = policy, seed, 0

    async def reply(self, messages: list[Message]) -> Completion:
        self._turn += 1
        return await self._policy.complete(messages, f"{self._seed}/{self._turn}")


def load_server(name: str, sampling: Sampling, options: Options) -> ServerPolicy:
    """Asks a server what it serves.

    Raises:
        ValueError: In one line, where the server cannot be reached or does not serve `name`, or something was asked for that cannot be
            known to be in force on it.
    """
    try:
        import openai
    except ImportError as error:
        raise ValueError(f"the openai backend needs the openai extra: pip install 'tmtrain[openai]' ({error})") from None
    url = str(options.base_url)
    if urlsplit(url).scheme not in ("http", "https"):
        raise ValueError(f"base_url is an address such as http://localhost:8000/v1, not {url!r}")
    client = openai.AsyncOpenAI(base_url=url, api_key=os.environ.get(KEY, "none"), max_retries=options.retries, timeout=options.timeout)
    facts = asyncio.run(_ask(openai.AsyncOpenAI, client, name, url, probe_thinking=options.thinking in ("on", "off")))
    if facts.pop("no_switch", False):
        raise ValueError(
            f"the chat template of {name} has no thinking switch, so thinking cannot be turned {options.thinking}: leave it out"
        )
    if facts["server"] != "vllm":
        if options.thinking in ("on", "off"):
            raise ValueError("thinking: only servers of vLLM are known to take the switch, so here it might not be in force: leave it out")
        if sampling.top_k:
            raise ValueError("top_k: only servers of vLLM are known to take it, so here it might not be in force: leave it out")
    if options.context is not None and facts["context_length"] != options.context:
        raise ValueError(f"a context of {options.context} was asked for, the server has {facts['context_length'] or 'one it does not say'}")
    return ServerPolicy(client, name, sampling, options, facts)


async def _ask(make: Any, client: Any, name: str, url: str, *, probe_thinking: bool) -> dict[str, Any]:
    """The server's kind, the model's root and its context length, as far as it says; `no_switch` where a probed template has none."""
    import openai

    # A client is bound to its event loop by the connections that it holds, so the question has one of its own.
    async with make(base_url=client.base_url, api_key=client.api_key, max_retries=2, timeout=30.0) as asking:
        try:
            listed = await asking.models.list()
        except (openai.AuthenticationError, openai.PermissionDeniedError) as error:
            raise ValueError(f"{url} refuses the key in {KEY}: {_line(error)}") from None
        except openai.NotFoundError:
            listed = None  # some servers do not list their models
        except (openai.OpenAIError, ValueError) as error:
            raise ValueError(f"cannot reach the server at {url}: {_line(error)}") from None
        facts = _facts(getattr(listed, "data", None) or [], name, url)
        if probe_thinking and facts["server"] == "vllm":
            prompts = [await _tokenized(asking, name, dict.fromkeys(SWITCHES, on)) for on in (True, False)]
            facts["no_switch"] = prompts[0] == prompts[1]
        return facts


async def _tokenized(client: Any, name: str, switch: dict[str, bool]) -> Any:
    """The tokens that a vLLM server makes of a short conversation."""
    body = {"model": name, "messages": [{"role": "user", "content": "a"}], "add_generation_prompt": True, "chat_template_kwargs": switch}
    return (await client.post(f"{_root(str(client.base_url))}/tokenize", body=body, cast_to=object))["tokens"]


def _facts(listed: Sequence[Any], name: str, url: str) -> dict[str, Any]:
    """What a server's list of models says. Raises ValueError where the model is not on it."""
    models = {m.id: m for m in listed}
    if models and name not in models:
        from envs.registry import nearest

        raise ValueError(f"{url} does not serve {name!r}: {nearest(name, sorted(models))}")
    found = models.get(name)
    kind = "vllm" if getattr(found, "owned_by", None) == "vllm" else "openai" if "api.openai.com" in url else "other"
    # vLLM says no length of an adapter, only of the model that it lies on.
    lengths = (getattr(m, "max_model_len", None) for m in (found, models.get(getattr(found, "parent", None))))
    return {
        "server": kind,
        "base_url": url,
        "root": getattr(found, "root", None),
        "context_length": next((n for n in lengths if isinstance(n, int)), None),
    }


def _completion(response: Any) -> Completion:
    choices = getattr(response, "choices", None)
    if not choices or choices[0].message is None:
        raise InfrastructureError("the server's answer holds no choice")
    choice, usage = choices[0], getattr(response, "usage", None)
    if choice.finish_reason not in (*_WHOLE, *_CUT):
        raise InfrastructureError(f"the server ended the reply with {choice.finish_reason!r}")
    # Thinking that the server took out of the content stays out: what is only thought is not scored.
    return Completion(
        choice.message.content or "",
        choice.finish_reason in _CUT,
        getattr(usage, "prompt_tokens", None),
        getattr(usage, "completion_tokens", None),
    )


def _is_overlong(error: Any) -> bool:
    text = str(error).lower()
    return error.code == "context_length_exceeded" or ("context" in text and ("length" in text or "window" in text)) or "too long" in text


def _line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:300]


def _is_local(url: str) -> bool:
    return urlsplit(url).hostname in ("localhost", "127.0.0.1", "::1")


def _root(base_url: str) -> str:
    """The server's address without the `/v1` of its OpenAI interface."""
    return base_url.rstrip("/").removesuffix("/v1")
