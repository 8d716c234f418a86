"""Jobs: making them, looking at them, acting on them."""

from __future__ import annotations

from http import HTTPStatus
from typing import cast

import attrs
import trio
from starlette.responses import Response

from musterd.store.engine import Engine
from musterd.store.job import Action, Enqueued, JobFilter, JobRecord, JobState, NewJob
from musterd.store.report import control_refusal
from musterd.web.api.operation import Call, Handler
from musterd.web.api.wish import check_webhook, job_wanted, tenant_asked
from musterd.web.server import asked
from musterd.web.server.answers import done_answer, job_answer, jobs_answer, size_of
from musterd.web.server.body import SMALL_BYTES, read_object
from musterd.web.server.calling import door_of
from musterd.web.server.problem import Refused

PAGE_CHARACTERS = 8_000_000  # a page of large jobs ends early; its `next` leads on
READ_JOBS = 50  # at once, until it is known how large they are
READ_JOBS_MAX = 200


async def enqueue(call: Call) -> Response:
    body = await read_object(call.site, call.request)
    tenant = tenant_asked(body, call.text("tenant"))
    here = attrs.evolve(call, door=door_of(call.site, tenant))
    job = await _wanted(here, body)
    check_webhook(job, here.door.webhooks)
    made = await _make(here.door.engine, job)
    if not made.is_new:
        return await done_answer(here, made.id, HTTPStatus.OK)
    return await done_answer(here, made.id, HTTPStatus.CREATED, is_new=True)


async def show(call: Call) -> Response:
    return await job_answer(call, await found(call))


async def list_jobs(call: Call) -> Response:
    limit = call.number("limit") or asked.LIMIT_DEFAULT
    states = cast("tuple[JobState, ...]", call.query.get("state", ()))
    which = JobFilter(
        states, call.text("kind"), before_id=call.number("cursor"), target=call.text("target")
    )
    jobs, more = await page_of(call.door.engine, which, limit)
    return await jobs_answer(call, jobs, asked.cursor_after(jobs[-1].id) if more else None)


def acting(action: Action) -> Handler:
    """Gives the handler that does `action` to the job of its path."""

    async def handler(call: Call) -> Response:
        return await act(call, action, id_of(call))

    return handler


async def act(call: Call, action: Action, job_id: int) -> Response:
    """Does it; 202 where the job's holder was asked and has yet to do it."""
    done = await call.door.engine.control(action, job_id)
    if not done.found:
        raise no_such_job(job_id)
    if not done.allowed:
        raise Refused(HTTPStatus.CONFLICT, control_refusal(job_id, action, done.state_before))
    status = HTTPStatus.ACCEPTED if done.requested else HTTPStatus.OK
    return await done_answer(call, job_id, status)


async def found(call: Call) -> JobRecord:
    """The job of the path. Raises `Refused`."""
    job_id = id_of(call)
    record = await call.door.engine.job(job_id)
    if record is None:
        raise no_such_job(job_id)
    return record


def id_of(call: Call) -> int:
    """The id in the path. Raises `Refused` for what can be none."""
    try:
        return asked.job_id(call.place("id"))
    except ValueError as error:
        raise Refused(HTTPStatus.NOT_FOUND, str(error)) from None


def no_such_job(job_id: int) -> Refused:
    return Refused(HTTPStatus.NOT_FOUND, control_refusal(job_id, "", None))


async def page_of(engine: Engine, which: JobFilter, limit: int) -> tuple[list[JobRecord], bool]:
    """The jobs of one page, and whether more follow. Read in parts, so that large jobs fill no more
    memory than a page may have.
    """
    page: list[JobRecord] = []
    size, wanted = 0, min(READ_JOBS, limit + 1)
    while True:
        part = await engine.jobs(attrs.evolve(which, limit=wanted))
        for record in part:
            size += size_of(record)
            if len(page) == limit or (page and size > PAGE_CHARACTERS):
                return page, True
            page.append(record)
        if len(part) < wanted:
            return page, False
        which = attrs.evolve(which, before_id=page[-1].id)
        room = (PAGE_CHARACTERS - size) // (size // len(page)) + 1
        wanted = max(1, min(limit + 1 - len(page), room, READ_JOBS_MAX))


async def _wanted(call: Call, body: dict[str, object]) -> NewJob:
    length = int(call.request.headers.get("content-length", SMALL_BYTES + 1))
    catalog, limits = call.door.catalog(), call.door.limits
    if length <= SMALL_BYTES:
        return job_wanted(body, catalog, limits)
    limiter = call.site.reading
    return await trio.to_thread.run_sync(job_wanted, body, catalog, limits, limiter=limiter)


async def _make(engine: Engine, job: NewJob) -> Enqueued:
    if job.dedup_key is None:
        (job_id,) = await engine.enqueue([job])
        return Enqueued(job_id, True)
    (made,) = await engine.enqueue_keyed([job])
    return made
