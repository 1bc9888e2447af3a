"""TRL's GRPOTrainer with the environment's verdicts: rewards, multi-turn rollouts, and an advantage for each token."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import gather_object, is_peft_model
from trl import GRPOTrainer

from envs.verdict import Verdict
from eval.records import write_json
from tmtrain import completions, credit
from tmtrain.curriculum import Curriculum, CurriculumSampler
from tmtrain.generation import hand_over_by_layer
from tmtrain.rewards import PARTS, VerdictRewards
from tmtrain.rollout import WorldRollouts

CURRICULUM = "curriculum.json"


class VerdictTrainer(GRPOTrainer):
    """With step credit, replaces the advantages of shape (B,) that TRL computes by ones of shape (B, T), which its loss takes as they are.

    Args:
        mode: `outcome`, `process` or `step_baseline`, see `tmtrain.credit`.
        outcome_weight: With step credit, the share of TRL's own advantage (of the weighed rewards, normalised over the group) on every
            token; the step advantages have the rest.
        checker: The rewards, which keep the verdicts on the single-turn rollouts at hand.
        rollouts: Plays multi-turn episodes; None where every episode is one reply.
        curriculum: Draws the rows, whose column `level` it follows; None draws them as TRL does.

    Attributes:
        rows: The dataset rows of the batch at hand, which TRL does not hand to a rollout function.
    """

    def __init__(
        self,
        *args: Any,
        mode: str,
        outcome_weight: float,
        checker: VerdictRewards,
        rollouts: WorldRollouts | None = None,
        curriculum: Curriculum | None = None,
        **kwargs: Any,
    ) -> None:
        self.curriculum = curriculum
        super().__init__(*args, reward_funcs=checker.functions, rollout_func=rollouts, **kwargs)
        if self.use_vllm and is_peft_model(self.model) and self._dist.is_zero3:
            hand_over_by_layer(self)
        self._estimate = {"outcome": None, "process": credit.process, "step_baseline": credit.step_baseline}[mode]
        self._outcome_weight, self._checker, self._rollouts = outcome_weight, checker, rollouts
        self._spelling = credit.Spelling(self.processing_class)
        self.rows: list[dict[str, Any]] = []
        # TRL's table shows neither steps nor their advantages: `log` prints instead of it.
        self._printed: int | None = self.args.num_completions_to_print
        self.num_completions_to_print = 0
        self._shown: list[completions.Completion] = []

    def _get_train_sampler(self, dataset: Any = None) -> Any:
        if self.curriculum is None:
            return super()._get_train_sampler(dataset)
        return CurriculumSampler(
            self.curriculum,
            prompts=self.args.generation_batch_size // self.num_generations,
            generations=self.num_generations,
            repeats=self.num_iterations * self.args.steps_per_generation,
            batches=generation_batches(self.args),
        )

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        # Before all else: a checkpoint is whole once transformers has written its state, and earlier ones may be deleted at once.
        if self.curriculum is not None and self.is_world_process_zero():
            folder = Path(self.args.output_dir) / f"checkpoint-{self.state.global_step}"
            folder.mkdir(parents=True, exist_ok=True)
            write_json(folder / CURRICULUM, self.curriculum.state())
        super()._save_checkpoint(model, trial)

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        self.rows = inputs
        output = super()._generate_and_score_completions(inputs)
        mode = "train" if self.model.training else "eval"
        verdicts = [r.verdict for r in self._rollouts.latest] if self._rollouts is not None else [v for v, _, _ in self._checker.latest]
        if self._rollouts is not None:
            for name, value in self._rollouts.metrics().items():
                self._metrics[mode][name].append(self._mean_everywhere(value))
        group = self.num_generations if self.model.training else self.num_generations_eval
        self._silence_equal_groups(verdicts, output["advantages"], group)
        if self.curriculum is not None and mode == "train":
            self._observe(self.curriculum, verdicts, group)
        steps = self._credited_steps() if self._estimate is not None or self.log_completions else []
        if self._estimate is not None:
            self._credit_steps(steps, output, mode, group)
        if self.log_completions:
            self._shown = list(self._completions(steps, output["advantages"]))
        return output

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        super().log(logs, start_time)
        if self.log_completions and self._shown and self.accelerator.is_main_process:
            file = Path(self.args.output_dir) / "completions" / f"step_{self.state.global_step:05d}.html"
            completions.show(self._shown, self.processing_class, self.state.global_step, printed=self._printed, file=file)

    def _completions(self, found: list[list[credit.CreditedStep]], advantages: torch.Tensor) -> Iterator[completions.Completion]:
        """This process's rollouts as `log` shows them."""
        if self._rollouts is not None:
            played = [(r.completion, r.verdict) for r in self._rollouts.latest]
        else:
            played = [(list(ids), verdict) for verdict, _, ids in self._checker.latest]
        for row, (ids, verdict), steps, own in zip(self.rows, played, found, advantages.tolist(), strict=True):
            by_token = own if isinstance(own, list) else [own] * len(ids)
            yield completions.Completion(row["prompt"][-1]["content"], ids, steps, by_token, verdict)

    def _credit_steps(self, steps: list[list[credit.CreditedStep]], output: dict[str, Any], mode: str, group: int) -> None:
        """Puts each step's advantage on its tokens."""
        assert self._estimate is not None
        # Groups may be spread over processes, so all see all rewards and take their own rows.
        rewards = gather_object([[(step.index, step.reward) for step in own] for own in steps])
        first = self.accelerator.process_index * len(steps)
        own = self._estimate(credit.reward_array(rewards), group)[first : first + len(steps)]
        by_token = torch.from_numpy(credit.token_advantages(steps, own, output["completion_ids"].size(1)))
        weight, outcome = self._outcome_weight, output["advantages"].unsqueeze(1)
        output["advantages"] = (1 - weight) * by_token.to(outcome.device) + weight * outcome
        self._metrics[mode]["credit/steps"].append(sum(map(len, rewards)) / len(rewards))
        share = (by_token != 0).sum().item() / max(1, output["completion_mask"].sum().item())
        self._metrics[mode]["credit/nonzero_tokens"].append(self._mean_everywhere(share))

    def _silence_equal_groups(self, verdicts: Sequence[Verdict], advantages: torch.Tensor, group: int) -> None:
        """Makes the advantages of groups that are all alike exactly zero: TRL divides the rounding of r - mean by 1e-4 there, and an update
        of nothing else would be a step of full size."""
        weighed = [part for part, weight in zip(PARTS.values(), self.args.reward_weights, strict=True) if weight]
        own = [tuple(part(v) for part in weighed) if v.ending.scored else None for v in verdicts]
        rewards = gather_object(own)
        equal = [len(set(rewards[i : i + group]) - {None}) <= 1 for i in range(0, len(rewards), group)]
        first = self.accelerator.process_index * len(own)
        for row in range(len(own)):
            if equal[(first + row) // group]:
                advantages[row] = 0.0

    def _observe(self, curriculum: Curriculum, verdicts: Sequence[Verdict], group: int) -> None:
        """Tells the curriculum which groups were informative: those whose rollouts differ in success or in their share of right steps."""
        own = [(row["level"], (v.success, v.step_accuracy)) for row, v in zip(self.rows, verdicts, strict=True)]
        played = gather_object(own)
        groups = [played[i : i + group] for i in range(0, len(played), group)]
        curriculum.observe([(members[0][0], len({reward for _, reward in members}) > 1) for members in groups])
        for level, share in enumerate(curriculum.informative):
            self._metrics["train"][f"curriculum/informative_{level}"].append(share)
            self._metrics["train"][f"curriculum/rows_{level}"].append(sum(row == level for row, _ in played) / len(played))

    def _credited_steps(self) -> list[list[credit.CreditedStep]]:
        if self._rollouts is not None:
            return [rollout.credited() for rollout in self._rollouts.latest]
        return [
            credit.credited_steps(verdict, credit.token_starts(self._spelling, ids, text)) for verdict, text, ids in self._checker.latest
        ]

    def _mean_everywhere(self, value: float) -> float:
        return self.accelerator.gather(torch.tensor([value], device=self.accelerator.device)).mean().item()


def generation_batches(args: Any) -> int:
    """How many batches of rollouts `max_steps` updates take."""
    return math.ceil(args.max_steps * args.gradient_accumulation_steps / (args.steps_per_generation * args.num_iterations))


def restore_curriculum(curriculum: Curriculum | None, checkpoint: str | None) -> None:
    """Restores the curriculum of a training checkpoint; nothing where there is none of either."""
    if curriculum is not None and checkpoint is not None:
        try:
            state = json.loads((Path(checkpoint) / CURRICULUM).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ValueError(f"{checkpoint} holds no state of a curriculum ({error}): resume with the levels it was begun with") from None
        curriculum.restore(state)
