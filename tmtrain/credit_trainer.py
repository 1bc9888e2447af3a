"""TRL's GRPOTrainer with an advantage for each token: the step's own, mixed with the reply's."""

from __future__ import annotations

from typing import Any

import torch
from accelerate.utils import gather_object
from trl import GRPOTrainer

from tmtrain import credit
from tmtrain.rewards import VerdictRewards


class StepCreditTrainer(GRPOTrainer):
    """Replaces the advantages of shape (B,) that TRL computes by ones of shape (B, T), which its loss takes as they are.

    Args:
        mode: `process` or `step_baseline`, see `tmtrain.credit`.
        outcome_weight: Share of TRL's own advantage (of the weighed rewards, normalised over the group) on every token; the step
            advantages have the rest.
        checker: The rewards, which keep the verdicts on the rollouts at hand.
    """

    def __init__(self, *args: Any, mode: str, outcome_weight: float, checker: VerdictRewards, **kwargs: Any) -> None:
        super().__init__(*args, reward_funcs=checker.functions, **kwargs)
        self._estimate = {"process": credit.process, "step_baseline": credit.step_baseline}[mode]
        self._outcome_weight, self._checker = outcome_weight, checker

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        output = super()._generate_and_score_completions(inputs)
        group = self.num_generations if self.model.training else self.num_generations_eval
        steps = []
        for verdict, text, ids in self._checker.latest:
            steps.append(credit.credited_steps(verdict, credit.token_starts(self.processing_class, ids, text)))
        # Groups may be spread over processes, so all see all rewards and take their own rows.
        rewards = gather_object([[(step.index, step.reward) for step in own] for own in steps])
        first = self.accelerator.process_index * len(steps)
        own = self._estimate(credit.reward_array(rewards), group)[first : first + len(steps)]
        by_token = torch.from_numpy(credit.token_advantages(steps, own, output["completion_ids"].size(1)))
        weight, outcome = self._outcome_weight, output["advantages"].unsqueeze(1)
        output["advantages"] = (1 - weight) * by_token.to(outcome.device) + weight * outcome
        mode = "train" if self.model.training else "eval"
        self._metrics[mode]["credit/steps"].append(sum(map(len, rewards)) / len(rewards))
        self._metrics[mode]["credit/nonzero_tokens"].append((by_token != 0).sum().item() / max(1, output["completion_mask"].sum().item()))
        return output
