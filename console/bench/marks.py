"""When what happened, by one clock of this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import trio

from musterd import __version__
from musterd.config.settings import Metrics as MetricsSettings
from musterd.config.tenant_names import DEFAULT_TENANT
from musterd.manager.metrics.metrics import Metrics
from musterd.store.lifecycle import ENDED
from musterd.workers.observer import Report


class Marks(Metrics):
    """The node's metrics, which also note when its crew made its first claim, when each handler
    began, and how many jobs have ended.
    """

    def __init__(self, settings: MetricsSettings, clock: Callable[[], float]) -> None:
        super().__init__(settings, __version__)
        self._clock = clock
        self._more = trio.Event()
        self.first_claim_local: float | None = None
        self.last_end_local = 0.0  # counts where jobs have ended
        self.ended = 0
        self.begun_local: dict[int, float] = {}

    def store_operation(self, operation: str, seconds: float) -> None:
        super().store_operation(operation, seconds)
        if operation == "claim" and self.first_claim_local is None:
            self.first_claim_local = self._clock() - seconds

    def settled(self, reports: Sequence[Report], tenant: str = DEFAULT_TENANT) -> None:
        super().settled(reports, tenant)
        self.ended += sum(report.state in ENDED for report in reports)
        self.last_end_local = self._clock()
        self._more.set()
        self._more = trio.Event()

    def begins(self, job_id: int) -> None:
        """A handler begins. Of one that begins again the first time counts."""
        self.begun_local.setdefault(job_id, self._clock())

    async def more(self) -> None:
        """Returns when a further job has ended."""
        await self._more.wait()

    @property
    def busy_seconds(self) -> float:
        """From the crew's first claim until the last job that has ended."""
        if self.first_claim_local is None or not self.ended:
            return 0.0
        return self.last_end_local - self.first_claim_local
