"""What to send to systemd next, whether the daemon is alive, how long a drain may take. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from musterd.config.settings import Settings, Shutdown
from musterd.manager.node.objects import TROUBLE_WORDS
from musterd.manager.node.status import NodeStatus, TenantStatus
from musterd.store.words import count_text, duration_text, one_line
from musterd.workers.leases import LeaseKeeper

TEXT_LENGTH_MAX = 300
# systemd counts from each such message, and kills us if none follows in time.
EXTEND_SECONDS = 30.0
EXTEND_AGAIN_SECONDS = 5.0
CLOSING_SECONDS = 5.0  # of the store, see `tenancy`
SLACK_SECONDS = 20.0


@attrs.frozen
class DaemonView:
    """The node as it is now. `stop_by_local`: when a drain must have ended; None = it does not
    drain. `unwell`: why the watchdog is not fed.
    """

    now_local: float
    status: NodeStatus
    stop_by_local: float | None
    reload_refused: bool
    unwell: str | None


@attrs.frozen
class Sent:
    """What systemd has heard, and when."""

    ready: bool = False
    stopping: bool = False
    text: str = ""
    extended_local: float = float("-inf")
    fed_local: float = float("-inf")


def next_message(
    view: DaemonView, sent: Sent, feed_seconds: float | None
) -> tuple[list[str], Sent]:
    """Gives the lines to send, maybe none, and what systemd knows once they are sent.
    `feed_seconds`: time between two signs of life; None = it asks for none.
    """
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
    """A store that is away is waited for however long it takes; a drain has an end."""
    if view.stop_by_local is not None:
        return view.now_local <= view.stop_by_local
    return not sent.ready


def status_text(view: DaemonView) -> str:
    """Gives the line that `systemctl status` shows: `6/8 workers, depth 41`, and what is wrong."""
    status = view.status
    if status.phase == "starting":
        parts = [_waiting_text(status)]
    else:
        size = status.idle + status.busy + status.retiring
        depth = "?" if status.depth is None else count_text(status.depth)
        parts = [f"{size}/{status.max_count} workers, depth {depth}"]
        parts += [_trouble_text(one) for one in status.tenants if one.store_trouble is not None]
    if view.stop_by_local is not None:
        parts.insert(0, _drain_text(status))
    if view.reload_refused:
        parts.append("the last reload was refused, see the log")
    if view.unwell is not None:
        parts.append(view.unwell)
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


@attrs.frozen
class Liveness:
    """How the renewals of one tenant's leases get on. `unrenewed_seconds`: how long none has come
    through although one was sent; None = the last one did, or none was ever due.
    """

    tenant: str
    lease_seconds: float
    unrenewed_seconds: float | None
    store_in_trouble: bool  # and the log says so


def why_unwell(tenants: Sequence[Liveness], late_seconds: float, late_max: float) -> str | None:
    """Says why the watchdog is not fed; None = it is.

    A store that is known to be away is weather, and starting anew does not help. Renewals that
    vanish without a word for longer than a lease are ours to end.
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
    """`trouble` is what is known to ail the tenant's store."""
    since_local = keeper.unrenewed_since_local
    unrenewed_seconds = None if since_local is None else now_local - since_local
    return Liveness(tenant, keeper.plan.lease_seconds, unrenewed_seconds, trouble is not None)


def drain_seconds_max(settings: Settings) -> float:
    """Gives the longest time from the request to stop to the end of the process: each part of
    `[shutdown]` in turn, then the last webhooks and the last writes.
    """
    shutdown = settings.shutdown
    names = [one.name for one in attrs.fields(Shutdown) if one.name.endswith("_seconds")]
    parts = sum(float(getattr(shutdown, name)) for name in names)
    mail = settings.webhooks.timeout_seconds + shutdown.dismiss_seconds
    return parts + mail + CLOSING_SECONDS + SLACK_SECONDS
