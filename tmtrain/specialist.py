"""A model of under one million parameters for the published m-tag benchmark alone, built here and trained from nothing.

It reads and writes the `placed` style, in which every symbol carries its place in the stream of all symbols that ever enter the queue. A
symbol with its place is one token, so the next symbol of a queue is found by what it is and not by where it stands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from envs.tag.prompt import SUPERSCRIPTS
from tmtrain.tiny import CHARACTERS, CONTEXT, SPECIAL, piece_tokenizer, small_model

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

#: The symbols of the four published alphabets.
SYMBOLS = "ABCDE" + "αβγδε" + "12345" + "@#$%&"
#: At most nine symbols at first and five more in each of thirty steps.
PLACES = 9 + 30 * 5
PIECES = (*CHARACTERS, *(s + str(k).translate(str.maketrans("0123456789", SUPERSCRIPTS)) for s in SYMBOLS for k in range(PLACES)))


def specialist_tokenizer() -> PreTrainedTokenizerFast:
    """The characters of the tiny model's tokenizer, and one token for every symbol at every place."""
    from tokenizers import Regex, pre_tokenizers

    cut = pre_tokenizers.Split(Regex(rf"[\s\S][{SUPERSCRIPTS}]*"), "isolated")
    return piece_tokenizer(PIECES, cut, model_max_length=CONTEXT, padding_side="left")


def specialist_model(seed: int = 0) -> Qwen3ForCausalLM:
    """A freshly initialised model for `specialist_tokenizer`."""
    return small_model(len(SPECIAL) + len(PIECES), seed, hidden=128, inner=256, layers=3, heads=4)
