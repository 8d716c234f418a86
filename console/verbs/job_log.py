"""The log of a job on the command line: read once, or followed until the job ends."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import attrs
import trio

from musterd.console.output import StoreAwayNotice, coloured, print_json, say
from musterd.store.engine import Engine
from musterd.store.errors import StoreUnavailable
from musterd.store.events import Event
from musterd.store.job_log import LogLine, LogPage, LogPosition, line_object, shown_line

LOOK_SECONDS = 0.5  # between two looks at the log of a job that runs
ENDS_OF_ATTEMPTS = frozenset(
    f"job.{what}" for what in ("succeeded", "failed", "canceled", "retrying", "requeued", "paused")
)
MOODS = {"warning": "paused", "error": "failed", "critical": "failed"}  # coloured as these states


@attrs.define
class LogReader:
    """Gives the lines of one job's log once each."""

    engine: Engine
    job_id: int
    away: StoreAwayNotice = attrs.field(factory=StoreAwayNotice)
    _position: LogPosition = attrs.field(factory=LogPosition, init=False)
    _looked_local: float = attrs.field(default=float("-inf"), init=False)

    async def page(self) -> LogPage | None:
        """What is new; None = there is no such job. Waits while the store is away."""
        while True:
            try:
                found = await self.engine.jobs.log(self.job_id, self._position)
            except StoreUnavailable as error:
                self.away.say(str(error))
                await trio.sleep(LOOK_SECONDS)
                continue
            self.away.is_back()
            self._looked_local = trio.current_time()
            if found is not None:
                self._position = found.position
            return found

    async def lines(self, *, at_once: bool) -> list[LogLine]:
        """All that is new; nothing where that was asked a moment ago, unless it is wanted now."""
        if not at_once and trio.current_time() - self._looked_local < LOOK_SECONDS:
            return []
        lines: list[LogLine] = []
        while (found := await self.page()) is not None:
            lines += found.lines
            if not found.more:
                break
        return lines


async def show_log(engine: Engine, job_id: int, *, follow: bool, as_json: bool) -> bool:
    """Shows the log, with `follow` until the job ends or is paused. False = no such job."""
    reader, shower = LogReader(engine, job_id), LogShower(job_id, as_json=as_json)
    while (found := await reader.page()) is not None:
        shower.show(found.lines)
        if found.more:
            continue
        if found.is_whole or not follow:
            return True
        await trio.sleep(LOOK_SECONDS)
    return False


@attrs.define
class LogShower:
    """Writes lines for people, with a heading for each attempt after the first, or for programs."""

    job_id: int
    as_json: bool
    _attempt: int = attrs.field(default=1, init=False)

    def show(self, lines: Sequence[LogLine]) -> None:
        for line in lines:
            if self.as_json:
                print_json({"type": "log", "job_id": self.job_id, **line_object(line)})
                continue
            if line.attempt != self._attempt:
                self._attempt = line.attempt
                say(f"-- attempt {line.attempt}")
            mood = MOODS.get(line.level or "")
            said = shown_line(line)
            say(coloured(mood, said) if mood else said)


def in_order(events: Sequence[Event], lines: Sequence[LogLine]) -> Iterator[Event | LogLine]:
    """The end of an attempt comes after what it has logged, and what runs logs after its start."""
    left = deque(lines)
    for event in events:
        if event.type in ENDS_OF_ATTEMPTS:
            attempt = event.data.get("attempt")
            while left and (not isinstance(attempt, int) or left[0].attempt <= attempt):
                yield left.popleft()
        yield event
    yield from left
