"""The queue that a simulated crew works at. Pure."""

from __future__ import annotations

from array import array
from collections import deque
from heapq import heappop, heappush
from itertools import groupby, islice
from math import inf, nan

from musterd.manager.model.trace import NONE, Trace
from musterd.manager.scaling.latency import Work
from musterd.manager.scaling.service_times import Arrivals, ServiceTimes
from musterd.store.estimate import together
from musterd.store.queue import LINE_MAX, Line, Waiting


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


class SimulatedQueue:
    """A crew of `size` takes waiting jobs at once. Of one moment, ends come before arrivals."""

    def __init__(self, trace: Trace, stretch_seconds: float) -> None:
        self.trace = trace
        self.now = 0.0
        self.size = self.busy = self.most_busy = self.longest_queue = 0
        self.queue: deque[int] = deque()
        self.peaks = Peaks(stretch_seconds)
        self.due = array("d", [nan]) * len(trace)
        self.waits = array("d", [nan]) * len(trace)
        self._arrived = 0  # of the first attempts
        self._first_due = [*(trace.due_seconds[one] for one in trace.firsts), inf]
        self._again: list[tuple[float, int]] = []  # a heap of further attempts
        self._ends: list[tuple[float, int]] = []  # a heap
        self._times, self._arrivals = ServiceTimes(), Arrivals()

    def work(self, now: float, horizon_seconds: float) -> Work:
        """What a node would know of it: kinds are measured as their attempts end."""
        kinds, runs = self.trace.kinds, self.trace.run_seconds
        again = sorted(one for one in self._again if one[0] <= now + horizon_seconds)
        in_line = [*((self.due[entry], entry) for entry in islice(self.queue, LINE_MAX)), *again]
        line = [
            Waiting(kind, len(alike), alike[-1][1], now - due)
            for (due, kind), found in groupby(in_line, lambda one: (one[0], kinds[one[1]]))
            if (alike := list(found))
        ]
        in_hand = [(kinds[entry], runs[entry] - (end - now)) for end, entry in self._ends]
        times = {kind: together([self._times.known(kind)]) for kind in self._times.kinds}
        return Work(
            Line(line, max(0, len(self.queue) - LINE_MAX)),
            in_hand,
            {kind: service for kind, service in times.items() if service is not None},
            self._arrivals.a_second(now),
        )

    def next_at(self) -> float:
        """When the next event happens; inf = never."""
        again = self._again[0][0] if self._again else inf
        end = self._ends[0][0] if self._ends else inf
        return min(self._first_due[self._arrived], again, end)

    def advance(self, until: float, *, stops_at_queue: bool = False) -> None:
        """Processes events up to then, or until a job has to wait."""
        while (at := self.next_at()) <= until and at < inf:
            self.now = at
            if self._ends and self._ends[0][0] <= at:
                self._end()
            else:
                self._arrive()
            if stops_at_queue and self.queue:
                return

    def resize(self, size: int, now: float) -> None:
        """New workers take waiting jobs. Only idle workers leave."""
        self.now = now
        self.size = max(size, self.busy)
        while self.queue and self.busy < self.size:
            self._start(self._leave_line())

    def _arrive(self) -> None:
        if self._again and self._again[0][0] <= self.now:
            _, entry = heappop(self._again)
        else:
            entry = self.trace.firsts[self._arrived]
            self._arrived += 1
        self.due[entry] = self.now
        if self.busy < self.size:
            self._start(entry)
            return
        self.queue.append(entry)
        self.longest_queue = max(self.longest_queue, len(self.queue))
        self.peaks.note(self.now, len(self.queue))

    def _start(self, entry: int) -> None:
        self.busy += 1
        self.most_busy = max(self.most_busy, self.busy)
        self.waits[entry] = self.now - self.due[entry]
        self._arrivals.note(self.trace.kinds[entry], (self.waits[entry],), self.now)
        heappush(self._ends, (self.now + self.trace.run_seconds[entry], entry))

    def _end(self) -> None:
        _, entry = heappop(self._ends)
        self.busy -= 1
        self._times.add(self.trace.kinds[entry], (self.trace.run_seconds[entry],))
        follower = self.trace.next_attempt[entry]
        if follower != NONE:
            heappush(self._again, (self.now + self.trace.pause_seconds[entry], follower))
        if self.queue:
            self._start(self._leave_line())

    def _leave_line(self) -> int:
        entry = self.queue.popleft()
        self.peaks.note(self.now, len(self.queue))
        return entry
