"""TRL's GRPOTrainer with the environment's verdicts: rewards, multi-turn rollouts, and an advantage for each token."""

from __future__ import annotations

from typing import Any

import torch
from accelerate.utils import gather_object
from trl import GRPOTrainer

from tmtrain import credit
from tmtrain.rewards import VerdictRewards
from tmtrain.rollout import WorldRollouts


class VerdictTrainer(GRPOTrainer):
    """With step credit, replaces the advantages of shape (B,) that TRL computes by ones of shape (B, T), which its loss takes as they are.

    Args:
        mode: `outcome`, `process` or `step_baseline`, see `tmtrain.credit`.
        outcome_weight: With step credit, the share of TRL's own advantage (of the weighed rewards, normalised over the group) on every
            token; the step advantages have the rest.
        checker: The rewards, which keep the verdicts on the single-turn rollouts at hand.
        rollouts: Plays multi-turn episodes; None where every episode is one reply.

    Attributes:
        rows: The dataset rows of the batch at hand, which TRL does not hand to a rollout function.
    """

    def __init__(
        self, *args: Any, mode: str, outcome_weight: float, checker: VerdictRewards, rollouts: WorldRollouts | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, reward_funcs=checker.functions, rollout_func=rollouts, **kwargs)
        self._estimate = {"outcome": None, "process": credit.process, "step_baseline": credit.step_baseline}[mode]
        self._outcome_weight, self._checker, self._rollouts = outcome_weight, checker, rollouts
        self.rows: list[dict[str, Any]] = []

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        self.rows = inputs
        output = super()._generate_and_score_completions(inputs)
        mode = "train" if self.model.training else "eval"
        if self._rollouts is not None:
            for name, value in self._rollouts.metrics().items():
                self._metrics[mode][name].append(self._mean_everywhere(value))
        if self._estimate is None:
            return output
        group = self.num_generations if self.model.training else self.num_generations_eval
        steps = self._credited_steps()
        # Groups may be spread over processes, so all see all rewards and take their own rows.
        rewards = gather_object([[(step.index, step.reward) for step in own] for own in steps])
        first = self.accelerator.process_index * len(steps)
        own = self._estimate(credit.reward_array(rewards), group)[first : first + len(steps)]
        by_token = torch.from_numpy(credit.token_advantages(steps, own, output["completion_ids"].size(1)))
        weight, outcome = self._outcome_weight, output["advantages"].unsqueeze(1)
        output["advantages"] = (1 - weight) * by_token.to(outcome.device) + weight * outcome
        self._metrics[mode]["credit/steps"].append(sum(map(len, rewards)) / len(rewards))
        self._metrics[mode]["credit/nonzero_tokens"].append((by_token != 0).sum().item() / max(1, output["completion_mask"].sum().item()))
        return output

    def _credited_steps(self) -> list[list[credit.CreditedStep]]:
        if self._rollouts is not None:
            return [rollout.credited() for rollout in self._rollouts.latest]
        return [
            credit.credited_steps(verdict, credit.token_starts(self.processing_class, ids, text))
            for verdict, text, ids in self._checker.latest
        ]

    def _mean_everywhere(self, value: float) -> float:
        return self.accelerator.gather(torch.tensor([value], device=self.accelerator.device)).mean().item()
