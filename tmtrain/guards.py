"""Stops a run early, with one line, where it has stopped learning anything or learns from the wrong model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transformers import TrainerCallback

#: So many logs in a row must show a fault before the run is stopped for it.
PATIENCE = 5
#: Mean difference of the rollout engine's and the trainer's log-probabilities beyond which its weights are not the trainer's. Fresh
#: weights give 0.001 in fp32 and some hundredths in bf16; stale ones drift to 0.25 within a few updates.
MOST_DIFFERENCE = 0.1


class Guards(TrainerCallback):
    """Looks at what GRPO logs. Raises ValueError, in every process alike, since what is logged is gathered from all."""

    def __init__(self) -> None:
        self._seen = {"reward": 0, "truncated": 0, "stale": 0}

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **_: Any) -> None:
        logs = logs or {}
        if "reward" not in logs:
            return
        # With step credit, replies of equal reward may still differ in their steps.
        equal = logs.get("frac_reward_zero_std") == 1.0 and logs.get("credit/nonzero_tokens", 0.0) == 0.0
        if self._repeated("reward", equal):
            raise ValueError(
                f"stopped at step {state.global_step}: in the last {PATIENCE} logs every group's rewards were all equal "
                f"(mean {logs['reward']:.3f}), so nothing is learned: choose levels that the model gets right now and then"
            )
        if self._repeated("truncated", logs.get("completions/clipped_ratio") == 1.0):
            raise ValueError(
                f"stopped at step {state.global_step}: in the last {PATIENCE} logs every completion was cut off: raise "
                "max_completion_length, or warm up until replies end"
            )
        difference = logs.get("sampling/sampling_logp_difference/mean", 0.0)
        if self._repeated("stale", difference > MOST_DIFFERENCE):
            raise ValueError(
                f"stopped at step {state.global_step}: the rollout engine's log-probabilities differ from the trainer's by "
                f"{difference:.3f} on average: its weights are stale; check the weight sync of this vLLM version"
            )

    def _repeated(self, fault: str, present: bool) -> bool:
        self._seen[fault] = self._seen[fault] + 1 if present else 0
        return self._seen[fault] >= PATIENCE
