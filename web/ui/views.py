"""What browsers ask for: the views, what is new in them, and what they load."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import cast

import trio
from starlette.responses import Response

from musterd.store.job import JobFilter, JobState
from musterd.web.api.jobs import id_of, no_such_job, page_of
from musterd.web.api.operation import Call, Handler
from musterd.web.pages import job, jobs, nodes, overview, scaling
from musterd.web.pages.assets import Asset
from musterd.web.pages.layout import Frame
from musterd.web.pages.question import done_words
from musterd.web.server import asked
from musterd.web.server.connections import LINE
from musterd.web.server.problem import RETRY, Refused
from musterd.web.ui import seeing
from musterd.web.ui.forms import read_done
from musterd.web.ui.live import Gone, Key, Parts
from musterd.web.ui.seeing import Away, in_time, in_time_or_none
from musterd.web.ui.showing import VOUCH, frame_of, shown
from musterd.web.ui.stream import LiveStream, take_place

JOBS_SHOWN = 50  # on a page of the list
LIST_SECONDS = 5.0  # a rare kind among millions of jobs takes its time
FOREVER = "public, max-age=31536000, immutable"


async def front(call: Call) -> Response:
    frame = frame_of(call)
    return shown(frame, overview.overview(frame, await seeing.see_overview(call.site, call.door)))


async def list_jobs(call: Call) -> Response:
    frame, door = frame_of(call), call.door
    states = cast("tuple[JobState, ...]", call.query.get("state", ()))
    which = jobs.Filter(states, call.text("kind"), call.text("target"))
    before = call.number("cursor")
    wanted = JobFilter(which.states, which.kind, before_id=before, target=which.target)
    counts = await in_time_or_none(door.engine.counts)
    records, after = None, None
    if counts is not None:
        try:
            records, more = await in_time(
                partial(page_of, door.engine, wanted, JOBS_SHOWN), LIST_SECONDS
            )
            after = asked.cursor_after(records[-1].id) if more else None
        except Away:
            records = None
    listed = jobs.Listed(
        which, records, after, before is None, counts, list(door.catalog()), _said(call)
    )
    status = HTTPStatus.OK if records is not None else HTTPStatus.SERVICE_UNAVAILABLE
    return shown(frame, jobs.jobs(frame, listed), status)


async def show_job(call: Call) -> Response:
    frame, job_id = frame_of(call), id_of(call)
    try:
        seen = await seeing.see_job(call.door, job_id)
    except Away as away:
        said = f"the store does not answer: {away}"
        raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, said, RETRY) from away
    if seen is None:
        raise no_such_job(job_id)
    view = job.job(frame, job.Seen(seen.record, seen.why, seen.now, seen.budget, _said(call)))
    return shown(frame, view)


async def show_nodes(call: Call) -> Response:
    frame = frame_of(call)
    return shown(frame, nodes.nodes(frame, await seeing.see_nodes(call.site, call.door)))


async def show_scaling(call: Call) -> Response:
    frame = frame_of(call)
    return shown(frame, scaling.scaling(frame, await seeing.see_scaling(call.site, call.door)))


async def live(call: Call) -> Response:
    """What is new in a view, without an end."""
    await trio.lowlevel.checkpoint()
    if call.request.method == "HEAD":
        return Response()
    frame, view, job_id = frame_of(call), call.text("view") or "", call.number("id")
    if (view == "job") != (job_id is not None):
        raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, "id: wanted with view=job, and only there")
    key = Key(view, frame.tenant, frame.may_act, job_id)
    take_place(call.request.scope["state"][LINE])
    may_look = cast("Callable[[], bool]", call.request.scope[VOUCH])
    return LiveStream(call.site.live, key, partial(_parts, call, frame, key), may_look)


async def _parts(call: Call, frame: Frame, key: Key) -> Parts | None:
    site = call.site
    door = site.plan.tenant(key.tenant)  # it may be another since: after a reload
    if door is None:
        raise Gone
    if key.view == "job":
        return await _job_parts(frame, door.name, call, key.job_id or 0)
    if key.view == "overview":
        return overview.parts_of(frame, await seeing.see_overview(site, door))
    if key.view == "nodes":
        return nodes.parts_of(frame, await seeing.see_nodes(site, door))
    return scaling.parts_of(frame, await seeing.see_scaling(site, door))


async def _job_parts(frame: Frame, tenant: str, call: Call, job_id: int) -> Parts | None:
    door = call.site.plan.tenant(tenant)
    try:
        seen = None if door is None else await seeing.see_job(door, job_id)
    except Away:
        return None
    if seen is None:
        raise Gone
    return job.parts_of(frame, seen)


def serving(asset: Asset) -> Handler:
    """Gives the handler of a file."""

    async def handler(call: Call) -> Response:
        await trio.lowlevel.checkpoint()
        is_known = call.request.query_params.get("v") == asset.hash
        kept = FOREVER if is_known else "no-cache"
        headers = {"cache-control": kept, "etag": f'"{asset.hash}"'}
        if call.request.headers.get("if-none-match") == f'"{asset.hash}"':
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
        return Response(asset.content, headers=headers, media_type=asset.media_type)

    return handler


def _said(call: Call) -> str | None:
    done = read_done(call.text("did") or "")
    return None if done is None else f"{done_words(*done)}."
