"""The application: the table of routes, behind what all requests share."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import trio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from musterd import __version__
from musterd.web.api.openapi import document
from musterd.web.api.operation import Operation, Site
from musterd.web.api.table import OPERATIONS
from musterd.web.plan import HttpPlan
from musterd.web.samples import Samples
from musterd.web.server.calling import endpoint
from musterd.web.server.refusing import framework_refused
from musterd.web.ui.live import Live
from musterd.web.ui.sessions import Sessions
from musterd.web.ui.table import UI_OPERATIONS

THREADS_MAX = 2  # that write large answers; as many more read large bodies

EVERY = (*OPERATIONS, *UI_OPERATIONS)

# For probes, which carry no token, and for whoever is about to sign in.
OPEN_PATHS = frozenset(one.path for one in EVERY if one.scope is None)


def application(plan: HttpPlan, sessions: Sessions, samples: Samples) -> Starlette:
    """Makes the application; must run inside Trio."""

    @cache
    def describe() -> Mapping[str, object]:
        return document(OPERATIONS, __version__)

    limiters = [trio.CapacityLimiter(THREADS_MAX) for _ in range(2)]
    site = Site(
        plan, describe, rendering=limiters[0], reading=limiters[1], sessions=sessions,
        samples=samples, live=Live(),
    )  # fmt: skip

    async def on_refusal(request: Request, error: Exception) -> Response:
        return await framework_refused(plan.node.status(), request, error)

    handlers = {HTTPException: on_refusal, Exception: on_refusal}
    app = Starlette(routes=_routes(site), exception_handlers=handlers)
    app.router.redirect_slashes = False  # the guard has taken the one that makes no difference
    return app


def _routes(site: Site) -> list[Route]:
    """One route a path, so that whoever asks in a wrong way is told of all the right ones."""
    paths: dict[str, dict[str, Operation]] = {}
    for operation in EVERY:
        # The guard takes a slash from the end of every path but the front page's.
        path = operation.path.rstrip("/") or "/"
        paths.setdefault(path, {})[operation.method] = operation
    return [
        Route(path, endpoint(site, by_method), methods=list(by_method))
        for path, by_method in paths.items()
    ]
