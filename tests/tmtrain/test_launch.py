"""What recipes do around their own story."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from tmtrain.launch import check_processes, run_recipe, take_own_port


def test_processes_that_train_apart_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    data_parallel = SimpleNamespace(value="MULTI_CPU")
    check_processes(SimpleNamespace(num_processes=2, distributed_type=data_parallel))
    with pytest.raises(ValueError, match="2 processes were launched, but each trains as one of 1"):
        check_processes(SimpleNamespace(num_processes=1, distributed_type=data_parallel))
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")
    with pytest.raises(ValueError, match="FSDP was asked for, but training would be MULTI_CPU"):
        check_processes(SimpleNamespace(num_processes=2, distributed_type=data_parallel))
    check_processes(SimpleNamespace(num_processes=2, distributed_type=SimpleNamespace(value="FSDP")))


@pytest.mark.parametrize(("rank", "who"), [("0", "recipe.py: "), ("1", "recipe.py (process 1): ")])
def test_an_error_of_any_process_is_one_line_and_exit_code_2(
    rank: str, who: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("MASTER_PORT", "1")
    monkeypatch.setattr(sys, "argv", ["recipes/recipe.py"])

    def main(argv: object) -> None:
        raise ValueError("levels: none")

    assert run_recipe(main) == 2
    assert capsys.readouterr().err == f"{who}levels: none\n"


def test_runs_on_one_machine_do_not_meet_on_a_port(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    monkeypatch.setenv("MASTER_PORT", "1")  # so that it is put back
    ports = []
    for _ in range(3):
        monkeypatch.delenv("MASTER_PORT")
        take_own_port()
        ports.append(os.environ["MASTER_PORT"])
    assert len(set(ports)) > 1 and "29500" not in ports
    monkeypatch.setenv("MASTER_PORT", "4711")
    take_own_port()
    monkeypatch.setenv("WORLD_SIZE", "2")
    take_own_port()
    assert os.environ["MASTER_PORT"] == "4711", "what a launcher or a user chose"
    configs = {path.name: yaml.safe_load(path.read_text()) for path in (root / "accelerate_configs").glob("*.yaml")}
    several = {name: c.get("main_process_port") for name, c in configs.items() if c["num_processes"] > 1 and c["num_machines"] == 1}
    assert len(several) > 5 and set(several.values()) == {0}
