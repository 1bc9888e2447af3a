"""The `tmtrain` command."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

#: Commands in the order of a project's life; each is a module of `tmtrain.commands`.
COMMANDS = (
    *("envs", "generate", "overlap", "play", "demos"),
    *("eval", "ablate", "score", "report", "compare", "oracles", "correlate"),
    *("card", "merge", "doctor"),
)

_DESCRIPTION = """\
Measure, and by fine-tuning improve, how faithfully a language model carries out rules over many steps.

A first tour:
  tmtrain generate tag -n 3 --seed 1            three problems, as JSON lines
  tmtrain eval noisy:0.1 --suite tmbench-v1     a scripted policy on the published suite
  tmtrain eval PATH --suite tmbench-v1          a model
  accelerate launch recipes/grpo_tag.py         train the embedded tiny model, evaluate it, write its card
"""


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = argparse.ArgumentParser(prog="tmtrain", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter)
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        module = import_module(f"tmtrain.commands.{name}")
        command = subparsers.add_parser(
            name, help=module.SUMMARY, description=module.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        module.add_arguments(command)
        command.add_argument("--json", action="store_true", help="print one JSON value instead of text for people")
        command.set_defaults(run=module.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code: 0, or 2 after a one-line error."""
    args = build_parser().parse_args(argv)
    try:
        return args.run(args)
    except ValueError as error:
        print(f"tmtrain {args.command}: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever read the output has seen enough
        return 0
    except OSError as error:
        print(f"tmtrain {args.command}: {error.strerror or error}: {error.filename or 'while writing'}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"tmtrain {args.command}: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
