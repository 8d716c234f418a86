"""Carries the progress of running jobs to the store: all that is new, once a second."""

from __future__ import annotations

import attrs
import trio

from musterd.store.engine import Engine
from musterd.store.errors import StoreError
from musterd.store.leases import ProgressNote, Verdict
from musterd.store.lifecycle import JobState
from musterd.store.phases import PhaseState
from musterd.workers.claiming.desk import Desk
from musterd.workers.claiming.held import Held
from musterd.workers.running import Note

WRITE_SECONDS = 1.0
NOTES_MAX = 1000  # in one statement


@attrs.define(eq=False)
class ProgressWriter:
    """Owned by the daemon. A note that could not be written goes with the next round, unless a
    newer one has come.
    """

    desk: Desk
    engine: Engine

    async def run(self) -> None:
        while True:
            await self.desk.wait_until_held()
            await trio.sleep(WRITE_SECONDS)
            await self.write_all()

    async def write_all(self) -> None:
        """One round."""
        news = [held for held in self.desk.held.values() if self._is_news(held)]
        for first in range(0, len(news), NOTES_MAX):
            await self._write(news[first : first + NOTES_MAX])

    def _is_news(self, held: Held) -> bool:
        note = held.last_note
        is_new = note is not None and note is not held.written_note
        # Its start first: whoever follows the job hears of progress only after it.
        return is_new and held.start_written and not (held.lost or held.settling)

    async def _write(self, news: list[Held]) -> None:
        notes = {held.claim.id: (held, held.last_note) for held in news}
        sent = [
            ProgressNote(
                job_id,
                held.claim.token,
                _percent(note),
                note.note,
                None,
                note.phase,
                note.phase_percent,
            )
            for job_id, (held, note) in notes.items()
            if note is not None
        ]
        try:
            await self.engine.leases.note_progress(sent)
        except StoreError:
            return  # the store's own watcher has told the log
        for held, note in notes.values():
            held.note_written(note)


def so_far(held: Held, verdict: Verdict) -> Verdict:
    """The end of an attempt with what is not yet in the store of how far it came."""
    note, phase = held.last_note, held.phase
    if note is None and phase is None:
        return verdict
    if (
        note is not None
        and note is not held.written_note
        and verdict.state is not JobState.SUCCEEDED
    ):
        verdict = verdict._replace(percent=_percent(note), note=note.note)
    if phase is None:
        return verdict
    if phase.state is PhaseState.SUCCEEDED:
        return verdict._replace(phase=phase)
    percent = note.phase_percent if note is not None and note.phase == phase.name else None
    if percent is None and phase.state is PhaseState.RUNNING:
        return verdict  # nothing that the store does not know
    return verdict._replace(phase=phase._replace(progress=percent))


def _percent(note: Note) -> float:
    return min(100.0, max(0.0, note.percent))
