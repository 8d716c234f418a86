"""`GET /jobs/{id}/why`: the same answer as that of `musterd why --json`."""

from __future__ import annotations

from starlette.responses import Response

from musterd.store.why import why
from musterd.store.why_report import why_object
from musterd.web.api.jobs import id_of, no_such_job
from musterd.web.api.operation import Call
from musterd.web.server.answers import json_answer


async def show(call: Call) -> Response:
    job_id = id_of(call)
    seen = await call.door.engine.standing(job_id)
    if seen is None:
        raise no_such_job(job_id)
    return json_answer(why_object(why(seen), call.door.name))
