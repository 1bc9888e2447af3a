"""Uploading a checkpoint with its card to the hub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

#: What makes up a model's repository. Optimizer states and whatever else lies in the folder stay here.
_FILES = ["README.md", "*.png", "*.json", "*.jinja", "*.safetensors", "*.model", "*.txt", ".eval_results/*.yaml"]


def push(checkpoint: Path, repo: str, *, private: bool = False) -> str:
    """Uploads a checkpoint's folder as one commit, creating the repository where it is missing; the hub checks the card's header first.

    Returns:
        The repository's address.

    Raises:
        ValueError: In one line, where there is no token, the hub refuses, or it cannot be reached.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalTokenNotFoundError

    api: Any = HfApi()
    try:
        url = api.create_repo(repo, private=private or None, exist_ok=True)
        api.upload_folder(repo_id=repo, folder_path=checkpoint, allow_patterns=_FILES, commit_message="Upload model and card")
    except LocalTokenNotFoundError:
        raise ValueError("no token for the hub: run `hf auth login`, or set HF_TOKEN") from None
    except HFValidationError as error:
        raise ValueError(f"{repo!r} is no repository's name: {_line(error)}") from None
    except HfHubHTTPError as error:
        status = getattr(error.response, "status_code", None)
        hint = " (run `hf auth login`, or set HF_TOKEN to one that may write)" if status in (401, 403) else ""
        raise ValueError(f"the hub refuses {repo}: {_line(error)}{hint}") from None
    except (OSError, ValueError) as error:
        raise ValueError(f"cannot upload to {repo}: {_line(error)}") from None
    except Exception as error:
        if type(error).__module__.startswith(("httpx", "httpcore")):
            raise ValueError(f"cannot reach the hub at {api.endpoint}: {_line(error)}") from None
        raise
    return str(url)


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
