"""The socket at which systemd would listen to a daemon, and what was heard there."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager

import attrs

BYTES_MAX = 65536
READ_SECONDS = 0.02


@attrs.frozen
class Message:
    """One datagram: its lines by name, and when it was read."""

    at: float
    lines: Mapping[str, str]


class NotifySocket:
    """`address` is a path, or `@name`. `read` takes what lies there; `listening` does it all the
    time, in a thread that ends with its block.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.messages: list[Message] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind("\0" + address[1:] if address.startswith("@") else address)

    def close(self) -> None:
        self._socket.close()

    def read(self, now: float) -> None:
        while True:
            try:
                text = self._socket.recv(BYTES_MAX).decode()
            except BlockingIOError:
                return
            pairs = [line.partition("=") for line in text.split("\n")]
            self.messages.append(Message(now, {name: value for name, _, value in pairs}))

    @contextmanager
    def listening(self) -> Generator[None, None, None]:
        ending = threading.Event()
        thread = threading.Thread(target=self._listen, args=(ending,))
        thread.start()
        try:
            yield
        finally:
            ending.set()
            thread.join()

    def _listen(self, ending: threading.Event) -> None:
        while not ending.is_set():
            select.select([self._socket], [], [], READ_SECONDS)
            self.read(time.monotonic())

    def named(self, name: str) -> list[Message]:
        return [one for one in self.messages if name in one.lines]

    def values(self, name: str) -> list[str]:
        return [one.lines[name] for one in self.named(name)]
