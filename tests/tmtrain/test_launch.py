"""What recipes do around their own story."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from tmtrain.launch import check_processes, run_recipe


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
    monkeypatch.setattr(sys, "argv", ["recipes/recipe.py"])

    def main(argv: object) -> None:
        raise ValueError("levels: none")

    assert run_recipe(main) == 2
    assert capsys.readouterr().err == f"{who}levels: none\n"
