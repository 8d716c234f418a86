"""What a route is made of: one value for the route itself and for its description."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import TypeAlias, cast

import trio
from attrs import frozen
from starlette.requests import Request
from starlette.responses import Response

from musterd.config.credentials import BearerToken
from musterd.config.outside import HttpScope
from musterd.web.api.log_readers import LogReaders
from musterd.web.deps import HttpDeps, TenantAccess
from musterd.web.samples import Samples
from musterd.web.ui.live import LiveViews
from musterd.web.ui.past import PastReader
from musterd.web.ui.sessions import Sessions

Schema: TypeAlias = Mapping[str, object]
JSON_TYPE = "application/json"
TIME_LIMIT = "musterd.time_limit"  # where the guard leaves the scope that bounds a request's time


@frozen
class Param:
    """A parameter of a query. `read` raises `ValueError`, which says what is wrong."""

    name: str
    about: str
    schema: Schema
    read: Callable[[str], object]
    many: bool = False  # it may be given several times


@frozen
class Reply:
    """An answer of a route: its body by media type, and its headers."""

    about: str
    schema: Schema | None = None
    media_type: str = JSON_TYPE
    headers: Sequence[str] = ()


@frozen(eq=False)
class Site:
    """Shared by all requests."""

    deps: HttpDeps
    describe: Callable[[], Mapping[str, object]]  # the document of all routes

    rendering: trio.CapacityLimiter  # threads that write large answers
    reading: trio.CapacityLimiter  # threads that read large bodies

    sessions: Sessions  # of people who are signed in
    samples: Samples  # of the queues, over the last minutes
    past: PastReader  # of the queues, as the stores have it
    live: LiveViews  # those that have readers
    log_readers: LogReaders


@frozen(eq=False)
class Call:
    """A request with its query; parameters that were not given are missing."""

    site: Site
    tenant: TenantAccess
    holder: BearerToken
    request: Request
    query: Mapping[str, object]

    def place(self, name: str) -> str:
        """The text at `{name}` in the path, still percent-encoded."""
        found: str = self.request.path_params[name]
        return found

    def text(self, name: str) -> str | None:
        """The value of a text parameter."""
        return cast("str | None", self.query.get(name))

    def number(self, name: str) -> int | None:
        """The value of a whole-number parameter."""
        return cast("int | None", self.query.get(name))


Handler: TypeAlias = Callable[[Call], Awaitable[Response]]


@frozen
class Operation:
    """A method at a path; `scope` None: no token needed. `refusals` are problems of its own."""

    method: str
    path: str
    name: str
    about: str
    scope: HttpScope | None
    handler: Handler
    replies: Mapping[int, Reply]
    params: Sequence[Param] = ()
    places: Mapping[str, Schema] = {}
    body: Schema | None = None
    refusals: Mapping[HTTPStatus, str] = {}
    minds_query: bool = True  # else the query is ignored
    answer_seconds: float | None = None  # for one that may take longer than most
