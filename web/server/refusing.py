"""How a refusal looks: problem JSON for programs, a page for those who use the page."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from musterd.manager.node.status import NodeStatus
from musterd.web.pages.plain import refusal, sign_in
from musterd.web.server.problem import Refused, on_refusal
from musterd.web.ui.showing import plain_frame, shown

PAGES = "/ui/"


def wants_page(path: str, headers: Headers) -> bool:
    """Whether a person looks at the answer: a browser that asks for a part of the page."""
    return (path == "/" or path.startswith(PAGES)) and takes_html(headers)


def takes_html(headers: Headers) -> bool:
    return "text/html" in headers.get("accept", "").lower()


def refused(node: NodeStatus, request: Request, why: Refused) -> Response:
    if not wants_page(request.scope["path"], request.headers):
        return why.answer()
    answer = shown(plain_frame(node), refusal(plain_frame(node), why.status, str(why)), why.status)
    answer.headers.update(why.headers or {})
    return answer


async def framework_refused(node: NodeStatus, request: Request, error: Exception) -> Response:
    """For what the framework refuses by itself: no such path, a wrong method."""
    told = await on_refusal(request, error)
    if not wants_page(request.scope["path"], request.headers):
        return told
    status = HTTPStatus(told.status_code)
    words = ""
    if status is HTTPStatus.NOT_FOUND:
        words = f"There is nothing at {request.scope['path']}"
    headers = error.headers if isinstance(error, HTTPException) else None
    return refused(node, request, Refused(status, words, headers))


def must_sign_in(node: NodeStatus, place: str) -> Response:
    """The page that asks for a token, then leads to where somebody wanted to go."""
    return shown(plain_frame(node), sign_in(place), HTTPStatus.UNAUTHORIZED)


def place_of(path: str, query: bytes) -> str:
    text = quote(query.decode("latin-1"), safe="%&=+-_.~!*'(),;:@/?")
    return f"{path}?{text}" if text else path
