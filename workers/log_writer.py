"""The logs of attempts: each is begun here."""

from __future__ import annotations

import attrs
import trio

from musterd.config.settings import LiveSettings
from musterd.workers.claiming.held import Held
from musterd.workers.joblog import JobLog
from musterd.workers.tools import log_bounds


@attrs.define(eq=False)
class LogWriter:
    """Owned by a tenancy."""

    settings: LiveSettings

    def begin(self, held: Held) -> JobLog:
        """The log of an attempt that begins, in the time of the store."""
        started_local, started_epoch = held.started_local, held.started_epoch
        assert started_local is not None
        assert started_epoch is not None
        ahead, clock = started_epoch - started_local, trio.lowlevel.current_clock()
        held.log = JobLog(log_bounds(self.settings.now), lambda: clock.current_time() + ahead)
        return held.log
