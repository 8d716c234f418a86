"""The store under watch: every call timed and counted, and what is wrong with the store remembered
for status and log.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

from musterd.manager.log import event
from musterd.manager.metrics.metrics import Metrics
from musterd.store.engine import Engine, ReapRequest, SchemaState
from musterd.store.errors import StoreError, StoreMisconfigured, StoreUnavailable
from musterd.store.facets import facet
from musterd.store.job import (
    Action,
    Claim,
    ClaimRequest,
    ControlResult,
    Counts,
    Enqueued,
    Exchange,
    Hint,
    Hold,
    JobFilter,
    JobRecord,
    NewJob,
    ProgressNote,
    Reaped,
    Renewal,
    Settlement,
)
from musterd.store.nodes import Beat, NodeRecord
from musterd.store.phases import KindRule
from musterd.store.queue_view import QueueView
from musterd.store.selection import Look, Selection, Step
from musterd.store.standing import Standing
from musterd.store.target import TargetView

T = TypeVar("T")
SETTLED_SECONDS = 5.0  # after so long without a failure, any success ends the trouble
MISCONFIGURED = "misconfigured"


class WatchedEngine:
    """An `Engine` that is another one, under watch.

    `trouble` is the word for what ails the store (see `StoreUnavailable`), or None. It ends with
    the next success of a call that had failed: reads that go well say nothing about a disk that is
    full. `local_clock` counts seconds. `tenant`: whose store it is, where that has to be said.
    """

    def __init__(
        self,
        engine: Engine,
        metrics: Metrics,
        log: logging.Logger,
        local_clock: Callable[[], float],
        tenant: str = "",
    ) -> None:
        self._engine = engine
        self._metrics = metrics
        self._log = log
        self._local_clock = local_clock
        self._named = {"tenant": tenant} if tenant else {}
        self._failing: set[str] = set()
        self._failed_local = 0.0
        self.trouble: str | None = None
        self.trouble_since_local: float | None = None
        self.last_message: str | None = None
        self.audit = facet(engine.audit, "audit", self._through)
        self.board = facet(engine.board, "board", self._through)
        self.events = facet(engine.events, "events", self._through)
        self.phases = facet(engine.phases, "phases", self._through)
        self.outbox = facet(engine.outbox, "outbox", self._through)
        self.outlooks = facet(engine.outlooks, "outlook", self._through)
        self.retention = facet(engine.retention, "retention", self._through)
        self.duties = facet(engine.duties, "duties", self._through)
        self.schedules = facet(engine.schedules, "schedules", self._through)
        self.vitals = facet(engine.vitals, "vitals", self._counted)

    @property
    def name(self) -> str:
        return self._engine.name

    @property
    def where(self) -> str:
        return self._engine.where

    def trouble_seconds(self) -> float:
        """How long the trouble has lasted; 0 = there is none."""
        if self.trouble_since_local is None:
            return 0.0
        return self._local_clock() - self.trouble_since_local

    async def open(self) -> None:
        await self._watched("open", self._engine.open())

    async def close(self) -> None:
        await self._engine.close()

    async def schema(self) -> SchemaState:
        return await self._watched("schema", self._engine.schema())

    async def migrate(self) -> list[str]:
        return await self._watched("migrate", self._engine.migrate())

    async def start_node(self, node: str) -> int:
        return await self._watched("start_node", self._engine.start_node(node))

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[int]:
        return await self._watched("enqueue", self._engine.enqueue(jobs))

    async def enqueue_keyed(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        return await self._watched("enqueue", self._engine.enqueue_keyed(jobs))

    async def exchange(
        self, settlements: Sequence[Settlement], claim: ClaimRequest | None, now_local: float
    ) -> Exchange:
        # Two names: a full disk fails settlements while empty claims go well.
        operation = "settle" if settlements else "claim"
        return await self._watched(operation, self._engine.exchange(settlements, claim, now_local))

    async def claims_under(self, token: UUID) -> list[Claim]:
        return await self._watched("claims_under", self._engine.claims_under(token))

    async def settled_already(self, settlements: Sequence[Settlement]) -> frozenset[int]:
        return await self._watched("settled_already", self._engine.settled_already(settlements))

    async def renew(self, holds: Sequence[Hold], lease_seconds: float, now_local: float) -> Renewal:
        return await self._watched("renew", self._engine.renew(holds, lease_seconds, now_local))

    async def note_progress(self, notes: Sequence[ProgressNote]) -> frozenset[int]:
        return await self._watched("note_progress", self._engine.note_progress(notes))

    async def reap(self, request: ReapRequest) -> list[Reaped]:
        return await self._watched("reap", self._engine.reap(request))

    async def control(self, action: Action, job_id: int) -> ControlResult:
        return await self._watched("control", self._engine.control(action, job_id))

    async def select_jobs(self, which: Selection, after_id: int, span: int) -> Look:
        return await self._watched("select_jobs", self._engine.select_jobs(which, after_id, span))

    async def control_many(self, action: Action, ids: Sequence[int], which: Selection) -> Step:
        return await self._watched("control_many", self._engine.control_many(action, ids, which))

    async def observe(
        self, limit: int, me: UUID | None = None, leased_max: int | None = None
    ) -> QueueView:
        return await self._watched("observe", self._engine.observe(limit, me, leased_max))

    async def next_due_seconds(self) -> float | None:
        return await self._watched("next_due", self._engine.next_due_seconds())

    async def counts(self) -> Counts:
        return await self._watched("counts", self._engine.counts())

    async def job(self, job_id: int) -> JobRecord | None:
        return await self._watched("job", self._engine.job(job_id))

    async def jobs(self, which: JobFilter) -> list[JobRecord]:
        return await self._watched("jobs", self._engine.jobs(which))

    async def target(self, name: str) -> TargetView | None:
        return await self._watched("target", self._engine.target(name))

    async def pause_queue(self, by: str) -> bool:
        return await self._watched("pause_queue", self._engine.pause_queue(by))

    async def resume_queue(self) -> bool:
        return await self._watched("resume_queue", self._engine.resume_queue())

    async def beat(self, beat: Beat) -> None:
        await self._watched("beat", self._engine.beat(beat))

    async def leave(self, node_id: UUID) -> None:
        await self._watched("leave", self._engine.leave(node_id))

    async def nodes(self) -> list[NodeRecord]:
        return await self._watched("nodes", self._engine.nodes())

    async def tell_kinds(self, rules: Mapping[str, KindRule]) -> None:
        await self._watched("tell_kinds", self._engine.tell_kinds(rules))

    async def standing(self, job_id: int) -> Standing | None:
        return await self._watched("standing", self._engine.standing(job_id))

    async def wait_for_hint(self) -> Hint:
        # A lost source of hints is no trouble, since polling goes on; a wait is not worth timing.
        try:
            return await self._engine.wait_for_hint()
        except StoreError:
            self._metrics.store_error("wait_for_hint")
            raise

    async def _counted(self, operation: str, call: Callable[[], Awaitable[Any]]) -> Any:
        # A look at statistics that fails says nothing of the queue: that is no trouble.
        started = self._local_clock()
        try:
            found = await call()
        except StoreError:
            self._metrics.store_error(operation)
            raise
        self._metrics.store_operation(operation, self._local_clock() - started)
        return found

    async def _through(self, operation: str, call: Callable[[], Awaitable[Any]]) -> Any:
        return await self._watched(operation, call())

    async def _watched(self, operation: str, call: Awaitable[T]) -> T:
        started = self._local_clock()
        try:
            found = await call
        except StoreUnavailable as error:
            self._failed(operation, error.trouble, str(error))
            raise
        except StoreMisconfigured as error:
            self._failed(operation, MISCONFIGURED, str(error))
            raise
        self._metrics.store_operation(operation, self._local_clock() - started)
        if self.trouble is not None:
            self._went_well(operation)
        return found

    def _failed(self, operation: str, trouble: str, message: str) -> None:
        self._metrics.store_error(operation)
        self._failing.add(operation)
        self._failed_local = self._local_clock()
        is_new = trouble != self.trouble
        self.trouble = trouble
        self.last_message = message
        if self.trouble_since_local is None:
            self.trouble_since_local = self._failed_local
        if is_new:
            fields = {"trouble": trouble, "operation": operation, "message": message}
            event(self._log, logging.WARNING, "store in trouble", **fields, **self._named)

    def _went_well(self, operation: str) -> None:
        is_calm = self._local_clock() - self._failed_local >= SETTLED_SECONDS
        if operation not in self._failing and not is_calm:
            return
        fields = {"trouble": self.trouble, "seconds": round(self.trouble_seconds(), 1)}
        event(self._log, logging.INFO, "store is well again", **fields, **self._named)
        self._failing.clear()
        self.trouble = self.trouble_since_local = self.last_message = None
