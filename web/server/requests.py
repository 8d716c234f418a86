"""From a request to its handler. Readers raise `ValueError`, which says what is wanted."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import cast
from urllib.parse import parse_qsl, unquote

import trio
from starlette.requests import Request
from starlette.responses import Response

from musterd.config.credentials import BearerToken
from musterd.config.faults import did_you_mean, either
from musterd.config.tenant_names import DEFAULT_TENANT
from musterd.store.errors import StoreError
from musterd.store.input import PayloadInvalid, decode_payload
from musterd.store.lifecycle import JobState
from musterd.store.threads import in_thread
from musterd.web.api.operation import JSON_TYPE, TIME_LIMIT, Call, Operation, Param, Site
from musterd.web.deps import TenantAccess, may
from musterd.web.pages.pictures import RANGES
from musterd.web.server.answers import (
    AUDITED,
    RequestRefused,
    invalid,
    refusal_answer,
    store_refusal,
    unavailable,
)
from musterd.web.server.places import CONNECTION, Connection, Doing

ANSWER_SECONDS = 25.0  # more than the store's time limits, less than the guard's
AFTER_SECONDS = 5.0  # to send the answer of a handler that has its own time limit
HOLDER = "musterd.holder"  # scope key: the guard stores the token of the request here


def endpoint(
    site: Site, by_method: Mapping[str, Operation]
) -> Callable[[Request], Awaitable[Response]]:
    """The function for one path; the framework admits no other method."""

    async def answer(request: Request) -> Response:
        operation = by_method["GET" if request.method == "HEAD" else request.method]
        seconds = operation.answer_seconds or ANSWER_SECONDS
        if operation.answer_seconds is not None:
            request.scope[TIME_LIMIT].deadline = trio.current_time() + seconds + AFTER_SECONDS
        try:
            with trio.move_on_after(seconds):
                return await operation.handler(_call(site, operation, request))
            why = unavailable(f"no answer within {seconds:g} s; it may or may not have been done")
        except RequestRefused as refusal:
            why = refusal
        except StoreError as error:
            why = store_refusal(error)
        except Exception:
            # Logged here: the framework logs only after the peer has its answer, and the request
            # may be cancelled with the peer's connection before that.
            site.deps.log.exception("request failed")
            why = RequestRefused(HTTPStatus.INTERNAL_SERVER_ERROR, "see the daemon's log")
        return refusal_answer(site.deps.node.status(), request, why)

    return answer


def tenant_access(site: Site, tenant: str | None) -> TenantAccess:
    """None = the default tenant. Raises `RequestRefused`."""
    name = DEFAULT_TENANT if tenant is None else tenant
    access = site.deps.tenant(name)
    if access is None:
        raise RequestRefused(HTTPStatus.NOT_FOUND, f"there is no tenant {name!r}")
    return access


def take_reader_place(request: Request) -> None:
    """Raises `RequestRefused` if there are too many readers of events."""
    connection: Connection = request.scope["state"][CONNECTION]
    if not connection.begin(Doing.EVENTS):
        most = connection.places.readers_max
        raise unavailable(f"{most} readers follow events already ([http] max_event_readers)")


def _call(site: Site, operation: Operation, request: Request) -> Call:
    holder: BearerToken = request.scope[HOLDER]
    if operation.scope is not None and not may(holder, operation.scope):
        said = f"the token {holder.name} lacks the scope {operation.scope}"
        raise RequestRefused(HTTPStatus.FORBIDDEN, said)
    query: Mapping[str, object] = {}
    if operation.minds_query:
        raw: bytes = request.scope["query_string"]
        try:
            query = read_query(raw.decode("latin-1"), operation.params)
        except ValueError as error:
            raise invalid(str(error)) from None
    name = query.get("tenant")
    tenant = tenant_access(site, name if isinstance(name, str) else None)
    request.scope[AUDITED]["tenant"] = tenant.name
    return Call(site, tenant, holder, request, query)


LIMIT_DEFAULT = 50
LIMIT_MAX = 1000
ID_MAX = 2**63 - 1
IDS_MAX = 50  # in one parameter
NAME_LENGTH_MAX = 200
PAIRS_MAX = 50
CURSOR_MARK = "before"
_ID = re.compile(r"[1-9][0-9]{0,18}", re.ASCII)
_LIMIT = re.compile(r"[0-9]{1,4}", re.ASCII)
_EVENT_ID = re.compile(r"[0-9]{1,19}", re.ASCII)
_STEP = re.compile(r"[0-9]{1,7}", re.ASCII)
NO_EVENT_ID = -1


def read_query(text: str, params: Sequence[Param]) -> Mapping[str, object]:
    """Reads a query by its route's parameters; one that may be repeated gets a tuple."""
    by_name = {param.name: param for param in params}
    found: dict[str, object] = {}
    for name, value in _pairs(text):
        param = by_name.get(name)
        if param is None:
            hint = did_you_mean(name, by_name) or f"known: {', '.join(by_name)}"
            raise ValueError(f"unknown parameter {name!r}: {hint}")
        try:
            read = param.read(value)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        if param.many:
            earlier = found.get(name, ())
            found[name] = (*earlier, read) if isinstance(earlier, tuple) else (read,)
        elif name in found:
            raise ValueError(f"{name}: given twice, wanted once")
        else:
            found[name] = read
    return found


def read_job_id(text: str) -> int:
    if _ID.fullmatch(text) and int(text) <= ID_MAX:
        return int(text)
    raise ValueError(f"{text!r} is not a job id")


def read_job_ids(text: str) -> tuple[int, ...]:
    """As `7,5,2`; none for an empty text."""
    ids = tuple(read_job_id(one) for one in text.split(",") if text)
    if len(ids) <= IDS_MAX:
        return ids
    raise ValueError(f"found {len(ids)} ids, wanted at most {IDS_MAX}")


def read_state(text: str) -> JobState:
    try:
        return JobState(text)
    except ValueError:
        names = [each.value for each in JobState]
        hint = did_you_mean(text, names)
        said = f"found {text!r}, wanted {either(names)}"
        raise ValueError(f"{said}: {hint}" if hint else said) from None


def read_name(text: str) -> str:
    """A kind, a target or a tenant."""
    if 1 <= len(text) <= NAME_LENGTH_MAX and "\0" not in text:
        return text
    raise ValueError(f"wanted 1 to {NAME_LENGTH_MAX} characters")


def read_limit(text: str) -> int:
    if _LIMIT.fullmatch(text) and 1 <= int(text) <= LIMIT_MAX:
        return int(text)
    raise ValueError(f"found {text!r}, wanted a whole number, 1 to {LIMIT_MAX}")


def read_flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(f"found {text!r}, wanted true or false")
    return text == "true"


def read_range(text: str) -> str:
    """How far back a chart reaches."""
    if text in RANGES:
        return text
    raise ValueError(f"found {text!r}, wanted {either([*RANGES])}")


def read_time_of(text: str) -> str:
    """Which time of jobs is meant."""
    if text in ("made", "ended"):
        return text
    raise ValueError(f"found {text!r}, wanted made or ended")


def read_step(text: str) -> int:
    if _STEP.fullmatch(text) and int(text) > 0:
        return int(text)
    raise ValueError(f"found {text!r}, wanted a whole number of seconds")


def read_event_id(text: str) -> int:
    """An invalid id becomes one that no log has."""
    return int(text) if _EVENT_ID.fullmatch(text.strip()) else NO_EVENT_ID


def cursor_after(job: int) -> str:
    """The cursor of the page after this job; opaque to clients."""
    return base64.urlsafe_b64encode(f"{CURSOR_MARK} {job}".encode()).decode().rstrip("=")


def read_cursor(text: str) -> int:
    """The job id before which the page begins."""
    try:
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        plain = base64.b64decode(padded, altchars=b"-_", validate=True).decode("ascii")
        mark, _, job = plain.rpartition(" ")
        if mark == CURSOR_MARK:
            return read_job_id(job)
    except (UnicodeError, binascii.Error, ValueError):
        pass  # refused below
    raise ValueError("wanted the `next` of an earlier answer")


def read_path_part(text: str) -> str:
    try:
        return read_name(unquote(text, errors="strict"))
    except UnicodeDecodeError:
        raise ValueError("wanted UTF-8") from None


def _pairs(text: str) -> Sequence[tuple[str, str]]:
    try:
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=PAIRS_MAX)
    except UnicodeDecodeError:
        raise ValueError("the query is not UTF-8") from None
    except ValueError:
        raise ValueError(f"the query has more than {PAIRS_MAX} parameters") from None


BODY_SECONDS = 10.0
SMALL_BYTES = 16_384  # larger bodies are parsed in a thread
CLOSE = {"connection": "close"}


async def read_object(site: Site, request: Request) -> dict[str, object]:
    """The body as one JSON object. Raises `RequestRefused`."""
    check_type(request.headers.get("content-type", ""), JSON_TYPE)
    raw = await read_body(request, site.deps.body_bytes_max())
    if len(raw) <= SMALL_BYTES:
        return _parse_object(raw)
    return await in_thread(partial(_parse_object, raw), limiter=site.reading)


def check_type(content_type: str, wanted: str) -> None:
    """Raises `RequestRefused`."""
    if content_type.partition(";")[0].strip().lower() != wanted:
        raise RequestRefused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"send Content-Type: {wanted}")


async def read_body(request: Request, max_bytes: int) -> bytes:
    """Raises `RequestRefused` for a body that is too large, too slow or incomplete."""
    with trio.move_on_after(BODY_SECONDS):
        return await _receive(request, max_bytes)
    said = f"the body took longer than {BODY_SECONDS:g} s"
    raise RequestRefused(HTTPStatus.REQUEST_TIMEOUT, said, CLOSE)


async def _receive(request: Request, max_bytes: int) -> bytes:
    parts: list[bytes] = []
    size, is_whole = 0, False
    while not is_whole:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise RequestRefused(HTTPStatus.BAD_REQUEST, "the body is incomplete", CLOSE)
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > max_bytes:
            raise too_large(max_bytes)
        is_whole = not message.get("more_body", False)
    return b"".join(parts)


def too_large(max_bytes: int) -> RequestRefused:
    said = f"a body may have at most {max_bytes} bytes ([limits] max_payload_bytes and some more)"
    return RequestRefused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, said, CLOSE)


def _parse_object(raw: bytes) -> dict[str, object]:
    try:
        value = decode_payload(raw.decode(), "body")
    except UnicodeDecodeError as error:
        raise invalid(f"body: not UTF-8 at byte {error.start}") from None
    except PayloadInvalid as error:
        raise invalid(str(error)) from None
    if not isinstance(value, dict):
        raise invalid('body: wanted one object, such as {"kind": "report", "payload": {}}')
    return cast("dict[str, object]", value)
