"""Carries to the store how far jobs have come: the ends of their phases, and notes of progress."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import attrs
import trio

from musterd.store.engine import Engine
from musterd.store.errors import InputRefused, StoreError
from musterd.store.leases import ProgressNote
from musterd.store.phases import PhaseStart, PhaseStep, Results
from musterd.store.waiting import Backoff, Bell, own_backoff
from musterd.workers.claiming.desk import Desk
from musterd.workers.claiming.held import Held

AT_ONCE_MAX = 500  # entries in one statement
PAUSE_SECONDS = 0.1  # after a failed write, doubled with each further one
PAUSE_SECONDS_MAX = 2.0


@attrs.define(eq=False)
class _Entry:
    held: Held
    what: PhaseStart | PhaseStep
    written: trio.Event = attrs.field(factory=trio.Event, init=False)
    results: Results | None = attrs.field(default=None, init=False)  # None = the lease is lost
    refused: InputRefused | None = attrs.field(default=None, init=False)


@attrs.define(eq=False)
class PhaseBook:
    """Owned by a tenancy; `run` writes until it is cancelled."""

    desk: Desk
    engine: Engine
    rng: random.Random
    _entries: list[_Entry] = attrs.field(factory=list[_Entry], init=False)
    _bell: Bell = attrs.field(factory=Bell, init=False)
    _alone: int = attrs.field(default=0, init=False)  # so many entries go one by one
    _backoff: Backoff = own_backoff(PAUSE_SECONDS, PAUSE_SECONDS_MAX)

    async def begin(self, held: Held, names: tuple[str, ...]) -> Results:
        """An attempt begins; gives what earlier ones have finished. Where the lease turns out to be
        lost, the attempt is cancelled.
        """
        claim, started = held.claim, held.started_local
        assert started is not None
        results = await self._ask(
            _Entry(held, PhaseStart(claim.id, claim.token, held.worker, started, names))
        )
        held.note_start_written()
        return results

    async def advance(self, held: Held, step: PhaseStep) -> None:
        """A phase is finished and the next begins. As `begin`; raises InputRefused for a result
        that the store cannot keep.
        """
        await self._ask(_Entry(held, step))

    async def run(self) -> None:
        while True:
            await self._bell.wait()
            await trio.lowlevel.checkpoint()  # whoever can run now may add to this write
            await self._write()
            if not self._entries:
                self._bell.clear()

    async def _ask(self, entry: _Entry) -> Results:
        self._entries.append(entry)
        self._bell.ring()
        try:
            await entry.written.wait()
        finally:
            if entry in self._entries:  # cancelled: nobody waits for it any more
                self._entries.remove(entry)
        if entry.refused is not None:
            raise entry.refused
        if entry.results is None:
            self.desk.lose(entry.held)
            await trio.sleep_forever()  # the attempt is being cancelled
            raise AssertionError("unreachable")
        return entry.results

    async def _write(self) -> None:
        batch = self._entries[: 1 if self._alone else AT_ONCE_MAX]
        try:
            await self._send(batch)
        except InputRefused as error:
            if len(batch) == 1:
                batch[0].refused = error
                self._book(batch)
            else:  # the culprit is to be found among them
                self._alone = len(batch)
        except StoreError:
            await self._backoff.sleep()
        else:
            self._book(batch)

    async def _send(self, batch: Sequence[_Entry]) -> None:
        starts = [entry.what for entry in batch if isinstance(entry.what, PhaseStart)]
        steps = [entry.what for entry in batch if isinstance(entry.what, PhaseStep)]
        begun: Mapping[int, Results] = {}
        taken = frozenset[int]()
        if starts:
            begun = await self.engine.phases.begin(starts, trio.current_time())
        if steps:
            taken = await self.engine.phases.advance(steps)
        for entry in batch:
            if isinstance(entry.what, PhaseStart):
                entry.results = begun.get(entry.what.id)
            elif entry.what.id in taken:
                entry.results = {}

    def _book(self, batch: Sequence[_Entry]) -> None:
        self._backoff.succeeded()
        self._alone = max(0, self._alone - len(batch))
        for entry in batch:
            entry.written.set()
        self._entries = [entry for entry in self._entries if not entry.written.is_set()]


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
                note.bounded_percent,
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
            return  # the engine's instrumentation has logged it
        for held, note in notes.values():
            held.note_written(note)
