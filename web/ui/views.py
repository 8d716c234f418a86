"""What browsers ask for: the views, their live updates, and the files they load.

A page never hangs: each question to the store has a time limit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from typing import TypeVar, cast

import trio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from musterd.manager.node.status import TenantStatus
from musterd.store.errors import StoreError
from musterd.store.jobs import JobFilter, JobRecord
from musterd.store.lifecycle import JobState
from musterd.store.why import why
from musterd.store.why_facts import WhyFacts
from musterd.web.api.events import HEADERS
from musterd.web.api.jobs import id_of, no_such_job, page_of
from musterd.web.api.operation import TIME_LIMIT, Call, Handler, Site
from musterd.web.deps import TenantAccess
from musterd.web.pages import job, jobs, nodes, overview, scaling
from musterd.web.pages.jobs import done_words
from musterd.web.pages.layout import Asset, Frame
from musterd.web.samples import tenants_of
from musterd.web.server import requests
from musterd.web.server.answers import RECHECK, frame_of, invalid, page_answer, unavailable
from musterd.web.server.listening import CONNECTION, Connection
from musterd.web.server.requests import take_reader_seat
from musterd.web.ui.actions import read_done
from musterd.web.ui.live import Gone, Key, LiveView, LiveViews, Parts, message

JOBS_SHOWN = 50  # on a page of the list
LIST_SECONDS = 5.0  # a rare kind among millions of jobs takes its time
FOREVER = "public, max-age=31536000, immutable"


async def front(call: Call) -> Response:
    frame = frame_of(call)
    return page_answer(frame, overview.overview(frame, await read_overview(call.site, call.tenant)))


async def list_jobs(call: Call) -> Response:
    frame, tenant = frame_of(call), call.tenant
    states = cast("tuple[JobState, ...]", call.query.get("state", ()))
    which = jobs.Filter(states, call.text("kind"), call.text("target"))
    before = call.number("cursor")
    wanted = JobFilter(which.states, which.kind, before_id=before, target=which.target)
    counts = await in_time_or_none(tenant.engine.queue.counts)
    records, after = None, None
    if counts is not None:
        try:
            records, more = await in_time(
                partial(page_of, tenant.engine, wanted, JOBS_SHOWN), LIST_SECONDS
            )
            after = requests.cursor_after(records[-1].id) if more else None
        except NoAnswer:
            records = None
    listed = jobs.JobList(
        which, records, after, before is None, counts, list(tenant.catalog()), _done_words(call)
    )
    status = HTTPStatus.OK if records is not None else HTTPStatus.SERVICE_UNAVAILABLE
    return page_answer(frame, jobs.jobs(frame, listed), status)


async def show_job(call: Call) -> Response:
    frame, job_id = frame_of(call), id_of(call)
    try:
        seen = await read_job(call.tenant, job_id)
    except NoAnswer as away:
        raise unavailable(f"the store does not answer: {away}") from away
    if seen is None:
        raise no_such_job(job_id)
    view = job.job(
        frame, job.JobDetails(seen.record, seen.why, seen.now, seen.budget, _done_words(call))
    )
    return page_answer(frame, view)


async def show_nodes(call: Call) -> Response:
    frame = frame_of(call)
    return page_answer(frame, nodes.nodes(frame, await read_nodes(call.tenant)))


async def show_scaling(call: Call) -> Response:
    frame = frame_of(call)
    return page_answer(frame, scaling.scaling(frame, await read_scaling(call.site, call.tenant)))


async def live_updates(call: Call) -> Response:
    """Changes in a view, as a stream without an end."""
    await trio.lowlevel.checkpoint()
    if call.request.method == "HEAD":
        return Response()
    frame, view, job_id = frame_of(call), call.text("view") or "", call.number("id")
    if (view == "job") != (job_id is not None):
        raise invalid("id: wanted with view=job, and only there")
    key = Key(view, frame.tenant, frame.may_act, job_id)
    take_reader_seat(call.request)
    may_look = cast("Callable[[], bool]", call.request.scope[RECHECK])
    return LiveStream(call.site.live, key, partial(_parts, call, frame, key), may_look)


async def _parts(call: Call, frame: Frame, key: Key) -> Parts | None:
    site = call.site
    tenant = site.deps.tenant(key.tenant)  # asked each time: a reload may replace it
    if tenant is None:
        raise Gone
    if key.job_id is not None:
        return await _job_parts(frame, tenant, key.job_id)
    if key.view == "overview":
        return overview.parts_of(frame, await read_overview(site, tenant))
    if key.view == "nodes":
        return nodes.parts_of(frame, await read_nodes(tenant))
    return scaling.parts_of(frame, await read_scaling(site, tenant))


async def _job_parts(frame: Frame, tenant: TenantAccess, job_id: int) -> Parts | None:
    try:
        details = await read_job(tenant, job_id)
    except NoAnswer:
        return None
    if details is None:
        raise Gone
    return job.parts_of(frame, details)


def asset_handler(asset: Asset) -> Handler:
    """Makes the handler that serves a file."""

    async def handler(call: Call) -> Response:
        await trio.lowlevel.checkpoint()
        is_known = call.request.query_params.get("v") == asset.hash
        kept = FOREVER if is_known else "no-cache"
        headers = {"cache-control": kept, "etag": f'"{asset.hash}"'}
        if call.request.headers.get("if-none-match") == f'"{asset.hash}"':
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
        return Response(asset.content, headers=headers, media_type=asset.media_type)

    return handler


def _done_words(call: Call) -> str | None:
    done = read_done(call.text("did") or "")
    return None if done is None else f"{done_words(*done)}."


T = TypeVar("T")
STORE_SECONDS = 0.8  # then a page says that the store does not answer


class NoAnswer(Exception):
    """The store does not say."""


async def in_time(ask: Callable[[], Awaitable[T]], seconds: float = STORE_SECONDS) -> T:
    """Raises `NoAnswer`."""
    with trio.move_on_after(seconds):
        try:
            return await ask()
        except StoreError as error:
            raise NoAnswer(str(error)) from error
    raise NoAnswer(f"no answer within {seconds:g} s")


async def in_time_or_none(ask: Callable[[], Awaitable[T]]) -> T | None:
    try:
        return await in_time(ask)
    except NoAnswer:
        return None


def crew_of(site: Site, tenant: TenantAccess) -> TenantStatus:
    crews = tenants_of(site.deps.node.status())
    return next((one for one in crews if one.name == tenant.name), crews[0])


async def read_overview(site: Site, tenant: TenantAccess) -> overview.OverviewData:
    counts = await in_time_or_none(tenant.engine.queue.counts)
    status = site.deps.node.status()
    return overview.OverviewData(
        status, crew_of(site, tenant), counts, tenant.workers(), tenant.decisions(),
        site.samples.trend(tenant.name), tenants_of(status),
    )  # fmt: skip


async def read_nodes(tenant: TenantAccess) -> nodes.NodesData:
    found, duties = None, None
    with trio.move_on_after(STORE_SECONDS):
        found = await in_time_or_none(tenant.engine.nodes.all)
        duties = await in_time_or_none(tenant.engine.duties.duties)
    return nodes.NodesData(found, duties, tenant.workers())


async def read_scaling(site: Site, tenant: TenantAccess) -> scaling.ScalingData:
    await trio.lowlevel.checkpoint()
    return scaling.ScalingData(crew_of(site, tenant), tenant.decisions())


async def read_job(tenant: TenantAccess, job_id: int) -> job.JobDetails | None:
    """None: there is no such job. Raises `NoAnswer`."""

    async def ask() -> tuple[JobRecord | None, WhyFacts | None]:
        record = await tenant.engine.jobs.get(job_id)
        return record, None if record is None else await tenant.engine.jobs.why_facts(job_id)

    record, standing = await in_time(ask)
    if record is None:
        return None
    budget = tenant.catalog().budget_of(record.kind)
    if standing is None:
        return job.JobDetails(record, budget=budget)
    return job.JobDetails(record, why(standing), standing.now, budget)


PING_SECONDS = 10.0  # so that a page that hears nothing for long knows that it is cut off


class LiveStream(Response):
    """Ends when its reader leaves or may no longer look, or when there is nothing left to show."""

    def __init__(
        self, views: LiveViews, key: Key, make: Callable[[], Awaitable[Parts | None]],
        may_look: Callable[[], bool],
    ) -> None:  # fmt: skip
        self.status_code, self.background = HTTPStatus.OK, None
        self.init_headers(HEADERS)
        self._views, self._key, self._make, self._may_look = views, key, make, may_look

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection: Connection = scope["state"][CONNECTION]
        time_limit: trio.CancelScope = scope[TIME_LIMIT]
        time_limit.deadline = float("inf")
        connection.bound_unsent()
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        view = self._views.enter(self._key, self._make)
        try:
            await self._send_changes(view, send)
        finally:
            self._views.leave(self._key)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_changes(self, view: LiveView, send: Send) -> None:
        version, sent_local = 0, trio.current_time()
        while self._may_look():
            await view.look()
            if view.version != version:
                text, version = view.changes_since(version), view.version
            elif trio.current_time() - sent_local >= PING_SECONDS:
                text = message("ping", "")
            else:
                text = b""
            if text:
                sent_local = trio.current_time()
                await send({"type": "http.response.body", "body": text, "more_body": True})
            if view.is_gone:
                return
            await trio.sleep_until(view.next_local)
