"""What a model's folder may look like, and the line that each mistake gets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")

from eval.backends.folder import resolve, title, weights_hash
from tmtrain.tiny import tiny_model, tiny_tokenizer


@pytest.fixture
def model(tmp_path: Path) -> Path:
    tiny_model(0).save_pretrained(tmp_path / "model")
    tiny_tokenizer().save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def adapter(path: Path, base: str) -> Path:
    from peft import LoraConfig, get_peft_model

    get_peft_model(tiny_model(0), LoraConfig(r=4, target_modules=["q_proj", "v_proj"])).save_pretrained(path)
    config = json.loads((path / "adapter_config.json").read_text())
    (path / "adapter_config.json").write_text(json.dumps({**config, "base_model_name_or_path": base}))
    return path


def refused(path: str | Path) -> str:
    with pytest.raises(ValueError) as error:
        resolve(str(path))
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_whole_model_and_an_adapter_on_it(model: Path, tmp_path: Path) -> None:
    assert resolve(str(model)).base == str(model) and resolve(str(model)).adapter is None
    lora = adapter(tmp_path / "lora", str(model))
    found = resolve(str(lora))
    assert (found.base, found.adapter, found.tokenizer) == (str(model), str(lora), str(model))
    identity = found.identity()
    assert identity["weights"] == weights_hash(str(lora)) != identity["adapter"]["base_weights"] == weights_hash(str(model))
    tiny_tokenizer().save_pretrained(lora)
    assert resolve(str(lora)).tokenizer == str(lora)


def test_hub_ids_pass() -> None:
    assert resolve("Qwen/Qwen3-0.6B").base == "Qwen/Qwen3-0.6B"


def test_names_that_are_neither(tmp_path: Path) -> None:
    assert "no folder with a model" in refused(tmp_path / "missing")
    (tmp_path / "file").write_text("x")
    assert "no folder with a model" in refused(tmp_path / "file")


def test_a_folder_around_the_model_names_the_right_one(model: Path) -> None:
    assert f"did you mean {model}?" in refused(model.parent)


def test_weights_that_are_missing_cut_or_pickled(model: Path) -> None:
    weights = model / "model.safetensors"
    data = weights.read_bytes()
    for cut in (data[:-1], data[: len(data) // 2], data[:4], b"", data + b"x"):
        weights.write_bytes(cut)
        assert "cut short" in refused(model)
    weights.unlink()
    assert "no weights" in refused(model)
    (model / "pytorch_model.bin").write_bytes(b"x")
    assert "could run code" in refused(model)


def test_a_shard_that_was_not_downloaded(model: Path) -> None:
    index = {"weight_map": {"a": "model.safetensors", "b": "model-2.safetensors"}}
    (model / "model.safetensors.index.json").write_text(json.dumps(index))
    assert "lacks model-2.safetensors" in refused(model)
    (model / "model.safetensors.index.json").write_text("{")
    assert "not finished" in refused(model)


def test_adapters_whose_base_is_not_there(model: Path, tmp_path: Path) -> None:
    assert "which is not there" in refused(adapter(tmp_path / "a", "/gone/base"))
    assert "which is not there" in refused(adapter(tmp_path / "b", "./gone"))
    lora = adapter(tmp_path / "c", str(model))
    (model / "model.safetensors").write_bytes(b"")
    assert "cut short" in refused(lora)
    (lora / "adapter_model.safetensors").unlink()
    assert "no weights" in refused(lora)


@pytest.mark.parametrize(
    ("name", "called"),
    [
        ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
        ("runs/mine", "runs/mine"),
        ("/data/models/mine", "mine"),
        ("runs/demo/checkpoint", "demo"),
        ("checkpoint", "checkpoint"),
        ("weak:forgets", "weak:forgets"),
    ],
)
def test_a_model_is_called_by_its_folder_or_its_run(name: str, called: str) -> None:
    assert title(name) == called
