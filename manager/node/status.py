"""A node's status: values, JSON objects and words, for HTTP and command line. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal

import attrs

from musterd.store.lifecycle import JobState
from musterd.store.queue import Counts
from musterd.store.scaling_journal import is_due_exact
from musterd.store.words import count_text, duration_text, one_line, plural, time_text
from musterd.workers.claiming.held import Ignored

NodePhase = Literal["starting", "running", "draining", "stopped"]


@attrs.frozen
class WorkerView:
    """One worker of the crew, now."""

    worker: int
    state: Literal["idle", "busy", "retiring"]
    job_id: int | None
    kind: str | None
    busy_seconds: float


@attrs.frozen
class Decision:
    """One tick of the supervisor: what it observed, wished and did, and what limited it."""

    at: float  # seconds since the epoch, for people
    policy: str
    due: int | None  # None = the observation failed
    busy: int
    size_before: int
    raw_wish: int | None
    desired: int
    limited_by: str | None  # of `scaling.Limit`
    hired: int
    taken_back: int
    retired: int
    share: int | None = None  # of what is due, what falls to this node
    others_free: int | None = None  # how many more workers the other nodes could have, as last seen
    room: int | None = None  # how many more jobs may run on all nodes; None = any number
    because: str | None = None  # what the wish came from, of `latency.Because`; None = no wish
    decided_by: Mapping[str, object] | None = None  # kind and job whose promise took most workers
    slack_seconds: float | None = None  # what was left of the promise of the worst waiting job
    default_count: int | None = None  # the bounds in force
    max_count: int | None = None
    candidate: Mapping[str, object] | None = None  # what [scaling.candidate] would have decided

    @property
    def due_exact(self) -> bool:
        """False = counting stopped at `due`; more may have been due."""
        return is_due_exact(self.due, self.max_count, self.others_free)


@attrs.frozen
class Configured:
    """The number of a node's configuration since its start, and its `fingerprint`."""

    generation: int
    hash: str


@attrs.frozen
class StoreAndCrew:
    """What the status of a tenant and of a whole node have in common."""

    phase: NodePhase
    engine: str
    store: str  # address without secrets
    store_trouble: str | None  # see store.errors.StoreUnavailable.trouble
    store_trouble_seconds: float
    store_message: str | None
    idle: int
    busy: int
    retiring: int
    default_count: int
    max_count: int
    depth: int | None  # due and claimable as last seen, bounded
    settled_total: int
    depth_exact: bool = True  # False = counting stopped there

    @property
    def size(self) -> int:
        """Includes workers that are leaving."""
        return self.idle + self.busy + self.retiring


@attrs.frozen(kw_only=True)
class TenantStatus(StoreAndCrew):
    name: str
    retention_trouble: str | None  # why no job of it is deleted


@attrs.frozen(kw_only=True)
class NodeStatus(StoreAndCrew):
    """Store and decision are the default tenant's; counts are sums over all tenants."""

    node: str
    version: str
    up_seconds: float
    drain_seconds_left: float | None
    last_decision: Decision | None
    ignored: Sequence[Ignored] = ()  # requests that the work of this node does not obey
    tenants: tuple[TenantStatus, ...]
    generation: int = 1  # of its configuration
    reload_faults: tuple[str, ...] = ()  # why the configuration offered last was refused


TROUBLE_WORDS = {
    "unreachable": "cannot be reached",
    "starting": "is starting",
    "disk_full": "has no disk space left",
    "read_only": "is read-only",
    "too_many_connections": "has no connection left for us",
    "no_thread": "has no thread to work in",
    "timeout": "takes too long to answer",
    "conflict": "is busy with others",
    "misconfigured": "refuses us",
    "unclaimable": "holds a job that cannot be claimed, and nothing is claimed",
}


def verdict(node: NodeStatus) -> tuple[bool, str]:
    """Whether the node is healthy, and one line that says why."""
    if node.store_trouble is not None:
        words = TROUBLE_WORDS.get(node.store_trouble, node.store_trouble)
        since = duration_text(node.store_trouble_seconds)
        return False, f"the store {words}, for {since} now"
    if node.phase == "running":
        return True, f"running for {duration_text(node.up_seconds)}"
    if node.phase == "draining":
        return False, f"draining: {drain_text(node.busy + node.retiring, node.drain_seconds_left)}"
    return False, node.phase


def drain_text(jobs: int, seconds_left: float | None) -> str:
    """What a draining node waits for, and how long at most."""
    if not jobs:
        return "it takes no new jobs, and none is left"
    left = "" if seconds_left is None else f" up to {duration_text(max(0.0, seconds_left))}"
    return f"it takes no new jobs, and waits{left} for {plural(jobs, 'job')} to end"


def status_object(node: NodeStatus, counts: Counts | None) -> dict[str, object]:
    """`counts` is None if the store does not answer."""
    healthy, words = verdict(node)
    return {
        "healthy": healthy,
        "verdict": words,
        "node": node_object(node),
        "counts": None if counts is None else counts_object(counts),
    }


def node_object(node: NodeStatus) -> dict[str, object]:
    whole: dict[str, object] = {"node": node.node, "version": node.version}
    whole |= attrs.asdict(node, recurse=False)
    last = node.last_decision
    whole["last_decision"] = None if last is None else decision_object(last)
    whole["ignored"] = [one._asdict() for one in node.ignored]
    whole["tenants"] = [{"name": one.name, **attrs.asdict(one)} for one in node.tenants]
    return whole


def decision_object(decision: Decision) -> dict[str, object]:
    at = time_text(datetime.fromtimestamp(decision.at, UTC))
    return {**attrs.asdict(decision), "at": at, "due_exact": decision.due_exact}


def counts_object(counts: Counts) -> dict[str, object]:
    return {
        "jobs": {state.value: counts.by_state.get(state, 0) for state in JobState},
        "enqueued_total": counts.enqueued_total,
        "due": counts.due,
        "oldest_due_seconds": round(counts.oldest_due_seconds, 3),
        "paused_at": time_text(counts.paused_at),
        "paused_by": counts.paused_by,
    }


def queue_object(changed: bool, counts: Counts) -> dict[str, object]:
    return {
        "paused": counts.paused_at is not None,
        "changed": changed,
        "paused_at": time_text(counts.paused_at),
        "paused_by": counts.paused_by,
    }


def decision_text(decision: Decision, *, paused: bool = False) -> str:
    """One tick in one line: `3 -> 5  hired 2  (9 due, 3 busy: wished 12, limited by max)`. While
    the queue is `paused` the supervisor takes nothing for due.
    """
    if decision.due is None:
        return f"{decision.size_before} stays  (the queue could not be observed)"
    done = [("hired", decision.hired), ("taken back", decision.taken_back)]
    done.append(("retired", decision.retired))
    acts = ", ".join(f"{word} {count}" for word, count in done if count) or "no change"
    limit = f", held by {one_line(decision.limited_by)}" if decision.limited_by else ""
    here = "" if decision.share in (None, decision.due) else f", {decision.share} of them for us"
    due = f"{count_text(decision.due, exact=decision.due_exact)} due{here}"
    seen = f"{'queue paused' if paused and not decision.due else due}, {decision.busy} busy"
    if decision.limited_by == "max_running" and decision.room is not None:
        seen += f", room for {decision.room} more"
    wish = f"wished {decision.raw_wish}{limit}"
    beside = "" if decision.candidate is None else f"; candidate {decision.candidate['desired']}"
    return f"{decision.size_before} -> {decision.desired}  {acts}  ({seen}: {wish}{beside})"
