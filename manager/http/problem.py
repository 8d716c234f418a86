"""Errors as RFC 9457 problem JSON: one shape for every refusal."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

import trio
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response


def problem(status: int, detail: str = "", headers: Mapping[str, str] | None = None) -> Response:
    """Gives the refusal of a request: what kind of refusal, and in `detail` what helps."""
    body: dict[str, object] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
    }
    if detail:
        body["detail"] = detail
    return JSONResponse(
        body, status, headers=dict(headers or {}), media_type="application/problem+json"
    )


async def on_refusal(request: Request, error: Exception) -> Response:
    """Turns the framework's own refusals (no such path, wrong method) into the same shape."""
    await trio.lowlevel.checkpoint()
    if not isinstance(error, HTTPException):
        return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "see the daemon's log")
    detail = error.detail if error.detail != HTTPStatus(error.status_code).phrase else ""
    if error.status_code == HTTPStatus.NOT_FOUND:
        detail = f"there is nothing at {request.url.path}"
    return problem(error.status_code, detail, error.headers)
