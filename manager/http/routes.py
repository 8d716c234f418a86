"""The application: the table of routes, behind what all requests share."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import trio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Route

from musterd import __version__
from musterd.manager.http.calling import endpoint
from musterd.manager.http.openapi import document
from musterd.manager.http.operation import Operation, Site
from musterd.manager.http.plan import HttpPlan
from musterd.manager.http.problem import on_refusal
from musterd.manager.http.table import OPERATIONS

THREADS_MAX = 2  # that write large answers; as many more read large bodies

# For probes, which carry no token.
OPEN_PATHS = frozenset(one.path for one in OPERATIONS if one.scope is None)


def application(plan: HttpPlan) -> Starlette:
    """Makes the application; must run inside Trio."""

    @cache
    def describe() -> Mapping[str, object]:
        return document(OPERATIONS, __version__)

    limiters = [trio.CapacityLimiter(THREADS_MAX) for _ in range(2)]
    site = Site(plan, describe, rendering=limiters[0], reading=limiters[1])
    handlers = {HTTPException: on_refusal, Exception: on_refusal}
    app = Starlette(routes=_routes(site), exception_handlers=handlers)
    app.router.redirect_slashes = False  # the guard has taken the one that makes no difference
    return app


def _routes(site: Site) -> list[Route]:
    """One route a path, so that whoever asks in a wrong way is told of all the right ones."""
    paths: dict[str, dict[str, Operation]] = {}
    for operation in OPERATIONS:
        # The guard takes a slash from the end of every path but the front page's.
        path = operation.path.rstrip("/") or "/"
        paths.setdefault(path, {})[operation.method] = operation
    return [
        Route(path, endpoint(site, by_method), methods=list(by_method))
        for path, by_method in paths.items()
    ]
