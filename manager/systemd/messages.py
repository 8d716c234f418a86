"""What systemd is told next: a pure function of what is seen and what it has been told."""

from __future__ import annotations

import attrs

from musterd.manager.node.objects import TROUBLE_WORDS
from musterd.manager.node.status import NodeStatus, TenantStatus
from musterd.store.words import count_text, duration_text, one_line

TEXT_LENGTH_MAX = 300
# systemd counts from each such message, and kills us if none follows in time.
EXTEND_SECONDS = 30.0
EXTEND_AGAIN_SECONDS = 5.0


@attrs.frozen
class Seen:
    """The node as it is now. `stop_by_local`: when a drain must have ended; None = it does not
    drain. `unwell`: why the watchdog is not fed.
    """

    now_local: float
    status: NodeStatus
    stop_by_local: float | None
    reload_refused: bool
    unwell: str | None


@attrs.frozen
class Told:
    """What systemd has heard, and when."""

    ready: bool = False
    stopping: bool = False
    text: str = ""
    extended_local: float = float("-inf")
    fed_local: float = float("-inf")


def next_message(seen: Seen, told: Told, feed_seconds: float | None) -> tuple[list[str], Told]:
    """Gives the lines to send, maybe none, and what systemd knows once they are sent.
    `feed_seconds`: time between two signs of life; None = it asks for none.
    """
    lines, now = list[str](), seen.now_local
    if seen.status.phase != "starting" and not told.ready:
        lines.append("READY=1")
        told = attrs.evolve(told, ready=True)
    if seen.stop_by_local is not None and not told.stopping:
        lines.append("STOPPING=1")
        told = attrs.evolve(told, stopping=True, extended_local=float("-inf"))
    if _needs_time(seen, told) and now - told.extended_local >= EXTEND_AGAIN_SECONDS:
        lines.append(f"EXTEND_TIMEOUT_USEC={EXTEND_SECONDS * 1e6:.0f}")
        told = attrs.evolve(told, extended_local=now)
    if feed_seconds is not None and seen.unwell is None and now - told.fed_local >= feed_seconds:
        lines.append("WATCHDOG=1")
        told = attrs.evolve(told, fed_local=now)
    text = status_text(seen)
    if text != told.text:
        lines.append(f"STATUS={text}")
        told = attrs.evolve(told, text=text)
    return lines, told


def _needs_time(seen: Seen, told: Told) -> bool:
    """A store that is away is waited for however long it takes; a drain has an end."""
    if seen.stop_by_local is not None:
        return seen.now_local <= seen.stop_by_local
    return not told.ready


def status_text(seen: Seen) -> str:
    """Gives the line that `systemctl status` shows: `6/8 workers, depth 41`, and what is wrong."""
    status = seen.status
    if status.phase == "starting":
        parts = [_waiting_text(status)]
    else:
        size = status.idle + status.busy + status.retiring
        depth = "?" if status.depth is None else count_text(status.depth)
        parts = [f"{size}/{status.max_count} workers, depth {depth}"]
        parts += [_trouble_text(one) for one in status.tenants if one.store_trouble is not None]
    if seen.stop_by_local is not None:
        parts.insert(0, _drain_text(status))
    if seen.reload_refused:
        parts.append("the last reload was refused, see the log")
    if seen.unwell is not None:
        parts.append(seen.unwell)
    text = one_line("; ".join(parts))
    return text if len(text) <= TEXT_LENGTH_MAX else f"{text[: TEXT_LENGTH_MAX - 1]}…"


def _waiting_text(status: NodeStatus) -> str:
    if status.store_trouble is None:
        return "starting"
    return f"waiting for the store: {status.store_message or status.store_trouble}"


def _trouble_text(tenant: TenantStatus) -> str:
    trouble = tenant.store_trouble or ""
    words = TROUBLE_WORDS.get(trouble, trouble)
    return f"the store of {tenant.name} {words}"


def _drain_text(status: NodeStatus) -> str:
    left = status.drain_seconds_left
    jobs = count_text(status.busy + status.retiring)
    if left is None or left <= 0:
        return f"draining, {jobs} running"
    return f"draining, {jobs} running, {duration_text(float(round(left)))} left"
