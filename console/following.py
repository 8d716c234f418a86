"""`musterd job ID --follow`: what happens to one job, until it has ended."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import TYPE_CHECKING

from musterd.console.bar import running_line
from musterd.console.out import LiveLine
from musterd.console.verbs.events import Away, show_events

if TYPE_CHECKING:
    from collections.abc import Sequence

    from musterd.store.engine import Engine
    from musterd.store.events import Event
    from musterd.store.job import JobRecord


MARGIN = timedelta(seconds=1)  # a job may be a little older than the event that tells of it


async def follow_job(
    engine: Engine, job_id: int, tenant: str, *, as_json: bool
) -> JobRecord | None:
    """Shows its events from the first on; returns when it has ended, or stands still as paused.
    None = there is no such job (any more).
    """
    from musterd.console.log_reading import events_to_come, ordered, position_at
    from musterd.store.events import EventFilter

    record = await engine.job(job_id)
    if record is None:
        return None
    newest = await ordered(engine.events)
    position = await position_at(engine.events, record.created_at - MARGIN, newest)
    which, away, show = EventFilter(job_id=job_id), Away(), _Show(tenant, as_json=as_json)
    # The record is read before the log: whatever made it what it is then stands there.
    async for page in events_to_come(engine.events, which, position, away.say):
        away.is_back()
        show.events(page.events)
        if not page.more:
            if record is None or _stands_still(record):
                show.close()
                return record
            record = await _record(engine, record, away)
            show.progress(record)
    raise AssertionError("the log of events does not end")


async def _record(engine: Engine, before: JobRecord, away: Away) -> JobRecord | None:
    from musterd.store.errors import StoreUnavailable

    try:
        return await engine.job(before.id)
    except StoreUnavailable as error:
        away.say(str(error))
        return before


def _stands_still(record: JobRecord) -> bool:
    from musterd.store.job import JobState
    from musterd.store.lifecycle import ENDED

    return record.state in ENDED or record.state is JobState.PAUSED


class _Show:
    """Lines; on a terminal, and for a job that says how far it is, a bar below them."""

    def __init__(self, tenant: str, *, as_json: bool) -> None:
        self._tenant, self._as_json = tenant, as_json
        self._line = LiveLine() if sys.stdout.isatty() and not as_json else None

    def events(self, found: Sequence[Event]) -> None:
        if found and self._line is not None:
            self._line.done()  # the next look draws it again, below
        show_events(found, self._tenant, as_json=self._as_json)

    def progress(self, record: JobRecord | None) -> None:
        if self._line is not None and record is not None and record.state.value == "running":
            self._line.show(running_line(record))

    def close(self) -> None:
        if self._line is not None:
            self._line.done()
