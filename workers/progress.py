"""Carries the progress of running jobs to the store: all that is new, once a second."""

from __future__ import annotations

import attrs
import trio

from musterd.store.engine import Engine
from musterd.store.errors import StoreError
from musterd.store.job import ProgressNote
from musterd.workers.desk import Desk
from musterd.workers.held import Held
from musterd.workers.leases import wait_until_held
from musterd.workers.running import Note

TELL_SECONDS = 1.0
NOTES_MAX = 1000  # in one statement


@attrs.define(eq=False)
class ProgressTeller:
    """Owned by the daemon. A note that could not be written goes with the next round, unless a
    newer one has come.
    """

    desk: Desk
    engine: Engine
    _told: dict[int, Note] = attrs.field(factory=dict[int, Note], init=False)

    async def run(self) -> None:
        while True:
            await wait_until_held(self.desk)
            await trio.sleep(TELL_SECONDS)
            await self.tell()

    async def tell(self) -> None:
        """One round."""
        self._told = {one: note for one, note in self._told.items() if one in self.desk.held}
        news = [held for held in self.desk.held.values() if self._is_news(held)]
        for first in range(0, len(news), NOTES_MAX):
            await self._write(news[first : first + NOTES_MAX])

    def _is_news(self, held: Held) -> bool:
        note, told = held.last_note, self._told.get(held.claim.id)
        return note is not None and note is not told and not (held.lost or held.settling)

    async def _write(self, news: list[Held]) -> None:
        notes = {held.claim.id: (held, held.last_note) for held in news}
        sent = [
            ProgressNote(job_id, held.claim.token, _percent(note), note.note, None)
            for job_id, (held, note) in notes.items()
            if note is not None
        ]
        try:
            await self.engine.note_progress(sent)
        except StoreError:
            return  # the store's own watcher has told the log
        self._told |= {job_id: note for job_id, (_, note) in notes.items() if note is not None}


def _percent(note: Note) -> float:
    return min(100.0, max(0.0, note.percent))
