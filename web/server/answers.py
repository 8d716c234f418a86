"""How answers are written."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import TypeVar
from urllib.parse import quote

import trio
from starlette.responses import Response

from musterd.catalog.lookup import budget_of
from musterd.store.errors import StoreUnavailable
from musterd.store.job import JobRecord
from musterd.store.report import job_object
from musterd.web.api.operation import JSON_TYPE, Call, Site
from musterd.web.plan import TenantDoor

T = TypeVar("T")
DEFAULT_TENANT = "default"
SMALL_CHARACTERS = 16_384  # what is no longer is written on the loop


def json_answer(
    value: object, status: int = HTTPStatus.OK, headers: Mapping[str, str] | None = None
) -> Response:
    """Everything but ASCII escaped: what is told may hold half a character."""
    return Response(json.dumps(value), status, headers=dict(headers or {}), media_type=JSON_TYPE)


async def jobs_answer(call: Call, records: Sequence[JobRecord], after: str | None) -> Response:
    """A page of jobs, and the cursor of the next one."""

    def write() -> Response:
        return json_answer({"jobs": [shown(call.door, one) for one in records], "next": after})

    return await written(call.site, sum(map(size_of, records)), write)


async def job_answer(
    call: Call, record: JobRecord, status: int = HTTPStatus.OK, location: str = ""
) -> Response:
    """One job."""
    headers = {"location": location} if location else None

    def write() -> Response:
        return json_answer(shown(call.door, record), status, headers)

    return await written(call.site, size_of(record), write)


async def done_answer(call: Call, job_id: int, status: int, *, is_new: bool = False) -> Response:
    """The job that was just made or acted on, as it is now.

    That was done, and stays done: if the store does not answer a second time, the answer names the
    job and says no more, and no refusal makes anybody do it again.
    """
    location = _place_of(call.door, job_id) if is_new else ""
    try:
        record = await call.door.engine.job(job_id)
    except StoreUnavailable:
        record = None
    if record is not None:
        return await job_answer(call, record, status, location)
    brief = {"id": job_id, "tenant": call.door.name}
    return json_answer(brief, status, {"location": location} if location else None)


def shown(door: TenantDoor, record: JobRecord) -> dict[str, object]:
    """The job object."""
    return job_object(record, door.name, budget_of(door.catalog(), record.kind))


def size_of(record: JobRecord) -> int:
    """About how many characters a job's answer has."""
    results = (phase.result for phase in record.phases)
    texts = (record.payload, record.result, record.error, record.log, *results)
    past = sum(len(one.error or "") + len(one.log or "") + 200 for one in record.attempts)
    return sum(len(text) for text in texts if text) + past + 500


async def written(site: Site, characters: int, write: Callable[[], T]) -> T:
    """What `write` gives, which has about so many characters: where that is much, off the loop."""
    if characters <= SMALL_CHARACTERS:
        return write()
    return await trio.to_thread.run_sync(write, limiter=site.rendering)


def _place_of(door: TenantDoor, job_id: int) -> str:
    query = "" if door.name == DEFAULT_TENANT else f"?tenant={quote(door.name, safe='')}"
    return f"/jobs/{job_id}{query}"
