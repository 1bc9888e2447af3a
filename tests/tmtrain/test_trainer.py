"""The trainer: advantages fall on the tokens of their steps, and nothing else moves the loss."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl")

import torch
import transformers
from transformers import TrainerState
from trl import GRPOConfig

from envs.dataset import draw, make_params
from envs.environment import Setting
from envs.problem import Problem
from envs.registry import load_env
from envs.verdict import Ending, Kind, StepVerdict, Verdict
from eval.backends.load import load_policy
from eval.backends.options import Options
from eval.backends.sampling import Sampling
from eval.runs import Evaluation, evaluate
from tmtrain.data import Mixture
from tmtrain.grpo import build_grpo_trainer, watch
from tmtrain.held_out import HeldOutEvaluation
from tmtrain.recipe import GRPORecipe
from tmtrain.sft import last_checkpoint
from tmtrain.tiny import tiny_model, tiny_tokenizer
from tmtrain.trainer import CURRICULUM, restore_curriculum

TOKENIZER = tiny_tokenizer()
END = TOKENIZER.eos_token_id


def trainer(
    path: Path, env: str, problems: list[Problem], grpo: dict[str, Any] | None = None, held: Sequence[Problem] = (), **fields: Any
) -> Any:
    recipe = {"levels": [{}], "eval_levels": [{}], "env": env, "style": "compact", "turn_tokens": 12, "reward": {"step": 1.0}}
    settings: dict[str, Any] = {
        "output_dir": str(path),
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "per_device_train_batch_size": 4,
        "num_generations": 4,
        "max_completion_length": 200,
        "report_to": "none",
        "loss_type": "dapo",
        "max_steps": 1,
        "disable_tqdm": True,
        "save_strategy": "no",
    }
    config = GRPOConfig(**{**settings, **(grpo or {})})
    asked = GRPORecipe(**{**recipe, **fields})
    made = build_grpo_trainer(tiny_model(0), TOKENIZER, Mixture(env, [{}], 0, "test"), problems, asked, config)
    if held:
        watch(made, "tiny", asked, held)
    return made


def say(made: Any, replies: list[str]) -> None:
    """Lets the trainer's generation give these replies, in the order of its calls and rows."""
    script = iter(replies)

    def generate(contexts: list[list[int]], *_: Any) -> tuple[list[list[int]], None]:
        return [TOKENIZER(next(script))["input_ids"] + [END] for _ in contexts], None

    made._generate_single_turn = generate


def rows(made: Any) -> list[dict[str, Any]]:
    return [dict(made.train_dataset[0]) for _ in range(4)]


def loss(made: Any, output: dict[str, Any]) -> float:
    made.current_gradient_accumulation_steps = 1
    with torch.no_grad():
        return float(made._compute_loss(made.model, output))


TAG = load_env("tag").problem(
    {"m": 2, "rules": {"A": "B", "B": "B", "C": "DCB", "D": "C", "E": "C"}, "init": "ECAEE", "max_steps": 3}, split="test/0"
)
PIECES = ["3[ECAEE]", "2.E:C[AEEC]", "1.A:B[ECB]", "0.E:C[BC]"]
REPLIES = ["".join(PIECES), "".join([*PIECES[:2], "1.A:B[ECC]", "0.E:C[CC]"]), "".join(PIECES), "".join(PIECES[:2])]


def test_a_wrong_step_in_the_middle_moves_only_its_own_tokens(tmp_path: Path) -> None:
    made = trainer(tmp_path, "tag", [TAG], credit="step_baseline")
    say(made, REPLIES)
    output = made._generate_and_score_completions(rows(made))
    advantages, one, two, three = output["advantages"], *(len("".join(PIECES[:n])) for n in (2, 3, 4))
    # Step 2: two of three rollouts that state it are right. The end: right in the first three.
    assert not advantages[:, :one][:3].any()
    assert advantages[0, one:two].tolist() == pytest.approx([1 / 3] * (two - one))
    assert advantages[1, one:two].tolist() == pytest.approx([-2 / 3] * (two - one))
    assert not advantages[1, two:three].any(), "what follows an error is not judged"
    assert advantages[3, one].item() == pytest.approx(-3 / 4) and not advantages[3, one + 1 :].any()


def test_groups_that_are_all_alike_move_nothing_under_outcome_credit(tmp_path: Path) -> None:
    """Of eight equal rewards of 0.6 the mean is a hair off, and TRL divides that hair by 1e-4."""
    weights = {"step": 1.0, "success": 0.5, "format": 0.1}
    for outcome in (REPLIES[1], REPLIES[0]):
        grpo = {"per_device_train_batch_size": 16, "num_generations": 8}
        made = trainer(tmp_path, "tag", [TAG], grpo, credit="outcome", reward=weights)
        say(made, [outcome] * 8 + [REPLIES[0]] * 7 + [REPLIES[3]])
        output = made._generate_and_score_completions([dict(made.train_dataset[0]) for _ in range(16)])
        assert not output["advantages"][:8].any() and output["advantages"][8:].all()


def test_a_rollout_without_a_score_does_not_bring_the_rest_to_life(tmp_path: Path) -> None:
    made = trainer(tmp_path, "tag", [TAG], credit="outcome", reward={"step": 1.0, "success": 0.5, "format": 0.1})
    right = Verdict((StepVerdict(0, True, Kind.CORRECT, (0, 1)),), True, Ending.COMPLETED)
    verdicts, advantages = [right, Verdict((), False, Ending.UNREACHABLE), right, right], torch.full((4,), 1e-3)
    made._silence_equal_groups(verdicts, advantages, 4)
    assert not advantages.any()


def test_a_rollout_that_is_all_right_beside_three_alike_gets_nothing(tmp_path: Path) -> None:
    made = trainer(tmp_path, "tag", [TAG], credit="step_baseline")
    say(made, [REPLIES[0]] * 4)
    output = made._generate_and_score_completions(rows(made))
    assert not output["advantages"].any() and loss(made, output) == 0.0


@pytest.mark.parametrize("credit", ["outcome", "process", "step_baseline"])
def test_only_the_models_own_tokens_move_the_loss(credit: str, tmp_path: Path) -> None:
    """A world's feedback, and padding: whatever their advantages, the loss is the same; one model token changes it by its share."""
    (problem,) = islice(draw("listworld", make_params("listworld", {"pops": 2}), seed=1, split="test/0"), 1)
    made = trainer(tmp_path, "listworld", [problem], credit=credit)
    say(made, ["done()", "pop(99)", "hm", "pop(0)", *["pop(99)", "done()", "done()"], *["done()"] * 9])
    output = made._generate_and_score_completions(rows(made))
    own = (output["completion_mask"] * output["tool_mask"]).bool()
    before = loss(made, output)
    assert own.any(dim=1).all() and not own.all(), "there must be tokens of the environment, or padding"
    if output["advantages"].dim() == 1:
        output["advantages"] = output["advantages"].unsqueeze(1).expand(own.shape).clone()
        assert loss(made, output) == pytest.approx(before)
    assert not output["advantages"][~own].any() or credit == "outcome"
    output["advantages"][~own] += 100.0
    assert loss(made, output) == pytest.approx(before, abs=1e-6)
    row, column = (int(i) for i in own.nonzero()[-1])
    output["advantages"][row, column] += 1.0
    assert loss(made, output) == pytest.approx(before - 1 / float(output["num_items_in_batch"]), abs=1e-5)


def test_each_actions_advantage_is_its_own(tmp_path: Path) -> None:
    """ListWorld, four rollouts whose first actions differ: two are optimal, two are not."""
    (problem,) = islice(draw("listworld", make_params("listworld", {"pops": 2}), seed=1, split="test/0"), 1)
    episode = load_env("listworld").start(problem, Setting("compact"))
    right = episode.expert()
    made = trainer(tmp_path, "listworld", [problem], credit="step_baseline")
    say(made, [right, "done()", right, "hm", *["done()"] * 20])
    output = made._generate_and_score_completions(rows(made))
    rollouts = made._rollouts.latest
    first = [output["advantages"][i, slice(*r.turns[0])].unique().tolist() for i, r in enumerate(rollouts)]
    assert first == [[0.5], [-0.5], [0.5], [-0.5]]
    assert json.loads(made.rows[0]["problem"])["id"] == problem.id


def spy(made: Any) -> tuple[dict[tuple[int, ...], list[float]], list[Any]]:
    """What the trainer made of each completion, by its tokens, and the batches that reach the loss."""
    scored, seen = {}, []
    score, compute = made._generate_and_score_completions, made._compute_loss

    def scoring(inputs: Any) -> Any:
        output = score(inputs)
        for ids, mask, advantages in zip(output["completion_ids"], output["completion_mask"].bool(), output["advantages"], strict=True):
            scored[tuple(ids[mask].tolist())] = advantages[mask].tolist()
        return output

    def computing(model: Any, inputs: Any) -> Any:
        seen.append(inputs)
        return compute(model, inputs)

    made._generate_and_score_completions, made._compute_loss = scoring, computing
    return scored, seen


OTHERS = ["3[ECAEE]", "3[ECAEE]2.E:C[AEEB]", "2[ECAEE]", "".join(PIECES[:3])]


@pytest.mark.parametrize("iterations", [1, 2])
@pytest.mark.parametrize("accumulation", [1, 2])
def test_advantages_stay_with_their_rows(iterations: int, accumulation: int, tmp_path: Path) -> None:
    """TRL shuffles the rollouts, splits them over the accumulation and uses them more than once: each keeps its own advantages."""
    grpo = {
        "per_device_train_batch_size": 8 // accumulation,
        "gradient_accumulation_steps": accumulation,
        "num_iterations": iterations,
        "max_steps": iterations,
    }
    made = trainer(tmp_path, "tag", [TAG, TAG], credit="step_baseline", grpo=grpo)
    say(made, [*REPLIES, *OTHERS])
    scored, seen = spy(made)
    made.train()
    assert len(scored) == 7 and len(seen) == accumulation * iterations, "two of the eight are alike"
    for batch in seen:
        for ids, mask, advantages in zip(batch["completion_ids"], batch["completion_mask"].bool(), batch["advantages"], strict=True):
            assert advantages[mask].tolist() == scored[tuple(ids[mask].tolist())]
            assert not advantages[~mask].any()


def test_accumulated_updates_are_those_of_one_batch(tmp_path: Path) -> None:
    weights = []
    for accumulation in (1, 2):
        grpo = {"per_device_train_batch_size": 8 // accumulation, "gradient_accumulation_steps": accumulation, "learning_rate": 1e-3}
        made = trainer(tmp_path / str(accumulation), "tag", [TAG, TAG], credit="process", grpo=grpo)
        say(made, [*REPLIES, *OTHERS])
        made.train()
        weights.append(torch.cat([p.detach().flatten() for p in made.model.parameters()]))
    start = torch.cat([p.detach().flatten() for p in tiny_model(0).parameters()])
    moved = [w - start for w in weights]
    assert moved[0].norm() > 1e-3
    # Adam's first step is the sign of the gradient, so rounding shows where it is nearly zero.
    assert torch.nn.functional.cosine_similarity(moved[0], moved[1], dim=0) > 0.999


def test_problems_that_fill_no_whole_batch_are_left_for_the_next_round(tmp_path: Path) -> None:
    """Five problems, two a batch: every group is whole, and training goes on beyond the last of them."""
    problems = list(islice(draw("tag", make_params("tag", {"max_steps": 2}), seed=1, split="test/0"), 5))
    made = trainer(tmp_path, "tag", problems, credit="step_baseline", grpo={"per_device_train_batch_size": 8, "max_steps": 4})
    say(made, [reply for _ in range(8) for reply in REPLIES])
    groups: list[list[str]] = []
    score = made._generate_and_score_completions

    def scoring(inputs: Any) -> Any:
        groups.extend([row["problem"] for row in inputs[i : i + 4]] for i in (0, 4))
        return score(inputs)

    made._generate_and_score_completions = scoring
    made.train()
    assert made.state.global_step == 4 and len(groups) == 8
    assert all(len(set(group)) == 1 for group in groups)
    assert len({group[0] for group in groups}) == 5


def test_what_people_see_of_completions_is_what_the_loss_takes(tmp_path: Path) -> None:
    made = trainer(tmp_path, "tag", [TAG], credit="step_baseline", grpo={"log_completions": True, "num_completions_to_print": 0})
    say(made, REPLIES)
    made.train()
    page = html.unescape(re.sub(r"<[^>]*>", "", (tmp_path / "completions" / "step_00001.html").read_text(encoding="utf-8")))
    text = re.sub(r"[\s│]+", " ", page)
    assert "completed, 4 of 4 steps right" in text and "wrong, 2 of 4 steps right" in text
    assert "1.A:B[ECB] +0.33" in text and "1.A:B[ECC] -0.67" in text
    assert "0.E:C[BC] +0.00" in text and "0.E:C[CC] -0" not in text, "what follows an error is not judged"


@pytest.mark.parametrize(("last", "step"), [("the state", 1), ("deleting earlier checkpoints", 2)])
def test_a_run_stopped_while_it_saves_goes_on_from_a_whole_checkpoint(
    last: str, step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped before its second checkpoint's last file is written, or right after, when the first one is deleted already."""
    grpo = {"save_strategy": "steps", "save_steps": 1, "max_steps": 3, "save_total_limit": 1}
    made = trainer(tmp_path, "tag", [TAG], curriculum="success", grpo=grpo)
    say(made, 3 * REPLIES)
    write, rotate = TrainerState.save_to_json, transformers.trainer.rotate_checkpoints

    def stop_before(state: TrainerState, path: str) -> None:
        if state.global_step == 2:
            raise KeyboardInterrupt
        write(state, path)

    def stop_after(**arguments: Any) -> None:
        rotate(**arguments)
        if made.state.global_step == 2:
            raise KeyboardInterrupt

    if last == "the state":
        monkeypatch.setattr(TrainerState, "save_to_json", stop_before)
    else:
        monkeypatch.setattr(transformers.trainer, "rotate_checkpoints", stop_after)
    with pytest.raises(KeyboardInterrupt):
        made.train()
    monkeypatch.undo()
    assert (tmp_path / "checkpoint-2" / "optimizer.pt").exists() and (tmp_path / "checkpoint-1").exists() == (step == 1)
    begun = last_checkpoint(str(tmp_path), also=[CURRICULUM])
    assert begun == str(tmp_path / f"checkpoint-{step}")
    again = trainer(tmp_path, "tag", [TAG], curriculum="success", grpo=grpo)
    say(again, 2 * REPLIES)
    restore_curriculum(again.curriculum, begun)
    again.train(resume_from_checkpoint=begun)
    assert [f.name for f in tmp_path.glob("checkpoint-*")] == ["checkpoint-3"]
    assert last_checkpoint(str(tmp_path), also=[CURRICULUM]) == str(tmp_path / "checkpoint-3")


@pytest.mark.slow
@pytest.mark.parametrize("env", ["listworld", "gridworld"])
def test_a_world_is_trained_on_by_real_generation(env: str, tmp_path: Path) -> None:
    problems = list(islice(draw(env, make_params(env, {}), seed=1, split="test/0"), 4))
    made = trainer(tmp_path, env, problems, credit="step_baseline", outcome_weight=0.5, reward={"step": 1.0, "format": 0.1})
    made.train()
    logged = made.state.log_history[0]
    assert {"turns/mean", "endings/no_answer", "credit/steps", "rewards/step/mean"} <= logged.keys()
    assert logged["turns/mean"] >= 1 and all(torch.isfinite(v).all() for v in made.model.state_dict().values())


@pytest.mark.slow
@pytest.mark.parametrize(("env", "temperature"), [("tag", 0.0), ("listworld", 0.0), ("listworld", 0.7)])
def test_evaluation_while_training_changes_nothing_and_agrees_with_the_evaluator(env: str, temperature: float, tmp_path: Path) -> None:
    """The weights after two updates with evaluation equal those without; the last summary is the evaluator's own on the saved model, where
    nothing is drawn."""
    knobs = {"max_steps": 2} if env == "tag" else {"pops": 1}
    problems = list(islice(draw(env, make_params(env, knobs), seed=1, split="test/0"), 4))
    held = list(islice(draw(env, make_params(env, knobs), seed=1, split="held"), 6))
    weights, made = [], None
    for every in (0, 1):
        torch.manual_seed(0)
        made = trainer(
            tmp_path / str(every), env, problems, held=held if every else (), eval_every=every, eval_max_tokens=12, min_start_accuracy=0.0,
            eval_temperature=temperature, credit="outcome", reward={"format": 1.0},
        )  # fmt: skip
        made.args.max_steps = 2
        made.train()
        weights.append({k: v.clone() for k, v in made.model.state_dict().items()})
    assert all(torch.equal(weights[0][k], weights[1][k]) for k in weights[0])
    folder = tmp_path / "1"
    assert sorted(p.name for p in (folder / "held_out").iterdir()) == ["step_1.json", "step_2.json"]
    assert any("held_out/success_rate" in entry for entry in made.state.log_history)
    note = json.loads((folder / "best" / "held_out.json").read_text())
    assert note["step"] == 1 and (folder / "best" / "model.safetensors").is_file(), "no later step scored higher"

    made.save_model(str(tmp_path / "model"))
    policy = load_policy(str(tmp_path / "model"), Sampling(max_tokens=12), Options(backend="transformers"))
    evaluation = Evaluation(sorted(held, key=lambda p: p.id), "held", Setting("compact"))
    summary = evaluate(policy, evaluation, tmp_path / "run", progress=False)
    during = json.loads((folder / "held_out" / "step_2.json").read_text())
    before = json.loads((folder / "eval_before" / "summary.json").read_text())
    told = json.loads((folder / "eval_before" / "manifest.json").read_text())["policy"]["sampling"]["temperature"]
    assert told == temperature
    watching = next(c for c in made.callback_handler.callbacks if isinstance(c, HeldOutEvaluation))
    again = []
    for ambient in (1, 2):
        torch.manual_seed(ambient)
        again.append([r.messages for r in watching._play()[1]])
    assert again[0] == again[1], "what is drawn depends on the seed alone"
    assert before["episodes"] == 6 and len((folder / "eval_before" / "samples.jsonl").read_text().splitlines()) == 6
    assert temperature or {k: during[k] for k in ("episodes", "success_rate", "acc", "tokens")} == {
        k: summary[k] for k in ("episodes", "success_rate", "acc", "tokens")
    }
