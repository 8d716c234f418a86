"""The routes: each reads a snapshot and shows it."""

from __future__ import annotations

from http import HTTPStatus

import trio
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from musterd.manager.http.page import CONTENT_SECURITY_POLICY, page
from musterd.manager.http.plan import HttpPlan
from musterd.manager.http.problem import on_refusal, problem
from musterd.manager.http.snapshot import CountsCache
from musterd.manager.objects import decision_object, status_object, verdict, worker_object

RETRY_AFTER_SECONDS = 1


def application(plan: HttpPlan) -> Starlette:
    """Makes the application; must run inside Trio."""
    views = _Views(plan)
    routes = [
        Route("/", views.front, methods=["GET"]),
        Route("/livez", views.livez, methods=["GET"]),
        Route("/readyz", views.readyz, methods=["GET"]),
        Route("/metrics", views.metrics, methods=["GET"]),
        Route("/status", views.status, methods=["GET"]),
        Route("/workers", views.workers, methods=["GET"]),
        Route("/scaling", views.scaling, methods=["GET"]),
    ]
    handlers = {HTTPException: on_refusal, Exception: on_refusal}
    return Starlette(routes=routes, exception_handlers=handlers)


class _Views:
    def __init__(self, plan: HttpPlan) -> None:
        self._node = plan.node
        self._metrics = plan.metrics
        self._counts = CountsCache(plan.counts, plan.metrics)
        self._rendering = trio.CapacityLimiter(1)

    async def front(self, _request: Request) -> Response:
        counts = await self._counts.get()
        text = page(self._node.status(), counts, self._node.workers(), self._node.decisions())
        return HTMLResponse(text, headers={"content-security-policy": CONTENT_SECURITY_POLICY})

    async def livez(self, _request: Request) -> Response:
        """That this is answered is the answer: the loop turns."""
        return PlainTextResponse("ok\n")

    async def readyz(self, _request: Request) -> Response:
        healthy, words = verdict(self._node.status())
        if healthy:
            return PlainTextResponse("ok\n")
        retry = {"retry-after": str(RETRY_AFTER_SECONDS)}
        return problem(HTTPStatus.SERVICE_UNAVAILABLE, words, retry)

    async def metrics(self, _request: Request) -> Response:
        await self._counts.get()
        # With many series this takes a tenth of a second and more: never on the loop.
        text = await trio.to_thread.run_sync(self._metrics.render, limiter=self._rendering)
        return Response(text, media_type=CONTENT_TYPE_LATEST)

    async def status(self, _request: Request) -> Response:
        return JSONResponse(status_object(self._node.status(), await self._counts.get()))

    async def workers(self, _request: Request) -> Response:
        return JSONResponse({"workers": [worker_object(w) for w in self._node.workers()]})

    async def scaling(self, _request: Request) -> Response:
        return JSONResponse({"decisions": [decision_object(d) for d in self._node.decisions()]})
