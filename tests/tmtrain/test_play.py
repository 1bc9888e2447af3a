"""`tmtrain play`: its JSON contract through a pipe, and what a person sees."""

import io
import json
from pathlib import Path

import pytest

from tmtrain.cli import main

KEYS = ["action", "valid", "optimal", "optimal_actions", "state", "feedback", "done", "success", "cost"]


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture):
    """Plays a problem with these lines typed and returns the exit code, what was printed, and the errors."""

    def run(env: str, problem: dict | None, *lines: str, options: tuple[str, ...] = ()) -> tuple[int, str, str]:
        arguments = ["play", env, *options]
        if problem is not None:
            path = tmp_path / "problem.json"
            path.write_text(json.dumps({"env": env, **problem}))
            arguments += ["--problem", str(path)]
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        code = main(arguments)
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.fixture
def piped(play):
    """The same through --json, as one object a line."""

    def run(env: str, problem: dict, *lines: str, options: tuple[str, ...] = ()) -> list[dict]:
        code, out, _ = play(env, problem, *lines, options=("--json", *options))
        assert code == 0
        results = [json.loads(line) for line in out.splitlines()]
        assert all(list(r) == KEYS for r in results)
        return results

    return run


def test_listworld_with_equal_values(piped) -> None:
    problem = {"initial": [1, 2, 2, 2, 3], "target": [1, 2, 3]}
    first, second, third = piped("listworld", problem, "pop(id=2)", "pop(0)", "pop(2)")
    assert (first["action"], first["valid"], first["optimal"], first["optimal_actions"]) == ("pop(2)", True, True, ["pop(1)", "pop(2)"])
    assert (second["valid"], second["optimal"], second["optimal_actions"], second["cost"]) == (False, False, ["pop(2)"], 2)
    assert "only 2 and above" in second["feedback"]
    assert third["state"] == "the list is [1, 2, 3]; indices from 2 on may be popped"


def test_a_dead_state_has_no_optimal_action_and_a_second_done_changes_nothing(piped) -> None:
    results = piped("listworld", {"initial": [1, 2, 3], "target": [1, 2]}, "pop(0)", "pop(0)", "done()", "done()")
    assert [r["optimal_actions"] for r in results] == [["pop(2)"], [], [], []]
    assert [r["optimal"] for r in results] == [False] * 4
    *_, third, fourth = results
    assert (third["done"], third["success"], third["valid"]) == (True, False, True)
    assert {k: fourth[k] for k in ("state", "done", "success", "cost", "feedback")} == {
        k: third[k] for k in ("state", "done", "success", "cost", "feedback")
    }
    assert not fourth["valid"]


def test_gridworld_through_a_hole(piped) -> None:
    problem = {"size": 5, "start": [0, 0], "goal": [2, 0], "holes": [[1, 0], [1, 1], [1, 2], [1, 3]]}
    results = piped("gridworld", problem, "up()", "down()", "```python down()```", "done()")
    assert [r["cost"] for r in results] == [1, 5, 6, 6]
    assert [r["optimal_actions"] for r in results] == [["down()"], ["down()"], ["down()"], ["done()"]]
    assert [r["valid"] for r in results] == [False, True, True, True]
    assert results[-1]["success"]


def test_treeworld_open_nodes(piped) -> None:
    problem = {"root": "r", "children": {"r": ["a", "b"], "b": ["c"]}, "values": {"r": 1, "a": 2, "b": 3, "c": 4}, "wanted": 4}
    results = piped("treeworld", problem, 'get_children("r")', "get_children('r')", 'get_children(node_id="b")', "done()")
    assert [r["optimal_actions"] for r in results] == [
        ['get_children("r")'],
        ['get_children("a")', 'get_children("b")'],
        ['get_children("a")', 'get_children("b")'],
        ["done()"],
    ]
    assert [r["optimal"] for r in results] == [True, False, True, True]
    assert [r["valid"] for r in results] == [True] * 4


def test_unreachable_is_reported(play) -> None:
    code, out, err = play("listworld", {"initial": [1], "target": [2]}, "pop(0)", options=("--json",))
    (result,) = map(json.loads, out.splitlines())
    assert code == 0
    assert (result["optimal_actions"], result["done"], result["success"], result["cost"]) == ([], True, False, 0)
    assert "cannot be reached" in result["feedback"]
    assert "cannot be reached" in err
    assert "cannot be reached" in play("listworld", {"initial": [1], "target": [2]}, "pop(0)")[1]


def test_whole_replies_as_json_strings_and_unreadable_lines(piped) -> None:
    reply = json.dumps("<think>pop(9)</think>I take it out.\n```python\npop(1)\n```")
    results = piped("listworld", {"initial": [1, 2], "target": [1]}, "", "hello", '"', reply)
    assert [(r["action"], r["valid"]) for r in results] == [(None, False), (None, False), ("pop(1)", True)]


def test_a_generated_problem_is_the_same_for_the_same_seed(play) -> None:
    outs = [play("tagworld", None, 'state("A")', options=("--seed", seed, "--set", "max_steps=4", "--json"))[1] for seed in ("1", "1", "2")]
    assert outs[0] == outs[1] != outs[2]


def test_a_person_sees_the_board_and_can_ask(play) -> None:
    board = {"size": 2, "start": [0, 0], "goal": [1, 1], "holes": [[0, 1]]}
    code, out, _ = play("gridworld", board, "?plan", "?state", "?optimal", "?rules", "?what", "right", "?quit")
    assert code == 0
    for part in (
        "@ o\n. G",
        "move to the cell (1, 0).",
        "you are at (0, 0)",
        "\ndown()\n",
        "A move off the board",
        "not ?what",
        "[not optimal; optimal: down()]",
        "Stopped.",
    ):
        assert part in out
    told = play("gridworld", board, "down", options=("--oracles", "plan+state"))[1]
    assert told.count("Plan: move to the cell") == told.count("State: you are at") == 2
    won = play("gridworld", board, "down", "nonsense", "right()", "done()")[1]
    assert "[not valid]" in won
    assert "completed: 4 actions, 3 of them optimal; the best way takes 3." in won


@pytest.mark.parametrize(
    ("env", "options", "part"),
    [
        ("tag", (), "answered in one reply"),
        ("listwrld", (), "did you mean 'listworld'"),
        ("listworld", ("--set", "pops"), "KEY=VALUE"),
        ("listworld", ("--oracles", "history"), "needs the state oracle"),
        ("listworld", ("--problem", "/nonexistent"), "cannot read the problems"),
    ],
)
def test_errors_are_one_line_and_exit_2(play, env: str, options: tuple[str, ...], part: str) -> None:
    code, out, err = play(env, None, options=options)
    assert (code, out) == (2, "")
    assert part in err
    assert len(err.splitlines()) == 1


def test_a_problem_of_another_world_is_refused(play, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text('{"env": "listworld", "initial": [], "target": []}')
    assert "holds a problem of listworld" in play("gridworld", None, options=("--problem", str(path)))[2]
    assert "do not go with --problem" in play("listworld", None, options=("--problem", str(path), "--set", "pops=3"))[2]
