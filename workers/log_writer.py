"""The logs of attempts: begun here, and carried to the store while their jobs run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial

import attrs
import trio
from trio.abc import Clock
from trio.lowlevel import TrioToken, current_clock, current_trio_token

from musterd.config.settings import LiveSettings
from musterd.store.engine import Engine
from musterd.store.errors import InputRefused, StoreError
from musterd.store.leases import LogNote
from musterd.store.waiting import Bell
from musterd.workers.claiming.held import Held
from musterd.workers.joblog import JobLog
from musterd.workers.outcome import Contained, log_contained
from musterd.workers.tools import log_bounds

NEW_BYTES_MAX = 16_384  # of lines of one job that are new, in one write; of more the newest
PART_BYTES_MAX = 65_536  # of a part that has grown
STATEMENT_CHARACTERS_MAX = 1_048_576
ROUND_SECONDS = 0.25  # between two writes, whatever the number of jobs


@attrs.define(eq=False)
class LogWriter:
    """Owned by a tenancy; `run` writes until it is cancelled. A job that says nothing costs
    nothing, nor does one that ends within `[limits] log_interval_ms` of its first line: the end of
    its attempt brings its log.
    """

    engine: Engine
    settings: LiveSettings
    contained: Callable[[Contained], None] = log_contained
    _due_local: dict[Held, float] = attrs.field(factory=dict[Held, float], init=False)
    _bell: Bell = attrs.field(factory=Bell, init=False)
    _loop: TrioToken = attrs.field(factory=current_trio_token, init=False)
    _clock: Clock = attrs.field(factory=current_clock, init=False)
    _beginning: threading.Lock = attrs.field(factory=threading.Lock, init=False)

    def begin(self, held: Held) -> JobLog:
        """The log of an attempt that has something to write, in the time of the store. On any
        thread.
        """
        started_local, started_epoch = held.started_local, held.started_epoch
        assert started_local is not None
        assert started_epoch is not None
        ahead, current_time = started_epoch - started_local, self._clock.current_time
        with self._beginning:
            if held.log is None:
                bounds, announce = log_bounds(self.settings.now), partial(self._announce, held)
                held.begin_log(JobLog(bounds, lambda: current_time() + ahead, announce))
        assert held.log is not None
        return held.log

    async def run(self) -> None:
        while True:
            await self._bell.wait(self._next_local() - trio.current_time())
            self._bell.clear()
            now_local = trio.current_time()
            if self._next_local() <= now_local:
                await self._write([one for one, at in self._due_local.items() if at <= now_local])
                await trio.sleep(ROUND_SECONDS)

    def _next_local(self) -> float:
        return min(self._due_local.values(), default=float("inf"))

    def _announce(self, held: Held) -> None:
        """On any thread. The loop may have ended: then nobody writes any more."""
        with suppress(trio.RunFinishedError):
            self._loop.run_sync_soon(self._note, held)

    def _note(self, held: Held) -> None:
        interval_ms = self.settings.now.limits.log_interval_ms
        if interval_ms and not (held.lost or held.settling):
            self._due_local[held] = trio.current_time() + interval_ms / 1000
            self._bell.ring()

    async def _write(self, due: Sequence[Held]) -> None:
        for held in due:
            del self._due_local[held]
        notes = [(one, note_of(one)) for one in due if not (one.lost or one.settling)]
        for batch in _batches([(one, note) for one, note in notes if note is not None]):
            try:
                await self._send(batch)
            except InputRefused as error:
                for held, _ in batch:
                    self._contain(error, held)
            except StoreError:  # the engine has logged it
                for held, _ in batch:
                    self._note(held)

    async def _send(self, batch: Sequence[tuple[Held, LogNote]]) -> None:
        for held, _ in batch:
            held.log_sent()
        taken = await self.engine.leases.note_logs([note for _, note in batch])
        for held, note in batch:
            if note.id in taken:
                held.log_noted(note)

    def _contain(self, error: InputRefused, held: Held) -> None:
        claim = held.claim
        self.contained(Contained("note", claim.kind, claim.id, error, claim.attempt))


def note_of(held: Held) -> LogNote | None:
    """What the store does not have of its log; None = nothing.

    A part that is not large yet is written anew with what has come to it, so that slow logs take
    few rows. Where that is not all in reach any more, the newest lines are a part of their own.
    """
    log = held.log
    assert log is not None
    found = log.read(held.log_written, NEW_BYTES_MAX)
    if not found.text:
        return None
    if held.log_part < held.log_written and found.first == held.log_written + 1:
        grown = log.read(held.log_part, PART_BYTES_MAX)
        if grown.first == held.log_part + 1:
            found = grown
    return LogNote(
        held.claim.id, held.claim.token, found.first, found.last, found.dropped, found.text
    )


def _batches(
    notes: Sequence[tuple[Held, LogNote]],
) -> Iterator[Sequence[tuple[Held, LogNote]]]:
    """As much as one statement carries."""
    batch: list[tuple[Held, LogNote]] = []
    room = STATEMENT_CHARACTERS_MAX
    for held, note in notes:
        if batch and len(note.text) > room:
            yield batch
            batch, room = [], STATEMENT_CHARACTERS_MAX
        batch.append((held, note))
        room -= len(note.text)
    if batch:
        yield batch
