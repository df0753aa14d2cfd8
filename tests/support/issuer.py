"""An issuer of OAuth 2.0 tokens, for tests."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs


class Issuer(ThreadingHTTPServer):
    """Counts the tokens that it gives; `answer` (or what it returns) and `status` are the next replies' content."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.forms: list[dict[str, list[str]]] = []
        self.answer: Any = None
        self.where: Any = f"{self.url}/token"
        self.status = 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Answer until left."""
        thread = threading.Thread(target=self.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield
        finally:
            self.shutdown()
            thread.join()


class Handler(BaseHTTPRequestHandler):
    server: Issuer

    def do_GET(self) -> None:
        assert self.path == "/.well-known/openid-configuration"
        self.reply(200, {"token_endpoint": self.server.where})

    def do_POST(self) -> None:
        form = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.forms.append(parse_qs(form))
        answer = self.server.answer
        if answer is None:
            answer = {"access_token": f"token-{len(self.server.forms)}", "expires_in": 100}
        self.reply(self.server.status, answer() if callable(answer) else answer)

    def reply(self, status: int, content: Any) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None:
        """Not to the terminal."""
