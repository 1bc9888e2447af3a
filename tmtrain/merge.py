"""From an adapter and its base to one whole model."""

from __future__ import annotations

from pathlib import Path

from eval.backends.folder import resolve
from tmtrain.models import load_tokenizer
from tmtrain.provenance import read_training_record, write_training_record


def merge(adapter: str, output: Path, *, trust_remote_code: bool = False) -> None:
    """Writes the merged model into `output`, in the base's own precision.

    Raises:
        ValueError: Where `adapter` is none, its base cannot be loaded, or `output` exists.
    """
    source = resolve(adapter)
    if source.adapter is None:
        raise ValueError(f"{adapter} is a whole model already: name an adapter's folder")
    if output.exists():
        raise ValueError(f"{output} exists: choose another folder with -o")
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    tokenizer = load_tokenizer(source.tokenizer, trust_remote_code=trust_remote_code)
    try:
        base = AutoModelForCausalLM.from_pretrained(source.base, trust_remote_code=trust_remote_code, use_safetensors=True)
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"cannot load the base {source.base}: {str(error).strip().splitlines()[0]}") from None
    model = PeftModel.from_pretrained(base, source.adapter).merge_and_unload()
    model.save_pretrained(output)
    tokenizer.save_pretrained(output)
    if record := read_training_record(source.adapter):
        write_training_record(output, style=record["style"], stages=record["stages"])
