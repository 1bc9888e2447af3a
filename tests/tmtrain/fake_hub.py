"""As much of the hub's HTTP interface as an upload needs, kept in memory."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import yaml


class FakeHub:
    """Repositories as {name: {path: bytes}}; `token` is the one that may write."""

    def __init__(self) -> None:
        self.repos: dict[str, dict[str, bytes]] = {}
        self.private: dict[str, bool] = {}
        self.commits: list[str] = []
        self.objects: dict[str, bytes] = {}
        self.token = "right"
        self.url = ""


@contextmanager
def fake_hub() -> Iterator[FakeHub]:
    hub = FakeHub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def send(self, status: int, value: Any) -> None:
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") == "chunked":
                data = b""
                while size := int(self.rfile.readline(), 16):
                    data += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
                return data
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))

        def do_GET(self) -> None:
            self.send(404, {"error": "nothing here"})

        def do_HEAD(self) -> None:
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_PUT(self) -> None:
            data = self.body()
            hub.objects[hashlib.sha256(data).hexdigest()] = data
            self.send(200, {})

        def do_POST(self) -> None:
            data = self.body()
            path = self.path.split("?")[0]
            if self.headers.get("Authorization") != f"Bearer {hub.token}":
                return self.send(401, {"error": "Invalid credentials"})
            if path == "/api/repos/create":
                asked = json.loads(data)
                name = "/".join(filter(None, [asked.get("organization"), asked["name"]]))
                if name in hub.repos:
                    return self.send(409, {"error": "exists", "url": f"{hub.url}/{name}"})
                hub.repos[name], hub.private[name] = {}, asked.get("visibility") == "private"
                return self.send(200, {"url": f"{hub.url}/{name}"})
            if path == "/api/validate-yaml":
                header = json.loads(data)["content"].split("---\n")[1]
                wrong = [] if isinstance(yaml.safe_load(header), dict) else [{"message": "no mapping"}]
                return self.send(400 if wrong else 200, {"errors": wrong, "warnings": []})
            if "/preupload/" in path:
                files = json.loads(data)["files"]
                modes = [
                    {"path": f["path"], "uploadMode": "lfs" if f["path"].endswith(("safetensors", "png")) else "regular"} for f in files
                ]
                return self.send(200, {"files": [{**m, "shouldIgnore": False} for m in modes]})
            if path.endswith("/info/lfs/objects/batch"):
                objects = json.loads(data)["objects"]
                actions = {"upload": {"href": f"{hub.url}/put", "header": {}}}
                found = [{**o, "authenticated": True, **({} if o["oid"] in hub.objects else {"actions": actions})} for o in objects]
                return self.send(200, {"transfer": "basic", "objects": found})
            if "/commit/" in path:
                name = path.removeprefix("/api/models/").split("/commit/")[0]
                for line in map(json.loads, data.splitlines()):
                    value = line["value"]
                    if line["key"] == "header":
                        hub.commits.append(value["summary"])
                    elif line["key"] == "file":
                        hub.repos[name][value["path"]] = base64.b64decode(value["content"])
                    elif line["key"] == "lfsFile":
                        hub.repos[name][value["path"]] = hub.objects[value["oid"]]
                oid = "0" * 40
                return self.send(200, {"commitUrl": f"{hub.url}/{name}/commit/{oid}", "commitOid": oid, "success": True})
            return self.send(404, {"error": f"no {path}"})

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
