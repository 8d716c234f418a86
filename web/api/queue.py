"""The queue: halting all claims, and letting them go on."""

from __future__ import annotations

from starlette.responses import Response

from musterd.manager.node.objects import queue_object
from musterd.web.api.operation import Call
from musterd.web.server.answers import json_answer


async def pause(call: Call) -> Response:
    changed = await halt(call)
    return json_answer(queue_object(changed, await call.door.engine.counts()))


async def resume(call: Call) -> Response:
    engine = call.door.engine
    changed = await engine.resume_queue()
    return json_answer(queue_object(changed, await engine.counts()))


async def halt(call: Call) -> bool:
    """Halts all claims in the name of who asks; gives False if they were halted already."""
    by = f"{call.holder.name} over HTTP" if call.holder.name else "HTTP"
    return await call.door.engine.pause_queue(by)
