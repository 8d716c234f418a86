"""From a view to an answer: for whom it is made, and the headers that pages have."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from starlette.responses import HTMLResponse, RedirectResponse, Response

from musterd.config.credentials import BearerToken
from musterd.manager.node.status import NodeStatus
from musterd.web.api.operation import Call
from musterd.web.pages.assets import CONTENT_SECURITY_POLICY
from musterd.web.pages.layout import Frame, View, document
from musterd.web.samples import tenants_of
from musterd.web.server.keys import may

# With "no-referrer" browsers would not say where a form comes from, and the guard must know.
PAGE_HEADERS: Mapping[str, str] = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "referrer-policy": "same-origin",
}
VOUCH = "musterd.vouch"  # where it leaves what says whether that is still so
SIGNED_IN = (
    "musterd.signed_in"  # where the guard leaves that a cookie, not a header, said who it is
)


def frame_of(call: Call) -> Frame:
    status = call.site.plan.node.status()
    is_signed_in = bool(call.request.scope.get(SIGNED_IN))
    return _frame(status, call.door.name, call.holder, is_signed_in=is_signed_in)


def plain_frame(status: NodeStatus) -> Frame:
    """For those of whom nothing is known: no name of a tenant, nor what there is to do."""
    return Frame(status.node, status.version, may_act=False)


def _frame(status: NodeStatus, tenant: str, holder: BearerToken, *, is_signed_in: bool) -> Frame:
    return Frame(
        node=status.node,
        version=status.version,
        tenant=tenant,
        tenants=[one.name for one in tenants_of(status)],
        holder=holder.name if is_signed_in else "",
        may_act=may(holder, "admin"),
    )


def shown(frame: Frame, view: View, status: int = HTTPStatus.OK) -> Response:
    return HTMLResponse(document(frame, view), status, headers=PAGE_HEADERS)


def go_to(place: str, headers: Mapping[str, str] | None = None) -> Response:
    """After something was done: the browser asks for this place, and a reload repeats nothing."""
    answer = RedirectResponse(
        "/", HTTPStatus.SEE_OTHER, headers={**PAGE_HEADERS, **(headers or {})}
    )
    answer.headers["location"] = place  # as it is: the framework would quote it once more
    return answer
