"""Network namespaces that a test makes for itself, joined by cables that it can cut: packets are
lost without a word, as behind a dead switch.

A namespace "hub" has a door that leads to a server on the machine's loopback; each node's
namespace has a cable to the hub and nothing else.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
import selectors
import shutil
import socket
import subprocess
import threading
from collections.abc import Generator, Sequence
from pathlib import Path

import attrs

from tests.support.missing import ToolMissing

CLONE_NEWNET = 0x40000000
BYTES = 65536


class NoNamespaces(ToolMissing):
    """This machine, or this account, cannot make network namespaces."""


@attrs.define
class Cable:
    """From one node to the hub. `door`: the hub's address at this end."""

    namespace: str
    door: str
    _hub: str
    _hub_end: str

    @property
    def command(self) -> Sequence[str]:
        """What goes before a command that is to run at the node's end."""
        return ("ip", "netns", "exec", self.namespace)

    def cut(self) -> None:
        _ip("-n", self._hub, "link", "set", self._hub_end, "down")

    def mend(self) -> None:
        _ip("-n", self._hub, "link", "set", self._hub_end, "up")


@contextlib.contextmanager
def cables(count: int, server_port: int) -> Generator[list[Cable]]:
    """So many nodes' cables; at each door the server answers at its own port. All of it is gone
    after the block. Raises `NoNamespaces`.
    """
    _check()
    tag = secrets.token_hex(3)
    hub, made = f"md{tag}-hub", list[str]()
    try:
        _add(hub, made)
        laid = [_lay(hub, f"md{tag}-{number}", number, made) for number in range(1, count + 1)]
        with contextlib.ExitStack() as doors:
            for cable in laid:
                doors.enter_context(_Door(_listener(hub, cable.door, server_port), server_port))
            yield laid
    finally:
        for name in made:
            subprocess.run(["ip", "netns", "delete", name], check=False)


def _check() -> None:
    if shutil.which("ip") is None:
        raise NoNamespaces("there is no `ip` (Debian: apt-get install iproute2)")
    name = f"md{secrets.token_hex(3)}-try"
    done = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False)
    if done.returncode:
        raise NoNamespaces(done.stderr.decode(errors="replace").strip())
    _ip("netns", "delete", name)


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr}"


def _add(name: str, made: list[str]) -> None:
    _ip("netns", "add", name)
    made.append(name)
    _ip("-n", name, "link", "set", "lo", "up")


def _lay(hub: str, name: str, number: int, made: list[str]) -> Cable:
    _add(name, made)
    near, far = f"veth{number}", "veth0"
    _ip("-n", hub, "link", "add", near, "type", "veth", "peer", "name", far, "netns", name)
    door = f"10.231.{number}.1"
    _ip("-n", hub, "address", "add", f"{door}/30", "dev", near)
    _ip("-n", name, "address", "add", f"10.231.{number}.2/30", "dev", far)
    _ip("-n", name, "link", "set", far, "up")
    cable = Cable(name, door, hub, near)
    cable.mend()
    return cable


def _listener(namespace: str, address: str, port: int) -> socket.socket:
    """A socket that listens in there, in the hands of this process: it stays where it was made."""
    made: list[socket.socket] = []

    def make() -> None:
        with Path(f"/run/netns/{namespace}").open("rb") as place:
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.setns(place.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), f"setns to {namespace}")
        made.append(socket.create_server((address, port)))

    moved = threading.Thread(target=make, name="namespace")  # the move is for this thread alone
    moved.start()
    moved.join()
    return made[0]


class _Door:
    """Carries bytes between whoever connects and the server on the loopback."""

    def __init__(self, listener: socket.socket, port: int) -> None:
        self._listener = listener
        self._port = port
        self._others: dict[socket.socket, socket.socket] = {}
        self._ready = selectors.DefaultSelector()
        self._waking, self._woken = os.pipe()
        self._thread = threading.Thread(target=self._run, name="door")

    def __enter__(self) -> None:
        self._ready.register(self._listener, selectors.EVENT_READ)
        self._ready.register(self._waking, selectors.EVENT_READ)
        self._thread.start()

    def __exit__(self, *_exc: object) -> None:
        os.close(self._woken)
        self._thread.join()
        os.close(self._waking)
        self._ready.close()
        for one in [self._listener, *self._others]:
            one.close()

    def _run(self) -> None:
        while True:
            for key, _ in self._ready.select():
                if key.fileobj == self._waking:
                    return
                if key.fileobj is self._listener:
                    self._let_in()
                elif isinstance(key.fileobj, socket.socket):
                    self._carry(key.fileobj)

    def _let_in(self) -> None:
        near, _ = self._listener.accept()
        far = socket.create_connection(("127.0.0.1", self._port))
        near.settimeout(0)  # what a cut cable does not take is not waited for
        self._others |= {near: far, far: near}
        for one in (near, far):
            self._ready.register(one, selectors.EVENT_READ)

    def _carry(self, source: socket.socket) -> None:
        other = self._others.get(source)
        if other is None:
            return  # closed a moment ago, with its other end
        try:
            data = source.recv(BYTES)
            if data:
                other.sendall(data)
                return
        except OSError:
            pass  # either end is gone: then both are
        for one in (source, other):
            self._ready.unregister(one)
            del self._others[one]
            one.close()
