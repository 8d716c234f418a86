"""Keeps systemd informed, from the start of the daemon to its end."""

from __future__ import annotations

import logging
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, MutableMapping, Sequence

import attrs
import trio

from musterd.manager.log import event
from musterd.manager.node.status import NodeStatus
from musterd.manager.systemd.messages import DaemonView, Liveness, Sent, next_message, why_unwell
from musterd.store.waiting import Bell

LOOK_SECONDS = 1.0
WAITING_MAX = 16  # messages of reloads that could not be sent yet
ADDRESS, WATCHDOG_USEC, WATCHDOG_PID = "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"
MICROSECONDS = 1_000_000


@attrs.define(eq=False)
class Notifier:
    """Owned by the daemon. Without a service manager it does nothing. All methods but `run` are
    synchronous and return at once.
    """

    manager: ServiceManager | None
    status: Callable[[], NodeStatus]
    liveness: Callable[[], Sequence[Liveness]]
    drain_seconds_max: Callable[[], float]
    log: logging.Logger
    _sent: Sent = attrs.field(factory=Sent, init=False)
    _stop_by_local: float | None = attrs.field(default=None, init=False)
    _refused: bool = attrs.field(default=False, init=False)
    _unwell: str | None = attrs.field(default=None, init=False)
    _is_deaf: bool = attrs.field(default=False, init=False)
    _waiting: deque[list[str]] = attrs.field(factory=lambda: deque(maxlen=WAITING_MAX), init=False)
    _bell: Bell = attrs.field(factory=Bell, init=False)

    async def run(self) -> None:
        if self.manager is None:
            return
        watchdog = self.manager.watchdog_seconds
        look = LOOK_SECONDS if watchdog is None else min(LOOK_SECONDS, watchdog / 6)
        late_seconds = 0.0
        while True:
            self._look(self.manager, late_seconds)
            wanted = trio.current_time() + look
            with trio.move_on_at(wanted):
                await self._bell.wait()
            self._bell.clear()
            late_seconds = max(0.0, trio.current_time() - wanted)

    def look_soon(self) -> None:
        """Something has changed that systemd should know at once."""
        self._bell.ring()

    def stop(self) -> None:
        """The daemon begins to leave."""
        if self._stop_by_local is None:
            self._stop_by_local = trio.current_time() + self.drain_seconds_max()
        self._bell.ring()

    def reload_begins(self) -> None:
        # systemd compares this with when it asked: its own clock, not that of the event loop.
        now_usec = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1_000
        self._send_in_order(["RELOADING=1", f"MONOTONIC_USEC={now_usec}"])

    def reload_ends(self, *, refused: bool) -> None:
        self._refused = refused
        self._send_in_order(["READY=1"])
        self._bell.ring()

    def _look(self, manager: ServiceManager, late_seconds: float) -> None:
        if not self._flush(manager):
            return
        watchdog = manager.watchdog_seconds
        late_max = float("inf") if watchdog is None else watchdog / 6
        unwell = why_unwell(self.liveness(), late_seconds, late_max)
        self._log_change(unwell if watchdog is not None else None)
        now, stop_by = trio.current_time(), self._stop_by_local
        view = DaemonView(now, self.status(), stop_by, self._refused, unwell)
        lines, sent = next_message(view, self._sent, None if watchdog is None else watchdog / 3)
        if not lines or self._send(manager, lines):
            self._sent = sent

    def _send_in_order(self, lines: list[str]) -> None:
        """What may not be lost: it waits until it can be sent."""
        if self.manager is not None:
            self._waiting.append(lines)
            self._flush(self.manager)

    def _flush(self, manager: ServiceManager) -> bool:
        while self._waiting:
            if not self._send(manager, self._waiting[0]):
                return False
            self._waiting.popleft()
        return True

    def _send(self, manager: ServiceManager, lines: list[str]) -> bool:
        was_sent = manager.send(lines)
        if not was_sent and not self._is_deaf:
            fields = {"address": manager.address, "message": "tried again every second"}
            event(self.log, logging.WARNING, "systemd does not hear us", **fields)
        self._is_deaf = not was_sent
        return was_sent

    def _log_change(self, unwell: str | None) -> None:
        if unwell is not None and self._unwell is None:
            event(self.log, logging.ERROR, "watchdog not fed", message=unwell)
        if unwell is None and self._unwell is not None:
            event(self.log, logging.INFO, "watchdog fed again")
        self._unwell = unwell


@attrs.frozen
class ServiceManager:
    """Listens at `address`: a path, or `@name` for an abstract one. It wants to hear from a daemon
    that is well at least every `watchdog_seconds`; None = it does not watch.
    """

    address: str
    watchdog_seconds: float | None = None

    def send(self, lines: Iterable[str]) -> bool:
        """Sends the lines as one message. Never waits and never raises; False = it was not sent:
        nobody listens there, or the queue is full.
        """
        where = "\0" + self.address[1:] if self.address.startswith("@") else self.address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.setblocking(False)
                sender.sendto("\n".join(lines).encode(), where)
        except OSError:
            return False
        return True


def take_service_manager(environ: MutableMapping[str, str], pid: int) -> ServiceManager | None:
    """Gives the service manager that waits to hear from this process, which is `pid`; None = there
    is none. Its variables are taken out of `environ`, so that no child can speak for us.
    """
    address = environ.pop(ADDRESS, "")
    usec, watched = environ.pop(WATCHDOG_USEC, ""), environ.pop(WATCHDOG_PID, "")
    if not address.startswith(("/", "@")):
        return None  # none, or of a kind that only virtual machines have
    is_ours = watched in ("", str(pid))
    is_watching = is_ours and usec.isascii() and usec.isdecimal() and int(usec) > 0
    return ServiceManager(address, int(usec) / MICROSECONDS if is_watching else None)
