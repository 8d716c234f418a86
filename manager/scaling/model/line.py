"""The queue that simulated crews work at: who is next, who has to stand aside, who runs. Pure."""

from __future__ import annotations

from array import array
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import chain, groupby, islice
from math import inf, nan

import attrs

from musterd.manager.scaling.latency import Work, with_handover
from musterd.manager.scaling.model.trace import NONE, Trace
from musterd.manager.scaling.service_times import Arrivals, ServiceTimes
from musterd.store.estimate import together
from musterd.store.queue import LINE_MAX, Line, SpareCapacity, Waiting

NO_CAPS: Mapping[str, int] = {}


class Peaks:
    """The longest queue in each stretch of time."""

    def __init__(self, stretch_seconds: float) -> None:
        self.stretch_seconds = stretch_seconds
        self.peaks = array("q", [0])
        self._level = 0

    def note(self, now: float, level: int) -> None:
        stretch = int(now / self.stretch_seconds)
        missing = stretch + 1 - len(self.peaks)
        if missing > 0:
            self.peaks.extend([self._level] * missing)
        self.peaks[stretch] = max(self.peaks[stretch], level)
        self._level = level


class ClaimOrder:
    """Entries of a trace that may be claimed: the highest priority first, then by due time."""

    def __init__(self, priority: Sequence[int], due: Sequence[float]) -> None:
        self._priority, self._due = priority, due
        self._levels: dict[int, deque[int]] = {}
        self._order: list[int] = []  # the priorities of the levels, the highest first
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[int]:
        return chain.from_iterable(self._levels[one] for one in self._order)

    def add(self, entry: int) -> None:
        """They come as they become due; one that stood aside comes back to its place."""
        priority = self._priority[entry] if self._priority else 0
        level = self._levels.get(priority)
        if level is None:
            level = self._levels[priority] = deque()
            self._order = sorted(self._levels, reverse=True)
        self._length += 1
        due = self._due[entry]
        if not level or self._due[level[-1]] <= due:
            level.append(entry)
            return
        place = next(place for place, other in enumerate(level) if self._due[other] > due)
        level.insert(place, entry)

    def pop(self) -> int:
        self._length -= 1
        level = next(level for one in self._order if (level := self._levels[one]))
        return level.popleft()


@attrs.define
class SimulatedCrew:
    """The workers of one node, counted. Which of them has a job changes nothing."""

    size: int = 0
    busy: int = 0
    arrivals: Arrivals = attrs.field(factory=Arrivals)


@attrs.frozen
class RunLimits:
    """How many jobs of a kind, and how many in all, may run at once on all nodes."""

    of_kinds: Mapping[str, int] = NO_CAPS
    of_all: int | None = None


class SimulatedQueue:
    """Idle workers take waiting jobs, as soon as the trace says. Of one moment, ends come before
    arrivals. A job that meets a limit of its kind, or a target that another has, stands aside until
    there is room.
    """

    def __init__(
        self, trace: Trace, stretch_seconds: float, nodes: int = 1, limits: RunLimits | None = None
    ) -> None:
        self.trace, self.limits = trace, limits or RunLimits()
        self.now = 0.0
        self.crews = [SimulatedCrew() for _ in range(nodes)]
        self.busy = self.most_busy = self.longest_queue = 0
        self.due = array("d", [nan]) * len(trace)
        self.waits = array("d", [nan]) * len(trace)
        self.queue = ClaimOrder(trace.priorities, self.due)
        self.peaks = Peaks(stretch_seconds)
        self._arrived = 0  # of the first attempts
        self._first_due = [*(trace.due_seconds[one] for one in trace.firsts), inf]
        self._again: list[tuple[float, int]] = []  # a heap of further attempts
        self._ends: list[tuple[float, int, int]] = []  # a heap: when, which, and on which node
        self._running = Counter[str]()
        self._parked: dict[str, ClaimOrder] = {}  # by kind
        self._behind: dict[str, ClaimOrder] = {}  # by target
        self._holders: set[str] = set()  # targets that a job has, until its last attempt has ended
        self._followers = frozenset(one for one in trace.next_attempt if one != NONE)
        self._times = ServiceTimes()

    @property
    def size(self) -> int:
        return sum(crew.size for crew in self.crews)

    @property
    def is_parked(self) -> bool:
        """Whether jobs wait for room for their kind."""
        return any(self._parked.values())

    @property
    def oldest_due(self) -> float:
        """When the job became due that has waited longest; inf = none waits."""
        return min((self.due[entry] for entry in self.queue), default=inf)

    def spare(self, node: int, max_count: int) -> SpareCapacity:
        """What the others could do, as they would tell it."""
        free = [max(0, max_count - crew.busy) for crew in self.crews]
        unhired = [max(0, max_count - crew.size) for crew in self.crews]
        return SpareCapacity(
            sum(free) - free[node],
            sum(free[:node]),
            sum(unhired) - unhired[node],
            sum(unhired[:node]),
        )

    def work(
        self, node: int, now: float, horizon_seconds: float, slots: Sequence[Waiting] = ()
    ) -> Work:
        """What a node would know of it: kinds are measured as their attempts end."""
        kinds, runs = self.trace.kinds, self.trace.run_seconds
        soon = sorted(self._soon(now, now + horizon_seconds))
        in_line = [*((self.due[entry], entry) for entry in islice(self.queue, LINE_MAX)), *soon]
        line = [
            Waiting(kind, len(alike), alike[-1][1], now - due)
            for (due, kind), found in groupby(in_line, lambda one: (one[0], kinds[one[1]]))
            if (alike := list(found))
        ]
        in_hand = [
            (kinds[entry], max(0.0, runs[entry] - (end - now)))
            for end, entry, on_node in self._ends
            if on_node == node
        ]
        times = {kind: together([self._times.known(kind)]) for kind in self._times.kinds}
        known = {kind: service for kind, service in times.items() if service is not None}
        return Work(
            Line(line, max(0, len(self.queue) - LINE_MAX)),
            in_hand,
            with_handover(known, self.trace.handover_seconds),
            self.crews[node].arrivals.a_second(now),
            slots,
        )

    def _soon(self, now: float, until: float) -> Iterable[tuple[float, int]]:
        """What is in the queue and becomes due by then: retries, and jobs that were made for it."""
        yield from (one for one in self._again if one[0] <= until)
        for place in range(self._arrived, min(self._arrived + LINE_MAX, len(self._first_due) - 1)):
            due, entry = self._first_due[place], self.trace.firsts[place]
            if due > until:
                return
            if self.trace.is_made(entry, now):
                yield due, entry

    def next_at(self) -> float:
        """When the next event happens; inf = never."""
        again = self._again[0][0] if self._again else inf
        end = self._ends[0][0] if self._ends else inf
        return min(self._first_due[self._arrived], again, end)

    def advance(
        self, until: float, *, stops_at_queue: bool = False, events_max: float = inf
    ) -> None:
        """Processes events up to then, until a job has to wait for a worker, or so many."""
        while (at := self.next_at()) <= until and at < inf and events_max > 0:
            events_max -= 1
            self.now = at
            if self._ends and self._ends[0][0] <= at:
                self._end()
            else:
                self._arrive()
            if stops_at_queue and self.queue:
                return

    def resize(self, size: int, now: float, node: int = 0) -> None:
        """New workers take waiting jobs. Only idle workers leave."""
        self.now = now
        crew = self.crews[node]
        crew.size = max(size, crew.busy)
        self._claim(self.trace.pick_up_seconds)

    def _arrive(self) -> None:
        if self._again and self._again[0][0] <= self.now:
            _, entry = heappop(self._again)
        else:
            entry = self.trace.firsts[self._arrived]
            self._arrived += 1
        self.due[entry] = self.now
        self.queue.add(entry)
        self._claim(self.trace.pick_up_seconds)
        if self.queue:
            self.longest_queue = max(self.longest_queue, len(self.queue))
            self.peaks.note(self.now, len(self.queue))

    def _claim(self, after_seconds: float) -> None:
        """Idle workers take what is first in line; what may not run goes aside."""
        before = len(self.queue)
        while self.queue and (node := self._idle_node()) != NONE:
            entry = self.queue.pop()
            aside = self._aside(entry)
            if aside is None:
                self._start(entry, node, self.now + after_seconds)
            else:
                aside.add(entry)
        if before and len(self.queue) < before:
            self.peaks.note(self.now, len(self.queue))

    def _idle_node(self) -> int:
        """The one with most idle workers, if anything may run at all."""
        limit = self.limits.of_all
        if limit is not None and self.busy >= limit:
            return NONE
        idle = [crew.size - crew.busy for crew in self.crews]
        most = max(idle)
        return idle.index(most) if most > 0 else NONE

    def _aside(self, entry: int) -> ClaimOrder | None:
        """Where it has to wait; None = it may run."""
        trace = self.trace
        target, kind = trace.target(entry), trace.kinds[entry]
        if target in self._holders and entry not in self._followers:
            return self._room(self._behind, target)
        limit = self.limits.of_kinds.get(kind)
        if limit is not None and self._running[kind] >= limit:
            return self._room(self._parked, kind)
        return None

    def _room(self, rooms: dict[str, ClaimOrder], name: str) -> ClaimOrder:
        if name not in rooms:
            rooms[name] = ClaimOrder(self.trace.priorities, self.due)
        return rooms[name]

    def _start(self, entry: int, node: int, at: float) -> None:
        crew, kind = self.crews[node], self.trace.kinds[entry]
        crew.busy += 1
        self.busy += 1
        self.most_busy = max(self.most_busy, self.busy)
        self._running[kind] += 1
        if target := self.trace.target(entry):
            self._holders.add(target)
        self.waits[entry] = at - self.due[entry]
        crew.arrivals.note(kind, (self.waits[entry],), self.now)
        heappush(self._ends, (at + self.trace.run_seconds[entry], entry, node))

    def _end(self) -> None:
        _, entry, node = heappop(self._ends)
        kind, target = self.trace.kinds[entry], self.trace.target(entry)
        self.crews[node].busy -= 1
        self.busy -= 1
        self._running[kind] -= 1
        self._times.add(kind, (self.trace.run_seconds[entry],))
        follower = self.trace.next_attempt[entry]
        if follower != NONE:
            heappush(self._again, (self.now + self.trace.pause_seconds[entry], follower))
        elif target:
            self._holders.discard(target)
            self._come_back(self._behind, target)
        self._come_back(self._parked, kind)
        self._claim(self.trace.handover_seconds)

    def _come_back(self, rooms: dict[str, ClaimOrder], name: str) -> None:
        """The first that stood aside for this."""
        if waiting := rooms.get(name):
            self.queue.add(waiting.pop())
            if not waiting:
                del rooms[name]
