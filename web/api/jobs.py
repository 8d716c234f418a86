"""Jobs and targets: enqueueing, reading, acting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import partial
from http import HTTPStatus
from typing import cast

import attrs
import trio
from starlette.responses import Response

from musterd.catalog.kinds import Catalog, UnknownKind, WorkKind
from musterd.config.faults import Unfit, did_you_mean
from musterd.config.job_options import MOMENT, NAMES, OPTIONS, TRACEPARENT
from musterd.config.webhook_urls import UrlPolicy, check_allowed
from musterd.manager.duties.retention import ArchiveFailed
from musterd.store.control import ControlResult
from musterd.store.engine import Engine
from musterd.store.input import PayloadLimits, check_payload, new_job
from musterd.store.jobs import Enqueued, JobFilter, JobRecord, NewJob
from musterd.store.lifecycle import Action, JobState
from musterd.store.queue import TargetView
from musterd.store.report import control_refusal, deletion_refusal
from musterd.store.searching import Reach, Search
from musterd.store.threads import in_thread
from musterd.store.why import why, why_object
from musterd.store.words import EXAMPLE, moment_of, time_text
from musterd.web.api.node import caller_name, past_moment
from musterd.web.api.operation import Call, Handler
from musterd.web.server import requests
from musterd.web.server.answers import (
    RequestRefused,
    done_answer,
    invalid,
    job_answer,
    job_json,
    json_answer,
    rendered,
    size_of,
    unavailable,
)
from musterd.web.server.requests import SMALL_BYTES, read_object, tenant_access

FIELDS = ("kind", *NAMES, "tenant")


def requested_tenant(body: Mapping[str, object], in_query: str | None) -> str | None:
    """The tenant of the body, else of the query. Raises `RequestRefused` if they differ."""
    _check_fields(body)
    named = body.get("tenant")
    if named is None:
        return in_query
    if not isinstance(named, str):
        raise invalid("tenant: wanted a text")
    if in_query is not None and in_query != named:
        raise invalid(f"tenant: found {named!r}, and another one in the URL")
    return named


def requested_job(body: Mapping[str, object], catalog: Catalog, limits: PayloadLimits) -> NewJob:
    """With its kind's priority unless given. Raises `RequestRefused` or `InputRefused`."""
    kind = _kind(catalog, body.get("kind"))
    options = {
        one.name: _moment(one.name, body[one.name]) if one.type is MOMENT else body[one.name]
        for one in OPTIONS
        if body.get(one.name) is not None and one.name != "payload"
    }
    job = new_job(kind.name, body.get("payload"), {"priority": kind.priority, **options})
    _check_size(job.payload, limits)
    check_payload(job.payload, limits)
    return job


def _traced(job: NewJob, header: str | None) -> NewJob:
    """With the trace of the request, unless its body names one. What is none counts for nothing."""
    if job.traceparent is not None or header is None or not TRACEPARENT.fits(header):
        return job
    return job._replace(traceparent=header)


def check_webhook(job: NewJob, policy: UrlPolicy) -> None:
    """Raises `RequestRefused` if this node would not call the job's webhook."""
    if job.webhook is not None:
        try:
            check_allowed(job.webhook, policy)
        except Unfit as unfit:
            raise invalid(f"webhook: {unfit}") from None


def _check_size(payload: str, limits: PayloadLimits) -> None:
    size_bytes = len(payload.encode("utf-8", "surrogatepass"))
    if size_bytes > limits.max_bytes:
        said = f"payload: found {size_bytes} bytes, wanted at most {limits.max_bytes}"
        raise RequestRefused(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"{said} ([limits] max_payload_bytes)"
        )


def _kind(catalog: Catalog, name: object) -> WorkKind:
    if not isinstance(name, str):
        found = "nothing" if name is None else type(name).__name__
        raise invalid(f"kind: found {found}, wanted the name of a kind")
    try:
        return catalog.known(name)
    except UnknownKind as error:
        hint = f": did you mean {error.guess}?" if error.guess else "; `musterd kinds` lists them"
        raise invalid(f"kind: {error}{hint}") from None


def _moment(name: str, value: object) -> datetime:
    if not isinstance(value, str):
        raise invalid(f"{name}: wanted an RFC 3339 time, as {EXAMPLE} is")
    try:
        return moment_of(value)
    except ValueError as error:
        raise invalid(f"{name}: {error}") from None


def _check_fields(given: Iterable[str]) -> None:
    for name in given:
        if name not in FIELDS:
            hint = did_you_mean(name, FIELDS) or f"known: {', '.join(FIELDS)}"
            raise invalid(f"unknown field {name!r}: {hint}")


PAGE_CHARACTERS = 8_000_000  # a page of large jobs ends early; its `next` leads on
READ_JOBS = 50  # at once, until it is known how large they are
READ_JOBS_MAX = 200
SEARCH_SECONDS = 2.0  # then a search says how far it came


async def enqueue(call: Call) -> Response:
    body = await read_object(call.site, call.request)
    tenant = requested_tenant(body, call.text("tenant"))
    here = attrs.evolve(call, tenant=tenant_access(call.site, tenant))
    job = _traced(await wanted_job(here, body), call.request.headers.get("traceparent"))
    check_webhook(job, here.tenant.webhooks)
    made = await make_job(here.tenant.engine, job)
    if not made.is_new:
        return await done_answer(here, made.id, HTTPStatus.OK)
    return await done_answer(here, made.id, HTTPStatus.CREATED, is_new=True)


async def show(call: Call) -> Response:
    return await job_answer(call, await existing_job(call))


async def list_jobs(call: Call) -> Response:
    limit = call.number("limit") or requests.LIMIT_DEFAULT
    page = await page_of(call.tenant.engine, requested_filter(call), limit)

    def write() -> Response:
        shown = [job_json(call.tenant, one) for one in page.jobs]
        looked = {} if page.reach is None else {"looked": reach_object(page.reach)}
        return json_answer({"jobs": shown, "next": page.next, **looked})

    return await rendered(call.site, sum(map(size_of, page.jobs)), write)


def requested_filter(call: Call) -> JobFilter:
    """What the query asks for. Raises `RequestRefused`."""
    now = call.tenant.wall_clock()
    return JobFilter(
        cast("tuple[JobState, ...]", call.query.get("state", ())),
        call.text("kind"),
        before_id=call.number("cursor"),
        target=call.text("target"),
        dedup_key=call.text("dedup_key"),
        error=call.text("error"),
        since=past_moment(call, "since", now),
        until=past_moment(call, "until", now),
        by_end=call.text("time") == "ended",
    )


def reach_object(reach: Reach) -> dict[str, object]:
    return {"jobs": reach.looked, "back_to": time_text(reach.made_at)}


def action_handler(action: Action) -> Handler:
    async def handler(call: Call) -> Response:
        return await act(call, action, id_of(call))

    return handler


async def act(call: Call, action: Action, job_id: int) -> Response:
    """202 if a worker holds the job and has yet to act."""
    done = await control(call, action, job_id)
    status = HTTPStatus.ACCEPTED if done.requested else HTTPStatus.OK
    return await done_answer(call, job_id, status)


async def control(call: Call, action: Action, job_id: int) -> ControlResult:
    """Raises `RequestRefused` if there is no such job, or its state does not allow the action."""
    done = await call.tenant.engine.control.apply(action, job_id)
    if not done.found:
        raise no_such_job(job_id)
    if not done.allowed:
        said = control_refusal(job_id, action, done.state_before)
        raise RequestRefused(HTTPStatus.CONFLICT, said)
    return done


async def delete(call: Call) -> Response:
    await delete_job(call)
    return Response(status_code=HTTPStatus.NO_CONTENT)


async def delete_job(call: Call) -> int:
    """Deletes the job in the path and gives its id. Raises `RequestRefused`."""
    job_id = id_of(call)
    request = call.tenant.delete_request(caller_name(call))
    try:
        done = await call.tenant.engine.retention.delete_one(job_id, request)
    except ArchiveFailed as error:
        raise unavailable(f"the archive cannot be written: {error}; nothing was deleted") from None
    if not done.is_done:
        found = HTTPStatus.CONFLICT if done.state is not None else HTTPStatus.NOT_FOUND
        raise RequestRefused(found, deletion_refusal(job_id, done))
    return job_id


async def existing_job(call: Call) -> JobRecord:
    """The job in the path. Raises `RequestRefused`."""
    job_id = id_of(call)
    record = await call.tenant.engine.jobs.get(job_id)
    if record is None:
        raise no_such_job(job_id)
    return record


def id_of(call: Call) -> int:
    """The id in the path. Raises `RequestRefused` if it is invalid."""
    try:
        return requests.read_job_id(call.place("id"))
    except ValueError as error:
        raise RequestRefused(HTTPStatus.NOT_FOUND, str(error)) from None


def no_such_job(job_id: int) -> RequestRefused:
    return RequestRefused(HTTPStatus.NOT_FOUND, control_refusal(job_id, "", None))


@attrs.frozen
class Page:
    """One page of a list, and the cursor of the next; None = there is none."""

    jobs: list[JobRecord]
    next: str | None
    reach: Reach | None = None  # how far the search came, if jobs may be missing


async def page_of(engine: Engine, which: JobFilter, limit: int) -> Page:
    """Reads in parts to bound the memory."""
    end_local = trio.current_time() + SEARCH_SECONDS
    search = Search(engine.jobs, which, lambda: trio.current_time() < end_local)
    page: list[JobRecord] = []
    size, wanted = 0, min(READ_JOBS, limit + 1)
    while True:
        part = await search.next(wanted)
        for record in part:
            size += size_of(record)
            if len(page) == limit or (page and size > PAGE_CHARACTERS):
                return Page(page, requests.cursor_after(page[-1].id))
            page.append(record)
        if len(part) < wanted:
            reach = search.reach
            if reach is None:
                return Page(page, None)
            return Page(page, requests.cursor_after(reach.before_id), reach)
        room = (PAGE_CHARACTERS - size) // (size // len(page)) + 1
        wanted = max(1, min(limit + 1 - len(page), room, READ_JOBS_MAX))


async def wanted_job(call: Call, body: dict[str, object]) -> NewJob:
    length = int(call.request.headers.get("content-length", SMALL_BYTES + 1))
    catalog, limits = call.tenant.catalog(), call.tenant.limits
    if length <= SMALL_BYTES:
        return requested_job(body, catalog, limits)
    limiter = call.site.reading
    return await in_thread(partial(requested_job, body, catalog, limits), limiter=limiter)


async def make_job(engine: Engine, job: NewJob) -> Enqueued:
    if job.dedup_key is None:
        (job_id,) = await engine.jobs.enqueue([job])
        return Enqueued(job_id, True)
    (made,) = await engine.jobs.enqueue_keyed([job])
    return made


async def show_target(call: Call) -> Response:
    name = _target_name(call)
    return json_answer(target_object(name, await call.tenant.engine.queue.target(name)))


async def resume_of_target(call: Call) -> Response:
    """The job in the path must have the target."""
    name = _target_name(call)
    record = await existing_job(call)
    if record.target != name:
        said = f"job {record.id} does not have the target {name!r}"
        raise RequestRefused(HTTPStatus.NOT_FOUND, said)
    return await act(call, Action.RESUME, record.id)


def target_object(name: str, found: TargetView | None) -> dict[str, object]:
    """None = no job has the target or waits for it."""
    holder = None if found is None else found.holder
    return {
        "target": name,
        "halted": found is not None and found.halted,
        "job_id": None if holder is None else holder.id,
        "job_state": None if holder is None else holder.state,
        "reserved": found is not None and found.reserved,
        "waiting": 0 if found is None else found.behind,
        "next_ids": [] if found is None else list(found.first_behind),
    }


def _target_name(call: Call) -> str:
    try:
        return requests.read_path_part(call.place("target"))
    except ValueError as error:
        raise RequestRefused(HTTPStatus.NOT_FOUND, f"target: {error}") from None


async def show_why(call: Call) -> Response:
    job_id = id_of(call)
    seen = await call.tenant.engine.jobs.why_facts(job_id)
    if seen is None:
        raise no_such_job(job_id)
    return json_answer(why_object(why(seen), call.tenant.name))
