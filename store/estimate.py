"""When a waiting job will start: a band that holds as long as nothing new comes before it. Pure.

Let W workers be busy until the start, R be what is left of the jobs in their hands, S the work of
the jobs before this one. All of it is begun by then and at most W - 1 jobs are not yet done, each
no longer than D: so the start lies between (R + S - (W - 1) * D) / W and (R + S) / W. The early end
takes the largest crew there may be, the late one the present crew.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import attrs

from musterd.store.nodes import KnownKind, NodeRecord
from musterd.store.why_facts import Leased, WhyFacts

HANDOVER_SECONDS = 0.005  # from one job to the next, at the worst
SLACK_SECONDS = 0.5  # polling, hiring
SIGMAS = 2.0


@attrs.frozen
class Estimate:
    """Seconds from now. `latest` is None where nobody can say."""

    earliest_seconds: float
    latest_seconds: float | None
    unmeasured: tuple[str, ...]  # kinds that no live node has run yet


@attrs.frozen
class Service:
    """How long jobs of one kind take, over all live nodes."""

    runs: int
    mean_seconds: float
    deviation_seconds: float

    @property
    def long_seconds(self) -> float:
        return self.mean_seconds + SIGMAS * self.deviation_seconds

    @property
    def short_seconds(self) -> float:
        return max(0.0, self.mean_seconds - SIGMAS * self.deviation_seconds)

    def doubt_seconds(self, jobs: int) -> float:
        """How far the sum of so many may be off: by chance, and since the mean was measured."""
        return SIGMAS * self.deviation_seconds * (math.sqrt(jobs) + jobs / math.sqrt(self.runs))


@attrs.frozen
class _Ahead:
    """What is before the job: how many of each kind wait, what is in hand, and how long jobs of
    each kind take, as far as that is known.
    """

    waiting: Mapping[str, int]
    leased: Sequence[Leased]
    known: Mapping[str, Service]


def estimate(seen: WhyFacts) -> Estimate:
    """When the job starts, if it waits for workers only."""
    nodes = [node for node in seen.nodes if node.claims]
    names = {node.name for node in nodes}
    leased = [one for one in seen.leased if one.node in names]
    kinds = {*seen.line.before, *(one.kind for one in leased)}
    known = {kind: found for kind in kinds if (found := service(nodes, kind)) is not None}
    unmeasured = tuple(sorted(kinds - known.keys()))
    caps = caps_of(seen.nodes)
    most, least = _workers(seen, nodes, leased)
    ahead = _Ahead(seen.line.before, leased, known)
    early = _earliest(ahead, most, caps)
    capped = {kind: caps[kind] for kind in seen.parked_kinds if kind in caps}
    late = _latest(ahead, least, capped)
    return Estimate(early, None if late is None else max(early, late), unmeasured)


def service(nodes: Iterable[NodeRecord], kind: str) -> Service | None:
    """What the nodes have measured of this kind, put together; None = nothing."""
    return together(one for node in nodes if (one := node.named.get(kind)) is not None)


def together(measured: Iterable[KnownKind]) -> Service | None:
    """One kind as several nodes have measured it."""
    found = [one for one in measured if one.runs]
    runs = sum(one.runs for one in found)
    if not runs:
        return None
    mean = sum(one.runs * one.mean_seconds for one in found) / runs
    square = sum(one.runs * _square(one) for one in found) / runs
    return Service(runs, mean, math.sqrt(max(0.0, square - mean * mean)))


def caps_of(nodes: Iterable[NodeRecord]) -> dict[str, int]:
    """`max_running` by kind, as the live nodes have it; of different ones the smallest."""
    caps: dict[str, int] = {}
    for node in nodes:
        for kind, known in node.named.items():
            if known.max_running is not None:
                caps[kind] = min(known.max_running, caps.get(kind, known.max_running))
    return caps


def bound_of(nodes: Iterable[NodeRecord]) -> int | None:
    """How many jobs may run at once, whatever their kinds, as the live nodes have it; of different
    bounds the smallest. None = any number.
    """
    bounds = [node.kinds.max_running for node in nodes if node.kinds is not None]
    return min((most for most in bounds if most is not None), default=None)


def free_workers(nodes: Iterable[NodeRecord], leased: Iterable[Leased]) -> int:
    """How many workers of these nodes have nothing in hand."""
    left = Counter[str]()  # leases name their node, and two may have one name
    for node in nodes:
        left[node.name] += node.crew + node.retiring
    for one in leased:
        if one.node in left:
            left[one.node] -= 1
    return sum(max(0, count) for count in left.values())


def _square(one: KnownKind) -> float:
    return one.mean_seconds**2 + one.deviation_seconds**2


def _workers(
    seen: WhyFacts, nodes: Sequence[NodeRecord], leased: Sequence[Leased]
) -> tuple[int, int]:
    """How many may work on what is before the job: at most, and at least. What nobody works on any
    more takes up its room until it is reaped.
    """
    most = sum(max(node.max_count, node.crew) for node in nodes)
    least = sum(max(node.crew, node.default_count, min(1, node.max_count)) for node in nodes)
    bound = bound_of(seen.nodes)
    if bound is None:
        return most, least
    lost = seen.leased_total - len(leased)
    return min(most, max(bound, len(leased))), min(least, bound - lost)


def _earliest(ahead: _Ahead, workers: int, caps: Mapping[str, int]) -> float:
    """Jobs of kinds with a cap are left out, since they may have to stand aside."""
    leased, known = ahead.leased, ahead.known
    counted = {kind: n for kind, n in ahead.waiting.items() if kind in known and kind not in caps}
    work = sum(
        max(0.0, n * known[kind].mean_seconds - known[kind].doubt_seconds(n))
        for kind, n in counted.items()
    )
    rests = [
        max(0.0, known[one.kind].short_seconds - (one.ran_seconds or 0.0))
        for one in leased
        if one.kind in known
    ]
    longest = max((found.long_seconds for found in known.values()), default=0.0)
    by_work = (work + sum(rests) - (workers - 1) * longest) / max(1, workers)
    # Where nobody can be hired, and all that is in hand was measured, somebody has to end first.
    is_full = len(leased) >= workers and len(rests) == len(leased)
    return max(0.0, by_work, min(rests, default=0.0) if is_full else 0.0)


def _latest(ahead: _Ahead, workers: int, capped: Mapping[str, int]) -> float | None:
    """Kinds of which jobs are parked go first when they have room: they and as many workers as
    they may have are left out.
    """
    known = ahead.known
    workers -= sum(capped.values())
    counted = {kind: n for kind, n in ahead.waiting.items() if kind not in capped}
    in_hand = [one for one in ahead.leased if one.kind not in capped]
    kinds = {*counted, *(one.kind for one in in_hand)}
    if workers <= 0 or not kinds <= known.keys():
        return None
    work = sum(
        n * (known[kind].mean_seconds + HANDOVER_SECONDS) + known[kind].doubt_seconds(n)
        for kind, n in counted.items()
    )
    rest = sum(
        max(HANDOVER_SECONDS, known[one.kind].long_seconds - (one.ran_seconds or 0.0))
        for one in in_hand
    )
    return (work + rest) / workers + SLACK_SECONDS
