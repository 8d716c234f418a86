"""Keeps systemd informed about the daemon through sd_notify(3)."""

from __future__ import annotations

import logging
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, MutableMapping, Sequence

import attrs
import trio

from musterd.config.settings import Settings, Shutdown
from musterd.manager.log import event
from musterd.manager.node.status import TROUBLE_WORDS, NodeStatus
from musterd.store.waiting import Bell
from musterd.store.words import count_text, cut, duration_text, one_line
from musterd.workers.leases import LeaseKeeper

TEXT_LENGTH_MAX = 300
# systemd counts from each such message, and kills us if none follows in time.
EXTEND_SECONDS = 30.0
EXTEND_AGAIN_SECONDS = 5.0
CLOSING_SECONDS = 5.0  # of the store, see `tenancy`
SLACK_SECONDS = 20.0


@attrs.frozen
class DaemonView:
    """`stop_by_local`: when a drain must have ended. `unwell`: why the watchdog is not fed."""

    now_local: float
    status: NodeStatus
    stop_by_local: float | None
    reload_refused: bool
    unwell: str | None


@attrs.frozen
class Sent:
    """What systemd has been sent, and when."""

    ready: bool = False
    stopping: bool = False
    text: str = ""
    extended_local: float = float("-inf")
    fed_local: float = float("-inf")


def next_message(
    view: DaemonView, sent: Sent, feed_seconds: float | None
) -> tuple[list[str], Sent]:
    """The lines to send, and what systemd then knows. `feed_seconds` None = no watchdog."""
    lines, now = list[str](), view.now_local
    if view.status.phase != "starting" and not sent.ready:
        lines.append("READY=1")
        sent = attrs.evolve(sent, ready=True)
    if view.stop_by_local is not None and not sent.stopping:
        lines.append("STOPPING=1")
        sent = attrs.evolve(sent, stopping=True, extended_local=float("-inf"))
    if _needs_time(view, sent) and now - sent.extended_local >= EXTEND_AGAIN_SECONDS:
        lines.append(f"EXTEND_TIMEOUT_USEC={EXTEND_SECONDS * 1e6:.0f}")
        sent = attrs.evolve(sent, extended_local=now)
    if feed_seconds is not None and view.unwell is None and now - sent.fed_local >= feed_seconds:
        lines.append("WATCHDOG=1")
        sent = attrs.evolve(sent, fed_local=now)
    text = status_text(view)
    if text != sent.text:
        lines.append(f"STATUS={text}")
        sent = attrs.evolve(sent, text=text)
    return lines, sent


def _needs_time(view: DaemonView, sent: Sent) -> bool:
    """A store that is away is awaited without limit; a drain has an end."""
    if view.stop_by_local is not None:
        return view.now_local <= view.stop_by_local
    return not sent.ready


def status_text(view: DaemonView) -> str:
    """The line of `systemctl status`: `6/8 workers, 41 due`, and what is wrong."""
    status = view.status
    if status.phase == "starting":
        waiting = f"waiting for the store: {status.store_message or status.store_trouble}"
        parts = ["starting" if status.store_trouble is None else waiting]
    else:
        exact = status.depth_exact
        depth = "?" if status.depth is None else count_text(status.depth, exact=exact)
        parts = [f"{status.size}/{status.max_count} workers, {depth} due"]
        for one in status.tenants:
            if one.store_trouble is not None:
                words = TROUBLE_WORDS.get(one.store_trouble, one.store_trouble)
                parts.append(f"the store of {one.name} {words}")
    if view.stop_by_local is not None:
        parts.insert(0, _drain_text(status))
    if view.reload_refused:
        parts.append("the last reload was refused, see the log")
    if view.unwell is not None:
        parts.append(view.unwell)
    return cut(one_line("; ".join(parts)), TEXT_LENGTH_MAX)


def _drain_text(status: NodeStatus) -> str:
    left = status.drain_seconds_left
    jobs = count_text(status.busy + status.retiring)
    if left is None or left <= 0:
        return f"draining, {jobs} running"
    return f"draining, {jobs} running, {duration_text(float(round(left)))} left"


@attrs.frozen
class Liveness:
    """`unrenewed_seconds`: how long no renewal has succeeded; None = the last one did."""

    tenant: str
    lease_seconds: float
    unrenewed_seconds: float | None
    store_in_trouble: bool  # and the log says so


def why_unwell(tenants: Sequence[Liveness], late_seconds: float, late_max: float) -> str | None:
    """Why the watchdog is not fed; None = it is. A store that is known to be away is no reason: a
    restart would not help. Renewals that fail silently for longer than a lease are.
    """
    if late_seconds > late_max:
        return f"the event loop is {duration_text(late_seconds)} late"
    for one in tenants:
        if one.store_in_trouble or one.unrenewed_seconds is None:
            continue
        if one.unrenewed_seconds > one.lease_seconds:
            since = duration_text(one.unrenewed_seconds)
            return f"no lease of {one_line(one.tenant)} could be renewed for {since}"
    return None


def liveness_of(
    tenant: str, keeper: LeaseKeeper, trouble: str | None, now_local: float
) -> Liveness:
    """`trouble`: what is known to be wrong with the tenant's store."""
    since_local = keeper.unrenewed_since_local
    unrenewed_seconds = None if since_local is None else now_local - since_local
    return Liveness(tenant, keeper.plan.lease_seconds, unrenewed_seconds, trouble is not None)


def drain_seconds_max(settings: Settings) -> float:
    """All parts of `[shutdown]`, then the last webhooks and writes."""
    shutdown = settings.shutdown
    names = [one.name for one in attrs.fields(Shutdown) if one.name.endswith("_seconds")]
    parts = sum(float(getattr(shutdown, name)) for name in names)
    mail = settings.webhooks.timeout_seconds + shutdown.dismiss_seconds
    return parts + mail + CLOSING_SECONDS + SLACK_SECONDS


LOOK_SECONDS = 1.0
WAITING_MAX = 16  # messages of reloads that could not be sent yet
ADDRESS, WATCHDOG_USEC, WATCHDOG_PID = "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"
MICROSECONDS = 1_000_000


@attrs.define(eq=False)
class Notifier:
    """Owned by the daemon; does nothing without a service manager. Only `run` waits."""

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
        """These must not be lost: they wait until they can be sent."""
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
            event(self.log, logging.WARNING, "systemd cannot be reached", **fields)
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
    """`address`: a path, or `@name`. Wants a sign of life each `watchdog_seconds`; None = none."""

    address: str
    watchdog_seconds: float | None = None

    def send(self, lines: Iterable[str]) -> bool:
        """One message. Never waits or raises; False = nobody listens, or the queue is full."""
        where = "\0" + self.address[1:] if self.address.startswith("@") else self.address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.setblocking(False)
                sender.sendto("\n".join(lines).encode(), where)
        except OSError:
            return False
        return True


def take_service_manager(environ: MutableMapping[str, str], pid: int) -> ServiceManager | None:
    """Removes its variables from `environ`, so that no child can speak for us."""
    address = environ.pop(ADDRESS, "")
    usec, watched = environ.pop(WATCHDOG_USEC, ""), environ.pop(WATCHDOG_PID, "")
    if not address.startswith(("/", "@")):
        return None  # none, or of a kind that only virtual machines have
    is_ours = watched in ("", str(pid))
    is_watching = is_ours and usec.isascii() and usec.isdecimal() and int(usec) > 0
    return ServiceManager(address, int(usec) / MICROSECONDS if is_watching else None)
