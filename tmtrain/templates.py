"""Chat templates for SFT: which tokens of a conversation the assistant wrote."""

from __future__ import annotations

from typing import Any

#: How Llama 3.1 to 3.3 write the message of any role, and the same text with the assistant's marked.
_ANY_ROLE = r"{{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' }}"
_MARKED = (
    r"{{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' }}"
    "{%- if message['role'] == 'assistant' %}{% generation %}{{- message['content'] | trim + '<|eot_id|>' }}{% endgeneration %}"
    "{%- else %}{{- message['content'] | trim + '<|eot_id|>' }}{%- endif %}"
)


def training_template(tokenizer: Any, name: str) -> str:
    """A tokenizer's template with `{% generation %}` around what the assistant says: its own, with the markers put in where that is known
    (it writes the same text), else TRL's for its family.

    Raises:
        ValueError: Where none is known; trained on, every token would be the assistant's, or none.
    """
    from trl.chat_template_utils import get_training_chat_template, has_generation_markers

    template = str(tokenizer.get_chat_template())
    if has_generation_markers(template):
        return template
    if _ANY_ROLE in template:
        return template.replace(_ANY_ROLE, _MARKED)
    try:
        return str(get_training_chat_template(tokenizer))
    except ValueError:
        raise ValueError(
            f"{name}: its chat template does not say which tokens are the assistant's, and neither does TRL for its family: put "
            "{% generation %} … {% endgeneration %} around the assistant's words and terminator, and save the tokenizer"
        ) from None
