"""How far attempts are, as their nodes say."""

from __future__ import annotations

from collections.abc import Sequence

from musterd.store.leases import ProgressNote
from musterd.store.sqlite import rows
from musterd.store.sqlite.database import Database
from musterd.store.sqlite.job_events import JobEvents, held, record_progress


def note_progress(database: Database, notes: Sequence[ProgressNote]) -> frozenset[int]:
    taken: set[int] = set()
    with database.writing("noting progress") as now:
        events = JobEvents(database, now)
        taken.update(note.id for note in notes if _note(events, note))
        events.write()
    return frozenset(taken)


def _note(events: JobEvents, note: ProgressNote) -> bool:
    database, params = events.database, {**rows.progress_note(note), "now": events.now}
    job = held(database, params)
    if job is None or not database.execute("note_progress", params).rowcount:
        return False
    if note.phase is not None:
        database.execute("note_phase", params)
    record_progress(events, job, note)
    return True
