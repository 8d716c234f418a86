"""The node, its store and its queue: health, metrics, crew, duties, schedules; reload, drain."""

from __future__ import annotations

from http import HTTPStatus

import attrs
import trio
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import PlainTextResponse, Response

from musterd.manager.duties.schedules import schedule_object
from musterd.manager.node.status import decision_object, queue_object, status_object, verdict
from musterd.manager.reload.outcome import (
    ReloadOutcome,
    ReloadRefused,
    ReloadTaken,
    ReloadUnavailable,
    reload_object,
)
from musterd.store.duties import duty_object
from musterd.store.nodes import node_object, warnings
from musterd.web.api.operation import Call
from musterd.web.server.answers import RETRY_HEADERS, RequestRefused, json_answer, problem, rendered

DRAIN_SECONDS = 1.0  # a node that was told to drain says so within this time
DRAIN_LOOK_SECONDS = 0.01
RELOAD_SECONDS = 60.0  # importing modules, to check their kinds, takes time
RELOAD_MARGIN_SECONDS = 5.0  # the handler itself says that the reload takes longer
# For each, about as many characters of JSON.
KIND_CHARACTERS, NODE_CHARACTERS, CHANGE_CHARACTERS = 150, 500, 500


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
    return json_answer(status_object(call.site.deps.node.status(), counts))


async def workers(call: Call) -> Response:
    await trio.lowlevel.checkpoint()
    return json_answer({"workers": [attrs.asdict(one) for one in call.tenant.workers()]})


async def scaling(call: Call) -> Response:
    await trio.lowlevel.checkpoint()
    return json_answer({"decisions": [decision_object(one) for one in call.tenant.decisions()]})


async def nodes(call: Call) -> Response:
    found = await call.tenant.engine.nodes.all()

    def write() -> Response:
        shown = [node_object(node) for node in found]
        return json_answer({"nodes": shown, "warnings": warnings(found)})

    size = sum(NODE_CHARACTERS + KIND_CHARACTERS * len(node.named) for node in found)
    return await rendered(call.site, size, write)


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
    by = f"{call.holder.name} over HTTP" if call.holder.name else "HTTP"
    return await call.tenant.engine.queue.pause(by)


async def drain(call: Call) -> Response:
    """A second call changes nothing: only a signal hurries a drain."""
    deps = call.site.deps
    counts = await call.tenant.snapshot()  # first: an idle node is gone in a moment
    deps.node.drain()
    with trio.move_on_after(DRAIN_SECONDS):
        while deps.node.status().phase in ("starting", "running"):  # noqa: ASYNC110 - bounded
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
