"""Templates for SFT mark what the assistant says, all of it and nothing else, and write what the model's own writes."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import pytest

pytest.importorskip("trl")

from tmtrain.sft import build_sft_trainer
from tmtrain.templates import training_template
from tmtrain.tiny import tiny_model, tiny_tokenizer

CONVERSATION = [
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": "one "},
    {"role": "assistant", "content": " a b "},
    {"role": "user", "content": "two"},
    {"role": "assistant", "content": "c"},
]


def tokenizer(template: str) -> Any:
    """The embedded tokenizer with the special tokens and the template of another family."""
    made = tiny_tokenizer()
    made.add_special_tokens(
        {"additional_special_tokens": ["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|im_start|>", "<|im_end|>"]}
    )
    made.eos_token = "<|eot_id|>" if "eot_id" in template else "<|im_end|>"
    made.chat_template = template
    return made


def family(name: str) -> str:
    return (files("trl") / "chat_templates" / f"{name}.jinja").read_text()


@pytest.mark.parametrize(
    ("name", "said"), [("llama3_1", ["a b<|eot_id|>", "c<|eot_id|>"]), ("qwen2_5", [" a b <|im_end|>", "c<|im_end|>"])]
)
def test_what_the_assistant_says_is_marked_and_the_text_stays(name: str, said: list[str]) -> None:
    own = tokenizer(family(name))
    marked = training_template(own, name)
    options = {"tokenize": True, "return_dict": True}
    out = own.apply_chat_template(CONVERSATION, chat_template=marked, return_assistant_tokens_mask=True, **options)
    assert out["input_ids"] == own.apply_chat_template(CONVERSATION, **options)["input_ids"]
    runs, before = [], 0
    for token, mask in zip(out["input_ids"], out["assistant_masks"], strict=True):
        if mask:
            runs = [*runs, [token]] if not before else [*runs[:-1], [*runs[-1], token]]
        before = mask
    assert [own.decode(run).strip("\n") for run in runs] == said


def test_the_checkpoint_keeps_the_models_own_template(tmp_path: Any) -> None:
    from trl import SFTConfig

    own = tokenizer(family("llama3_1"))
    model = tiny_model(0)
    model.resize_token_embeddings(len(own))
    rows = [{"messages": CONVERSATION}]
    config = SFTConfig(output_dir=str(tmp_path), use_cpu=True, bf16=False, report_to="none", max_length=512)
    trainer = build_sft_trainer(model, own, rows, config)
    labels = [label for label in trainer.train_dataset[0]["labels"] if label != -100]
    assert own.decode(labels) == "a b<|eot_id|>c<|eot_id|>"
    assert trainer.processing_class.chat_template == family("llama3_1")


def test_of_several_templates_the_default_one_is_meant() -> None:
    several = tokenizer(family("llama3_1"))
    several.chat_template = {"default": family("llama3_1"), "tool_use": "{% generation %}{% endgeneration %}"}
    assert training_template(several, "several") == training_template(tokenizer(family("llama3_1")), "one")


def test_a_template_of_which_nothing_is_known_is_refused() -> None:
    with pytest.raises(ValueError, match="mine: its chat template does not say which tokens are the assistant's"):
        training_template(tokenizer("{% for message in messages %}{{ message.content }}{% endfor %}"), "mine")
