"""The floor on which simulated jobs arrive, wait in line, run and end. Pure, as seen from outside.

Workers are only counted: which of them has a job changes nothing for the others, and those that
leave are idle.
"""

from __future__ import annotations

from array import array
from collections import deque
from heapq import heappop, heappush
from math import inf, nan

from musterd.console.simulate.trace import NONE, Trace


class Peaks:
    """The longest queue of each stretch of time."""

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


class Floor:
    """`size` workers; who is idle takes the first job in line at once. What happens at the same
    moment: ends come before arrivals.
    """

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

    def next_at(self) -> float:
        """When something happens next; inf = nothing ever will."""
        found = self._first_due[self._arrived]
        if self._again and self._again[0][0] < found:
            found = self._again[0][0]
        if self._ends and self._ends[0][0] < found:
            found = self._ends[0][0]
        return found

    def advance(self, until: float, *, stops_at_queue: bool = False) -> None:
        """Lets happen what happens up to then; or only until somebody has to wait."""
        while (at := self.next_at()) <= until and at < inf:
            self.now = at
            if self._ends and self._ends[0][0] <= at:
                self._end()
            else:
                self._arrive()
            if stops_at_queue and self.queue:
                return

    def resize(self, size: int, now: float) -> None:
        """Who is new takes what waits. Only idle workers leave, whatever `size` says."""
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
        heappush(self._ends, (self.now + self.trace.run_seconds[entry], entry))

    def _end(self) -> None:
        _, entry = heappop(self._ends)
        self.busy -= 1
        follower = self.trace.next_attempt[entry]
        if follower != NONE:
            heappush(self._again, (self.now + self.trace.pause_seconds[entry], follower))
        if self.queue:
            self._start(self._leave_line())

    def _leave_line(self) -> int:
        entry = self.queue.popleft()
        self.peaks.note(self.now, len(self.queue))
        return entry
