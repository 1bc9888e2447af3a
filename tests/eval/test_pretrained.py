"""Asking for the hub once, instead of once for every file."""

from __future__ import annotations

import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from huggingface_hub import constants

from eval.backends import pretrained
from eval.backends.folder import Model

pytest.importorskip("transformers")


@pytest.fixture(autouse=True)
def online(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    pretrained._go_offline_without_hub.cache_clear()
    yield
    pretrained._go_offline_without_hub.cache_clear()


def test_a_hub_that_does_not_answer_is_asked_once(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{probe.getsockname()[1]}")
    for _ in range(2):
        with pytest.raises(ValueError, match=r"^cannot load the configuration of nobody/nothing: .*$"):
            pretrained.load_config(Model("nobody/nothing", "nobody/nothing"))
    said = capfd.readouterr().err
    assert constants.HF_HUB_OFFLINE and said.count("does not answer") == 1 and "Retry" not in said


def test_a_hub_that_answers_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    class Busy(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_response(404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Busy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        pretrained._go_offline_without_hub()
        server.shutdown()
    assert not constants.HF_HUB_OFFLINE


def test_a_folder_needs_no_hub(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:1")
    with pytest.raises(ValueError, match="cannot load the tokenizer"):
        pretrained.load_tokenizer(Model(str(tmp_path), str(tmp_path)))
    assert not constants.HF_HUB_OFFLINE
