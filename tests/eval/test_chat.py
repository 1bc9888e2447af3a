"""Chat templates: growing contexts, the thinking switch, what counts as text."""

from __future__ import annotations

import pytest

pytest.importorskip("transformers")

from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from eval.backends.chat import Chat
from tmtrain.tiny import END, tiny_tokenizer

CHATML = (
    "{% for m in messages %}{{ '<|' + m.role + '|>' + m.content + '<|end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
#: Like those of thinking models: a switch that writes an empty block, and earlier thinking taken out of what is rendered again.
THINKING = (
    "{% for m in messages %}{% set c = m.content.split('</think>')[-1] if m.role == 'assistant' else m.content %}"
    "{{ '<|' + m.role + '|>' + c + '<|end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% if enable_thinking is false %}{{ '<think></think>' }}{% endif %}{% endif %}"
)
ALTERNATING = "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}{{ m.content + '<|end|>' }}{% endfor %}"
REWRITING = "{% for m in messages %}{{ (m.content | upper if m.role == 'assistant' else m.content) + '<|end|>' }}{% endfor %}"


def tokenizer(template: str | None = None) -> PreTrainedTokenizerFast:
    made = tiny_tokenizer()
    if template is not None:
        made.chat_template = template
    return made


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


TEXT = st.text("abc <>|/\n", max_size=8)


@pytest.mark.parametrize("template", [None, CHATML, ALTERNATING])
@given(turns=st.lists(st.tuples(TEXT, TEXT, st.booleans()), min_size=1, max_size=4))
def test_appending_gives_what_rendering_the_whole_gives(template: str | None, turns: list[tuple[str, str, bool]]) -> None:
    """Where a reply's text has one tokenization only, whether it was cut or ended by itself."""
    chat = Chat(tokenizer(template), name="t")
    conversation, messages = chat.conversation(), []
    end = chat.tokenizer.convert_tokens_to_ids(END)
    for asked, answered, ended in turns:
        messages.append(user(asked))
        prompt = conversation.prompt(messages)
        assert prompt == chat.render(messages)
        reply = chat.tokenizer(answered, add_special_tokens=False)["input_ids"] + [end] * ended
        text = conversation.answered(messages, prompt, reply, [end])
        assert text == answered
        messages.append(assistant(text))


def test_sampled_tokens_stay_as_they_were_sampled() -> None:
    """The model wrote `a` `b`; the tokenizer would write the same text as `ab`."""
    inner = Tokenizer(models.BPE({"a": 0, "b": 1, "ab": 2, "c": 3, "<unk>": 4}, [("a", "b")], unk_token="<unk>"))
    inner.pre_tokenizer, inner.decoder = pre_tokenizers.Split(Regex("c"), "isolated"), decoders.Fuse()
    inner.add_special_tokens([AddedToken("<|end|>", special=True)])
    made = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        eos_token="<|end|>",
        unk_token="<unk>",
        chat_template="{% for m in messages %}{{ m.content + '<|end|>' }}{% endfor %}",
    )
    chat, end = Chat(made, name="t"), made.eos_token_id
    assert made("ab")["input_ids"] == [2]
    conversation = chat.conversation()
    prompt = conversation.prompt([user("c")])
    assert conversation.answered([user("c")], prompt, [0, 1, end], [end]) == "ab"
    assert conversation.prompt([user("c"), assistant("ab"), user("c")]) == [3, end, 0, 1, end, 3, end]


def test_a_rewritten_context_is_rendered_anew() -> None:
    chat = Chat(tokenizer(), name="t")
    conversation = chat.conversation()
    prompt = conversation.prompt([user("a")])
    conversation.answered([user("a")], prompt, chat.tokenizer("x")["input_ids"], [])
    assert conversation.prompt([user("state: b")]) == chat.render([user("state: b")])


def test_earlier_thinking_is_kept_or_dropped_as_asked() -> None:
    said = "<think>hm</think>go"
    grown = [user("a"), assistant(said), user("b")]
    prompts = {}
    for policy in ("keep", "drop"):
        chat = Chat(tokenizer(THINKING), name="t", earlier_thinking=policy)
        conversation = chat.conversation()
        first = conversation.prompt(grown[:1])
        conversation.answered(grown[:1], first, chat.tokenizer(said)["input_ids"], [])
        prompts[policy] = chat.tokenizer.decode(conversation.prompt(grown), skip_special_tokens=False)
        assert chat.describe()["earlier_thinking"] == policy
    assert "hm" in prompts["keep"] and "hm" not in prompts["drop"] and "go" in prompts["drop"]


@pytest.mark.parametrize(
    ("asked", "in_force", "written"),
    [("on", "on", False), ("off", "off", True), ("prefer-off", "off", True), ("template", "template", False)],
)
def test_the_thinking_switch_is_set_and_recorded(asked: str, in_force: str, written: bool) -> None:
    chat = Chat(tokenizer(THINKING), name="t", thinking=asked)
    assert chat.describe()["thinking"] == in_force
    assert ("</think>" in chat.tokenizer.decode(chat.render([user("a")]))) is written


def test_a_switch_that_is_not_there_cannot_be_set() -> None:
    with pytest.raises(ValueError, match="no thinking switch"):
        Chat(tokenizer(), name="t", thinking="off")
    assert Chat(tokenizer(), name="t", thinking="prefer-off").describe()["thinking"] == "template"


def test_a_template_that_rewrites_replies_is_rendered_anew_and_says_so() -> None:
    chat = Chat(tokenizer(REWRITING), name="t")
    assert chat.describe()["context"] == "rendered anew each turn"
    conversation = chat.conversation()
    prompt = conversation.prompt([user("a")])
    conversation.answered([user("a")], prompt, chat.tokenizer("x")["input_ids"], [])
    assert chat.tokenizer.decode(conversation.prompt([user("a"), assistant("x"), user("b")])) == "a<|end|>X<|end|>b<|end|>"


def test_thinking_tags_that_are_special_tokens_stay_in_the_text() -> None:
    made = tokenizer()
    made.add_special_tokens({"additional_special_tokens": ["<think>", "</think>", "<|call|>"]}, replace_extra_special_tokens=False)
    ids = made("<think>a</think>b<|call|>", add_special_tokens=False)["input_ids"]
    assert len(ids) == 5
    assert Chat(made, name="t").text(ids) == "<think>a</think>b"
