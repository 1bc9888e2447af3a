"""List the environments with their generators' knobs, and the suites."""

from __future__ import annotations

import argparse
import dataclasses

SUMMARY = "list environments, their knobs, and the suites"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("env", nargs="?", help="only this environment")


def run(args: argparse.Namespace) -> int:
    from envs.registry import env_names, load_env
    from envs.suites import load_suite, suite_names
    from tmtrain.commands.output import print_json, print_table

    envs = [load_env(name) for name in ([args.env] if args.env else env_names())]
    knobs = {e.name: {f.name: f.default for f in dataclasses.fields(e.params)} for e in envs}
    suites = {} if args.env else {name: load_suite(name).summary for name in suite_names()}
    if args.json:
        print_json(
            {
                "envs": [{"name": e.name, "version": e.version, "summary": e.summary, "params": knobs[e.name]} for e in envs],
                "suites": suites,
            }
        )
        return 0
    for env in envs:
        print(f"{env.name}  {env.summary}")
        for name, default in knobs[env.name].items():
            print(f"    --set {name}={default}")
        print()
    if suites:
        print_table(["suite", "problems"], list(suites.items()))
    return 0
