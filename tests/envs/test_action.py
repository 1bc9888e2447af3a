"""Reading the action of a reply: what counts as exactly one valid call, and that nothing else does."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.action import Action, Parameter, Signature, read_action

SIGNATURES = {
    s.name: s
    for s in (
        Signature("pop", "", (Parameter("id", int, ""),)),
        Signature("say", "", (Parameter("text", str, ""),)),
        Signature("move", "", (Parameter("row", int, ""), Parameter("to", str, ""))),
        Signature("done", ""),
    )
}


def read(text: str) -> Action | str:
    return read_action(text, SIGNATURES)


def block(call: str) -> str:
    return f"I think.\n```python\n{call}\n```"


@pytest.mark.parametrize(
    ("reply", "action"),
    [
        (block("pop(3)"), Action("pop", (3,))),
        (block("pop(id=3)"), Action("pop", (3,))),
        (block("  pop ( id = +3 , ) ; # the third"), Action("pop", (3,))),
        (block("# pop(1)\npop(-2)"), Action("pop", (-2,))),
        (block("pop(\n    3\n)"), Action("pop", (3,))),
        (block('say("n3")'), Action("say", ("n3",))),
        (block("say('n3')"), Action("say", ("n3",))),
        (block("say(text='a \"b\"')"), Action("say", ('a "b"',))),
        (block(r'say("a\"b\\c\nd\u00e9")'), Action("say", ('a"b\\c\ndé',))),
        (block('say("pop(1) # 2")'), Action("say", ("pop(1) # 2",))),
        (block('say("")'), Action("say", ("",))),
        (block('move(1, "x")'), Action("move", (1, "x"))),
        (block('move(to="x", row=1)'), Action("move", (1, "x"))),
        (block('move(1, to="x")'), Action("move", (1, "x"))),
        (block("done()"), Action("done")),
        ("```\npop(3)\n```", Action("pop", (3,))),
        ("```py\npop(3)\n```", Action("pop", (3,))),
        ("```tool_code\r\npop(3)\r\n```\r\n", Action("pop", (3,))),
        ("```pop(3)```", Action("pop", (3,))),
        ("```python pop(3)```", Action("pop", (3,))),
        ("``` pop (3)```", Action("pop", (3,))),
        ("````python\npop(3)\n````", Action("pop", (3,))),
        ("```python\npop(3)", Action("pop", (3,))),
        (block("pop(1)") + "\n" + block("pop(2)"), Action("pop", (2,))),
        ("```python\npop(1)\n```python\npop(2)\n```", Action("pop", (2,))),
        ("```python\npop(1)\n```py\npop(2)\n```", Action("pop", (2,))),
        (block("pop(1)") + "\nThat is it. pop(9)", Action("pop", (1,))),
        (block("pop(1)") + "\n```", Action("pop", (1,))),
        ("<think>```python\npop(1)\n```</think>" + block("pop(2)"), Action("pop", (2,))),
        (block("pop(2)") + "<think>```python\npop(1)\n```", Action("pop", (2,))),
        ("pop(3)", Action("pop", (3,))),
        ("  pop(id=3)\n", Action("pop", (3,))),
        ("<think>pop(1)</think>pop(3)", Action("pop", (3,))),
    ],
)
def test_one_valid_call_is_read(reply: str, action: Action) -> None:
    assert read(reply) == action


@pytest.mark.parametrize(
    ("reply", "part"),
    [
        ("", "no fenced block"),
        ("   \n", "no fenced block"),
        ("I pop 3", "no fenced block"),
        ("I choose pop(3)", "no fenced block"),
        ("`pop(3)`", "no fenced block"),
        ("Now:\n```", "no fenced block"),
        ("<think>```python\npop(1)\n```</think>", "no fenced block"),
        ("pop(3) it is", "more than one call"),
        (block(""), "no action"),
        ("```\n```", "no action"),
        ("```python\n", "no action"),
        (block("# pop(1)"), "no action"),
        (block("pop"), "no action"),
        (block("3"), "no action"),
        (block("x = pop(1)"), "no action"),
        (block("env.pop(1)"), "no action"),
        (block("pop(1)\npop(2)"), "more than one call"),
        (block("pop(1); done()"), "more than one call"),
        (block("pop(1) + 1"), "more than one call"),
        (block("pop(1)(2)"), "more than one call"),
        (block("jump(1)"), 'unknown action "jump": the actions are pop(id), say(text), move(row, to), done()'),
        (block("Pop(1)"), "unknown action"),
        (block("pop()"), 'the argument "id" is missing'),
        (block("pop(1, 2)"), "too many"),
        (block("done(1)"), "too many"),
        (block("pop(index=1)"), 'there is no argument "index"'),
        (block("pop(id=1, id=2)"), "given twice"),
        (block("move(1, row=1)"), "given twice"),
        (block('move(row=1, "x")'), "positional argument follows"),
        (block('pop("3")'), "must be a whole number"),
        (block("pop(3.0)"), "must be a whole number"),
        (block("pop(1e3)"), "must be a whole number"),
        (block("pop(True)"), "must be a whole number"),
        (block("pop(None)"), "must be a whole number"),
        (block("pop(pop(1))"), "must be a whole number"),
        (block("pop([1])"), "must be a whole number"),
        (block("pop(id==1)"), "must be a whole number"),
        (block("pop(1 2)"), "not closed"),
        (block("pop(1"), "not closed"),
        (block("pop("), "must be a whole number"),
        (block("pop(,)"), "must be a whole number"),
        (block("say(n3)"), "must be text in quotes"),
        (block("say(3)"), "must be text in quotes"),
        (block('say("n3)'), "must be text in quotes"),
        (block('say(f"n3")'), "must be text in quotes"),
        (block("pop(" + "9" * 5000 + ")"), "too large"),
        (block("pop(1)" + " " * 30_000), "longer than 20000"),
        (block("(" * 10_000), "no action"),
        (block("pop(" * 4_000), "must be a whole number"),
        (block("\0pop(1)"), "no action"),
    ],
)
def test_anything_else_is_refused_with_one_line(reply: str, part: str) -> None:
    error = read(reply)
    assert isinstance(error, str)
    assert part in error
    assert len(error.splitlines()) == 1
    assert len(error) < 200


pieces = st.sampled_from(
    [
        "```",
        "```python",
        "````",
        "\n",
        " ",
        "pop",
        "say",
        "done",
        "(",
        ")",
        "3",
        "-",
        '"',
        "'",
        "\\",
        ",",
        "=",
        "id",
        "#",
        ";",
        "<think>",
        "</think>",
        "\0",
        "é",
        "n3",
    ]
)


@given(st.one_of(st.text(), st.lists(pieces, max_size=30).map("".join)))
@settings(max_examples=600, deadline=None)
def test_no_text_raises_and_errors_are_one_line(text: str) -> None:
    result = read(text)
    if isinstance(result, str):
        assert result and len(result.splitlines()) == 1
    else:
        assert result.name in SIGNATURES
        assert read(block(str(result))) == result  # the canonical writing is read back


@given(
    st.sampled_from(["pop", "say", "done", "jump"]),
    st.sampled_from(["", "3", "id=7", "text=1", '"a b"', 'text="é"', "0042", "123456789012"]),
    st.text(alphabet="`x \n#", max_size=6),
)
def test_the_short_cut_reads_as_the_full_reading_does(name: str, arguments: str, before: str) -> None:
    """A tag other than `python` never takes the short cut, and a comment inside the block cannot change the call."""
    call = f"{name}({arguments})"
    assert read(f"{before}\n```python\n{call}\n```") == read(f"{before}\n```py\n{call} # x\n```")
    assert read(call) == read(f"{call} # x")


@given(st.text(max_size=20))
def test_any_text_argument_is_written_and_read_back(text: str) -> None:
    action = Action("say", (text,))
    assert "\n" not in str(action)
    if "```" not in text and "<" not in text:
        assert read(block(str(action))) == action


@pytest.mark.parametrize("unit", ["```", "```python\n", "`", "pop(", "#\n", '"', '\\"', "<think>", "a", "'\\", "id=", "```a "])
def test_time_is_linear(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    started = time.process_time()
    for reply in (text, block("say('" + text + "')"), "```python\nsay('" + text, block("pop(1)") + text):
        read(reply)
    assert time.process_time() - started < 3
