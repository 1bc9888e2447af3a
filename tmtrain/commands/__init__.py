"""The commands of `tmtrain`, one module each: `SUMMARY`, `add_arguments(parser)` and `run(args)`, which returns the exit code.

Heavy imports stand inside `run`, so that `tmtrain --help` is quick. A ValueError raised by `run` becomes one line and exit code 2.
"""
