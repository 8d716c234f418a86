"""The node, its store, queue and events: health, metrics, crew, duties, streams; reload, drain."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TypeAlias, cast

import attrs
import trio
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from musterd.catalog.differences import kind_fingerprints
from musterd.config.show import in_effect
from musterd.manager.duties.schedules import schedule_object
from musterd.manager.events.feed import FeedClosed
from musterd.manager.events.source import Reader, Start, Wire, opening, snapshot_frame
from musterd.manager.node.status import queue_object, status_object, verdict
from musterd.manager.reload.outcome import (
    ReloadOutcome,
    ReloadRefused,
    ReloadTaken,
    ReloadUnavailable,
    reload_object,
)
from musterd.manager.scaling.journal import Period
from musterd.store.compared_hours import hour_object
from musterd.store.duties import duty_object
from musterd.store.events import EventFilter
from musterd.store.nodes import node_object, warnings
from musterd.store.scaling_journal import run_object
from musterd.store.times import past_of
from musterd.store.words import time_text
from musterd.web.api.operation import TIME_LIMIT, Call
from musterd.web.picture import history_object, picture_of, span_of
from musterd.web.server.answers import (
    RETRY_HEADERS,
    RequestRefused,
    invalid,
    json_answer,
    problem,
    rendered,
    unavailable,
)
from musterd.web.server.places import CONNECTION, Connection
from musterd.web.server.requests import LIMIT_MAX, read_event_id, take_reader_place

DRAIN_SECONDS = 1.0  # a node that was told to drain says so within this time
DRAIN_LOOK_SECONDS = 0.01
RELOAD_SECONDS = 60.0  # importing modules, to check their kinds, takes time
RELOAD_MARGIN_SECONDS = 5.0  # the handler itself says that the reload takes longer
# For each, about as many characters of JSON.
KIND_CHARACTERS, NODE_CHARACTERS, CHANGE_CHARACTERS, POINT_CHARACTERS = 150, 500, 500, 300
DECISION_CHARACTERS = 500


async def livez(_call: Call) -> Response:
    """An answer at all means that the event loop runs."""
    await trio.lowlevel.checkpoint()
    return PlainTextResponse("ok\n")


async def readyz(call: Call) -> Response:
    await trio.lowlevel.checkpoint()
    healthy, words = verdict(call.site.deps.node.status())
    if healthy:
        return PlainTextResponse("ok\n")
    return problem(HTTPStatus.SERVICE_UNAVAILABLE, words, RETRY_HEADERS)


async def metrics(call: Call) -> Response:
    await call.site.deps.refresh()
    text = await call.site.deps.metrics.rendering.text()
    return Response(text, media_type=CONTENT_TYPE_LATEST)


async def openapi(call: Call) -> Response:
    await trio.lowlevel.checkpoint()
    return json_answer(call.site.describe())


async def status(call: Call) -> Response:
    counts = await call.tenant.snapshot()
    remarks: Sequence[str] = () if counts is None else await call.tenant.remarks()
    whole = status_object(call.site.deps.node.status(), counts)
    return json_answer({**whole, "remarks": remarks})


async def workers(call: Call) -> Response:
    await trio.lowlevel.checkpoint()
    return json_answer({"workers": [attrs.asdict(one) for one in call.tenant.workers()]})


async def scaling(call: Call) -> Response:
    """The journal: runs of like decisions, the oldest first."""
    limit = call.number("limit") or LIMIT_MAX
    now = call.tenant.wall_clock()
    period = Period(past_moment(call, "since", now), past_moment(call, "until", now), limit)
    page = await call.tenant.journal(period)

    def write() -> Response:
        return json_answer(
            {
                "decisions": [run_object(run) for run in page.runs],
                "hours": [hour_object(hour) for hour in page.hours],
                "next": time_text(page.earlier_until),
                "whole": page.is_whole,
            }
        )

    rows = len(page.runs) + len(page.hours)
    return await rendered(call.site, DECISION_CHARACTERS * rows, write)


def past_moment(call: Call, name: str, now: float) -> datetime | None:
    """The time in a parameter; None = it was not given."""
    text = call.text(name)
    try:
        return None if text is None else past_of(text, datetime.fromtimestamp(now, UTC))
    except ValueError as error:
        raise invalid(f"{name}: {error}") from None


async def history(call: Call) -> Response:
    engine, settings = call.tenant.engine, call.site.deps.node.settings
    now = await engine.health.now()
    since, until = (_epoch(call, name, now) for name in ("since", "until"))
    try:
        step = call.number("step")
        span = span_of(now, since, until, step, settings.metrics.history_hours * 3_600.0)
    except ValueError as error:
        raise invalid(str(error)) from None
    past = await engine.history.read(span.kept_step, span.begins[0], span.until)
    size = POINT_CHARACTERS * (len(span.begins) + len(past.kinds))
    return await rendered(
        call.site, size, lambda: json_answer(history_object(picture_of(past, span)))
    )


def _epoch(call: Call, name: str, now: float) -> float | None:
    moment = past_moment(call, name, now)
    if moment is not None and moment.timestamp() < 0:
        raise invalid(f"{name}: found {call.text(name)!r}, wanted a time since 1970")
    return None if moment is None else moment.timestamp()


async def nodes(call: Call) -> Response:
    found = await call.tenant.engine.nodes.all()

    def write() -> Response:
        shown = [node_object(node) for node in found]
        return json_answer({"nodes": shown, "warnings": warnings(found)})

    size = sum(NODE_CHARACTERS + KIND_CHARACTERS * len(node.named) for node in found)
    return await rendered(call.site, size, write)


async def config(call: Call) -> Response:
    """What is in effect, which need not be what the files say."""
    now, catalog = call.site.deps.node.status(), call.tenant.catalog()
    settings = call.site.deps.node.settings

    def write() -> Response:
        return json_answer(
            {
                "node": now.node,
                "version": now.version,
                "store": now.store,
                "generation": now.generation,
                "settings": in_effect(settings),
                "kinds": kind_fingerprints(catalog),
            }
        )

    return await rendered(call.site, KIND_CHARACTERS * len(catalog), write)


async def duties(call: Call) -> Response:
    found = await call.tenant.engine.duties.duties()
    return json_answer({"duties": [duty_object(one, call.tenant.name) for one in found]})


async def schedules(call: Call) -> Response:
    own = call.tenant.schedules()
    records = await call.tenant.engine.schedules.know(sorted(own)) if own else []
    return json_answer({"schedules": [schedule_object(own[one.name], one) for one in records]})


async def pause_queue(call: Call) -> Response:
    changed = await halt_queue(call)
    return json_answer(queue_object(changed, await call.tenant.engine.queue.counts()))


async def resume_queue(call: Call) -> Response:
    changed = await call.tenant.engine.queue.resume()
    return json_answer(queue_object(changed, await call.tenant.engine.queue.counts()))


async def halt_queue(call: Call) -> bool:
    """Pauses the queue in the caller's name; returns False if it was paused already."""
    return await call.tenant.engine.queue.pause(caller_name(call))


def caller_name(call: Call) -> str:
    """In whose name a request is."""
    return f"{call.holder.name} over HTTP" if call.holder.name else "HTTP"


async def drain(call: Call) -> Response:
    """A second call changes nothing: only a signal hurries a drain."""
    deps = call.site.deps
    counts = await call.tenant.snapshot()  # first: an idle node is gone in a moment
    deps.node.drain()
    with trio.move_on_after(DRAIN_SECONDS):
        while deps.node.status().phase in ("starting", "running"):  # noqa: ASYNC110 - a phase rings no bell
            await trio.sleep(DRAIN_LOOK_SECONDS)
    return json_answer(status_object(deps.node.status(), counts), HTTPStatus.ACCEPTED)


async def reload(call: Call) -> Response:
    """The reload continues whether or not the caller waits for it."""
    node, waits = call.site.deps.node, call.query.get("wait", True)
    if not waits:
        if why := node.why_no_reload():
            raise RequestRefused(HTTPStatus.CONFLICT, why)
        node.reload_soon()
        await trio.lowlevel.checkpoint()
        return _reload_started(call)
    with trio.move_on_after(RELOAD_SECONDS - RELOAD_MARGIN_SECONDS):
        return await _reload_answer(call, await node.reload())
    return _reload_started(call)


def _reload_started(call: Call) -> Response:
    name = call.site.deps.node.status().node
    return json_answer({"node": name, "result": "started"}, HTTPStatus.ACCEPTED)


async def _reload_answer(call: Call, outcome: ReloadOutcome) -> Response:
    match outcome:
        case ReloadUnavailable():
            raise RequestRefused(HTTPStatus.CONFLICT, outcome.why)
        case ReloadRefused():
            return await rendered(
                call.site, CHANGE_CHARACTERS * len(outcome.faults), lambda: _reload_refusal(outcome)
            )
        case ReloadTaken():
            return await _reload_taken(call, outcome)


def _reload_refusal(outcome: ReloadRefused) -> Response:
    count = len(outcome.faults)
    found = "a fault" if count == 1 else f"{count} faults"
    said = f"the new configuration has {found}; generation {outcome.generation} stays in use"
    return problem(HTTPStatus.UNPROCESSABLE_ENTITY, said, faults=outcome.faults)


async def _reload_taken(call: Call, taken: ReloadTaken) -> Response:
    name = call.site.deps.node.status().node
    named = (taken.changes.schedules, taken.kinds)
    names = sum(len(one.names) + sum(len(each.keys) for each in one.changed) for one in named)
    size = CHANGE_CHARACTERS * (names + len(taken.changes.keys))
    return await rendered(call.site, size, lambda: json_answer(reload_object(name, taken)))


Write: TypeAlias = Callable[[bytes], Awaitable[None]]

MEDIA_TYPE = "text/event-stream"
LAST_ID = "last-event-id"
HEADERS: Mapping[str, str] = {
    "content-type": MEDIA_TYPE,
    "connection": "close",  # nothing follows the stream on it
    "x-accel-buffering": "no",  # tells a proxy not to buffer
}


class EventStream(Response):
    """An endless answer: it lasts until `follow` returns, which gets a function to write with."""

    def __init__(self, follow: Callable[[Connection, Write], Awaitable[None]]) -> None:
        self.status_code, self.background = HTTPStatus.OK, None
        self.init_headers(HEADERS)
        self._follow = follow

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def write(text: bytes) -> None:
            await send({"type": "http.response.body", "body": text, "more_body": True})

        connection: Connection = scope["state"][CONNECTION]
        time_limit: trio.CancelScope = scope[TIME_LIMIT]
        time_limit.deadline = float("inf")
        connection.bound_unsent()
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await self._follow(connection, write)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def follow(call: Call) -> Response:
    if call.request.method == "HEAD":
        await trio.lowlevel.checkpoint()
        return Response(headers=HEADERS)
    types = frozenset(cast("tuple[str, ...]", call.query.get("type", ())))
    which = EventFilter(call.number("job"), types, call.text("kind"), call.text("target"))
    # If a browser reconnects, the header is newer than the parameter in its URL.
    last_id = call.request.headers.get(LAST_ID) or call.text("last_event_id")
    feed = call.tenant.feed
    take_reader_place(call.request)
    try:
        start = await feed.begin(read_event_id(last_id) if last_id else None)
    except FeedClosed:
        raise unavailable("the node is leaving") from None

    async def serve(connection: Connection, write: Write) -> None:
        await write(_first(call, start))
        # From here on the feed writes to the socket itself, in whole chunks of the body: through
        # the server each event of each reader would cost many times as much.
        is_chunked = call.request.scope["http_version"] != "1.0"
        reader = Reader(which, start.position, Wire(connection.fileno, chunked=is_chunked))
        await feed.serve(reader)
        if reader.ending != "closed":
            connection.hang_up()

    return EventStream(serve)


def _first(call: Call, start: Start) -> bytes:
    if start.counts is None or (call.query.get("snapshot") is False and not start.gap):
        return opening()
    status = status_object(call.site.deps.node.status(), start.counts)
    return opening() + snapshot_frame(start.position, status, gap=start.gap)
