"""Stands between a client and PostgreSQL, and cuts the line at a commit: before the server hears of
it, or after it has answered.
"""

from __future__ import annotations

import selectors
import socket
import threading
from types import TracebackType
from typing import Literal, Self

from psycopg.conninfo import conninfo_to_dict, make_conninfo

BYTES = 65536
COMMIT = b"COMMIT"


class CuttingProxy:
    """`cuts` befall the next commits, one each. Threads and sockets end with the block."""

    def __init__(self, url: str) -> None:
        self._target = conninfo_to_dict(url)
        self.cuts: list[Literal["request", "reply"]] = []
        self.commits = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._ending = False
        self._lines: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []
        self._acceptor = threading.Thread(target=self._accept, name="proxy")

    @property
    def url(self) -> str:
        host, port = self._listener.getsockname()
        told = {**self._target, "host": host, "port": port, "sslmode": "disable"}
        return make_conninfo("", **told)

    def __enter__(self) -> Self:
        self._acceptor.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ending = True
        socket.create_connection(self._listener.getsockname()).close()
        self._acceptor.join()
        self._listener.close()
        for one in self._sockets:
            _shut(one)
        for line in self._lines:
            line.join()

    def _accept(self) -> None:
        while True:
            near, _ = self._listener.accept()
            if self._ending:
                near.close()
                return
            address = (str(self._target["host"]), int(str(self._target["port"])))
            far = socket.create_connection(address)
            self._sockets += [near, far]
            line = threading.Thread(target=self._carry, args=(near, far), name="proxy line")
            self._lines.append(line)
            line.start()

    def _carry(self, near: socket.socket, far: socket.socket) -> None:
        with near, far, selectors.DefaultSelector() as ready:
            ready.register(near, selectors.EVENT_READ, far)
            ready.register(far, selectors.EVENT_READ, near)
            while all(self._pass_on(key, near) for key, _ in ready.select()):
                pass

    def _pass_on(self, key: selectors.SelectorKey, client: socket.socket) -> bool:
        """Carries what has come on one side to the other. False = the line is at its end."""
        source, target = key.fileobj, key.data
        assert isinstance(source, socket.socket)
        try:
            data = source.recv(BYTES)
            if not data:
                return False
            if source is client and COMMIT in data:
                self.commits += 1
                if self.cuts:
                    self._cut(self.cuts.pop(0), data, target)
                    return False
            target.sendall(data)
        except OSError:
            return False
        return True

    def _cut(self, what: str, data: bytes, server: socket.socket) -> None:
        if what == "reply":
            server.sendall(data)
            server.recv(BYTES)  # it has been carried out


def _shut(one: socket.socket) -> None:
    try:
        one.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # it has been closed
