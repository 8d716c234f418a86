"""Answers: JSON, pages, and refusals: problem JSON (RFC 9457), or a page for people."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import TypeVar
from urllib.parse import quote

import trio
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from musterd.config.tenant_names import DEFAULT_TENANT
from musterd.manager.node.status import NodeStatus
from musterd.store.errors import InputRefused, OutcomeUnknown, StoreError, StoreUnavailable
from musterd.store.jobs import JobRecord
from musterd.store.report import job_object
from musterd.store.threads import in_thread
from musterd.web.api.operation import JSON_TYPE, Call, Site
from musterd.web.deps import TenantAccess, may
from musterd.web.pages.layout import (
    CONTENT_SECURITY_POLICY,
    Frame,
    View,
    document,
    refusal_view,
    sign_in_view,
)

T = TypeVar("T")
SMALL_CHARACTERS = 16_384  # what is no longer is written on the loop


def json_answer(
    value: object, status: int = HTTPStatus.OK, headers: Mapping[str, str] | None = None
) -> Response:
    """Escapes all but ASCII: a text may contain a lone surrogate."""
    return Response(json.dumps(value), status, headers=dict(headers or {}), media_type=JSON_TYPE)


async def job_answer(
    call: Call, record: JobRecord, status: int = HTTPStatus.OK, location: str = ""
) -> Response:
    headers = {"location": location} if location else None

    def write() -> Response:
        return json_answer(job_json(call.tenant, record), status, headers)

    return await rendered(call.site, size_of(record), write)


async def done_answer(call: Call, job_id: int, status: int, *, is_new: bool = False) -> Response:
    """The job just made or acted on. If the store does not answer a second time, the answer only
    names the job: an error would make clients repeat what is done.
    """
    name = call.tenant.name
    query = "" if name == DEFAULT_TENANT else f"?tenant={quote(name, safe='')}"
    location = f"/jobs/{job_id}{query}" if is_new else ""
    try:
        record = await call.tenant.engine.jobs.get(job_id)
    except StoreUnavailable:
        record = None
    if record is not None:
        return await job_answer(call, record, status, location)
    brief = {"id": job_id, "tenant": call.tenant.name}
    return json_answer(brief, status, {"location": location} if location else None)


def job_json(tenant: TenantAccess, record: JobRecord) -> dict[str, object]:
    return job_object(record, tenant.name, tenant.catalog().budget_of(record.kind))


def size_of(record: JobRecord) -> int:
    """The approximate length of a job's answer."""
    results = (phase.result for phase in record.phases)
    texts = (record.payload, record.result, record.error, record.log, *results)
    past = sum(len(one.error or "") + len(one.log or "") + 200 for one in record.attempts)
    return sum(len(text) for text in texts if text) + past + 500


async def rendered(site: Site, characters: int, write: Callable[[], T]) -> T:
    """The result of `write`, called in a thread if it is long."""
    if characters <= SMALL_CHARACTERS:
        return write()
    return await in_thread(write, limiter=site.rendering)


# With "no-referrer" browsers would not say where a form comes from, and the guard must know.
PAGE_HEADERS: Mapping[str, str] = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "referrer-policy": "same-origin",
}
AUDITED = "musterd.audited"  # where it leaves what the audit log has; handlers add to it
RECHECK = "musterd.vouch"  # where it leaves what says whether that is still so
SIGNED_IN = (
    "musterd.signed_in"  # where the guard leaves that a cookie, not a header, said who it is
)


def frame_of(call: Call) -> Frame:
    status = call.site.deps.node.status()
    return Frame(
        node=status.node,
        version=status.version,
        tenant=call.tenant.name,
        tenants=[one.name for one in status.tenants],
        holder=call.holder.name if call.request.scope.get(SIGNED_IN) else "",
        may_act=may(call.holder, "admin"),
    )


def plain_frame(status: NodeStatus) -> Frame:
    """For unknown readers: shows no tenant, nothing to act on."""
    return Frame(status.node, status.version, may_act=False)


def page_answer(frame: Frame, view: View, status: int = HTTPStatus.OK) -> Response:
    return HTMLResponse(document(frame, view), status, headers=PAGE_HEADERS)


def redirect(place: str, headers: Mapping[str, str] | None = None) -> Response:
    """After an action: a reload repeats nothing."""
    answer = RedirectResponse(
        "/", HTTPStatus.SEE_OTHER, headers={**PAGE_HEADERS, **(headers or {})}
    )
    answer.headers["location"] = place  # as it is: the framework would quote it once more
    return answer


PROBLEM_TYPE = "application/problem+json"
RETRY_HEADERS = {"retry-after": "1"}


class RequestRefused(Exception):
    """A refused request, and what to answer."""

    def __init__(
        self, status: HTTPStatus, detail: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = headers

    def answer(self) -> Response:
        return problem(self.status, str(self), self.headers)


def invalid(detail: str) -> RequestRefused:
    return RequestRefused(HTTPStatus.UNPROCESSABLE_ENTITY, detail)


def unavailable(detail: str) -> RequestRefused:
    """The client may retry soon."""
    return RequestRefused(HTTPStatus.SERVICE_UNAVAILABLE, detail, RETRY_HEADERS)


def problem(
    status: int, detail: str = "", headers: Mapping[str, str] | None = None,
    faults: Sequence[str] = (),
) -> Response:  # fmt: skip
    """`detail` says what helps; `faults` lists the faults if there are several."""
    body = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status}
    more = {"detail": detail, "faults": list(faults)}
    body |= {name: value for name, value in more.items() if value}
    # Escaped: a text may hold half a character.
    return Response(json.dumps(body), status, headers=dict(headers or {}), media_type=PROBLEM_TYPE)


def store_refusal(error: StoreError) -> RequestRefused:
    if isinstance(error, InputRefused):
        return invalid(str(error))
    if isinstance(error, OutcomeUnknown):
        return unavailable(f"{error}; it may or may not have been done: look before you repeat it")
    if isinstance(error, StoreUnavailable):
        return unavailable(f"the store is not available: {error}; nothing was done")
    return unavailable(f"the store refuses this node: {error}")


PAGE_PREFIX = "/ui/"


def wants_page(path: str, headers: Headers) -> bool:
    """Whether a browser asks for a page."""
    return (path == "/" or path.startswith(PAGE_PREFIX)) and takes_html(headers)


def takes_html(headers: Headers) -> bool:
    return "text/html" in headers.get("accept", "").lower()


def refusal_answer(node: NodeStatus, request: Request, why: RequestRefused) -> Response:
    if not wants_page(request.scope["path"], request.headers):
        return why.answer()
    answer = page_answer(
        plain_frame(node), refusal_view(plain_frame(node), why.status, str(why)), why.status
    )
    answer.headers.update(why.headers or {})
    return answer


async def framework_refusal(node: NodeStatus, request: Request, error: Exception) -> Response:
    """The framework's own refusals (no such path, wrong method) in our shape."""
    await trio.lowlevel.checkpoint()
    if not isinstance(error, HTTPException):
        why = RequestRefused(HTTPStatus.INTERNAL_SERVER_ERROR, "see the daemon's log")
        return refusal_answer(node, request, why)
    status = HTTPStatus(error.status_code)
    detail = error.detail if error.detail != status.phrase else ""
    if status is HTTPStatus.NOT_FOUND:
        path: str = request.scope["path"]
        there = "There" if wants_page(path, request.headers) else "there"
        detail = f"{there} is nothing at {path}"
    return refusal_answer(node, request, RequestRefused(status, detail, error.headers))


def sign_in_answer(node: NodeStatus, place: str) -> Response:
    """Asks for a token, then leads to `place`."""
    return page_answer(plain_frame(node), sign_in_view(place), HTTPStatus.UNAUTHORIZED)


def path_with_query(path: str, query: bytes) -> str:
    text = quote(query.decode("latin-1"), safe="%&=+-_.~!*'(),;:@/?")
    return f"{path}?{text}" if text else path
