"""Play a world: by hand in a terminal, or through a pipe with --json.

Type an action such as pop(2), or a whole reply with a fenced block. In a terminal, ?plan, ?state, ?optimal, ?rules and ?quit ask for help.
With --json, each line of standard input is a reply (a line that is a JSON string is decoded first, so a reply may have line breaks),
and each gives one JSON object: the action, whether it was valid and optimal, the optimal actions of the state in which it was taken, and
the state, the feedback and the cost so far after it.

  tmtrain play gridworld --set size=8 --seed 3
  printf 'pop(1)\\ndone()\\n' | tmtrain play listworld --problem mine.json --json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from envs.problem import Problem
    from envs.world import World
    from envs.world_episode import WorldEpisode

SUMMARY = "play a world by hand or through a pipe"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("env", metavar="ENV", help="a multi-turn environment, see `tmtrain envs`")
    parser.add_argument("--problem", metavar="FILE", help="play the first problem of this file (default: a generated one)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a knob of the generator; may be repeated")
    parser.add_argument("--seed", type=int, help="seed of the generated problem (default: 0)")
    parser.add_argument("--oracles", default="none", help="none, plan, state, plan+state, state+history or plan+state+history")
    parser.add_argument("--style", choices=("verbose", "compact"), default="verbose", help="prompt style (default: verbose)")


def run(args: argparse.Namespace) -> int:
    from envs.environment import Setting
    from envs.registry import load_env
    from envs.world import World

    env = load_env(args.env)
    if not isinstance(env, World):
        raise ValueError(f"{args.env} is answered in one reply, so there is nothing to play turn by turn (for tag systems: play tagworld)")
    problem = _problem(args)
    episode = env.start(problem, Setting.parse(args.oracles, args.style))
    if args.json:
        _play_piped(episode, sys.stdin)
    else:
        _play_by_hand(env, problem, episode)
    return 0


def _problem(args: argparse.Namespace) -> Problem:
    from envs.dataset import draw, make_params, read_problems
    from tmtrain.commands.problems import knobs

    if not args.problem:
        return next(draw(args.env, make_params(args.env, knobs(args.set)), seed=args.seed or 0, split="play"))
    if args.set or args.seed is not None:
        raise ValueError("--set and --seed are for generated problems: they do not go with --problem")
    problem = read_problems(args.problem)[0]
    if problem.env != args.env:
        raise ValueError(f"{args.problem} holds a problem of {problem.env}, not of {args.env}")
    return problem


def _play_piped(episode: WorldEpisode, lines: Iterable[str]) -> None:
    if episode.over:
        print(episode.feedback, file=sys.stderr)
    for line in lines:
        text = line.strip()
        if text:
            print(json.dumps(_take(episode, _decoded(text))), flush=True)


def _decoded(line: str) -> str:
    if line.startswith('"'):
        try:
            return str(json.loads(line))
        except json.JSONDecodeError:
            pass
    return line


def _take(episode: WorldEpisode, text: str) -> dict[str, Any]:
    """Gives the reply to the episode and reports what came of it. After the end nothing changes, and no action is valid."""
    from envs.verdict import Kind

    action, optimal = episode.read(text), episode.optimal_actions
    was_over = episode.over
    episode.reply(text)
    step = None if was_over else episode.steps[-1]
    return {
        "action": None if isinstance(action, str) else str(action),
        "valid": step is not None and step.kind is not Kind.INVALID,
        "optimal": step is not None and step.correct,
        "optimal_actions": optimal,
        "state": episode.state_text,
        "feedback": episode.feedback,
        "done": episode.over,
        "success": episode.success,
        "cost": episode.cost,
    }


def _play_by_hand(world: World, problem: Problem, episode: WorldEpisode) -> None:
    prompt = "> " if sys.stdin.isatty() else ""
    print(f"{episode.game.statement(episode.setting.style)}\n")
    if not episode.over:
        print(f"Actions: {', '.join(map(str, world.actions.values()))}   Help: ?plan ?state ?optimal ?rules ?quit\n")
        print(_situation(episode))
    while not episode.over:
        print(prompt, end="", flush=True)
        line = sys.stdin.readline()
        text = line.strip()
        if not line or text == "?quit":
            print("Stopped.")
            return
        if text.startswith("?"):
            print(_help(world, episode, text))
        elif text:
            _show(episode, _take(episode, f"{text}()" if text in world.actions else text))
    verdict = episode.verdict()
    if not verdict.ending.scored:
        print(episode.feedback)
        return
    correct = sum(s.correct for s in verdict.steps)
    print(f"{verdict.ending}: {len(verdict.steps)} actions, {correct} of them optimal; the best way takes {problem.horizon}.")


def _help(world: World, episode: WorldEpisode, command: str) -> str:
    answers = {
        "?plan": lambda: episode.plan_text,
        "?state": lambda: episode.state_text,
        "?optimal": lambda: ", ".join(episode.optimal_actions) or "none: the goal is out of reach",
        "?rules": lambda: world.rules,
    }
    return answers[command]() if command in answers else f"?plan, ?state, ?optimal, ?rules or ?quit, not {command}"


def _show(episode: WorldEpisode, result: dict[str, Any]) -> None:
    if not result["valid"]:
        judged = "not valid"
    elif result["optimal"]:
        judged = "optimal"
    else:
        judged = f"not optimal; optimal: {', '.join(result['optimal_actions']) or 'nothing, the goal is out of reach'}"
    print(f"{result['feedback']}  [{judged}]")
    if not episode.over:
        print(f"\n{_situation(episode)}")


def _situation(episode: WorldEpisode) -> str:
    lines = [episode.game.drawing(episode.state), f"Budget left: {episode.budget - episode.cost}"]
    if episode.setting.plan:
        lines.append(f"Plan: {episode.plan_text}")
    if episode.setting.state:
        lines.append(f"State: {episode.state_text}")
    return "\n".join(lines)
