"""Signing in and out."""

from __future__ import annotations

from http import HTTPStatus

import trio
from starlette.responses import Response

from musterd.web.api.operation import Call
from musterd.web.pages.plain import after_sign_in, sign_in
from musterd.web.ui.forms import read_form
from musterd.web.ui.sessions import cookie, session_id_of
from musterd.web.ui.showing import go_to, plain_frame, shown


async def enter(call: Call) -> Response:
    """A token becomes a session; without tokens everybody is in already."""
    form = await read_form(call.request)
    after = after_sign_in(form.text("next"))
    keys, headers = call.site.plan.keys, call.request.headers
    if not keys.tokens:
        return go_to(after)
    # Headers are read as Latin-1, of whatever bytes they have.
    given = form.text("token").strip().encode("utf-8", "replace").decode("latin-1")
    holder = keys.holder(f"Bearer {given}")
    if holder is None:
        frame = plain_frame(call.site.plan.node.status())
        return shown(frame, sign_in(after, wrong=True), HTTPStatus.UNAUTHORIZED)
    return go_to(after, {"set-cookie": cookie(headers, call.site.sessions.begin(holder))})


async def arrive(_call: Call) -> Response:
    """Whoever comes back to where a form was sent from."""
    await trio.lowlevel.checkpoint()
    return go_to("/")


async def leave(call: Call) -> Response:
    await read_form(call.request)
    session_id = session_id_of(call.request.headers)
    if session_id is not None:
        call.site.sessions.end(session_id)
    return go_to("/", {"set-cookie": cookie(call.request.headers, "")})
