"""A real engine, of which is written down what is asked and heard, as over a simulated line."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar, cast

import trio

from musterd.store.duties import DutyReport
from musterd.store.engine import Engine
from musterd.store.errors import OutcomeUnknown, StoreError
from musterd.store.retention import BatchResult, JobPosition, RetentionTask
from musterd.store.wrapped import WrappedEngine
from tests.simulation import operations
from tests.simulation.line import NOTHING
from tests.simulation.line_parts import DutiesLine, PartLine, lay
from tests.simulation.operations import Operations
from tests.simulation.recording import Recorder

T = TypeVar("T")
GIVEN_UP_SECONDS = 0.004  # of who is impatient, at the latest


class Line(WrappedEngine):
    """`who` is `node:NAME` or `client:NAME`. `impatience`: by what chance a request is given up
    under way. `on_asked` is told of each.
    """

    def __init__(
        self, engine: Engine, who: str, recorder: Recorder, on_asked: Callable[[str], None]
    ) -> None:
        super().__init__(engine, self.pass_on)
        self.engine, self.who, self.recorder, self.on_asked = engine, who, recorder, on_asked
        self.impatience = 0.0
        self.rng = random.Random(0)
        self.ground = self  # of its parts, which want no more than the recorder
        me = cast(Any, self)
        self.watched_duties = Duties(me)
        self.duties = cast(Any, self.watched_duties)
        lay(self)
        self.retention = cast(Any, Retention(me, "retention"))

    async def pass_on(self, operation: str, call: Callable[[], Awaitable[T]]) -> T:
        return await self.ask(operation, call, NOTHING)

    async def ask(self, operation: str, call: Callable[[], Awaitable[T]], told: Operations) -> T:
        recorder = self.recorder
        ids = [recorder.call(op, self.who, **fields) for op, fields in told.asked]
        self.on_asked(operation)
        try:
            result = await self._patiently(operation, call)
        except StoreError as error:
            self._note(ids, "unknown" if isinstance(error, OutcomeUnknown) else "refused")
            raise
        except BaseException:
            self._note(ids, "unknown")
            raise
        for one, (status, fields) in zip(ids, told.told(result), strict=True):
            recorder.reply(one, status, **fields)
        return result

    def _note(self, ids: Sequence[int], status: str) -> None:
        for one in ids:
            self.recorder.reply(one, status)

    async def _patiently(self, operation: str, call: Callable[[], Awaitable[T]]) -> T:
        if self.rng.random() >= self.impatience:
            return await call()
        with trio.move_on_after(self.rng.uniform(0.0, GIVEN_UP_SECONDS)):
            return await call()
        raise OutcomeUnknown(f"{operation}: given up", "timeout")


class Duties(DutiesLine):
    async def release(self, reports: Sequence[DutyReport]) -> None:
        """Whether it was still held nobody is told."""
        told = operations.release_duties(reports, {one.duty: one.term.bytes for one in reports})
        await self._line.ask("duties_release", lambda: self._engine.release(reports), told)


class Retention(PartLine):
    async def delete(self, task: RetentionTask, after: JobPosition | None) -> BatchResult:
        """Which jobs are deleted is told by events."""
        self.act("retention")
        return await self._line.pass_on(
            "retention_delete", lambda: self._engine.delete(task, after)
        )
