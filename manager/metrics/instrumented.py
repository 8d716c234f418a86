"""The store, instrumented: calls are timed and counted; trouble is kept for status and log."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from musterd.manager.log import event
from musterd.manager.metrics.metrics import Metrics
from musterd.store.engine import Engine
from musterd.store.errors import StoreError, StoreMisconfigured, StoreUnavailable
from musterd.store.wrapped import WrappedEngine, wrapped

SETTLED_SECONDS = 5.0  # after so long without a failure, any success ends the trouble
MISCONFIGURED = "misconfigured"


class InstrumentedEngine(WrappedEngine):
    """Measures another `Engine`.

    `trouble` says what is wrong with the store (see `StoreUnavailable`), or None. It ends when a
    call that had failed succeeds: successful reads say nothing about a full disk. `local_clock`
    counts seconds; `tenant` is named in logs.
    """

    def __init__(
        self,
        engine: Engine,
        metrics: Metrics,
        log: logging.Logger,
        local_clock: Callable[[], float],
        tenant: str = "",
    ) -> None:
        super().__init__(engine, self._measured)
        # A statistic that cannot be read says nothing about the queue: that is no trouble.
        self.health = wrapped(engine.health, "health", self._counted)
        self._metrics = metrics
        self._log = log
        self._local_clock = local_clock
        self._named = {"tenant": tenant} if tenant else {}
        self._failing: set[str] = set()
        self._failed_local = 0.0
        self.trouble: str | None = None
        self.trouble_since_local: float | None = None
        self.last_message: str | None = None

    def trouble_seconds(self) -> float:
        """0 = there is no trouble."""
        if self.trouble_since_local is None:
            return 0.0
        return self._local_clock() - self.trouble_since_local

    async def _measured(self, operation: str, call: Callable[[], Awaitable[Any]]) -> Any:
        if operation == "wait_for_hint":
            # A lost source of hints is no trouble, because polling goes on; nor is a wait timed.
            return await self._errors_counted(operation, call)
        try:
            found = await self._timed(operation, call)
        except StoreUnavailable as error:
            self._failed(operation, error.trouble, str(error))
            raise
        except StoreMisconfigured as error:
            self._failed(operation, MISCONFIGURED, str(error))
            raise
        if self.trouble is not None:
            self._went_well(operation)
        return found

    async def _counted(self, operation: str, call: Callable[[], Awaitable[Any]]) -> Any:
        return await self._errors_counted(operation, lambda: self._timed(operation, call))

    async def _errors_counted(self, operation: str, call: Callable[[], Awaitable[Any]]) -> Any:
        try:
            return await call()
        except StoreError:
            self._metrics.store_error(operation)
            raise

    async def _timed(self, operation: str, call: Callable[[], Awaitable[Any]]) -> Any:
        started = self._local_clock()
        found = await call()
        self._metrics.store_operation(operation, self._local_clock() - started)
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
        event(self._log, logging.INFO, "store recovered", **fields, **self._named)
        self._failing.clear()
        self.trouble = self.trouble_since_local = self.last_message = None
