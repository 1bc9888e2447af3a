"""Whether the installed packages are those that were tested together."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version

from tmtrain.doctor.finding import Finding, Level


def check_versions(extras: tuple[str, ...]) -> Iterator[Finding]:
    """Compares what is installed with the ranges that the toolkit itself declares, of its own needs and of some extras."""
    from packaging.requirements import Requirement

    wrong = 0
    for line in requires("tmtrain") or ():
        needed = Requirement(line)
        if needed.marker is not None and not any(needed.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            continue
        if needed.name == "tmtrain":
            continue
        try:
            found = version(needed.name)
        except PackageNotFoundError:
            yield Finding(Level.NOTE, "versions", f"{needed.name} is not installed here; the run needs {needed.name}{needed.specifier}")
            continue
        if not needed.specifier.contains(found, prereleases=True):
            wrong += 1
            yield Finding(
                Level.NO, "versions", f"{needed.name} {found} was not tested with the rest: pip install '{needed.name}{needed.specifier}'"
            )
    if not wrong:
        yield Finding(Level.YES, "versions", "what is installed was tested together")
