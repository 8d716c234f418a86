"""Waiting until jobs have ended, and showing how they get on."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from musterd.console.bar import progress_words, running_line
from musterd.console.out import LiveLine, coloured, complain, say

if TYPE_CHECKING:
    from musterd.store.engine import Engine
    from musterd.store.job import JobRecord

LOOK_SECONDS_MIN = 0.02
LOOK_SECONDS_MAX = 0.5
STORE_PAUSE_SECONDS = 1.0
HINT_SECONDS = 5.0


class Waited:
    """The jobs that were waited for, and how they ended. Not waited for counts as well."""

    def __init__(self, ids: list[int]) -> None:
        self.ids = ids
        self.last: JobRecord | None = None
        self.ended: dict[str, int] = {}

    @property
    def succeeded(self) -> bool:
        return all(state == "succeeded" for state in self.ended)


async def wait_for(engine: Engine, ids: list[int], *, quiet: bool) -> Waited:
    """Waits until all of the jobs have ended, or stand still as paused.

    A store that goes away is waited for too.
    """
    waited = Waited(ids)
    show = _Show(len(ids), quiet=quiet)
    for job_id in ids:
        record = await _end_of(engine, job_id, show)
        state = "gone" if record is None else record.state.value
        waited.ended[state] = waited.ended.get(state, 0) + 1
        show.ended(waited, record)
    show.close(waited)
    return waited


async def _end_of(engine: Engine, job_id: int, show: _Show) -> JobRecord | None:
    import trio

    from musterd.store.errors import StoreUnavailable
    from musterd.store.job import JobState
    from musterd.store.lifecycle import ENDED

    pause_seconds = LOOK_SECONDS_MIN
    while True:
        try:
            record = await engine.job(job_id)
        except StoreUnavailable as error:
            show.store_away(str(error))
            await trio.sleep(STORE_PAUSE_SECONDS)
            continue
        if record is None or record.state in ENDED or record.state is JobState.PAUSED:
            return record
        show.looked(record)
        await trio.sleep(pause_seconds)
        pause_seconds = min(LOOK_SECONDS_MAX, pause_seconds * 1.5)


class _Show:
    """Tells a person on a terminal what moves; says little to a file, and nothing where `quiet`."""

    def __init__(self, count: int, *, quiet: bool) -> None:
        self._count = count
        self._quiet = quiet
        self._line = LiveLine() if sys.stdout.isatty() and not quiet else None
        self._done = 0
        self._said_away = self._said_hint = False
        self._first_look: float | None = None
        self._said_progress = ""

    def looked(self, record: JobRecord) -> None:
        import trio

        now = trio.current_time()
        self._first_look = now if self._first_look is None else self._first_look
        if self._line is not None:
            self._line.show(self._words(record))
        elif self._count == 1 and not self._quiet:
            self._say_progress(record)
        is_stuck = record.state.value == "queued" and record.attempt == 0 and not self._done
        if is_stuck and not self._said_hint and now - self._first_look > HINT_SECONDS:
            self._said_hint = True
            complain("still queued: is a daemon running? `musterd status` says")

    def store_away(self, message: str) -> None:
        if not self._said_away:
            self._said_away = True
            complain(f"the store is not available, waiting for it: {message}")

    def ended(self, waited: Waited, record: JobRecord | None) -> None:
        self._done = sum(waited.ended.values())
        if self._count > 1 or record is None or self._quiet:
            return
        if self._line is not None:
            self._line.done()
        say(coloured(record.state.value, _ending(record)))

    def close(self, waited: Waited) -> None:
        from musterd.store.words import count_text

        if self._count == 1 or self._quiet:
            return
        if self._line is not None:
            self._line.done()
        say(", ".join(f"{count_text(n)} {state}" for state, n in sorted(waited.ended.items())))

    def _words(self, record: JobRecord) -> str:
        if self._count > 1:
            return f"{self._done}/{self._count} ended"
        return running_line(record)

    def _say_progress(self, record: JobRecord) -> None:
        """A line each time that it has changed."""
        from musterd.store.phase_states import overall

        if not record.phases and record.progress is None:
            return
        words = progress_words(record)
        line = f"job {record.id} {overall(record)} %{', ' if words else ''}{words}"
        if line != self._said_progress and record.state.value == "running":
            self._said_progress = line
            say(line)


def _ending(record: JobRecord) -> str:
    from musterd.store.report import error_line
    from musterd.store.words import duration_text

    words = f"job {record.id} {record.state.value}"
    if record.started_at is not None and record.finished_at is not None:
        words += f" after {duration_text((record.finished_at - record.started_at).total_seconds())}"
    if record.attempt > 1:
        words += f", at attempt {record.attempt}"
    said = error_line(record.error)
    return f"{words}: {said}" if said and record.state.value != "succeeded" else words
