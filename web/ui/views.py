"""Views, their live updates, and files. A page never hangs: questions to the store are limited."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache, partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

import trio
from attrs import evolve, frozen
from starlette.responses import Response

from musterd.config.load import load
from musterd.config.show import in_effect
from musterd.manager.node.status import TenantStatus
from musterd.manager.scaling.journal import Period
from musterd.store.errors import StoreError
from musterd.store.events import Event
from musterd.store.jobs import JobRecord
from musterd.store.lifecycle import JobState
from musterd.store.outbox import MessageFilter, MessageRecord
from musterd.store.overview import OverviewFilter, OverviewJob
from musterd.store.why import why
from musterd.store.why_facts import WhyFacts
from musterd.web.api.jobs import existing_job, id_of, no_such_job, page_of, requested_filter
from musterd.web.api.node import EventStream
from musterd.web.api.operation import Call, Handler, Site
from musterd.web.deps import TenantAccess
from musterd.web.pages import (
    configuration,
    events,
    failures,
    job,
    jobs,
    kinds,
    nodes,
    overview,
    scaling,
    schedules,
    webhooks,
)
from musterd.web.pages.jobs import done_words
from musterd.web.pages.layout import Asset, Frame, View
from musterd.web.pages.pictures import RANGE
from musterd.web.server.answers import RECHECK, frame_of, invalid, page_answer, unavailable
from musterd.web.server.places import Connection
from musterd.web.server.requests import take_reader_place
from musterd.web.ui.actions import read_done, read_gone
from musterd.web.ui.live import Gone, Key, Parts, Write

JOBS_SHOWN = 50  # on a page of the list
NEWER_SPAN = 500  # jobs that are looked at for newer ones that match
JOURNAL_SHOWN = Period(None, None, 300)  # the latest rows
LIST_SECONDS = 5.0  # a search takes its time
FOREVER = "public, max-age=31536000, immutable"


async def list_jobs(call: Call) -> Response:
    frame, tenant = frame_of(call), call.tenant
    asked = requested_filter(call)
    counts = await in_time_or_none(tenant.engine.queue.counts)
    page, status = None, HTTPStatus.SERVICE_UNAVAILABLE
    if counts is not None:
        ask = partial(page_of, tenant.engine, asked, JOBS_SHOWN)
        page = await in_time_or_none(ask, LIST_SECONDS)
    listed = jobs.JobList(
        filter_of(call), None, None, asked.before_id is None, counts, list(tenant.catalog()),
        _done_words(call),
    )  # fmt: skip
    if page is not None:
        listed = evolve(listed, records=page.jobs, after=page.next, reach=page.reach)
        status = HTTPStatus.OK
    return page_answer(frame, jobs.jobs(frame, listed), status)


def filter_of(call: Call) -> jobs.Filter:
    """As the query has it."""
    return jobs.Filter(
        cast("tuple[JobState, ...]", call.query.get("state", ())),
        *(call.text(name) for name in jobs.Filter().texts),
    )


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


async def ask_to_delete(call: Call) -> Response:
    return page_answer(frame_of(call), job.question(frame_of(call), await existing_job(call)))


async def live_updates(call: Call) -> Response:
    """Changes in a view, as an endless stream."""
    await trio.lowlevel.checkpoint()
    if call.request.method == "HEAD":
        return Response()
    frame, view, job_id = frame_of(call), call.text("view") or "", call.number("id")
    if (view == "job") != (job_id is not None):
        raise invalid("id: wanted with view=job, and only there")
    key = Key(view, frame.tenant, frame.may_act, job_id, chosen_of(call))
    if view == "jobs":
        key = _key_of_list(call, key)
    take_reader_place(call.request)
    may_look = cast("Callable[[], bool]", call.request.scope[RECHECK])

    async def follow(_connection: Connection, write: Write) -> None:
        make = partial(_parts, call.site, frame, key, filter_of(call))
        await call.site.live.follow(key, make, may_look, write)

    return EventStream(follow)


def _key_of_list(call: Call, key: Key) -> Key:
    ids = cast("tuple[int, ...]", call.query.get("ids", ()))
    newer = None
    if call.query.get("newer", False):
        newest, most = max(ids, default=0), jobs.NEWER_MAX
        newer = evolve(requested_filter(call), after_id=newest, limit=most, span=NEWER_SPAN)
    return evolve(key, ids=ids, newer=newer)


async def _parts(site: Site, frame: Frame, key: Key, which: jobs.Filter) -> Parts | None:
    tenant = site.deps.tenant(key.tenant)  # asked each time: a reload may replace it
    if tenant is None:
        raise Gone
    if key.job_id is not None:
        return await _job_parts(frame, tenant, key.job_id)
    if key.view == "jobs":
        return await in_time_or_none(lambda: _list_parts(frame, tenant, key, which))
    return await VIEWS[key.view].parts(frame, site, tenant, key.chosen)


async def _list_parts(frame: Frame, tenant: TenantAccess, key: Key, which: jobs.Filter) -> Parts:
    """The rows of a list, each looked up, and how many newer jobs match among the newest."""
    records = await tenant.engine.jobs.briefs(key.ids) if key.ids else []
    newer = 0 if key.newer is None else len(await tenant.engine.jobs.find(key.newer))
    rows = jobs.parts_of(frame, key.ids, records)
    return {"newer": jobs.newer_part(frame, which, newer), **rows}


async def _job_parts(frame: Frame, tenant: TenantAccess, job_id: int) -> Parts | None:
    try:
        details = await read_job(tenant, job_id)
    except NoAnswer:
        return None
    if details is None:
        raise Gone
    return job.parts_of(frame, details)


def asset_handler(asset: Asset) -> Handler:
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
    text = call.text("did") or ""
    if (gone := read_gone(text)) is not None:
        return f"Job {gone} deleted."
    done = read_done(text)
    return None if done is None else f"{done_words(*done)}."


T = TypeVar("T")
STORE_SECONDS = 0.8  # then a page says that the store does not answer


class NoAnswer(Exception):
    """The store does not answer."""


async def in_time(ask: Callable[[], Awaitable[T]], seconds: float = STORE_SECONDS) -> T:
    """Raises `NoAnswer`."""
    with trio.move_on_after(seconds):
        try:
            return await ask()
        except StoreError as error:
            raise NoAnswer(str(error)) from error
    raise NoAnswer(f"no answer within {seconds:g} s")


async def in_time_or_none(
    ask: Callable[[], Awaitable[T]], seconds: float = STORE_SECONDS
) -> T | None:
    try:
        return await in_time(ask, seconds)
    except NoAnswer:
        return None


def crew_of(site: Site, tenant: TenantAccess) -> TenantStatus:
    crews = site.deps.node.status().tenants
    return next((one for one in crews if one.name == tenant.name), crews[0])


def chosen_of(call: Call) -> str:
    """How far back the charts reach."""
    return call.text("range") or RANGE


async def read_overview(site: Site, tenant: TenantAccess, chosen: str) -> overview.OverviewData:
    counts = await in_time_or_none(tenant.engine.queue.counts)
    remarks, picture, kinds = None, None, None
    if counts is not None:
        remarks = await in_time_or_none(tenant.remarks)
        picture = await site.past.picture(tenant, chosen)
        promised_seconds = site.deps.node.settings.scaling.max_wait_seconds
        kinds = await site.past.kinds(tenant, promised_seconds)
    status = site.deps.node.status()
    return overview.OverviewData(
        status, crew_of(site, tenant), counts, tenant.workers(), tenant.decisions(),
        site.samples.trend(tenant.name), status.tenants, remarks or (), chosen, picture, kinds,
    )  # fmt: skip


async def read_nodes(_site: Site, tenant: TenantAccess, _chosen: str) -> nodes.NodesData:
    found, duties = None, None
    with trio.move_on_after(STORE_SECONDS):
        found = await in_time_or_none(tenant.engine.nodes.all)
        duties = await in_time_or_none(tenant.engine.duties.duties)
    return nodes.NodesData(found, duties, tenant.workers())


async def read_scaling(site: Site, tenant: TenantAccess, chosen: str) -> scaling.ScalingData:
    picture = await site.past.picture(tenant, chosen)
    page = await in_time_or_none(lambda: tenant.journal(JOURNAL_SHOWN))
    runs = page.runs if page is not None and page.is_whole else None
    hours = () if page is None else page.hours
    crew = crew_of(site, tenant)
    return scaling.ScalingData(crew, tenant.decisions(), chosen, picture, runs, hours)


async def read_kinds(site: Site, tenant: TenantAccess, _chosen: str) -> kinds.KindsData:
    found = await in_time_or_none(tenant.engine.nodes.all)
    rows = None
    if found is not None:
        promised_seconds = site.deps.node.settings.scaling.max_wait_seconds
        rows = await site.past.kinds(tenant, promised_seconds)
    return kinds.KindsData(tenant.catalog(), rows, found)


async def read_schedules(
    _site: Site, tenant: TenantAccess, _chosen: str
) -> schedules.SchedulesData:
    own = tenant.schedules()
    names = sorted(own)[: schedules.SHOWN]
    records = await in_time_or_none(partial(tenant.engine.schedules.know, names)) if names else []
    return schedules.SchedulesData(own, records)


async def read_failures(
    _site: Site, tenant: TenantAccess, _chosen: str
) -> Sequence[OverviewJob] | None:
    looked = failures.LOOKED
    which = OverviewFilter((JobState.FAILED,), bound=looked, span=looked)
    found = await in_time_or_none(partial(tenant.engine.overview.jobs, which))
    return None if found is None else found.jobs


async def read_webhooks(
    _site: Site, tenant: TenantAccess, _chosen: str
) -> Sequence[MessageRecord] | None:
    which = MessageFilter(limit=webhooks.SHOWN)
    return await in_time_or_none(partial(tenant.engine.outbox.messages, which))


async def read_events(_site: Site, tenant: TenantAccess, _chosen: str) -> Sequence[Event] | None:
    async def ask() -> list[Event]:
        log = tenant.engine.events
        bounds = await log.bounds()
        page = await log.read(max(bounds.oldest - 1, bounds.newest - events.SHOWN, 0))
        return list(page.events[: -events.SHOWN - 1 : -1])

    return await in_time_or_none(ask)


@cache
def _shipped() -> Mapping[str, Mapping[str, object]]:
    return in_effect(load(None, {}, [], system_file=Path(os.devnull)).settings)


async def show_configuration(call: Call) -> Response:
    """For those who may act: as `GET /config`."""
    await trio.lowlevel.checkpoint()
    node = call.site.deps.node
    now = node.status()
    data = configuration.ConfigurationData(
        in_effect(node.settings), _shipped(), now.generation, now.reload_faults
    )
    return page_answer(frame_of(call), configuration.configuration(data))


@frozen
class _TenantView(Generic[T]):
    """A view of a whole tenant: how its data are read, and how it looks."""

    read: Callable[[Site, TenantAccess, str], Awaitable[T]]
    whole: Callable[[Frame, T], View]
    changing: Callable[[Frame, T], Parts]

    async def show(self, call: Call) -> Response:
        frame = frame_of(call)
        return page_answer(
            frame, self.whole(frame, await self.read(call.site, call.tenant, chosen_of(call)))
        )

    async def parts(self, frame: Frame, site: Site, tenant: TenantAccess, chosen: str) -> Parts:
        return self.changing(frame, await self.read(site, tenant, chosen))


VIEWS: Mapping[str, _TenantView[Any]] = {
    "overview": _TenantView(read_overview, overview.overview, overview.parts_of),
    "nodes": _TenantView(read_nodes, nodes.nodes, nodes.parts_of),
    "scaling": _TenantView(read_scaling, scaling.scaling, scaling.parts_of),
    "kinds": _TenantView(read_kinds, kinds.kinds, kinds.parts_of),
    "schedules": _TenantView(read_schedules, schedules.schedules, schedules.parts_of),
    "webhooks": _TenantView(read_webhooks, webhooks.WEBHOOKS.view, webhooks.WEBHOOKS.parts_of),
    "events": _TenantView(read_events, events.EVENTS.view, events.EVENTS.parts_of),
    "failures": _TenantView(read_failures, failures.failures, failures.parts_of),
}


async def read_job(tenant: TenantAccess, job_id: int) -> job.JobDetails | None:
    """None: there is no such job. Raises `NoAnswer`."""

    async def ask() -> tuple[JobRecord | None, WhyFacts | None]:
        record = await tenant.engine.jobs.get(job_id)
        return record, None if record is None else await tenant.engine.jobs.why_facts(job_id)

    record, facts = await in_time(ask)
    if record is None:
        return None
    budget = tenant.catalog().budget_of(record.kind)
    if facts is None:
        return job.JobDetails(record, budget=budget)
    return job.JobDetails(record, why(facts), facts.now, budget)
