"""The crew: the nursery of a node's workers. Only hire, take back, retire, dismiss change it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import trio

from musterd.manager.node.status import WorkerView
from musterd.workers.claiming.desk import Desk
from musterd.workers.claiming.held import Seat
from musterd.workers.worker import WorkerDeps, work

HIRE_WEIGHT = 0.1  # how much one worker moves the measured time of a hire


class Change(NamedTuple):
    hired: int
    taken_back: int
    retired: int


class Head(NamedTuple):
    """`size` excludes workers that are leaving."""

    idle: int
    busy: int
    retiring: int

    @property
    def size(self) -> int:
        return self.idle + self.busy


class Crew:
    """Owns its workers. `run` ends when the crew is closed and its last worker has left."""

    def __init__(
        self, desk: Desk, worker_deps: WorkerDeps, on_change: Callable[[str, int], None]
    ) -> None:
        self._desk = desk
        self._worker_deps = worker_deps
        self._on_change = on_change  # ("hired" | "retired" | "dismissed", worker)
        self._numbers = 0
        self.hire_seconds = 0.0  # from a hire to a worker at its seat, as the last ones took
        self._nursery: trio.Nursery | None = None
        self._closed = trio.Event()
        self.gone = trio.Event()  # closed, and the last has left

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                task_status.started()
                await self._closed.wait()
        finally:
            self._closed.set()

    @property
    def is_closed(self) -> bool:
        return self._closed.is_set()

    @property
    def head(self) -> Head:
        seats = self._desk.seats.values()
        retiring = sum(seat.retiring for seat in seats)
        idle = sum(seat.is_idle and not seat.retiring for seat in seats)
        return Head(idle, len(seats) - retiring - idle, retiring)

    def resize(self, desired: int) -> Change:
        """Takes back leaving workers, then hires; or retires idle workers only, the newest first.
        Changes nothing in a closed crew: a decision may come too late.
        """
        if self.is_closed:
            return Change(0, 0, 0)
        missing = desired - self.head.size
        if missing >= 0:
            taken_back = self._take_back(missing)
            self._hire(missing - taken_back)
            return Change(missing - taken_back, taken_back, 0)
        idle = [seat for seat in self._newest_first() if seat.is_idle and not seat.retiring]
        leaving = idle[:-missing]
        for seat in leaving:
            seat.retire()
        return Change(0, 0, len(leaving))

    def retire_beyond(self, count: int) -> int:
        """For a lowered bound: idle workers leave first, then the newest after their jobs."""
        surplus = self.head.size - count
        staying = [seat for seat in self._newest_first() if not seat.retiring]
        staying.sort(key=lambda seat: not seat.is_idle)
        leaving = staying[: max(0, surplus)]
        for seat in leaving:
            seat.retire()
        return len(leaving)

    def close(self) -> None:
        """Everybody leaves: the idle at once, the busy when their job is done."""
        for seat in list(self._desk.seats.values()):
            seat.retire()
        self._closed.set()
        self._note_if_gone()

    def dismiss(self) -> None:
        """Everybody leaves now; their jobs are cancelled and settled as interrupted."""
        self._closed.set()
        if self._nursery is not None:
            self._nursery.cancel_scope.cancel()

    def workers(self, now_local: float) -> list[WorkerView]:
        return [_view(seat, now_local) for seat in self._desk.seats.values()]

    def _newest_first(self) -> list[Seat]:
        return list(self._desk.seats.values())[::-1]

    def _take_back(self, count: int) -> int:
        leaving = [seat for seat in self._desk.seats.values() if seat.retiring and seat.held]
        for seat in leaving[:count]:
            seat.take_back()
        return min(count, len(leaving))

    def _hire(self, count: int) -> None:
        assert self._nursery is not None, "run the crew before hiring"
        for _ in range(count):
            self._numbers += 1
            seat = self._desk.open_seat(self._numbers)
            self._nursery.start_soon(self._employ, seat, trio.current_time())

    async def _employ(self, seat: Seat, hired_local: float) -> None:
        took_seconds = trio.current_time() - hired_local
        self.hire_seconds += HIRE_WEIGHT * (took_seconds - self.hire_seconds)
        self._on_change("hired", seat.worker)
        how = "dismissed"
        try:
            await work(seat, self._desk, self._worker_deps)
            how = "retired"
        finally:
            self._desk.close_seat(seat)
            self._on_change(how, seat.worker)
            self._note_if_gone()

    def _note_if_gone(self) -> None:
        if self.is_closed and not self._desk.seats:
            self.gone.set()


def _view(seat: Seat, now_local: float) -> WorkerView:
    held = seat.held
    started = held.started_local if held else None
    return WorkerView(
        worker=seat.worker,
        state="retiring" if seat.retiring else "idle" if seat.is_idle else "busy",
        job_id=held.claim.id if held else None,
        kind=held.claim.kind if held else None,
        busy_seconds=0.0 if started is None else now_local - started,
    )
