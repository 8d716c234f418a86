"""Reading a request's body: bounded in size and time, and one JSON object."""

from __future__ import annotations

from http import HTTPStatus
from typing import cast

import trio
from starlette.requests import Request

from musterd.store.payload import PayloadInvalid, decode_payload
from musterd.web.api.operation import JSON_TYPE, Site
from musterd.web.server.problem import Refused

BODY_SECONDS = 10.0
SMALL_BYTES = 16_384  # what is no larger is read on the loop
CLOSE = {"connection": "close"}


async def read_object(site: Site, request: Request) -> dict[str, object]:
    """Gives the object that is the request's body. Raises `Refused`."""
    check_type(request.headers.get("content-type", ""), JSON_TYPE)
    raw = await read_body(request, site.plan.body_bytes_max())
    if len(raw) <= SMALL_BYTES:
        return _object(raw)
    return await trio.to_thread.run_sync(_object, raw, limiter=site.reading)


def check_type(content_type: str, wanted: str) -> None:
    """Raises `Refused`."""
    if content_type.partition(";")[0].strip().lower() != wanted:
        raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"send Content-Type: {wanted}")


async def read_body(request: Request, max_bytes: int) -> bytes:
    """Raises `Refused` for what is too large, too slow or has no end."""
    with trio.move_on_after(BODY_SECONDS):
        return await _parts(request, max_bytes)
    said = f"the body took longer than {BODY_SECONDS:g} s"
    raise Refused(HTTPStatus.REQUEST_TIMEOUT, said, CLOSE)


async def _parts(request: Request, max_bytes: int) -> bytes:
    parts: list[bytes] = []
    size, is_whole = 0, False
    while not is_whole:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise Refused(HTTPStatus.BAD_REQUEST, "the body has no end", CLOSE)
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > max_bytes:
            raise too_large(max_bytes)
        is_whole = not message.get("more_body", False)
    return b"".join(parts)


def too_large(max_bytes: int) -> Refused:
    said = f"a body has at most {max_bytes} bytes here ([limits] max_payload_bytes, and a little)"
    return Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, said, CLOSE)


def _object(raw: bytes) -> dict[str, object]:
    try:
        value = decode_payload(raw.decode(), "body")
    except UnicodeDecodeError as error:
        said = f"body: not UTF-8 at byte {error.start}"
        raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, said) from None
    except PayloadInvalid as error:
        raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from None
    if not isinstance(value, dict):
        said = 'body: wanted one object, as {"kind": "report", "payload": {}}'
        raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, said)
    return cast("dict[str, object]", value)
