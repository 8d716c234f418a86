"""Errors as RFC 9457 problem JSON: one shape for every refusal."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus

import trio
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from musterd.store.errors import (
    InputRefused,
    OutcomeUnknown,
    StoreError,
    StoreUnavailable,
)

PROBLEM_TYPE = "application/problem+json"
RETRY_AFTER_SECONDS = 1
RETRY = {"retry-after": str(RETRY_AFTER_SECONDS)}


class Refused(Exception):
    """A request that is not done, and what to answer."""

    def __init__(
        self, status: HTTPStatus, detail: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = headers

    def answer(self) -> Response:
        return problem(self.status, str(self), self.headers)


def problem(
    status: int,
    detail: str = "",
    headers: Mapping[str, str] | None = None,
    faults: Sequence[str] = (),
) -> Response:
    """Gives the refusal of a request: what kind of refusal, in `detail` what helps, and in `faults`
    each thing that is wrong, where there may be several.
    """
    body: dict[str, object] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
    }
    if detail:
        body["detail"] = detail
    if faults:
        body["faults"] = list(faults)
    # Escaped, for what is told may hold half a character.
    return Response(json.dumps(body), status, headers=dict(headers or {}), media_type=PROBLEM_TYPE)


def store_refusal(error: StoreError) -> Refused:
    """Gives the answer to a request that the store did not carry out."""
    if isinstance(error, InputRefused):
        return Refused(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))
    if isinstance(error, OutcomeUnknown):
        advice = "whether it was done is not known: look before you repeat it"
        return Refused(HTTPStatus.SERVICE_UNAVAILABLE, f"{error}; {advice}", RETRY)
    if isinstance(error, StoreUnavailable):
        said = f"the store is not available: {error}; nothing was done"
        return Refused(HTTPStatus.SERVICE_UNAVAILABLE, said, RETRY)
    return Refused(HTTPStatus.SERVICE_UNAVAILABLE, f"the store refuses this node: {error}", RETRY)


async def on_refusal(request: Request, error: Exception) -> Response:
    """Turns the framework's own refusals (no such path, wrong method) into the same shape."""
    await trio.lowlevel.checkpoint()
    if not isinstance(error, HTTPException):
        return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "see the daemon's log")
    detail = error.detail if error.detail != HTTPStatus(error.status_code).phrase else ""
    if error.status_code == HTTPStatus.NOT_FOUND:
        detail = f"there is nothing at {request.scope['path']}"
    return problem(error.status_code, detail, error.headers)
