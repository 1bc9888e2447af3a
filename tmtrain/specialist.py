"""A model of under one million parameters for the published m-tag benchmark alone, built here and trained from nothing.

It reads and writes the `placed` style, in which every look-up is one of a name. A symbol with its place is one token, and so is a rule's
head with the number of one of its symbols.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from envs.tag.prompt import PLACES, SUBSCRIPTS, SUPERSCRIPTS
from envs.tag.published import ALPHABETS
from tmtrain.tiny import CHARACTERS, CONTEXT, SPECIAL, piece_tokenizer, small_model

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

#: The symbols of the four published alphabets.
SYMBOLS = "".join(ALPHABETS[name] for name in ("tmbench-v1", "tmbench-v1-greek", "tmbench-v1-number", "tmbench-v1-special"))
#: The longest word of their rules.
NUMBERS = 5
_RAISED, _LOWERED = (str.maketrans("0123456789", digits) for digits in (SUPERSCRIPTS, SUBSCRIPTS))
PIECES = (
    *CHARACTERS,
    *(s + str(k).translate(_RAISED) for s in SYMBOLS for k in range(PLACES)),
    *(s + str(k).translate(_LOWERED) for s in SYMBOLS for k in range(NUMBERS)),
)


def specialist_tokenizer() -> PreTrainedTokenizerFast:
    """The characters of the tiny model's tokenizer, and one token for every symbol at every place and for every number of a rule's."""
    from tokenizers import Regex, pre_tokenizers

    cut = pre_tokenizers.Split(Regex(rf"[\s\S](?:[{SUPERSCRIPTS}]+|[{SUBSCRIPTS}]+)?"), "isolated")
    return piece_tokenizer(PIECES, cut, model_max_length=CONTEXT, padding_side="left")


def specialist_model(seed: int = 0) -> Qwen3ForCausalLM:
    """A freshly initialised model for `specialist_tokenizer`.

    The embedding of a symbol with its place begins as that of the symbol and a point on the ring of places, by waves of several lengths
    that go around it, so that the next place is one rotation for all of them; that of a rule's head with a number as the symbol's and the
    number's. Everything is trained.
    """
    import torch

    model = small_model(len(SPECIAL) + len(PIECES), seed, hidden=128, inner=192, layers=4, heads=4)
    embeddings = model.get_input_embeddings().weight
    size, scale = embeddings.size(1), model.config.initializer_range
    waves = torch.tensor(sorted({round((PLACES / 2 - 1) ** (i / 199)) for i in range(200)}))
    waves = waves[torch.linspace(0, len(waves) - 1, size // 4).long()]
    angles = 2 * math.pi / PLACES * torch.arange(PLACES)[:, None] * waves
    ring = torch.stack([angles.sin(), angles.cos()], dim=2).reshape(PLACES, -1)  # as many entries as half of an embedding has
    known = len(SPECIAL) + len(CHARACTERS)
    with torch.no_grad():
        symbols = embeddings[[len(SPECIAL) + CHARACTERS.index(s) for s in SYMBOLS]][:, None]
        placed = embeddings[known : known + len(SYMBOLS) * PLACES].view(len(SYMBOLS), PLACES, size)
        numbered = embeddings[known + len(SYMBOLS) * PLACES :].view(len(SYMBOLS), NUMBERS, size)
        placed[:] = symbols
        placed[:, :, : size // 2] += 2 * scale * ring
        numbered[:] = symbols + numbered[:1]
    return model
