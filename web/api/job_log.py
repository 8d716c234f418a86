"""The log of a job: a page of it, or line by line as it grows."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import cast

import attrs
import trio
from starlette.responses import Response

from musterd.store.errors import StoreError
from musterd.store.job_log import LogLine, LogPage, LogPosition, line_object, position_of
from musterd.web.api.jobs import id_of, no_such_job
from musterd.web.api.node import HEADERS, LAST_ID, MEDIA_TYPE, EventStream, Write
from musterd.web.api.operation import Call
from musterd.web.server.answers import RECHECK, json_answer, rendered
from musterd.web.server.places import Connection
from musterd.web.server.requests import take_reader_place

AWAY_SECONDS = 2.0  # between two looks at a store that is away
PING_SECONDS = 15.0
LINE_CHARACTERS = 120  # beside its text
LINES_AT_ONCE = 200  # in one write
START = LogPosition()


async def show(call: Call) -> Response:
    """As a page, or as a stream for whoever asks for one."""
    job_id = id_of(call)
    after = cast("LogPosition", call.query.get("after", START))
    if call.query.get("follow") or MEDIA_TYPE in call.request.headers.get("accept", ""):
        return await _follow(call, job_id, after)
    found = await call.tenant.engine.jobs.log(job_id, after)
    if found is None:
        raise no_such_job(job_id)
    size = sum(len(line.text) + LINE_CHARACTERS for line in found.lines)
    return await rendered(call.site, size, lambda: json_answer(log_object(job_id, found)))


def log_object(job_id: int, page: LogPage) -> dict[str, object]:
    return {
        "id": job_id,
        "state": page.state.value,
        "lines": [line_object(line) for line in page.lines],
        "next": page.position.text,
        "more": page.more,
    }


async def _follow(call: Call, job_id: int, after: LogPosition) -> Response:
    if call.request.method == "HEAD":
        await trio.lowlevel.checkpoint()
        return Response(headers=HEADERS)
    try:  # a browser that reconnects says what it has got
        after = position_of(call.request.headers.get(LAST_ID) or after.text)
    except ValueError:
        after = START
    if await call.tenant.engine.jobs.log(job_id, after) is None:
        raise no_such_job(job_id)
    take_reader_place(call.request)

    async def serve(_connection: Connection, write: Write) -> None:
        with call.site.log_readers.one_more():
            await _serve(call, LogStream(job_id, write, after))

    return EventStream(serve)


@attrs.define
class LogStream:
    """What one reader has got."""

    job_id: int
    write: Write
    position: LogPosition
    _sent_local: float = attrs.field(factory=trio.current_time, init=False)

    async def send(self, data: bytes) -> None:
        self._sent_local = trio.current_time()
        await self.write(data)

    async def take(self, page: LogPage) -> None:
        for first in range(0, len(page.lines), LINES_AT_ONCE):
            await self.send(_line_frames(page.lines[first : first + LINES_AT_ONCE]))
        self.position = page.position
        if page.is_whole:
            await self.send(_frame("end", self.position, {"state": page.state.value}))
        elif trio.current_time() - self._sent_local >= PING_SECONDS:
            await self.ping()

    async def ping(self) -> None:
        await self.send(_frame("ping", self.position, {"position": self.position.text}))


async def _serve(call: Call, stream: LogStream) -> None:
    """Until the job ends or is gone, or the reader may no longer look."""
    may_look = cast("Callable[[], bool]", call.request.scope[RECHECK])
    await stream.send(b": \n\n")  # so that the reader's connection is open for it
    while may_look():
        tenant = call.site.deps.tenant(call.tenant.name)  # a reload may replace it
        if tenant is None:
            return
        try:
            page = await tenant.engine.jobs.log(stream.job_id, stream.position)
        except StoreError:  # the engine has logged it
            await stream.ping()
            await trio.sleep(AWAY_SECONDS)
            continue
        if page is None:  # deleted meanwhile
            return
        await stream.take(page)
        if page.is_whole:
            return
        if not page.more:
            await trio.sleep(call.site.log_readers.spacing_seconds)


def _line_frames(lines: Sequence[LogLine]) -> bytes:
    return b"".join(
        _frame("line", LogPosition(line.attempt, line.number), line_object(line)) for line in lines
    )


def _frame(name: str, position: LogPosition, value: object) -> bytes:
    # JSON with everything but ASCII escaped has no line end in it.
    return f"event: {name}\nid: {position.text}\ndata: {json.dumps(value)}\n\n".encode()
