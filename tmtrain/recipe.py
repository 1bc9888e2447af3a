"""The fields that all recipes share, beside TRL's own configuration."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from envs.environment import ORACLES, Setting
from eval.backends.chat import Chat
from eval.summary import RATES


@dataclass
class Recipe:
    """What every recipe says.

    Attributes:
        model: `tiny` or `specialist`, built here (see `tmtrain.models.FRESH`), a checkpoint folder or a model of the hub.
        env: The environment of levels that do not name one by their key `env`.
        style: Prompt style.
        oracles: What the environment tells in multi-turn worlds: none, plan, state, plan+state, …
        thinking: The chat template's thinking switch, in rollouts and in evaluation: `on`, `off`, or `template` for what the template
            does by itself (in worlds, off where there is a switch).
        eval_levels: Levels of the held-out problems; a level is a set of the generator's knobs, such as `{max_steps: 5}`.
        eval_problems: Held-out problems a level.
        eval_seed: Seed of the held-out streams; with `eval_levels` and `eval_problems` it fixes the problems.
        eval_batch_size: Prompts decoded together in evaluation.
        eval_temperature: Sampling temperature in evaluation; 0 is greedy.
        eval_max_tokens: Most new tokens a reply in evaluation; by default half as many again as the expert's longest reply has.
        resume: Go on with the run in `output_dir`.
        trust_remote_code: Run code that comes with the model.
    """

    model: str = "tiny"
    env: str = "tag"
    style: str = "verbose"
    oracles: str = "none"
    thinking: str = "template"
    eval_levels: list[dict[str, Any]] = field(default_factory=list)
    eval_problems: int = 200
    eval_seed: int = 1
    eval_batch_size: int = 64
    eval_temperature: float = 0.0
    eval_max_tokens: int | None = None
    resume: bool = False
    trust_remote_code: bool = False

    def __post_init__(self) -> None:
        if not self.eval_levels:
            raise ValueError("eval_levels: give at least one level to evaluate on, such as {max_steps: 5}")
        for name in ("eval_problems", "eval_batch_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.eval_temperature < 0:
            raise ValueError(f"eval_temperature must be at least 0, not {self.eval_temperature}")
        if self.thinking not in ("template", "on", "off"):
            raise ValueError(f"thinking is template, on or off, not {self.thinking!r}")
        self.settings = tuple(Setting.parse(name, self.style) for name in self._oracle_settings())
        self.setting = self.settings[0]

    def _oracle_settings(self) -> tuple[str, ...]:
        return (self.oracles,)

    def chat(self, tokenizer: Any, name: str, *, multi_turn: bool) -> Chat:
        """How prompts are put. Raises ValueError where the template lacks what is asked of it, see `eval.backends.chat.Chat`."""
        thinking = "prefer-off" if multi_turn and self.thinking == "template" else self.thinking
        return Chat(tokenizer, name=name, thinking=thinking)


@dataclass
class Stage:
    """A part of the training data.

    Attributes:
        levels: The mixture: each a set of the generator's knobs, with its `weight` (default 1).
        problems: How many problems are drawn from it.
    """

    levels: list[dict[str, Any]]
    problems: int
    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}  # a misspelt field is an error here too

    def __post_init__(self) -> None:
        if not self.levels:
            raise ValueError("levels: give at least one level to train on, such as {max_steps: 5}")
        if self.problems < 1:
            raise ValueError(f"problems must be at least 1, not {self.problems}")


@dataclass
class SFTRecipe(Recipe):
    """Fields of the SFT recipes.

    With `oracles: all` the demonstrations take turns in the six settings, and the held-out problems are evaluated without oracles.

    Attributes:
        stages: What is trained on, one stage after the other: a curriculum where there are several.
        position_gap: Largest random gap between the positions of a prompt and of its reply, see `tmtrain.positions`; 0 leaves none.
        bucket_tokens: Most tokens, padding included, of a bucket of rows of like length; `batch_size` then counts buckets, see
            `tmtrain.buckets`. 0 makes batches of rows.
        whole_logits: Compute the loss from the logits of all tokens at once, as transformers does. TRL goes through them in pieces and
            also measures entropy and token accuracy, which saves memory and, on a CPU, more than doubles the time of a small model.
    """

    stages: list[Stage] = field(default_factory=list)
    position_gap: int = 0
    bucket_tokens: int = 0
    whole_logits: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.stages:
            raise ValueError("stages: give at least one stage to train on, such as {levels: [{max_steps: 5}], problems: 1000}")
        for name in ("position_gap", "bucket_tokens"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be at least 0, not {getattr(self, name)}")

    def _oracle_settings(self) -> tuple[str, ...]:
        return ORACLES if self.oracles == "all" else super()._oracle_settings()


@dataclass
class GRPORecipe(Recipe):
    """Fields of the GRPO recipes.

    Attributes:
        levels, problems: What is trained on, see `Stage`.
        turn_tokens: Most tokens a reply in multi-turn worlds; `max_completion_length` bounds the whole episode.
        warmup: An SFT recipe (a path relative to the working directory) that is run first and whose result is trained on.
        credit: Where advantages fall: `outcome` (plain GRPO: on the whole reply alike), `process` or `step_baseline`, see
            `tmtrain.credit`.
        outcome_weight: With step credit, the share of the outcome's advantage, 0…1. At 0 the weights of `reward` train nothing.
        curriculum: `none` draws levels by their weights; `success` by how often their groups differed lately, see `tmtrain.curriculum`.
            Levels join in at their `from`, either way.
        eval_every: Steps between evaluations on the held-out problems while training; 0 evaluates before and after only.
        best_metric: With `eval_every`: the score by which the best checkpoint is kept, see `eval.summary.RATES`.
        min_start_accuracy: Least share of right steps, the first of each episode left out, that the model must get before GRPO on the
            held-out problems: a policy that is never right has nothing to be rewarded for. 0 starts from anything.
        reward: Weights of the reward's parts: `step` (share of correct steps), `success`, `format` (share of readable steps). With step
            credit a step's own reward is 1 where it is right, else 0, and these weights count only through `outcome_weight`.
    """

    levels: list[dict[str, Any]] = field(default_factory=list)
    problems: int = 1000
    turn_tokens: int = 256
    warmup: str | None = None
    credit: str = "outcome"
    outcome_weight: float = 0.0
    curriculum: str = "none"
    eval_every: int = 0
    best_metric: str = "success_rate"
    min_start_accuracy: float = 0.02
    reward: dict[str, float] = field(default_factory=lambda: {"step": 1.0, "success": 0.0, "format": 0.0})

    def __post_init__(self) -> None:
        super().__post_init__()
        Stage(self.levels, self.problems)
        from tmtrain.credit import MODES
        from tmtrain.rewards import PARTS

        if self.credit not in MODES:
            raise ValueError(f"credit: unknown mode {self.credit!r}; the modes are {', '.join(MODES)}")
        from tmtrain.curriculum import KINDS

        if self.curriculum not in KINDS:
            raise ValueError(f"curriculum: unknown kind {self.curriculum!r}; the kinds are {', '.join(KINDS)}")
        if self.best_metric not in RATES:
            raise ValueError(f"best_metric: unknown score {self.best_metric!r}; the scores are {', '.join(RATES)}")
        if not 0 <= self.outcome_weight <= 1:
            raise ValueError(f"outcome_weight must lie in 0…1, not {self.outcome_weight}")
        for name, weight in self.reward.items():
            if name not in PARTS:
                raise ValueError(f"reward: unknown part {name!r}; the parts are {', '.join(PARTS)}")
            if weight < 0:
                raise ValueError(f"reward: the weight of {name} must be at least 0, not {weight}")
        if not any(self.reward.values()):
            raise ValueError("reward: all weights are zero, so nothing would be learned")
