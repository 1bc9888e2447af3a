"""Grading a run again from its stored replies."""

from __future__ import annotations

from pathlib import Path

from envs.dataset import parse_problem
from envs.environment import Setting
from envs.registry import load_env
from envs.verdict import Ending, Verdict
from eval.records import EpisodeRecord, read_manifest, read_records

#: Endings that the policy's side gave, which its replies do not show.
_FROM_OUTSIDE = (Ending.INFRASTRUCTURE_ERROR, Ending.OVERLONG_PROMPT)


def regrade(path: str | Path) -> list[tuple[EpisodeRecord, Verdict]]:
    """Each record of a run directory with the verdict that the present verifier gives its replies.

    Raises:
        ValueError: Where `path` is no run directory.
    """
    setting = read_manifest(path)["setting"]
    wording, continued = setting.get("wording", "standard"), setting.get("continued", False)
    parsed = Setting.parse(setting["oracles"], setting["style"], wording=wording, continued=continued)
    return [(record, _verdict(record, parsed)) for record in read_records(path)]


def _verdict(record: EpisodeRecord, setting: Setting) -> Verdict:
    problem = parse_problem(record.problem)
    episode = load_env(problem.env).start(problem, setting)
    replies = record.replies
    for turn, reply in enumerate(replies):
        cut = turn == len(replies) - 1 and record.verdict.ending is Ending.TRUNCATED
        episode.reply(reply, truncated=cut)
    if record.verdict.ending in _FROM_OUTSIDE:
        episode.end(record.verdict.ending)
    return episode.verdict()
