"""What an act of hostility is given, and what it is called."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from random import Random

import attrs

from tests.support.command import Daemon
from tests.support.innocents import Innocents

CONNECT_SECONDS = 2.0


@attrs.define
class Scene:
    """`weak_url`: of a role that may enqueue and act, on PostgreSQL. `ends_at`: of the round."""

    daemon: Daemon
    innocents: Innocents
    weak_url: str = ""
    ends_at: float = 0.0
    strangers: list[int] = attrs.Factory(list[int])  # jobs of hostile kinds, by id

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self.ends_at

    def wait(self, seconds: float) -> None:
        """So long, or to the end of the round."""
        time.sleep(max(0.0, min(seconds, self.ends_at - time.monotonic())))

    def connection(self) -> socket.socket:
        """Raises OSError: the daemon takes no more than it has places for."""
        host, _, port = self.daemon.address.removeprefix("http://").partition(":")
        return socket.create_connection((host, int(port)), CONNECT_SECONDS)


Act = Callable[[Scene, Random], None]
