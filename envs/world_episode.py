"""One multi-turn problem being played: messages, oracles, actions, budget and verdict, the same for every world."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from envs.action import DONE, Action, Signature, read_action
from envs.environment import Episode, Message, Setting
from envs.game import Game
from envs.verdict import Ending, Kind, StepVerdict, Verdict

UNREACHABLE = "The goal cannot be reached from the start: this problem is not scored."


class WorldEpisode(Episode):
    """Plays a game turn by turn: one reply, one action, one step verdict.

    A reply that is not exactly one valid action, or whose action the game refuses, is `invalid`: the state stays and one unit of the
    budget is spent. An action in a state from which the goal is out of reach is `dead`. A step's span is the whole reply without the
    white space around it, since reasoning and action are one decision.

    The episode ends at `done()`: `completed` where the goal holds, else `wrong`. It also ends when the budget no longer pays for
    `done()`: `over_budget`; but `truncated` where a token limit cut the last reply before its action, and `no_answer` where no reply
    at all held a call that could be read. A cut reply whose action is there counts like any other. Where the goal cannot be reached
    from the start, the episode is over at once as `unreachable`. After the end, replies change nothing.

    Attributes:
        state: The game's state.
        budget: What may be spent.
        cost: What has been spent.
        action: The last action that was read, or None where the last reply held none.
        feedback: What the environment said to the last reply.
        observation: What the policy is told this turn: feedback, what is left of the budget, and what the oracles say.
        steps: The verdicts so far.
        ending: How the episode ended, or None.
    """

    def __init__(
        self, game: Game[Any], signatures: Mapping[str, Signature], setting: Setting, budget: int, *, opening: str, done_cost: int
    ) -> None:
        """Starts the episode.

        Args:
            game: The problem's rules.
            signatures: All actions by name.
            setting: How it is put.
            budget: What may be spent.
            opening: The first message before the problem's own statement.
            done_cost: What `done()` takes from the budget.
        """
        self.game, self.setting, self.budget = game, setting, budget
        self.state: Any = game.initial
        self.cost = 0
        self.action: Action | None = None
        self.feedback = ""
        self.steps: list[StepVerdict] = []
        self.ending: Ending | None = None
        self.over = False
        self._signatures, self._done_cost = signatures, done_cost
        self._verbose = setting.style == "verbose"
        self._separator = "\n" if self._verbose else " "
        self._answered = False
        self.optimal = game.optimal(self.state)  #: the complete optimal set of the current state, the expert's choice first
        self._task = opening + game.statement(setting.style)
        self.observation = self._observe("")
        self.messages: list[Message] = [self._whole()]
        if not self.optimal:
            self.feedback = UNREACHABLE
            self.end(Ending.UNREACHABLE)

    @property
    def success(self) -> bool:
        """Whether the goal held at `done()`, within the budget."""
        return self.ending is Ending.COMPLETED

    @property
    def optimal_actions(self) -> list[str]:
        """The optimal actions of the current state in canonical writing, sorted; none where the goal is out of reach or at the end."""
        return [] if self.over else sorted(map(str, self.optimal))

    @property
    def state_text(self) -> str:
        """The exact current state, as the state oracle gives it."""
        return self.game.state_text(self.state, self.setting.style)

    @property
    def plan_text(self) -> str:
        """The next subtask, as the plan oracle gives it."""
        if self.optimal:
            return self.game.plan_text(self.state, self.setting.style)
        return "The goal is out of reach." if self._verbose else "-"

    def reply(self, text: str, *, truncated: bool = False) -> None:
        if self.over:
            return
        turn = len(self.steps)
        kind, cost = self._take(self.read(text))
        self.cost += cost
        end = len(text.rstrip())
        span = (len(text) - len(text.lstrip()), end) if end else None
        self.steps.append(StepVerdict(turn, kind is Kind.CORRECT, kind, span, turn=turn))
        self.messages.append({"role": "assistant", "content": text})
        if self.ending is None and self.cost + self._done_cost > self.budget:
            self.ending = self._exhausted(truncated)
        if self.ending is not None:
            self.over = True
            return
        self.observation = self._observe(self.feedback if self._verbose or kind is not Kind.INVALID else "!")
        if self.setting.history:
            self.messages = [self._whole()]
        else:
            self.messages.append({"role": "user", "content": self.observation})

    def read(self, text: str) -> Action | str:
        """The action of a reply in its canonical form, or one line that says why there is none."""
        action = read_action(text, self._signatures)
        return action if isinstance(action, str) else self.game.normal(action)

    def end(self, ending: Ending) -> None:
        if not self.over:
            self.ending = ending
            self.over = True

    def verdict(self) -> Verdict:
        """The checked steps so far; while the episode is not over, as if the policy answered no more."""
        return Verdict(tuple(self.steps), self.success, self.ending or Ending.NO_ANSWER)

    def expert(self) -> str:
        """An optimal action, always the same one, with reasoning; where the goal is out of reach, `done()`."""
        if not self.optimal:
            return self.written("The goal is out of reach now, so I stop.", DONE)
        action = self.optimal[0]
        return self.written(self.game.thought(self.state, action) if self._verbose else "", action)

    def noisy(self, rng: random.Random, rate: float) -> str:
        """With probability `rate` a legal action that is not optimal, uniformly drawn; otherwise, or where there is none, the expert's."""
        if rng.random() < rate and (others := [a for a in self.game.legal(self.state) if a not in self.optimal]):
            return self.written("I will try this.", rng.choice(others))
        return self.expert()

    def random(self, rng: random.Random) -> str:
        """One of the legal actions, uniformly."""
        return self.written("I will try this.", rng.choice(self.game.legal(self.state)))

    def written(self, thought: str, action: Action) -> str:
        """An action as a reply: in verbose style the thought and a fenced block, in compact style the bare call."""
        call = self.game.written(action, self.setting.style)
        return f"{thought}\n```python\n{call}\n```" if self._verbose else call

    def _take(self, action: Action | str) -> tuple[Kind, int]:
        """Carries out what was read from a reply; returns what kind of step that is and what it costs."""
        if isinstance(action, str):
            self.action, self.feedback = None, action
            return Kind.INVALID, 1
        self.action, self._answered = action, True
        kind = Kind.CORRECT if action in self.optimal else Kind.WRONG if self.optimal else Kind.DEAD
        if action == DONE:
            reached = kind is Kind.CORRECT
            self.feedback = "The goal is reached." if reached else "The task ended, but the goal is not reached."
            self.ending = Ending.COMPLETED if reached else Ending.WRONG
            return kind, self._done_cost
        before = self.state
        self.state, cost, refusal = self.game.act(before, action)
        if refusal:
            self.feedback = refusal
            return Kind.INVALID, cost
        self.feedback = self.game.feedback(before, action, self.state, self.setting.style)
        self.optimal = self.game.optimal(self.state)
        return kind, cost

    def _observe(self, told: str) -> str:
        """Joins what the environment says this turn. With history pruning the feedback belongs to the past and is left out."""
        parts = [told] if told and not self.setting.history else []
        if self._verbose:
            parts.append(f"Budget left: {self.budget - self.cost}")
        if self.setting.plan:
            parts.append(("Plan: " if self._verbose else "P:") + self.plan_text)
        if self.setting.state:
            parts.append(("State: " if self._verbose else "S:") + self.state_text)
        return self._separator.join(parts)

    def _whole(self) -> Message:
        """The task and what is told this turn, in one message."""
        observation = self.observation
        return {"role": "user", "content": self._task + self._separator + observation if observation else self._task}

    def _exhausted(self, truncated: bool) -> Ending:
        """The ending where the budget is spent, see the class."""
        if truncated and self.action is None:
            return Ending.TRUNCATED
        return Ending.OVER_BUDGET if self._answered else Ending.NO_ANSWER
