"""Stands between a client and PostgreSQL, and carries what they say message by message. It can cut
a line at a commit: before the server has heard of it, or after the server has carried it out and
before the client hears so. It can also fall silent: bytes vanish, and no connection ends; or hold
what is said until it lets it go, as of a client that stands still.

A commit is a COMMIT, or the end (Sync) of a request outside a transaction block that writes.
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Literal, Self

from psycopg.conninfo import conninfo_to_dict

Cut = Literal["request", "reply"]
BYTES = 65536
CONNECT_SECONDS = 5.0
HEADER = 4  # of a message: how long it is, itself included
BEGINS = re.compile(rb"\s*(begin|start)\b", re.IGNORECASE)
COMMITS = re.compile(rb"\s*(commit|end)\b", re.IGNORECASE)
# In the text of a statement, what says that it may change rows.
WRITES = re.compile(
    rb"\b(insert|update|delete)\b|\b(enqueue|enqueue_many|cancel|pause|resume|release|clear)\(",
    re.IGNORECASE,
)


class WireProxy:
    """`cuts` befall the next commits, one each. Its thread and its sockets end with the block."""

    def __init__(self, url: str) -> None:
        self._target = conninfo_to_dict(url)
        self.cuts: list[Cut] = []
        self.made: list[Cut] = []  # the cuts that have befallen a commit
        self.commits = 0  # that the server has told of
        self.on_cut: Callable[[Cut], None] = lambda _: None
        self._is_silent = self._is_holding = self._is_ending = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._ready = selectors.DefaultSelector()
        self._wake_end, self._waking_end = os.pipe()
        self._lines: set[Line] = set()
        self._thread = threading.Thread(target=self._run, name="proxy")

    @property
    def url(self) -> str:
        """The database's, by way of this."""
        host, port = self._listener.getsockname()
        known = self._target
        place = f"{known['user']}:{known['password']}@{host}:{port}/{known['dbname']}"
        return f"postgresql://{place}?sslmode=disable&gssencmode=disable"

    def fall_silent(self) -> None:
        """From now on bytes vanish on all its lines, and on those that are opened meanwhile."""
        self._is_silent = True
        for line in list(self._lines):
            line.is_silent = True

    def speak(self) -> None:
        """Lines that are opened from now on are as they should be; the silent ones stay silent
        until their client gives them up.
        """
        self._is_silent = False

    def hold(self) -> None:
        """From now on what is said waits here."""
        self._is_holding = True

    def let_go(self) -> None:
        """What waits goes on its way."""
        self._is_holding = False
        os.write(self._waking_end, b"x")

    def be_well(self) -> None:
        """Nothing befalls it any more; lines that were silent end."""
        self.cuts.clear()
        self.speak()
        self.let_go()
        for line in list(self._lines):
            if line.is_silent:
                line.shut()

    def hang_up(self) -> int:
        """Ends all lines at whatever point they are; says how many there were."""
        lines = list(self._lines)
        for line in lines:
            line.shut()
        return len(lines)

    def __enter__(self) -> Self:
        self._ready.register(self._listener, selectors.EVENT_READ, self._let_in)
        self._ready.register(self._wake_end, selectors.EVENT_READ, self._go_on)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_ending = True
        os.write(self._waking_end, b"x")
        self._thread.join()
        self._ready.close()
        for line in self._lines:
            line.close()
        self._listener.close()
        os.close(self._wake_end)
        os.close(self._waking_end)

    def _run(self) -> None:
        while not self._is_ending:
            for key, _ in self._ready.select():
                key.data()

    def _go_on(self) -> None:
        os.read(self._wake_end, BYTES)
        for line in list(self._lines):
            try:
                self._flush(line)
            except OSError:
                self._forget(line)

    def _let_in(self) -> None:
        near, _ = self._listener.accept()
        line = Line(near, self._reach())
        line.is_silent = self._is_silent
        self._lines.add(line)
        for end in line.ends:
            self._register(line, end)

    def _reach(self) -> socket.socket | None:
        """None = nobody is there; who has connected hears that as the end of its line."""
        address = (str(self._target["host"]), int(str(self._target["port"])))
        try:
            return socket.create_connection(address, CONNECT_SECONDS)
        except OSError:
            return None

    def _register(self, line: Line, end: End) -> None:
        def work() -> None:
            if not self._serve(line, end):
                self._forget(line)

        self._ready.register(end.socket, selectors.EVENT_READ, work)

    def _forget(self, line: Line) -> None:
        if line not in self._lines:
            return  # its other end has ended in the same moment
        self._lines.discard(line)
        for end in line.ends:
            self._ready.unregister(end.socket)
        line.close()

    def _serve(self, line: Line, end: End) -> bool:
        """Carries on what can be read and written at this end. False = the line is at its end."""
        try:
            is_open = line.take(end)
            for message in end.messages():
                cut = self._cut_at(line, end, message)
                if cut is not None:
                    self.made.append(cut)
                    line.flush()
                    self.on_cut(cut)
                    return False
                line.pass_on(end, message)
            self._flush(line)
        except OSError:
            return False
        return is_open

    def _flush(self, line: Line) -> None:
        if not self._is_holding:
            line.flush()
        for one in line.ends:
            is_blocked = one.waiting and not self._is_holding
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if is_blocked else 0)
            key = self._ready.get_key(one.socket)
            if key.events != events:
                self._ready.modify(one.socket, events, key.data)

    def _cut_at(self, line: Line, end: End, message: bytes) -> Cut | None:
        if line.is_silent:
            return None
        if end is line.server:
            what: Cut = "reply"
            is_commit = line.talk.server_says(message)
            self.commits += is_commit
        else:
            what = "request"
            is_commit = line.talk.client_says(message)
        if is_commit and what in self.cuts:
            self.cuts.remove(what)
            return what
        return None


class Talk:
    """What of a line's talk has to do with commits. A statement's text is told once, and its name
    ever after.
    """

    def __init__(self) -> None:
        self._texts: dict[bytes, bytes] = {}  # of prepared statements
        self._in_block = False
        self._writes = False  # since the last Sync, and not in a block

    def client_says(self, message: bytes) -> bool:
        """Whether this message is what lets the server commit."""
        kind, body = message[:1], message[HEADER + 1 :]
        if kind == b"Q":
            return self._asks(body, ends=True)
        if kind == b"P":
            name, _, rest = body.partition(b"\0")
            self._texts[name] = rest.partition(b"\0")[0]
        elif kind == b"B":
            _, _, rest = body.partition(b"\0")
            return self._asks(self._texts.get(rest.partition(b"\0")[0], b""), ends=False)
        return kind == b"S" and self._writes and not self._in_block

    def server_says(self, message: bytes) -> bool:
        """Whether this message tells of a commit."""
        kind, body = message[:1], message[HEADER + 1 :]
        if kind == b"C":
            return body.startswith(b"COMMIT")
        if kind == b"E":
            self._writes = False
        if kind != b"Z":
            return False
        wrote = self._writes and body == b"I"
        self._writes, self._in_block = False, body != b"I"
        return wrote

    def _asks(self, text: bytes, *, ends: bool) -> bool:
        if COMMITS.match(text):
            self._writes = False
            return True
        if BEGINS.match(text):
            self._in_block = True
        elif not self._in_block and WRITES.search(text):
            self._writes = True
            return ends
        return False


class End:
    """One end of a line: what has come from there, and what is to go there."""

    def __init__(self, connection: socket.socket, *, begins_bare: bool) -> None:
        connection.setblocking(False)
        self.socket = connection
        self.waiting = bytearray()
        self._heard = bytearray()
        self._is_bare = begins_bare  # a client's first message has no type

    def read(self) -> bool:
        with contextlib.suppress(BlockingIOError):
            data = self.socket.recv(BYTES)
            self._heard += data
            return bool(data)
        return True

    def write(self) -> None:
        while self.waiting:
            try:
                sent = self.socket.send(self.waiting[:BYTES])
            except BlockingIOError:
                return
            del self.waiting[:sent]

    def messages(self) -> Iterator[bytes]:
        """The whole ones that have come."""
        while True:
            start = 0 if self._is_bare else 1
            if len(self._heard) < start + HEADER:
                return
            length = start + int.from_bytes(self._heard[start : start + HEADER], "big")
            if len(self._heard) < length:
                return
            message = bytes(self._heard[:length])
            del self._heard[:length]
            self._is_bare = False
            yield message


class Line:
    """A connection through the proxy."""

    def __init__(self, near: socket.socket, far: socket.socket | None) -> None:
        self.is_silent = False
        self.client = End(near, begins_bare=True)
        self.server = End(far, begins_bare=False) if far is not None else None
        self.talk = Talk()
        if far is None:
            self.shut()

    @property
    def ends(self) -> tuple[End, ...]:
        return (self.client,) if self.server is None else (self.client, self.server)

    def take(self, end: End) -> bool:
        return end.read()

    def pass_on(self, end: End, message: bytes) -> None:
        if self.is_silent or self.server is None:
            return
        other = self.server if end is self.client else self.client
        other.waiting += message

    def flush(self) -> None:
        for end in self.ends:
            end.write()

    def shut(self) -> None:
        for end in self.ends:
            with contextlib.suppress(OSError):
                end.socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        for end in self.ends:
            end.socket.close()
