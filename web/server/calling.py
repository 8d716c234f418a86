"""From a request to its handler: who may, for which tenant, with what in the query; and what comes
back when something is refused.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus

import trio
from starlette.requests import Request
from starlette.responses import Response

from musterd.config.credentials import BearerToken
from musterd.store.errors import StoreError
from musterd.web.api.operation import PATIENCE, Call, Operation, Site
from musterd.web.plan import TenantDoor
from musterd.web.server.answers import DEFAULT_TENANT
from musterd.web.server.asked import read_query
from musterd.web.server.keys import may
from musterd.web.server.problem import RETRY, Refused, store_refusal
from musterd.web.server.refusing import refused

ANSWER_SECONDS = 25.0  # more than a store's own time limits, less than the guard's
AFTER_SECONDS = 5.0  # for sending an answer that took longer than most may
HOLDER = "musterd.key"  # where the guard leaves whose token came with the request


def endpoint(
    site: Site, by_method: Mapping[str, Operation]
) -> Callable[[Request], Awaitable[Response]]:
    """Gives what answers at one path; the framework lets no other method come here."""

    async def answer(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        operation = by_method[method]
        seconds = operation.answer_seconds or ANSWER_SECONDS
        if operation.answer_seconds is not None:
            request.scope[PATIENCE].deadline = trio.current_time() + seconds + AFTER_SECONDS
        try:
            with trio.move_on_after(seconds):
                return await operation.handler(_call(site, operation, request))
            said = f"no answer within {seconds:g} s; whether it was done is not known"
            why = Refused(HTTPStatus.SERVICE_UNAVAILABLE, said, RETRY)
        except Refused as refusal:
            why = refusal
        except StoreError as error:
            why = store_refusal(error)
        except Exception:
            # Logged here and now: the framework would do so when the peer has its answer, and with
            # the peer the connection goes, and what is left of the request.
            site.plan.log.exception("request failed")
            why = Refused(HTTPStatus.INTERNAL_SERVER_ERROR, "see the daemon's log")
        return refused(site.plan.node.status(), request, why)

    return answer


def door_of(site: Site, tenant: str | None) -> TenantDoor:
    """The tenant's door; None = the one that always exists. Raises `Refused`."""
    name = DEFAULT_TENANT if tenant is None else tenant
    door = site.plan.tenant(name)
    if door is None:
        raise Refused(HTTPStatus.NOT_FOUND, f"there is no tenant {name!r}")
    return door


def _call(site: Site, operation: Operation, request: Request) -> Call:
    holder: BearerToken = request.scope[HOLDER]
    if operation.scope is not None and not may(holder, operation.scope):
        said = f"the token {holder.name} may not: this wants the scope {operation.scope}"
        raise Refused(HTTPStatus.FORBIDDEN, said)
    query: Mapping[str, object] = {}
    if operation.minds_query:
        query = _query(operation, request)
    tenant = query.get("tenant")
    door = door_of(site, tenant if isinstance(tenant, str) else None)
    return Call(site, door, holder, request, query)


def _query(operation: Operation, request: Request) -> Mapping[str, object]:
    raw: bytes = request.scope["query_string"]
    try:
        return read_query(raw.decode("latin-1"), operation.params)
    except ValueError as error:
        raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from None
