"""From an adapter and its base to one whole model."""

from __future__ import annotations

from pathlib import Path

from eval.backends.folder import resolve
from eval.backends.pretrained import load_base, load_tokenizer
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

    tokenizer = load_tokenizer(source, trust_remote_code=trust_remote_code)
    base = load_base(source, trust_remote_code=trust_remote_code)
    model = PeftModel.from_pretrained(base, source.adapter).merge_and_unload()
    model.save_pretrained(output)
    tokenizer.save_pretrained(output)
    if record := read_training_record(source.adapter):
        write_training_record(output, style=record["style"], stages=record["stages"])
