"""A real receiver of webhooks: a server in a thread, which answers as it is told to."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import attrs

from tests.support.message import Message


@attrs.frozen
class Got(Message):
    """A request as it arrived."""

    path: str

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]


@attrs.frozen
class Say:
    """An answer; `after_seconds` it is given late."""

    status: int = 204
    headers: Mapping[str, str] = attrs.field(factory=dict[str, str])
    after_seconds: float = 0.0


@attrs.define(eq=False)
class Hooked:
    """Answers the first request with the first line of the script, and so on; then with 204."""

    script: list[Say]
    port: int = 0
    got: list[Got] = attrs.field(factory=list[Got], init=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?a=1"

    def take(self, got: Got) -> Say:
        with self._lock:
            self.got.append(got)
            return self.script.pop(0) if self.script else Say()


@contextmanager
def hooked(
    script: Sequence[Say] = (), port: int = 0, own: Hooked | None = None
) -> Generator[Hooked]:
    """Listens while the block lasts; at `port` if that is given. `own`: one that does more."""
    receiver = own or Hooked(list(script))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            say = receiver.take(Got(headers, body, self.path))
            time.sleep(say.after_seconds)
            self.send_response(say.status)
            for name, value in say.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", "0")
            self.end_headers()

        def handle(self) -> None:
            try:
                super().handle()
            except OSError:
                return  # who sends may go as he likes

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its base's name
            """Says nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

    with Server(("127.0.0.1", port), Handler) as server:
        receiver.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()
