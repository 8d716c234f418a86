"""What the blocking client and the async one share: where their store is, whose jobs they make, and
what becomes of arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol, Self, TypedDict, Unpack

from musterd.config.faults import Unfit
from musterd.config.secrets import mask_url
from musterd.config.tenant_names import DEFAULT_TENANT, beside, check_name, schema_of
from musterd.config.toml_text import short_text
from musterd.config.validators import STORE_SCHEMES, check_url
from musterd.store.errors import StoreMisconfigured
from musterd.store.input import JobWanted
from musterd.store.jobs import JobRecord, NewJob
from musterd.store.lifecycle import Action
from musterd.store.report import job_object
from musterd.store.watching import Waiting, Watch, until_ended


class Backend(Protocol):
    """The store as a client reaches it. All methods may be called from several threads at once."""

    def enqueue(self, job: NewJob) -> int: ...

    def enqueue_many(self, jobs: Sequence[NewJob]) -> list[int]: ...

    def enqueue_pairs(self, pairs: Sequence[JobWanted]) -> list[int]:
        """As `enqueue_many`, for pairs of kind and payload that are not yet checked."""
        ...

    def job(self, job_id: int) -> JobRecord | None: ...

    def watch(self, job_id: int) -> Watch: ...

    def control(self, action: Action, job_id: int) -> str: ...

    def through(self, connection: Any, jobs: Sequence[NewJob]) -> list[int]:
        """Makes the jobs over a connection that is the caller's."""
        ...

    async def through_async(self, connection: Any, jobs: Sequence[NewJob]) -> list[int]: ...

    def close(self) -> None: ...


class ClientOptions(TypedDict, total=False):
    """What a client may be told of its store, beside the URL."""

    schema: str
    pool_size: int
    tenant: str
    answer_seconds: float
    listen_url: str
    create: bool


class ClientBase:
    """One store, by its URL: `postgresql://…` or `sqlite:///file`. Connects when it is first used.

    `create`: an embedded store that is not there is made; without it, it is refused: a mistyped
    path would take jobs that no daemon finds.
    `tenant`: whose jobs they are, named as a node names its tenants: on PostgreSQL its schema is
    `schema` ("musterd") and the name, embedded its file is NAME.db beside the given one.
    `pool_size`: how many connections it opens at most (4).
    `answer_seconds`: a server that stays silent for longer (60) counts as a broken connection.
    `listen_url`: where `wait` listens, if `url` leads through a pooler in transaction mode; without
    it, `wait` looks again and again there.

    Every method raises `StoreUnavailable` if the store is away (nothing was written),
    `StoreMisconfigured` where waiting will not help, `InputRefused` for values no job can have.
    """

    def __init__(self, url: str, **options: Unpack[ClientOptions]) -> None:
        self._tenant = options.get("tenant", DEFAULT_TENANT)
        check_name(self._tenant)
        if unknown := options.keys() - ClientOptions.__annotations__.keys():
            raise TypeError(f"{type(self).__name__} takes no argument {min(unknown)!r}")
        self._url, self._options = url, options
        self._others: dict[str, Self] = {}  # for jobs that name another tenant
        self._schema = schema_of(options.get("schema", "musterd"), self._tenant)
        self._pool_size = options.get("pool_size", 4)
        _check_url(url)
        self._make: Callable[[str], Backend] | None = None
        self._backend = _backend(url, self._schema, self._tenant, options)

    def _other(self, tenant: str | None) -> Self | None:
        """The client of that tenant; None = it is this one."""
        if tenant is None or tenant == self._tenant:
            return None
        if tenant not in self._others:
            options: ClientOptions = {**self._options, "tenant": tenant}
            other = type(self)(self._url, **options)
            if self._make is not None:
                other._use(self._make)
            self._others[tenant] = other
        return self._others[tenant]

    @contextmanager
    def with_backend(self, make: Callable[[str], Backend]) -> Generator[None]:
        """Within, `make` gives what the jobs of a tenant go into; the store is left alone. For
        `musterd.testing`.
        """
        backend, others, made_before = self._backend, self._others, self._make
        self._others = {}
        self._use(make)
        try:
            yield
        finally:
            self._make, self._backend, self._others = made_before, backend, others

    def _waiting(self, job_id: int, timeout: float | None) -> Waiting:
        backend = self._backend
        read, watch = partial(backend.job, job_id), partial(backend.watch, job_id)
        return until_ended(job_id, timeout, read, watch)

    def _object(self, record: JobRecord) -> dict[str, Any]:
        return job_object(record, self._tenant, None)

    def _use(self, make: Callable[[str], Backend] | None) -> None:
        self._make = make
        if make is not None:
            self._backend = make(self._tenant)


def are_pairs(wanted: Iterable[JobWanted]) -> bool:
    return all(type(one) is tuple for one in wanted)


def _check_url(url: str) -> None:
    scheme, separator, _ = url.partition("://")
    if not separator and (not url or "=" in url):
        return  # a connection string of libpq
    try:
        check_url(url, STORE_SCHEMES)
    except Unfit as unfit:  # the URL may hold a password
        found = f"{scheme}://…" if separator else short_text(mask_url(url))
        found = url if scheme == "sqlite" else found
        raise StoreMisconfigured(f"URL: found {found}, {unfit}") from None


def _backend(url: str, schema: str, tenant: str, options: ClientOptions) -> Backend:
    if url.startswith("sqlite:"):
        from musterd.store.sqlite.client import SqliteBackend

        return SqliteBackend(beside(url, tenant), create=options.get("create", False))
    from musterd.store.postgres.client import PostgresBackend, Reach

    reach = Reach(
        options.get("pool_size", 4), options.get("answer_seconds", 60.0), options.get("listen_url")
    )
    return PostgresBackend(url, schema, reach)
