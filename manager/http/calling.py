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
from musterd.manager.http.answers import DEFAULT_TENANT
from musterd.manager.http.asked import read_query
from musterd.manager.http.keys import may
from musterd.manager.http.operation import Call, Operation, Site
from musterd.manager.http.plan import TenantDoor
from musterd.manager.http.problem import RETRY, Refused, problem, store_refusal
from musterd.store.errors import StoreError

ANSWER_SECONDS = 25.0  # more than a store's own time limits, less than the guard's
HOLDER = "musterd.key"  # where the guard leaves whose token came with the request


def endpoint(
    site: Site, by_method: Mapping[str, Operation]
) -> Callable[[Request], Awaitable[Response]]:
    """Gives what answers at one path; the framework lets no other method come here."""

    async def answer(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        operation = by_method[method]
        try:
            with trio.move_on_after(ANSWER_SECONDS):
                return await operation.handler(_call(site, operation, request))
        except Refused as refused:
            return refused.answer()
        except StoreError as error:
            return store_refusal(error).answer()
        except Exception:
            # Logged here and now: the framework would do so when the peer has its answer, and with
            # the peer the connection goes, and what is left of the request.
            site.plan.log.exception("request failed")
            return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "see the daemon's log")
        said = f"no answer within {ANSWER_SECONDS:g} s; whether it was done is not known"
        return problem(HTTPStatus.SERVICE_UNAVAILABLE, said, RETRY)

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
