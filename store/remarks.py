"""What there is to say of a store that its numbers do not: one line each, with what to do."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeVar

import attrs

from musterd.config.faults import nearest
from musterd.config.settings import Settings
from musterd.store.duties import DutyRecord
from musterd.store.engine import Engine
from musterd.store.jobs import JobFilter
from musterd.store.lifecycle import LEASED
from musterd.store.nodes import PAUSES_OF_THE_DEAD, NodeRecord
from musterd.store.overview import KindEnds, Troubles
from musterd.store.queue import Counts
from musterd.store.words import count_text, cut, duration_text, one_line, plural

T = TypeVar("T")
LONG_SECONDS = 6 * 3600.0
WAITING_LOOKED = 1_000  # jobs, of those that are due and of those that are not yet
HELD_LOOKED = 100  # jobs in hand: they are read whole, and a dead node's are soon gone
FAILED_MIN = 3  # so few failures say nothing of a kind
NAMES_MAX = 3
NAME_WIDTH = 40
REASON_WIDTH = 160


@attrs.frozen
class Situation:
    """What a store says of itself at one moment. `holders`: the nodes that have jobs in hand; None:
    nobody asked, or there are too many such jobs to look at all.
    """

    counts: Counts
    troubles: Troubles
    nodes: Sequence[NodeRecord]
    duties: Sequence[DutyRecord]
    waiting: Mapping[str, int]  # the kinds of the first `WAITING_LOOKED` that wait
    holders: frozenset[str | None] | None = None

    @property
    def unknown(self) -> Mapping[str, int]:
        """By kind, the waiting jobs that no live node knows; where there is none, none."""
        claiming = [node for node in self.nodes if node.claims]
        return {
            kind: number
            for kind, number in sorted(self.waiting.items())
            if claiming and all(node.lacks(kind) for node in claiming)
        }


async def look_at(engine: Engine) -> Situation:
    """No cost here grows with the queue."""
    nodes = await engine.nodes.all()
    has_dead = any(not node.is_live for node in nodes)
    return Situation(
        await engine.queue.counts(),
        await engine.overview.troubles(),
        nodes,
        await engine.duties.duties(),
        await engine.queue.waiting_kinds(WAITING_LOOKED),
        await _holders(engine) if has_dead else None,
    )


async def _holders(engine: Engine) -> frozenset[str | None] | None:
    held = await engine.jobs.find(JobFilter(states=tuple(LEASED), limit=HELD_LOOKED))
    return frozenset(job.node for job in held) if len(held) < HELD_LOOKED else None


def remarks(seen: Situation, settings: Settings) -> list[str]:
    """`settings` are those of the store's tenant."""
    found = [*_queue_remarks(seen), *_kind_remarks(seen), *_node_remarks(seen, settings)]
    return [one_line(each) for each in found]


def _queue_remarks(seen: Situation) -> Iterator[str]:
    counts, troubles = seen.counts, seen.troubles
    if counts.paused_at is not None:
        yield f"PAUSED  by {counts.paused_by or 'somebody'}: `musterd queue resume`"
    if troubles.halted_targets:
        names = ", ".join(cut(one_line(one), 30) for one in troubles.halted_first)
        halted = plural(troubles.halted_targets, "target")
        do = "`musterd jobs --state failed --state paused`, then resume or clear"
        yield f"HALTED  {halted} ({names}): {do}"
    if troubles.leases_overdue:
        late = plural(troubles.leases_overdue, "lease has", "leases have")
        yield f"LATE    {late} expired, and no node ends them: `musterd duties`"
    if troubles.oldest_seconds is not None and troubles.oldest_seconds >= LONG_SECONDS:
        name = f"job {troubles.oldest_id} ({cut(one_line(troubles.oldest_kind or ''), 30)})"
        since = duration_text(troubles.oldest_seconds)
        yield f"LONG    {name} has run for {since}: `musterd job {troubles.oldest_id}`"


def _kind_remarks(seen: Situation) -> Iterator[str]:
    if unknown := seen.unknown:
        kind = next(iter(unknown))
        guess = nearest(kind, {name for node in seen.nodes for name in node.named})
        meant = f" (did you mean {guess}?)" if guess else ""
        which = ", ".join(f"{_name(one)}: {plural(unknown[one], 'job')}" for one in _first(unknown))
        do = f"add the kind and `musterd reload`, or `musterd cancel --where kind={_name(kind)}`"
        yield f"UNKNOWN_KIND no node knows {which}{_more(unknown)}{meant}; {do}"
    failing = [one for one in seen.troubles.failing if is_failing(one)]
    if failing:
        shares = (f"{_name(one.kind)} ({one.failed} of {one.ended})" for one in _first(failing))
        which = f"{', '.join(shares)}{_more(failing)}"
        do = f"`musterd jobs --kind {_name(failing[0].kind)} --state failed`, then `musterd job ID`"
        yield f"FAILING {which}: so many of the latest jobs failed; {do}"
    broken = {
        name: (node.name, known.broken)
        for node in seen.nodes
        if node.claims
        for name, known in sorted(node.named.items())
        if known.broken is not None
    }
    if broken:
        kind, (node_name, reason) = next(iter(broken.items()))
        more = f", and {plural(len(broken) - 1, 'more kind')}" if len(broken) > 1 else ""
        why = cut(one_line(reason), REASON_WIDTH)
        what = f"{_name(kind)} cannot run on {_name(node_name)}{more}: {why}"
        yield f"BROKEN_KIND {what}; see `musterd kinds --check`, fix it, then `musterd reload`"


def behind(slack_seconds: float | None) -> list[str]:
    """Of what is left of the promise of the worst waiting job, by the latest decision."""
    if slack_seconds is None or slack_seconds >= 0:
        return []
    late = f"a job has waited {duration_text(-slack_seconds)} longer than promised"
    return [f"BEHIND  {late}: `musterd scaling` says what limits the crew"]


def is_failing(ends: KindEnds) -> bool:
    return ends.failed >= FAILED_MIN and 2 * ends.failed > ends.ended


def _node_remarks(seen: Situation, settings: Settings) -> Iterator[str]:
    live = [node for node in seen.nodes if node.is_live]
    # Until its jobs are back. Later all its leases have run out: where nobody has ended them,
    # another remark says so.
    back_seconds = settings.workers.lease_timeout_seconds + settings.duties.lease_seconds
    silent = [
        node.name
        for node in seen.nodes
        if not node.is_live
        and (seen.holders is None or node.name in seen.holders)
        and node.silent_seconds <= node.pause_seconds * PAUSES_OF_THE_DEAD + back_seconds
    ]
    if silent:
        names = ", ".join(map(_name, _first(silent)))
        did = "died without notice; its jobs are queued again by themselves"
        yield f"SILENT  {names}{_more(silent)}: {did}"
    if seen.counts.due and not live:
        yield f"NOBODY  {count_text(seen.counts.due)} due and no node is alive: `musterd run`"
    without = [one.duty for one in seen.duties if one.node is None]
    if live and without and settings.duties.mode == "leader":
        yield f"DUTIES  no node has {', '.join(without)}: `musterd duties`"


def _name(text: str) -> str:
    return cut(one_line(text), NAME_WIDTH)


def _first(names: Collection[T]) -> list[T]:
    return list(islice(names, NAMES_MAX))


def _more(names: Collection[object]) -> str:
    return f" and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else ""
