"""The node: is it alive, is it ready, how does it get on."""

from __future__ import annotations

from http import HTTPStatus

import trio
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import PlainTextResponse, Response

from musterd.manager.node.objects import decision_object, status_object, verdict, worker_object
from musterd.web.api.operation import Call
from musterd.web.server.answers import json_answer
from musterd.web.server.problem import RETRY, problem

DRAIN_SECONDS = 1.0  # a node that was told to drain soon says so
DRAIN_LOOK_SECONDS = 0.01


async def livez(_call: Call) -> Response:
    """That this is answered is the answer: the loop turns."""
    await trio.lowlevel.checkpoint()
    return PlainTextResponse("ok\n")


async def readyz(call: Call) -> Response:
    await trio.lowlevel.checkpoint()
    healthy, words = verdict(call.site.plan.node.status())
    if healthy:
        return PlainTextResponse("ok\n")
    return problem(HTTPStatus.SERVICE_UNAVAILABLE, words, RETRY)


async def metrics(call: Call) -> Response:
    await call.site.plan.refresh()
    text = await call.site.plan.metrics.rendering.text()
    return Response(text, media_type=CONTENT_TYPE_LATEST)


async def status(call: Call) -> Response:
    return json_answer(await _status(call))


async def workers(call: Call) -> Response:
    await trio.lowlevel.checkpoint()
    return json_answer({"workers": [worker_object(one) for one in call.door.workers()]})


async def scaling(call: Call) -> Response:
    await trio.lowlevel.checkpoint()
    return json_answer({"decisions": [decision_object(one) for one in call.door.decisions()]})


async def openapi(call: Call) -> Response:
    await trio.lowlevel.checkpoint()
    return json_answer(call.site.describe())


async def drain(call: Call) -> Response:
    """Told twice, the node drains once: only a signal hurries."""
    plan = call.site.plan
    counts = await call.door.snapshot()  # before it: an idle node is gone in a moment
    plan.drain()
    with trio.move_on_after(DRAIN_SECONDS):
        while plan.node.status().phase in ("starting", "running"):  # noqa: ASYNC110 - a look, bounded
            await trio.sleep(DRAIN_LOOK_SECONDS)
    return json_answer(status_object(plan.node.status(), counts), HTTPStatus.ACCEPTED)


async def _status(call: Call) -> dict[str, object]:
    counts = await call.door.snapshot()
    return status_object(call.site.plan.node.status(), counts)
