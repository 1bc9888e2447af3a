"""One self-contained HTML page about one or several runs, and the plots as PNG files beside it."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval.plots import endings_figure, horizon_figure, step_accuracy_figure, tokens_figure
from eval.records import EpisodeRecord, read_manifest, read_records
from eval.statistics import percent, percent_difference
from eval.summary import summarise

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Episodes of each run that the page lets one read; the rest stay in samples.jsonl.
MOST_SAMPLES = 50


@dataclass(frozen=True, slots=True)
class Run:
    """A run directory, read. The summary is made from the records, so a run that was interrupted can be looked at as well."""

    name: str
    manifest: dict[str, Any]
    records: list[EpisodeRecord]
    summary: dict[str, Any]


def read_runs(paths: Sequence[str | Path]) -> list[Run]:
    """Reads run directories; each is called by its folder's name, with as many of those above as tell it from the others.

    Raises:
        ValueError: Where one is no run directory, holds no finished episode, or is named twice.
    """
    folders = [Path(p).resolve() for p in paths]
    if len(set(folders)) < len(folders):
        raise ValueError(f"{next(p for p, f in zip(paths, folders, strict=True) if folders.count(f) > 1)} is named twice")
    runs = []
    for path, folder in zip(paths, folders, strict=True):
        records = read_records(path)
        if not records:
            raise ValueError(f"{path} holds no finished episode yet")
        length = next(n for n in range(1, len(folder.parts) + 1) if sum(f.parts[-n:] == folder.parts[-n:] for f in folders) == 1)
        runs.append(Run("/".join(folder.parts[-length:]), read_manifest(path), records, summarise(records)))
    return runs


def write_report(runs: Sequence[Run], directory: str | Path, *, published: Sequence[dict[str, Any]] = ()) -> Path:
    """Writes `report.html` and `plots/*.png` into `directory` and returns the page's path.

    `published` is what `eval.tmbench.table2.published_ranking` gives, where the page should show it.
    """
    summaries = {run.name: run.summary for run in runs}
    tokens = {run.name: [sum(n) for r in run.records if (n := [t for t in r.completion_tokens if t is not None])] for run in runs}
    figures = {
        "step_accuracy": step_accuracy_figure(summaries),
        "horizon": horizon_figure(summaries),
        "tokens": tokens_figure(tokens),
        "endings": endings_figure({run.name: run.summary["endings"] for run in runs}),
    }
    values = {"runs": runs, "scores": _scores(runs), "episodes": [_episodes(run) for run in runs], "published": published}
    return write_page("report.html", Path(directory), figures, **values)


def write_page(name: str, directory: Path, figures: Mapping[str, Figure | None], **values: Any) -> Path:
    """Writes a self-contained page and its figures.

    Args:
        name: Of the page; its template in `eval/templates/` is given `images`, the figures as base64 by name, besides `values`.
        directory: Where it goes; the figures go into `plots/` below.
        figures: Those that are None are left out.
    """
    import jinja2

    (directory / "plots").mkdir(parents=True, exist_ok=True)
    images = {}
    for title, figure in figures.items():
        if figure is None:
            continue
        data = io.BytesIO()
        figure.savefig(data, format="png", dpi=150, metadata={"Software": None})
        (directory / "plots" / f"{title}.png").write_bytes(data.getvalue())
        images[title] = base64.b64encode(data.getvalue()).decode()
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("eval", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"percent": percent, "points": percent_difference}
    path = directory / name
    path.write_text(environment.get_template(f"{name}.j2").render(images=images, **values), encoding="utf-8")
    return path


def _scores(runs: Sequence[Run]) -> dict[str, str]:
    """The scores of the first table, by key of the summary: states are weighted and followed in the m-tag system only."""
    names = {"success_rate": "success", "step_accuracy": "step accuracy"}
    if any(run.summary["faithfulness"]["value"] is not None for run in runs):
        names |= {"strict_pass_rate": "strict pass", "swa_uniform": "SWA uniform", "swa_linear": "SWA linear", "faithfulness": "faithful"}
    return names


def _episodes(run: Run) -> list[dict[str, Any]]:
    """What the page shows of the first episodes: the messages, replies cut into pieces by the verdict's spans."""
    shown = []
    for record in run.records[:MOST_SAMPLES]:
        turn = 0
        messages = []
        for message in record.messages:
            pieces = [("", message["content"])]
            if message["role"] == "assistant":
                pieces, turn = _pieces(record, turn, message["content"]), turn + 1
            messages.append({"role": message["role"], "pieces": pieces})
        due = record.verdict.due
        shown.append(
            {
                "id": record.problem["id"],
                "ending": record.verdict.ending.value,
                "correct": sum(s.correct for s in due),
                "due": len(due),
                "marks": [s.kind.value for s in due],
                "messages": messages,
            }
        )
    return shown


def _pieces(record: EpisodeRecord, turn: int, text: str) -> list[tuple[str, str]]:
    """A reply as (kind, text) pieces; pieces outside of every step have the kind ""."""
    spans = sorted((s.span, s.kind.value) for s in record.verdict.steps if s.span is not None and s.turn == turn)
    pieces: list[tuple[str, str]] = []
    at = 0
    for (start, end), kind in spans:
        if start < at:
            continue  # a step quoted inside another one's section
        pieces += [("", text[at:start]), (kind, text[start:end])]
        at = end
    return [(kind, piece) for kind, piece in [*pieces, ("", text[at:])] if piece]
