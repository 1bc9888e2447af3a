"""Completions as people look at them while a run goes on: every step in the colour of its verdict, with the advantage it got."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envs.verdict import Verdict
from tmtrain.credit import CreditedStep

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True, slots=True)
class Completion:
    """One rollout.

    Attributes:
        prompt: Its text.
        ids: The completion's tokens.
        steps: The steps with credit, on their tokens.
        advantages: Of each token, as the loss takes them.
        verdict: The check.
    """

    prompt: str
    ids: Sequence[int]
    steps: Sequence[CreditedStep]
    advantages: Sequence[float]
    verdict: Verdict


def show(completions: Sequence[Completion], tokenizer: Any, step: int, *, printed: int | None, file: Path) -> None:
    """Prints the first `printed` completions (None: all) and writes all of them as an HTML page to `file`."""
    from rich.console import Console, Group

    panels = [_panel(c, tokenizer) for c in completions]
    shown = panels[:printed]
    if shown:
        Console().print(f"step {step}:", Group(*shown))
    page = Console(record=True, file=io.StringIO(), width=140)
    page.print(f"step {step}: right steps are green, wrong ones red, what has no step of its own or comes from the environment grey;")
    page.print("the small figure after a step is the advantage of its tokens", Group(*panels))
    file.parent.mkdir(parents=True, exist_ok=True)
    page.save_html(str(file))


def _panel(completion: Completion, tokenizer: Any) -> RenderableType:
    from rich.panel import Panel
    from rich.text import Text

    text = Text(overflow="fold")
    text.append(completion.prompt.rstrip() + "\n", style="dim")
    for ids, step, advantage in _parts(completion):
        written = tokenizer.decode(ids, skip_special_tokens=step is None)
        text.append(written, style="bright_black" if step is None else "green" if step.reward > 0 else "red")
        if step is not None:
            text.append(f" {advantage:+.2f} ", style="dim cyan")
    verdict = completion.verdict
    title = f"{verdict.ending.value}, {sum(s.correct for s in verdict.due)} of {len(verdict.due)} steps right"
    return Panel(text, title=title, title_align="left", border_style="green" if verdict.success else "red")


def _parts(completion: Completion) -> Iterator[tuple[Sequence[int], CreditedStep | None, float]]:
    """The completion in pieces: each credited step, and what lies between."""
    at = 0
    for step in sorted(completion.steps, key=lambda s: s.start):
        if step.start > at:
            yield completion.ids[at : step.start], None, 0.0
        if step.end > step.start:
            yield completion.ids[step.start : step.end], step, completion.advantages[step.start]
        at = max(at, step.end)
    if at < len(completion.ids):
        yield completion.ids[at:], None, 0.0
