"""The reasons for which a job does not run now, each by itself. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum

import attrs

from musterd.config.faults import GUESS, nearest
from musterd.store.estimate import caps_of
from musterd.store.lifecycle import AttemptOutcome, JobState
from musterd.store.nodes import NodeRecord
from musterd.store.report import error_line
from musterd.store.why_facts import LINE_BOUND, TargetJob, WhyFacts
from musterd.store.words import count_text, one_line, plural

NAMED_MAX = 5  # jobs or nodes that a text names
HALTING = frozenset({JobState.PAUSED, JobState.FAILED})
AFTER_ERROR = frozenset({AttemptOutcome.RETRYING, AttemptOutcome.LOST, AttemptOutcome.FAILED})


class Code(StrEnum):
    """Stable names of the reasons; docs/why.md tells each."""

    NOT_RELEASED = "not_released"
    PAUSED = "paused"
    NOT_DUE = "not_due"
    QUEUE_PAUSED = "queue_paused"
    TARGET_HALTED = "target_halted"
    BEHIND_IN_TARGET = "behind_in_target"
    KIND_LIMIT = "kind_limit"
    NO_LIVE_NODE = "no_live_node"
    KIND_UNKNOWN = "kind_unknown"
    KIND_BROKEN = "kind_broken"
    STORE_LIMIT = "store_limit"
    WORKERS_BUSY = "workers_busy"
    NEXT_UP = "next_up"
    CLAIMED = "claimed"
    RUNNING = "running"
    LEASE_LOST = "lease_lost"
    FINISHED = "finished"


@attrs.frozen
class Reason:
    """`do` is what somebody can do about it."""

    code: Code
    text: str
    who: str | None = None
    what: Mapping[str, object] | None = None
    since: datetime | None = None
    until: datetime | None = None
    do: str | None = None


def held_back(seen: WhyFacts) -> Iterator[Reason]:
    """What was decided about the job itself, or about the whole queue."""
    job = seen.job
    if job.state is JobState.PENDING:
        yield Reason(
            Code.NOT_RELEASED,
            "it is on hold: it has not been released",
            do=f"`musterd release {job.id}`",
        )
    if job.state is JobState.PAUSED:
        said = f": {one_line(job.reason)}" if job.reason else ""
        yield Reason(
            Code.PAUSED,
            f"it is paused{said}",
            what={"reason": job.reason},
            since=job.finished_at,
            do=f"`musterd resume {job.id}`, or `musterd cancel {job.id}`",
        )
    elif job.run_at > seen.now:
        yield _not_due(seen)
    if seen.paused_at is not None:
        by = one_line(seen.paused_by or "somebody")
        yield Reason(
            Code.QUEUE_PAUSED,
            f"the queue is paused by {by}",
            who=seen.paused_by,
            since=seen.paused_at,
            do="`musterd queue resume`",
        )


def _not_due(seen: WhyFacts) -> Reason:
    job = seen.job
    text, what = "it is not due yet", None
    if job.attempt and job.last_outcome in AFTER_ERROR and job.error is not None:
        error = error_line(job.error)
        text = f"it waits for its retry: attempt {job.attempt} ended with {error}"
        what = {"attempt": job.attempt, "error": error}
    elif job.attempt and job.reason:
        text = f"it was postponed: {one_line(job.reason)}"
        what = {"attempt": job.attempt, "reason": job.reason}
    return Reason(Code.NOT_DUE, text, what=what, until=job.run_at)


def kept_out(seen: WhyFacts) -> Iterator[Reason]:
    """What would stop any job in its place."""
    yield from _by_target(seen)
    yield from _by_limit(seen)
    yield from _by_nodes(seen)


def _by_target(seen: WhyFacts) -> Iterator[Reason]:
    target = one_line(seen.job.target or "")
    for other in seen.in_target:
        if other.state in HALTING:
            yield _halted(other, target)
    holder = next((o for o in seen.in_target if o.holds and o.state not in HALTING), None)
    before = seen.behind_before + seen.line.of_target + (holder is not None)
    if before:
        yield _behind(seen, holder, before)


def _behind(seen: WhyFacts, holder: TargetJob | None, before: int) -> Reason:
    exact = seen.behind_before < LINE_BOUND
    what: dict[str, object] = {"target": seen.job.target, "before": before, "before_exact": exact}
    text = f"jobs of target {one_line(seen.job.target or '')} run one at a time, and"
    text += f" {plural(before, 'job')}{'' if exact else ' or more'} of it"
    text += " goes first" if before == 1 else " go first"
    if holder is None:
        return Reason(Code.BEHIND_IN_TARGET, text, what=what)
    what |= {"job": holder.id, "state": holder.state.value}
    return Reason(
        Code.BEHIND_IN_TARGET,
        f"{text}: job {holder.id} is {holder.state.value}",
        what=what,
        since=holder.since,
        until=holder.run_at if _is_ahead(holder, seen.now) else None,
        do=f"`musterd why {holder.id}` says why",
    )


def _is_ahead(holder: TargetJob, now: datetime) -> bool:
    return holder.state is JobState.QUEUED and holder.run_at > now


def _halted(other: TargetJob, target: str) -> Reason:
    said = f" ({one_line(other.reason)})" if other.reason else ""
    job = other.id
    return Reason(
        Code.TARGET_HALTED,
        f"target {target} is halted: its job {job} is {other.state.value}{said}",
        what={"target": target, "job": job, "state": other.state.value},
        since=other.since,
        do=f"`musterd resume {job}`, or `musterd clear {job}`"
        + (f" or `musterd cancel {job}`" if other.state is JobState.PAUSED else ""),
    )


def _by_limit(seen: WhyFacts) -> Iterator[Reason]:
    kind, name = seen.job.kind, one_line(seen.job.kind)
    most = caps_of(seen.nodes).get(kind)
    holders = [one for one in seen.leased if one.kind == kind]
    before = seen.parked_before + seen.line.before.get(kind, 0)
    what: dict[str, object] = {"limit": most, "in_hand": len(holders), "before": before}
    what["jobs"] = [one.id for one in holders[:NAMED_MAX]]
    if most is None:
        if seen.job.parked and seen.nodes:
            text = f"it waits for a former limit of kind {name}, and can be claimed again soon"
            yield Reason(Code.KIND_LIMIT, text, what=what)
        return
    if len(holders) + before < most:
        return
    rest = f", and {count_text(before)} wait ahead of it" if before else ""
    yield Reason(
        Code.KIND_LIMIT,
        f"kind {name} may run {most} at once: {len(holders)} are claimed"
        f"{_named_jobs([one.id for one in holders])}{rest}",
        who=", ".join(sorted({one_line(one.node) for one in holders})[:NAMED_MAX]) or None,
        what=what,
        do=f"wait, or raise max_running of kind {name}",
    )


def _named_jobs(ids: list[int]) -> str:
    if not ids:
        return ""
    more = ", …" if len(ids) > NAMED_MAX else ""
    return f" ({'job' if len(ids) == 1 else 'jobs'} {', '.join(map(str, ids[:NAMED_MAX]))}{more})"


def _by_nodes(seen: WhyFacts) -> Iterator[Reason]:
    claiming = [node for node in seen.nodes if node.claims]
    if not claiming:
        yield _no_node(seen)
        return
    kind = seen.job.kind
    if all(node.lacks(kind) for node in claiming):
        yield _unknown_kind(seen, claiming)
        return
    whys = {node.name: found.broken for node in claiming if (found := node.named.get(kind))}
    broken = {name: reason for name, reason in whys.items() if reason is not None}
    able = [node for node in claiming if not node.lacks(kind) and node.name not in broken]
    if not able:
        first = one_line(next(iter(broken.values())))
        yield Reason(
            Code.KIND_BROKEN,
            f"kind {one_line(kind)} can run on no live node: {first}",
            who=_names(claiming),
            what={"kind": kind, "nodes": broken},
            do="fix it, see `musterd kinds --check` on the node, then `musterd reload` there",
        )


def _unknown_kind(seen: WhyFacts, claiming: list[NodeRecord]) -> Reason:
    kind = seen.job.kind
    meant = nearest(kind, {name for node in claiming for name in node.named})
    hint = f" - {GUESS}{one_line(meant)}?" if meant else ""
    return Reason(
        Code.KIND_UNKNOWN,
        f"no live node knows kind {one_line(kind)}{hint}",
        who=_names(claiming),
        what={"kind": kind, "meant": meant} if meant else {"kind": kind},
        do="add the kind to a node's catalog ([catalog] paths), then `musterd reload` there;"
        f" or `musterd cancel {seen.job.id}`",
    )


def _no_node(seen: WhyFacts) -> Reason:
    live = [node for node in seen.nodes if node.is_live]
    do = "start a node: `musterd run`"
    if not live:
        return Reason(Code.NO_LIVE_NODE, "no node is alive", do=do)
    text = f"no live node takes jobs: {_names(live)} {'is' if len(live) == 1 else 'are'} draining"
    if any(node.phase == "starting" for node in live):
        text = f"no live node takes jobs yet: {_names(live)} starting or draining"
    return Reason(Code.NO_LIVE_NODE, text, who=_names(live), do=do)


def _names(nodes: list[NodeRecord]) -> str:
    more = ", …" if len(nodes) > NAMED_MAX else ""
    return ", ".join(one_line(node.name) for node in nodes[:NAMED_MAX]) + more


def workers_busy(claiming: Sequence[NodeRecord], place: str, unmeasured: Sequence[str]) -> Reason:
    """`place` is the job's in words."""
    workers = sum(node.crew for node in claiming)
    busy = f"all {plural(workers, 'worker')} are busy" if workers != 1 else "the worker is busy"
    if not workers:
        busy = "no worker has been hired yet"
    kinds = ", ".join(one_line(kind) for kind in unmeasured[:NAMED_MAX])
    return Reason(
        Code.WORKERS_BUSY,
        f"{busy}: it is {place} in line"
        + (f"; it is not known yet how long jobs of kind {kinds} take" if unmeasured else ""),
        what={"workers": workers, "max_count": sum(node.max_count for node in claiming)},
    )


def finished(seen: WhyFacts) -> Reason:
    job = seen.job
    said = error_line(job.error) if job.state is JobState.FAILED else one_line(job.reason or "")
    halts = job.state is JobState.FAILED and job.target is not None and job.cleared_at is None
    do = None
    if job.state is JobState.FAILED:
        do = f"`musterd resume {job.id}` runs it again"
        do += f", `musterd clear {job.id}` lets its target go on without it" if halts else ""
    return Reason(
        Code.FINISHED,
        f"it has ended: {job.state.value}" + (f", {said}" if said else ""),
        what={"state": job.state.value, "halts_target": halts},
        since=job.finished_at,
        do=do,
    )


def in_hand(seen: WhyFacts) -> Iterator[Reason]:
    job = seen.job
    owner = one_line(job.node or "?") + ("" if job.worker is None else f"/{job.worker}")
    what: dict[str, object] = {"attempt": job.attempt, "asked_for": job.request}
    requested = f", and is requested to {job.request}" if job.request else ""
    if job.lease_expires_at is not None and job.lease_expires_at <= seen.now:
        yield Reason(
            Code.LEASE_LOST,
            f"{owner} has not renewed its lease: any live node will end attempt {job.attempt} as"
            f" its kind says{requested}",
            who=owner,
            what=what,
            since=job.lease_expires_at,
        )
        if not any(node.is_live for node in seen.nodes):
            yield _no_node(seen)
        return
    running = job.state is JobState.RUNNING
    verb = "is running on" if running else "is claimed, and will start soon, on"
    yield Reason(
        Code.RUNNING if running else Code.CLAIMED,
        f"it {verb} {owner}, attempt {job.attempt}{requested}",
        who=owner,
        what=what,
        since=job.started_at,
        until=job.lease_expires_at,
    )
