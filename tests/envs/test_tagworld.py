"""TagWorld: only the true next queue takes the step."""

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs.dataset import draw, make_params
from envs.environment import Setting
from envs.registry import load_env
from envs.verdict import Ending, Kind
from envs.world_episode import WorldEpisode

WORLD = load_env("tagworld")
SYSTEM = {"m": 2, "rules": {"A": "CB", "B": "A", "C": ""}, "init": "ABC", "max_steps": 5}  # ABC -> CCB -> B, halted


@st.composite
def systems(draw_: st.DrawFn) -> dict:
    symbols = "AB" if draw_(st.booleans()) else "ABC"
    word = st.text(alphabet=symbols, max_size=4)
    return {
        "m": draw_(st.integers(1, 3)),
        "rules": {s: draw_(word) for s in symbols},
        "init": draw_(word),
        "max_steps": draw_(st.integers(0, 6)),
    }


def run_by_hand(system: dict) -> list[str]:
    """The queues as strings, by the rules as they are told."""
    queues = [system["init"]]
    while len(queues) <= system["max_steps"] and len(queues[-1]) >= system["m"]:
        queues.append((queues[-1] + system["rules"][queues[-1][0]])[system["m"] :])
    return queues


def start(system: dict, *calls: str, style: str = "verbose") -> WorldEpisode:
    episode = WORLD.start(WORLD.problem(system), Setting(style))
    for call in calls:
        episode.reply(call)
    return episode


@given(systems())
def test_the_optimal_set_is_the_true_next_queue(system: dict) -> None:
    queues = run_by_hand(system)
    assert WORLD.problem(system).horizon == len(queues)
    episode = start(system)
    for queue in queues[1:]:
        assert episode.optimal_actions == [f'state("{" ".join(queue)}")']
        episode.reply(f"state('{queue}')")
    assert episode.optimal_actions == ["done()"]
    episode.reply("done()")
    assert episode.success
    assert episode.verdict().step_accuracy == 1


def test_a_wrong_queue_is_wrong_and_can_be_put_right() -> None:
    episode = start(SYSTEM, 'state("C C")', 'state("C C B")', 'state("B")', "done()")
    assert [s.kind for s in episode.steps] == [Kind.WRONG, Kind.CORRECT, Kind.CORRECT, Kind.CORRECT]
    assert (episode.verdict().ending, episode.cost) == (Ending.COMPLETED, 4)


def test_after_the_halt_no_queue_is_right() -> None:
    episode = start(SYSTEM, 'state("C C B")', 'state("B")', 'state("B")', 'state("")')
    assert [s.correct for s in episode.steps] == [True, True, False, False]
    assert episode.optimal_actions == ["done()"]


def test_done_before_the_end_is_wrong() -> None:
    assert start(SYSTEM, 'state("C C B")', "done()").verdict().ending is Ending.WRONG


@pytest.mark.parametrize("queue", ["C C B", "CCB", " C  CB ", "C\\nC B"])
def test_symbols_may_be_spaced_or_not(queue: str) -> None:
    episode = start(SYSTEM, f'state(queue="{queue}")')
    assert (episode.steps[-1].correct, str(episode.action)) == (True, 'state("C C B")')


def test_longer_symbols_need_their_spaces() -> None:
    system = {"m": 1, "rules": {"xa": ["xb", "xa"], "xb": []}, "init": ["xa"], "max_steps": 2}
    assert start(system).optimal_actions == ['state("xb xa")']
    assert start(system, 'state("xb xa")').steps[-1].correct
    assert start(system, 'state("xbxa")').steps[-1].kind is Kind.INVALID
    assert start(system, style="compact").expert() == 'state("xb xa")'


def test_strange_symbols_are_refused() -> None:
    episode = start(SYSTEM, 'state("C D B")')
    assert (episode.steps[-1].kind, episode.feedback) == (
        Kind.INVALID,
        '"D" is not a symbol: write the queue\'s symbols with spaces between them',
    )


def test_the_slips_of_noisy_policies_are_legal_and_wrong() -> None:
    for problem in islice(draw("tagworld", make_params("tagworld", {}), seed=0, split="t"), 10):
        game = WORLD.read(problem)[0]
        for state in range(problem.horizon):
            legal = game.legal(state)
            assert len(set(legal)) == len(legal) > 3
            assert set(game.optimal(state)) <= set(legal)


def test_the_plan_names_the_rule_that_fires_and_the_state_is_the_queue() -> None:
    episode = start(SYSTEM)
    assert episode.plan_text == "the rule of A fires: append C B, then delete the first 2 symbols."
    assert episode.state_text == "the queue after step 0 of at most 5 is [A B C]"


def test_it_has_the_knobs_and_the_hash_of_the_tag_environment() -> None:
    problem = next(draw("tagworld", make_params("tagworld", {"max_steps": 7, "min_horizon": 7, "alphabet": "XYZ"}), seed=0, split="t"))
    assert problem.horizon == 8
    assert load_env("tag").problem(problem.payload).canonical == problem.canonical
    with pytest.raises(ValueError, match="rule_min"):
        make_params("tagworld", {"rule_min": 9})
    with pytest.raises(ValueError, match="budget_slack"):
        make_params("tagworld", {"budget_slack": -1})
