"""From conversations to prompt tokens: the chat template, the thinking switch, and contexts that only grow by appending."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from envs.environment import Message
from envs.problem import content_hash
from envs.thinking import blank_thinking

#: Names by which templates take the thinking switch.
SWITCHES = ("enable_thinking", "thinking")
#: What is asked of the thinking switch: `template` leaves it alone, `on` and `off` need it, `prefer-off` is `off` where there is one.
THINKING = ("template", "on", "off", "prefer-off")
_PROBE: list[Message] = [{"role": "user", "content": "a"}]
_MARK = "reply-whose-end-is-sought"


class Chat:
    """A tokenizer's way to put conversations.

    Args:
        tokenizer: A tokenizer with a chat template.
        name: The model's name, for errors.
        thinking: One of THINKING.
        earlier_thinking: `keep` leaves a model's thinking of earlier turns in the context; `drop` takes it out, which means that contexts
            are rendered anew.

    Raises:
        ValueError: Where the tokenizer lacks a chat template or a terminator, or the template has no thinking switch to set.
    """

    def __init__(self, tokenizer: Any, *, name: str, thinking: str = "template", earlier_thinking: str = "keep") -> None:
        if not tokenizer.chat_template:
            raise ValueError(
                f"{name} has no chat template, so it cannot be prompted: evaluate an instruction-tuned model or set a template"
            )
        if thinking not in THINKING:
            raise ValueError(f"thinking is one of {', '.join(THINKING)}, not {thinking!r}")
        if earlier_thinking not in ("keep", "drop"):
            raise ValueError(f"earlier_thinking is keep or drop, not {earlier_thinking!r}")
        self.tokenizer, self.name = tokenizer, name
        self._drop = earlier_thinking == "drop"
        #: What the template is given beside the messages.
        self.switch: dict[str, bool] = {}
        switch = None if thinking == "template" else self._find_switch()
        if switch is not None:
            self.switch = {switch: thinking == "on"}
        elif thinking in ("on", "off"):
            raise ValueError(f"{name}: its chat template has no thinking switch, so thinking cannot be turned {thinking}: leave it out")
        special = {i: t.content for i, t in getattr(tokenizer, "added_tokens_decoder", {}).items() if t.special}
        #: Special tokens that are not part of what was said. Thinking tags stay: the reader needs them.
        self._silent = {i for i, text in special.items() if blank_thinking(text) == text}
        self._appends = not self._drop and self._ends_replies_alike()

    def describe(self) -> dict[str, object]:
        """What a manifest records."""
        return {
            "template_hash": content_hash(self.tokenizer.get_chat_template()),
            "thinking": {(): "template", (True,): "on", (False,): "off"}[tuple(self.switch.values())],
            "earlier_thinking": "drop" if self._drop else "keep",
            "context": "appended" if self._appends else "rendered anew each turn",
        }

    def render(self, messages: Sequence[Message]) -> list[int]:
        """The tokens of a whole conversation, up to where the reply begins."""
        out = self.tokenizer.apply_chat_template(list(messages), add_generation_prompt=True, tokenize=True, return_dict=True, **self.switch)
        return list(out["input_ids"])

    def text(self, ids: Sequence[int]) -> str:
        """What sampled tokens say."""
        return self.tokenizer.decode([i for i in ids if i not in self._silent], skip_special_tokens=False)

    def conversation(self) -> Conversation:
        """A conversation that has not begun."""
        return Conversation(self)

    def after_reply(self, messages: Sequence[Message]) -> list[int] | None:
        """The tokens from a reply's terminator on, through `messages`, to where the next reply begins; None where the template does
        not put them the same way after every reply."""
        if not self._appends:
            return None
        found = self._after_mark(messages)
        return None if found is None else self.tokenizer(found, add_special_tokens=False)["input_ids"]

    def _after_mark(self, messages: Sequence[Message]) -> str | None:
        text = self._as_text([*_PROBE, {"role": "assistant", "content": _MARK}, *messages])
        _, mark, rest = text.partition(_MARK)
        return rest if mark and rest else None

    def _ends_replies_alike(self) -> bool:
        """Whether what follows a reply can be told from the template and does not depend on what is said next."""
        said = ("first probe", "second probe")
        try:
            one, other = (self._after_mark([{"role": "user", "content": text}]) for text in said)
        except Exception:  # templates raise what they like, e.g. at roles that do not alternate
            return False
        return one is not None and other is not None and one.replace(*said) == other

    def _find_switch(self) -> str | None:
        for name in SWITCHES:
            on, off = (self._as_text(_PROBE, **{name: value}) for value in (True, False))
            if on != off:
                return name
        return None

    def _as_text(self, messages: Sequence[Message], **switch: bool) -> str:
        return self.tokenizer.apply_chat_template(list(messages), add_generation_prompt=True, tokenize=False, **{**self.switch, **switch})


def without_thinking(messages: Sequence[Message]) -> list[Message]:
    """The conversation with the thinking taken out of its replies."""
    return [{**m, "content": blank_thinking(m["content"]).strip()} if m["role"] == "assistant" else m for m in messages]


class Conversation:
    """The tokens of one growing context.

    While the conversation only grows, the tokens that were sampled stay as they are and new messages are appended: a reply rendered
    anew from its text may be cut into other tokens than those that the model wrote. Where the context was rewritten (the history
    oracle), or earlier thinking is dropped, it is rendered whole.
    """

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self._seen: list[Message] = []
        self._ids: list[int] = []

    def prompt(self, messages: Sequence[Message]) -> list[int]:
        """The prompt's tokens for the next reply."""
        messages = list(messages)
        n = len(self._seen)
        if n and messages[:n] == self._seen and len(messages) > n:
            appended = self._chat.after_reply(messages[n:])
            if appended is not None:
                return [*self._ids, *appended]
        if self._chat._drop:
            messages = without_thinking(messages)
        return self._chat.render(messages)

    def answered(self, messages: Sequence[Message], prompt: Sequence[int], reply: Sequence[int], stops: Sequence[int]) -> str:
        """Notes the reply to `messages` and returns its text. A terminator at its end is dropped: the template writes its own."""
        said = list(reply[:-1]) if reply and reply[-1] in stops else list(reply)
        text = self._chat.text(said)
        self._seen = [*messages, {"role": "assistant", "content": text}]
        self._ids = [*prompt, *said]
        return text
