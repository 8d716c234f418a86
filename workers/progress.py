"""Carries to the store how far jobs have come: the ends of their phases, and notes of progress."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

import attrs
import trio

from musterd.config.settings import LiveSettings
from musterd.store.engine import Engine
from musterd.store.errors import InputRefused, StoreError
from musterd.store.leases import ProgressNote
from musterd.store.phases import PhaseStart, PhaseStep, Results
from musterd.store.waiting import Backoff, Bell, own_backoff
from musterd.workers.claiming.desk import Desk
from musterd.workers.claiming.held import Held
from musterd.workers.log_writer import LogWriter
from musterd.workers.outcome import Contained, Note, log_contained

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
    notes: ProgressWriter
    logs: LogWriter
    _entries: list[_Entry] = attrs.field(factory=list[_Entry], init=False)
    _bell: Bell = attrs.field(factory=Bell, init=False)
    _alone: int = attrs.field(default=0, init=False)  # so many entries go one by one
    _backoff: Backoff = own_backoff(PAUSE_SECONDS, PAUSE_SECONDS_MAX)

    async def begin(self, held: Held, names: tuple[str, ...]) -> Results:
        """An attempt begins; gives what earlier ones have finished. Where the lease turns out to be
        lost, the attempt is cancelled.
        """
        claim, started = held.claim, held.started_epoch
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
            await trio.lowlevel.checkpoint()  # tasks that can run now may add to this write
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
        except StoreError as error:
            if getattr(error, "trouble", None) == "timeout":
                self._let_others_pass(batch)
            await self._backoff.sleep()
        else:
            self._book(batch)

    def _let_others_pass(self, batch: Sequence[_Entry]) -> None:
        """Somebody else may hold one of these jobs: it is found, and tried again after the rest."""
        if len(batch) > 1:
            self._alone = len(batch)
        else:
            self._entries.sort(key=lambda entry: entry in batch)

    async def _send(self, batch: Sequence[_Entry]) -> None:
        starts = [entry.what for entry in batch if isinstance(entry.what, PhaseStart)]
        steps = [entry.what for entry in batch if isinstance(entry.what, PhaseStep)]
        begun: Mapping[int, Results] = {}
        taken = frozenset[int]()
        if starts:
            begun = await self.engine.phases.begin(starts)
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


NOTES_MAX = 1000  # in one statement
LAST_WORD_SECONDS = 1.0  # so long a job's end waits for what it said last


@attrs.define(eq=False)
class ProgressWriter:
    """Tells the store at once how far jobs have come and what they have spent, of each job at most
    once in `[events] progress_interval_ms`, and its last word before its end. What could not be
    written goes with the next round, unless something newer has come.
    """

    desk: Desk
    engine: Engine
    settings: LiveSettings
    contained: Callable[[Contained], None] = log_contained
    # By claim and not by job: another claim of the same job may follow while this one is written.
    _news: dict[Held, None] = attrs.field(factory=dict[Held, None], init=False)
    _hurried: dict[Held, trio.Event] = attrs.field(factory=dict[Held, trio.Event], init=False)
    _bell: Bell = attrs.field(factory=Bell, init=False)

    def note(self, held: Held, note: Note) -> None:
        held.note(note)
        self._announce(held)

    def spend(self, held: Held, spent: str) -> None:
        """`spent`: JSON text, of all attempts together."""
        held.spend(spent)
        self._announce(held)

    async def last_word(self, held: Held) -> None:
        """Returns when what was said of the job is in the store, or could not be written."""
        if not held.has_news:
            return
        written = self._hurried[held] = trio.Event()
        self._news[held] = None
        self._bell.ring()
        try:
            with trio.move_on_after(LAST_WORD_SECONDS):
                await written.wait()
        finally:
            self._hurried.pop(held, None)

    async def run(self) -> None:
        while True:
            await self._bell.wait(self._next_local() - trio.current_time())
            self._bell.clear()
            await trio.lowlevel.checkpoint()  # tasks that can run now may add to this write
            await self._write_due()

    def _announce(self, held: Held) -> None:
        if held not in self._news:
            self._news[held] = None
            self._bell.ring()

    @property
    def _interval_seconds(self) -> float:
        return self.settings.now.events.progress_interval_ms / 1000

    def _next_local(self) -> float:
        recorded = min((held.recorded_local for held in self._news), default=float("inf"))
        return recorded + self._interval_seconds

    async def _write_due(self) -> None:
        now_local, interval_seconds = trio.current_time(), self._interval_seconds
        due = [
            held
            for held in self._news
            if held.recorded_local + interval_seconds <= now_local or held in self._hurried
        ]
        for held in due:
            del self._news[held]
            held.note_recorded(now_local)
        news = [held for held in due if held.has_news and not (held.lost or held.settling)]
        is_written = False
        try:
            await self._write_starts(news)
            for first in range(0, len(news), NOTES_MAX):
                await self._write_or_find(news[first : first + NOTES_MAX])
            is_written = True
        except StoreError:  # the engine has logged it
            for held in news:
                held.note_recorded(trio.current_time() + PAUSE_SECONDS_MAX)
                self._news[held] = None
        for held in due:
            hurried = self._hurried.get(held)
            is_over = held.lost or held.settling
            if hurried is not None and is_written and held.has_news and not is_over:
                self._news[held] = None  # said while this was written
                self._bell.ring()
            elif hurried is not None:
                hurried.set()

    async def _write_starts(self, news: Sequence[Held]) -> None:
        """Readers that follow a job hear first that it has started."""
        holds = [held.hold() for held in news if not held.start_written]
        if holds:
            renewal = await self.engine.leases.renew(holds, None)
            for held in news:
                if held.claim.id in renewal.kept:
                    held.note_start_written()

    async def _write_or_find(self, news: Sequence[Held]) -> None:
        """What the store refuses of one job keeps nothing of the others from being written."""
        try:
            await self._write(news)
        except InputRefused as error:
            if len(news) > 1:
                for held in news:
                    await self._write_or_find([held])
                return
            (held,) = news
            held.forget_news()
            self.contained(
                Contained("note", held.claim.kind, held.claim.id, error, held.claim.attempt)
            )

    async def _write(self, news: Sequence[Held]) -> None:
        said = [(held, *held.news()) for held in news]
        notes = [
            ProgressNote(
                held.claim.id,
                held.claim.token,
                None if note is None else note.bounded_percent,
                None if note is None else note.note,
                spent,
                None if note is None else note.phase,
                None if note is None else note.phase_percent,
            )
            for held, note, spent in said
        ]
        if notes:
            await self.engine.leases.note_progress(notes)
        for held, note, spent in said:
            held.news_written(note, spent)
