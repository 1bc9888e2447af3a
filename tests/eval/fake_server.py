"""A server with OpenAI's interface that misbehaves as it is told, for tests."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: What one request gets: a status with a JSON body and headers, or one of the faults below.
Answer = tuple[int, dict[str, Any], dict[str, str]]
CUT, HANG, GARBAGE = "cut", "hang", "garbage"


def chat_answer(content: str | None, finish: str = "stop", **extra: Any) -> Answer:
    message = {"role": "assistant", "content": content, **extra}
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    body = {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "usage": usage}
    return 200, {**body, "choices": [{"index": 0, "message": message, "finish_reason": finish}]}, {}


def error_answer(status: int, message: str = "no", code: str | None = None, **headers: str) -> Answer:
    return status, {"error": {"message": message, "type": "error", "code": code}}, headers


class FakeServer:
    """Answers chat requests by `answer(body)`; keeps every body in `seen`."""

    def __init__(self, answer: Callable[[dict[str, Any]], Answer | str], models: list[dict[str, Any]] | None, key: str | None) -> None:
        self.answer, self.models, self.key = answer, models, key
        self.seen: list[dict[str, Any]] = []
        self.times: list[float] = []
        self.live, self.most_live = 0, 0
        self.lock = threading.Lock()
        self.has_switch = True
        self.url = ""


@contextmanager
def fake_server(
    answer: Callable[[dict[str, Any]], Answer | str], models: list[dict[str, Any]] | None = None, key: str | None = None
) -> Iterator[FakeServer]:
    state = FakeServer(answer, models, key)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def send(self, answer: Answer) -> None:
            status, body, headers = answer
            data = json.dumps(body).encode()
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", "Content-Length": str(len(data)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def allowed(self) -> bool:
            if state.key is not None and self.headers.get("Authorization") != f"Bearer {state.key}":
                self.send(error_answer(401, "wrong key"))
                return False
            return True

        def do_GET(self) -> None:
            if self.allowed():
                self.send((200, {"object": "list", "data": state.models}, {}) if state.models is not None else error_answer(404))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if not self.allowed():
                return
            if self.path == "/tokenize":
                text = "".join(m["content"] for m in body["messages"])
                switch = body.get("chat_template_kwargs", {}).get("enable_thinking", True) if state.has_switch else True
                self.send((200, {"count": len(text), "tokens": [*map(ord, text), *([] if switch else [0])]}, {}))
                return
            with state.lock:
                state.seen.append(body)
                state.times.append(time.monotonic())
                state.live += 1
                state.most_live = max(state.most_live, state.live)
            try:
                answered = state.answer(body)
                if answered == CUT:  # promises more than it sends
                    self.send_response(200)
                    self.send_header("Content-Length", "1000")
                    self.end_headers()
                    self.wfile.write(b'{"id": "x", ')
                    self.close_connection = True
                elif answered == HANG:
                    time.sleep(3)
                    self.close_connection = True
                elif answered == GARBAGE:
                    self.send_response(200)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", "6")
                    self.end_headers()
                    self.wfile.write(b"<html>")
                else:
                    assert not isinstance(answered, str)
                    self.send(answered)
            except (BrokenPipeError, ConnectionResetError):
                pass
            finally:
                with state.lock:
                    state.live -= 1

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    state.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
