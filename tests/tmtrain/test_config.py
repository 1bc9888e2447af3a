"""Recipe files and their overrides."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tmtrain.config import make_configs, read_file, read_settings, share_out
from tmtrain.recipe import GRPORecipe, SFTRecipe


@dataclass
class Toy:
    learning_rate: float = 1e-3
    max_steps: int = 5
    bf16: bool | None = None
    levels: list[dict[str, Any]] = field(default_factory=list)


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_the_command_line_wins_over_the_file(tmp_path: Path) -> None:
    file = write(tmp_path / "a.yaml", "learning_rate: 1e-4\nmax_steps: 7\n")
    settings = read_settings(["--config", str(file), "--max_steps=9", "--bf16", "--levels", "[{max_steps: 3}]"], tmp_path / "none.yaml")
    settings.pop("use_cpu", None)  # of the machine
    assert make_configs(settings, Toy) == [Toy(1e-4, 9, True, [{"max_steps": 3}])]


def test_a_file_states_only_its_difference_to_the_one_it_includes(tmp_path: Path) -> None:
    write(tmp_path / "base.yaml", "learning_rate: 1e-4\nmax_steps: 7\n")
    assert read_file(write(tmp_path / "variant.yaml", "include: base.yaml\nmax_steps: 8\n")) == {"learning_rate": "1e-4", "max_steps": 8}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lerning_rate: 1e-4", "unknown field 'lerning_rate': did you mean 'learning_rate'?"),
        ("learning_rate: fast", "learning_rate: input should be a valid number"),
        ("max_steps: 1.5", "max_steps: input should be a valid integer"),
        ("levels: [3]", "levels.0: input should be a valid dictionary"),
        ("- a\n- b", "must hold one field a line"),
        ("a: [", "is not YAML"),
        ("include: self.yaml", "includes itself"),
        ("include: 5", "include names a file or a list of files, not 5"),
        ("include: [null]", "include names a file or a list of files, not [None]"),
        ("1: 2", "has a field 1, which is no name"),
    ],
)
def test_mistakes_are_named_in_one_line(text: str, message: str, tmp_path: Path) -> None:
    file = write(tmp_path / "self.yaml", text)
    with pytest.raises(ValueError) as error:
        make_configs(read_file(file), Toy)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_an_argument_that_is_no_field_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unexpected argument 'x'"):
        read_settings(["x"], tmp_path / "none.yaml")
    with pytest.raises(ValueError, match="cannot read the recipe"):
        read_settings([], tmp_path / "none.yaml")


LEVELS = {"levels": [{"max_steps": 3}], "eval_levels": [{"max_steps": 3}]}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"eval_levels": [{}]}, "levels: give at least one level"),
        ({"levels": [{}]}, "eval_levels: give at least one level"),
        ({**LEVELS, "style": "terse"}, "unknown prompt style 'terse'"),
        ({**LEVELS, "problems": 0}, "problems must be at least 1"),
        ({**LEVELS, "eval_problems": 0}, "eval_problems must be at least 1"),
        ({**LEVELS, "reward": {"speed": 1}}, "reward: unknown part 'speed'"),
        ({**LEVELS, "reward": {"step": -1}}, "must be at least 0"),
        ({**LEVELS, "reward": {"step": 0}}, "all weights are zero"),
    ],
)
def test_recipes_check_their_values(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_configs(settings, GRPORecipe)


def recipe_files() -> list[str]:
    root = Path(__file__).parents[2]
    return sorted(str(f.relative_to(root)) for f in (root / "recipes").rglob("*.yaml") if f.name.startswith(("tiny_", "study_")))


@pytest.mark.parametrize("name", recipe_files())
def test_every_small_recipe_in_the_repository_is_valid(name: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its fields are known, its levels give problems, and the expert's replies fit into its lengths. Those for GPUs are the doctor's."""
    pytest.importorskip("trl")
    from trl import GRPOConfig, ModelConfig, SFTConfig

    from tmtrain.data import held_out
    from tmtrain.grpo import check_settings, draw_problems
    from tmtrain.tiny import CONTEXT, tiny_tokenizer

    monkeypatch.chdir(root)
    settings = {**read_file(root / name), "use_cpu": True}
    if "num_generations" not in settings:
        recipe, config, _ = make_configs(settings, SFTRecipe, SFTConfig, ModelConfig)
        assert config.output_dir and held_out(recipe.env, recipe.eval_levels, 5, recipe.eval_seed)
        return
    recipe, config, options = make_configs({**settings, "problems": 50}, GRPORecipe, GRPOConfig, ModelConfig)
    held = held_out(recipe.env, recipe.eval_levels, recipe.eval_problems, recipe.eval_seed)
    _, problems = draw_problems(recipe, config, held)
    check_settings(tiny_tokenizer(), CONTEXT, problems, recipe, config, options)
    assert recipe.warmup is None or (root / recipe.warmup).is_file()


def test_the_batch_is_shared_out_over_the_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"batch_size": "64", "gradient_accumulation_steps": 2}
    assert share_out(settings)["per_device_train_batch_size"] == 32
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert share_out(settings) == {"per_device_train_batch_size": 8, "gradient_accumulation_steps": 2}
    with pytest.raises(ValueError, match="multiple of 8"):
        share_out({**settings, "batch_size": 60})
    with pytest.raises(ValueError, match="not both"):
        share_out({"batch_size": 64, "per_device_train_batch_size": 64})
    file = write(tmp_path / "a.yaml", "batch_size: 64\n")
    given = read_settings(["--config", str(file), "--per_device_train_batch_size", "2"], tmp_path / "none.yaml")
    assert "batch_size" not in given and share_out(given)["per_device_train_batch_size"] == 2


def test_stages_are_read_from_yaml_and_checked() -> None:
    stages = [{"levels": [{"max_steps": 2}], "problems": 3}, {"levels": [{"max_steps": 5, "weight": 2}], "problems": 4}]
    (recipe,) = make_configs({"eval_levels": [{}], "stages": stages}, SFTRecipe)
    assert [(s.problems, s.levels) for s in recipe.stages] == [(3, [{"max_steps": 2}]), (4, [{"max_steps": 5, "weight": 2}])]
    for wrong, message in (
        ([], "give at least one stage"),
        ([{"levels": [], "problems": 3}], "give at least one level"),
        ([{"levels": [{}]}], "stages.0.problems: field required"),
        ([{"levels": [{}], "problems": 1, "sped": 2}], "sped"),
    ):
        with pytest.raises(ValueError, match=message) as error:
            make_configs({"eval_levels": [{}], "stages": wrong}, SFTRecipe)
        assert "\n" not in str(error.value)
