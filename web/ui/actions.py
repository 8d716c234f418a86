"""The page's forms. Each ends in a redirect, so that a reload repeats nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import TypeVar
from urllib.parse import parse_qsl

import attrs
import trio
from starlette.requests import Request
from starlette.responses import Response

from musterd.manager.duties.schedules import firing_of
from musterd.store import bulk
from musterd.store.bulk import Tally
from musterd.store.control import Selection, states_for
from musterd.store.input import PayloadInvalid, check_payload, decode_payload, decoded
from musterd.store.jobs import JobRecord
from musterd.store.lifecycle import Action
from musterd.store.schedules import Wish
from musterd.web.api.jobs import (
    check_webhook,
    control,
    delete_job,
    existing_job,
    id_of,
    make_job,
    wanted_job,
)
from musterd.web.api.node import halt_queue
from musterd.web.api.operation import Call, Handler
from musterd.web.pages.jobs import BulkRequest, Filter, question, unfinished
from musterd.web.pages.layout import after_sign_in, sign_in_view
from musterd.web.server import requests
from musterd.web.server.answers import (
    AUDITED,
    RequestRefused,
    frame_of,
    invalid,
    page_answer,
    plain_frame,
    redirect,
)
from musterd.web.server.requests import check_type, read_body, tenant_access
from musterd.web.ui.sessions import cookie, session_id_of

T = TypeVar("T")
SCHEDULE_WISHES: Mapping[str, Wish] = {"pause": "pause", "resume": "resume"}
SURVEY_SECONDS = 5.0  # then the question says "or more"
ACT_SECONDS = 8.0  # then the page says how far it is, and asks whether to go on


def job_action(action: Action) -> Handler:
    async def handler(call: Call) -> Response:
        call, _ = await _read_call(call)
        job_id = id_of(call)
        done = await control(call, action, job_id)
        did = done_text(action, Tally(done=1, requested=int(done.requested)))
        return redirect(frame_of(call).at(f"/ui/jobs/{job_id}", did=did))

    return handler


async def run_again(call: Call) -> Response:
    """Makes a job like this one, and leads to it."""
    call, _ = await _read_call(call)
    record = await existing_job(call)
    job = await wanted_job(call, _like(call, record))
    check_webhook(job, call.tenant.webhooks)
    made = await make_job(call.tenant.engine, job)
    call.request.scope[AUDITED] |= {"action": "enqueue", "jobs": [made.id]}
    return redirect(frame_of(call).at(f"/ui/jobs/{made.id}"))


def _like(call: Call, record: JobRecord) -> dict[str, object]:
    """The options of a job but for its key and its times; a webhook only if it is its own."""
    kind = call.tenant.catalog().get(record.kind)
    of_others = (kind and kind.webhook, call.site.deps.node.settings.webhooks.url)
    hook = record.webhook and record.webhook.url
    most = record.max_attempts and record.max_attempts - record.forgiven
    return {
        "kind": record.kind,
        "payload": decoded(record.payload),
        "priority": record.priority,
        "target": record.target,
        "max_attempts": most,
        "webhook": None if hook in of_others else hook,
    }


async def delete(call: Call) -> Response:
    call, _ = await _read_call(call)
    gone = await delete_job(call)
    return redirect(frame_of(call).at("/ui/jobs", did=f"deleted.{gone}"))


def queue_switch(*, pause: bool) -> Handler:
    async def handler(call: Call) -> Response:
        call, _ = await _read_call(call)
        await (halt_queue(call) if pause else call.tenant.engine.queue.resume())
        return redirect(frame_of(call).at("/"))

    return handler


async def confirm(call: Call) -> Response:
    call, form = await _read_call(call)
    request, frame = read_bulk_request(form), frame_of(call)
    if not request.is_all:
        return page_answer(frame, question(frame, request))
    engine = call.tenant.engine
    end_local = trio.current_time() + SURVEY_SECONDS
    which = await bulk.pin(engine, _selection(request))
    found = await bulk.survey(engine, which, None, lambda: trio.current_time() < end_local)
    pending = attrs.evolve(request, ids=(), until_id=which.until_id or 0)
    return page_answer(frame, question(frame, pending, found))


async def act(call: Call) -> Response:
    """Acts on the chosen jobs, or on as many matching jobs as time allows."""
    call, form = await _read_call(call)
    request, frame, engine = read_bulk_request(form), frame_of(call), call.tenant.engine
    meant = request.which.query if request.is_all else list(request.ids)
    call.request.scope[AUDITED] |= {"action": request.action.value, "jobs": meant}
    if not request.is_all:
        return _back_to_list(
            call, request, await bulk.act_on_these(engine, request.action, request.ids)
        )
    if not request.until_id:
        raise invalid("until_id: wanted the last job that is meant")
    end_local = trio.current_time() + ACT_SECONDS
    which = attrs.evolve(_selection(request), until_id=request.until_id)

    def go_on(_: Tally) -> bool:
        return trio.current_time() < end_local

    order = bulk.Order(request.action, which, None, go_on, request.after_id)
    tally = await bulk.act(engine, order)
    if not tally.stopped:
        return _back_to_list(call, request, tally)
    return page_answer(frame, unfinished(frame, request, tally))


def _selection(request: BulkRequest) -> Selection:
    """The jobs that match and allow the action."""
    which, allowed = request.which, states_for(request.action)
    states = tuple(one for one in allowed if not which.states or one in which.states)
    return Selection(
        states, (which.kind,) if which.kind else (), (which.target,) if which.target else ()
    )


def _back_to_list(call: Call, request: BulkRequest, tally: Tally) -> Response:
    did = done_text(request.action, tally)
    return redirect(frame_of(call).at("/ui/jobs", **request.which.query, did=did))


async def _read_call(call: Call) -> tuple[Call, Form]:
    """The form, and the call for the form's tenant."""
    form = await read_form(call.request)
    tenant = tenant_access(call.site, form.name("tenant"))
    call.request.scope[AUDITED]["tenant"] = tenant.name
    return attrs.evolve(call, tenant=tenant), form


async def resend(call: Call) -> Response:
    """Sends a message of a webhook again."""
    call, form = await _read_call(call)
    message_id = _read("id", requests.read_job_id, form.text("id"))
    call.request.scope[AUDITED] |= {"action": "resend", "message": message_id}
    if not await call.tenant.engine.outbox.resend([message_id]):
        raise RequestRefused(HTTPStatus.NOT_FOUND, f"there is no message {message_id}")
    return redirect(frame_of(call).at("/ui/webhooks"))


NUMBERS = ("priority", "delay_seconds")


async def enqueue(call: Call) -> Response:
    """Makes the job of a form and leads to it."""
    call, form = await _read_call(call)
    job = await wanted_job(call, wanted_of(form))
    made = await make_job(call.tenant.engine, job)
    call.request.scope[AUDITED] |= {"action": "enqueue", "jobs": [made.id]}
    return redirect(frame_of(call).at(f"/ui/jobs/{made.id}"))


def wanted_of(form: Form) -> dict[str, object]:
    """As the body of `POST /jobs`. Raises `RequestRefused`."""
    wanted: dict[str, object] = {
        name: text for name in ("kind", "target", "dedup_key") if (text := form.text(name).strip())
    }
    for name in NUMBERS:
        if text := form.text(name).strip():
            wanted[name] = _read(name, _number, text)
    if text := form.text("payload").strip():
        wanted["payload"] = _read("payload", decode_payload, text)
    if form.text("hold"):
        wanted["hold"] = True
    return wanted


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"found {text!r}, wanted a number") from None


async def find(call: Call) -> Response:
    """Leads to a job by its number."""
    await trio.lowlevel.checkpoint()
    job_id = call.number("id")
    if job_id is None:
        raise invalid("id: wanted the number of a job")
    return redirect(frame_of(call).at(f"/ui/jobs/{job_id}"))


async def act_on_schedule(call: Call) -> Response:
    """Pauses or resumes it, or makes a job of it now, and leads to that."""
    call, form = await _read_call(call)
    frame, engine = frame_of(call), call.tenant.engine
    name, act = form.text("schedule"), form.text("act")
    schedule = call.tenant.schedules().get(name)
    if schedule is None:
        raise RequestRefused(HTTPStatus.NOT_FOUND, f"there is no schedule {name!r}")
    call.request.scope[AUDITED] |= {"action": act, "schedule": name}
    wish = SCHEDULE_WISHES.get(act)
    if wish is not None:
        await engine.schedules.steer(wish, name)
        return redirect(frame.at("/ui/schedules"))
    if act != "run":
        raise invalid("act: wanted pause, resume or run")
    catalog = call.tenant.catalog()
    if schedule.kind not in catalog:
        raise invalid(f"schedule {name!r}: there is no kind {schedule.kind!r}")
    check_payload(schedule.payload, call.tenant.limits)
    fired = await engine.schedules.fire(firing_of(schedule, catalog, None))
    return redirect(frame.at(f"/ui/jobs/{fired.job_id}"))


async def sign_in(call: Call) -> Response:
    """A token becomes a session; without tokens everybody is in already."""
    form = await read_form(call.request)
    after = after_sign_in(form.text("next"))
    keys, headers = call.site.deps.keys, call.request.headers
    if not keys.tokens:
        return redirect(after)
    # Headers are read as Latin-1, of whatever bytes they have.
    token = form.text("token").strip().encode("utf-8", "replace").decode("latin-1")
    holder = keys.holder(f"Bearer {token}")
    if holder is None:
        frame = plain_frame(call.site.deps.node.status())
        return page_answer(frame, sign_in_view(after, wrong=True), HTTPStatus.UNAUTHORIZED)
    call.request.scope[AUDITED]["who"] = holder.name
    return redirect(after, {"set-cookie": cookie(headers, call.site.sessions.begin(holder))})


async def show_first_view(_call: Call) -> Response:
    """For a browser that returns to a form's address."""
    await trio.lowlevel.checkpoint()
    return redirect("/")


async def sign_out(call: Call) -> Response:
    await read_form(call.request)
    session_id = session_id_of(call.request.headers)
    if session_id is not None:
        call.site.sessions.end(session_id)
    return redirect("/", {"set-cookie": cookie(call.request.headers, "")})


FORM_TYPE = "application/x-www-form-urlencoded"
FORM_BYTES_MAX = 65_536
FIELDS_MAX = 300
IDS_MAX = 200
_DONE = re.compile(r"(cancel|pause|resume|release|clear)\.(\d{1,9})\.(\d{1,9})\.(\d{1,9})")

_GONE = re.compile(r"deleted\.(\d{1,19})", re.ASCII)


@attrs.frozen
class Form:
    fields: Mapping[str, Sequence[str]]

    def text(self, name: str) -> str:
        """The only value of a field; "" if there is none."""
        found = self.fields.get(name, ("",))
        if len(found) > 1:
            raise invalid(f"{name}: given twice, wanted once")
        return found[0]

    def name(self, field: str) -> str | None:
        """A kind, target or tenant; empty = not given."""
        text = self.text(field)
        return _read(field, requests.read_name, text) if text else None


async def read_form(request: Request) -> Form:
    """Raises `RequestRefused`."""
    check_type(request.headers.get("content-type", ""), FORM_TYPE)
    raw = await read_body(request, FORM_BYTES_MAX)
    try:
        pairs = parse_qsl(
            raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=FIELDS_MAX
        )
    except ValueError:
        raise invalid("the form cannot be read") from None
    fields: dict[str, list[str]] = {}
    for name, value in pairs:
        fields.setdefault(name, []).append(value)
    return Form(fields)


def read_bulk_request(form: Form) -> BulkRequest:
    """Reads everything before anything is done. Raises `RequestRefused`."""
    ids = form.fields.get("id", ())
    if len(ids) > IDS_MAX:
        raise invalid(f"id: at most {IDS_MAX} jobs can be chosen one by one")
    states = [_read("state", requests.read_state, one) for one in form.fields.get("state", ())]
    which = Filter(tuple(dict.fromkeys(states)), *(form.name(name) for name in Filter().texts))
    is_all = form.text("which") == "all"
    if is_all and not which.is_for_all:
        raise invalid("which: found all, wanted these: only states, kind and target mean all jobs")
    return BulkRequest(
        _read("action", _action, form.text("action")),
        which,
        sorted({_read("id", requests.read_job_id, one) for one in ids}),
        is_all,
        _read("until_id", _position, form.text("until_id")),
        _read("after", _position, form.text("after")),
    )


def _read(name: str, read: Callable[[str], T], text: str) -> T:
    """The value of a field. Raises `RequestRefused` if `read` raises ValueError."""
    try:
        return read(text)
    except PayloadInvalid as error:
        raise invalid(str(error)) from None
    except ValueError as error:
        raise invalid(f"{name}: {error}") from None


def done_text(action: Action, tally: Tally) -> str:
    """The result for the address of the next page."""
    return f"{action.value}.{tally.done}.{tally.requested}.{tally.skipped}"


def read_done(text: str) -> tuple[Action, Tally] | None:
    found = _DONE.fullmatch(text)
    if found is None:
        return None
    done, requested, skipped = (int(found[place]) for place in (2, 3, 4))
    return Action(found[1]), Tally(done=max(done, requested), requested=requested, changed=skipped)


def read_gone(text: str) -> str | None:
    """The job that has just been deleted."""
    found = _GONE.fullmatch(text)
    return None if found is None else found[1]


def _action(text: str) -> Action:
    try:
        return Action(text)
    except ValueError:
        raise ValueError("wanted cancel, pause, resume, release or clear") from None


def _position(text: str) -> int:
    """A job's id, or 0."""
    return requests.read_job_id(text) if text not in ("", "0") else 0
