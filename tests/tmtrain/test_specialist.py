"""The specialist's tokenizer: a symbol with its place is one token."""

from __future__ import annotations

import re
from itertools import islice

import pytest

pytest.importorskip("transformers")

from envs.dataset import draw, make_params
from envs.environment import Setting
from envs.registry import load_env
from envs.tag.prompt import SUBSCRIPTS, SUPERSCRIPTS
from tmtrain.models import check_terminator, check_tokenizer
from tmtrain.specialist import SYMBOLS, specialist_model, specialist_tokenizer

TOKENIZER = specialist_tokenizer()


@pytest.mark.parametrize("alphabet", ["ABCDE", "αβγδε", "12345", "@#$%&"])
def test_a_symbol_with_its_place_is_one_token_and_comes_back(alphabet: str) -> None:
    """Of the published sizes, the longest rules and queues included."""
    for knobs in ({}, {"rule_min": 5, "init_min": 9}):
        for problem in islice(draw("tag", make_params("tag", {"alphabet": alphabet, **knobs}), seed=0, split="specialist"), 20):
            episode = load_env("tag").start(problem, Setting("placed"))
            for text in (episode.messages[0]["content"], episode.expert()):
                ids = TOKENIZER(text, add_special_tokens=False)["input_ids"]
                assert TOKENIZER.unk_token_id not in ids and TOKENIZER.decode(ids) == text
                placed = [t for t in TOKENIZER.convert_ids_to_tokens(ids) if t[0] in SYMBOLS and len(t) > 1]
                assert len(placed) == len(re.findall(f"[{SUPERSCRIPTS}]+|[{SUBSCRIPTS}]+", text)) > 1


def test_it_is_fit_for_training_and_under_a_million_parameters() -> None:
    model = specialist_model(0)
    check_tokenizer(TOKENIZER, "specialist")
    check_terminator(TOKENIZER, model.generation_config, "specialist")
    assert len(TOKENIZER) == model.config.vocab_size and model.num_parameters() == 994_560
