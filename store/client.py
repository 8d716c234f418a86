"""The client for other programs: enqueues jobs, reads them, acts on them. Synchronous, for any
number of threads; needs no daemon and no configuration file.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Protocol, Self

from musterd.config.faults import Unfit
from musterd.config.secrets import mask_url
from musterd.config.tenant_names import DEFAULT_TENANT, beside, check_name, schema_of
from musterd.config.toml_text import short_text
from musterd.config.validators import STORE_SCHEMES, check_url
from musterd.store.errors import NoSuchJob, StoreMisconfigured
from musterd.store.input import JobWanted, new_job, new_jobs
from musterd.store.jobs import JobRecord, NewJob
from musterd.store.lifecycle import ENDED, Action
from musterd.store.report import job_object

PAUSE_SECONDS = 0.02  # between two looks at a job that is waited for, doubled each time
PAUSE_SECONDS_MAX = 0.5


class Backend(Protocol):
    """The store as a client reaches it. All methods may be called from several threads at once."""

    def enqueue(self, job: NewJob) -> int: ...

    def enqueue_many(self, jobs: Sequence[NewJob]) -> list[int]: ...

    def enqueue_pairs(self, pairs: Sequence[JobWanted]) -> list[int]:
        """As `enqueue_many`, for pairs of kind and payload that are not yet checked."""
        ...

    def job(self, job_id: int) -> JobRecord | None: ...

    def control(self, action: Action, job_id: int) -> str: ...

    def close(self) -> None: ...


class Client:
    """One store, by its URL: `postgresql://…` or `sqlite:///file`. Connects when it is first used.

    `create`: an embedded store that is not there is made; without it, it is refused: a mistyped
    path would take jobs that no daemon finds.
    `tenant`: whose jobs they are, named as a node names its tenants: on PostgreSQL its schema is
    `schema` and the name, embedded its file is NAME.db beside the given one.
    `answer_seconds`: a server that stays silent for longer counts as a broken connection.

    Every method raises `StoreUnavailable` if the store is away (nothing was written),
    `StoreMisconfigured` where waiting will not help, `InputRefused` for values no job can have.
    """

    def __init__(
        self,
        url: str,
        *,
        schema: str = "musterd",
        pool_size: int = 4,
        tenant: str = DEFAULT_TENANT,
        answer_seconds: float = 60.0,
        create: bool = False,
    ) -> None:
        check_name(tenant)
        self._of_tenant = partial(
            Client, url, schema=schema, pool_size=pool_size, answer_seconds=answer_seconds,
            create=create,
        )  # fmt: skip
        self._others: dict[str, Client] = {}  # for jobs that name another tenant
        self._schema = schema_of(schema, tenant)
        self._tenant = tenant
        _check_url(url)
        place = beside(url, tenant) if url.startswith("sqlite:") else url
        self._backend = _backend(place, self._schema, pool_size, answer_seconds, create=create)

    def enqueue(
        self, kind: str, payload: Any = None, *, connection: Any = None, **options: Any
    ) -> int:
        """Creates a job and returns its id; if a job holds its `dedup_key`, returns that job's id.

        `options` are those of `config/job_options.py`, which docs/clients.md lists under Options: a
        wrong name is refused with all right ones. `tenant` makes it another tenant's job. With
        `connection`, the caller's own psycopg connection, the job is created in its transaction:
        with its commit and not without it. Otherwise the job is in the store when this returns,
        once, even if the store's reply was lost on the way. Raises `OutcomeUnknown` when even the
        store cannot tell.
        """
        if (other := self._other(options.pop("tenant", None))) is not None:
            return other.enqueue(kind, payload, connection=connection, **options)
        job = new_job(kind, payload, options)
        if connection is None:
            return self._backend.enqueue(job)
        return _through(connection, self._schema, [job])[0]

    def enqueue_many(
        self, jobs: Iterable[JobWanted], *, connection: Any = None, tenant: str | None = None
    ) -> list[int]:
        """Creates all of the jobs or none, and returns their ids in order. Each is a pair (kind,
        payload) or a mapping with `kind`, `payload` and options. Give very many jobs in batches of
        some thousand.
        """
        if (other := self._other(tenant)) is not None:
            return other.enqueue_many(jobs, connection=connection)
        wanted = list(jobs)
        if not wanted:
            return []
        if connection is not None:
            return _through(connection, self._schema, new_jobs(wanted))
        if all(type(one) is tuple for one in wanted):
            return self._backend.enqueue_pairs(wanted)
        return self._backend.enqueue_many(new_jobs(wanted))

    def job(self, job_id: int) -> dict[str, Any]:
        """The job object, as `musterd job ID --json` prints it; `max_attempts` is None where it is
        left to the kind. Raises `NoSuchJob`.
        """
        return job_object(self._record(job_id), self._tenant, None)

    def wait(self, job_id: int, timeout: float | None = None) -> dict[str, Any]:
        """The job object, once the job has succeeded, failed or been canceled. Raises `NoSuchJob`,
        and `TimeoutError` after `timeout` seconds.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        pause = PAUSE_SECONDS
        while (record := self._record(job_id)).state not in ENDED:
            left = pause if deadline is None else min(pause, deadline - time.monotonic())
            if left <= 0:
                raise TimeoutError(f"job {job_id} is still {record.state} after {timeout:g} s")
            time.sleep(left)
            pause = min(PAUSE_SECONDS_MAX, pause * 2)
        return job_object(record, self._tenant, None)

    def cancel(self, job_id: int) -> str:
        """Cancels a job: a waiting one at once, a running one as soon as its worker hears.

        This and the four below return the state of the job now, and raise `NoSuchJob`, or
        `NotAllowed` where the job's state does not allow it.
        """
        return self._control(Action.CANCEL, job_id)

    def pause(self, job_id: int) -> str:
        """Pauses a job until it is resumed; a running one as soon as its worker hears."""
        return self._control(Action.PAUSE, job_id)

    def resume(self, job_id: int) -> str:
        """Puts a paused or failed job back into the queue, with its whole budget of attempts."""
        return self._control(Action.RESUME, job_id)

    def release(self, job_id: int) -> str:
        """Releases a job that was enqueued with `hold`."""
        return self._control(Action.RELEASE, job_id)

    def clear(self, job_id: int) -> str:
        """Marks a failed job as dealt with; a paused one is canceled."""
        return self._control(Action.CLEAR, job_id)

    def close(self) -> None:
        """Closes all connections. Safe to call twice; a client used again connects again."""
        self._backend.close()
        for other in self._others.values():
            other.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _other(self, tenant: str | None) -> Client | None:
        """The client of that tenant; None = it is this one."""
        if tenant is None or tenant == self._tenant:
            return None
        if tenant not in self._others:
            self._others[tenant] = self._of_tenant(tenant=tenant)
        return self._others[tenant]

    def _record(self, job_id: int) -> JobRecord:
        record = self._backend.job(job_id)
        if record is None:
            raise NoSuchJob(f"there is no job {job_id}")
        return record

    def _control(self, action: Action, job_id: int) -> str:
        return self._backend.control(action, job_id)


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


def _backend(
    url: str, schema: str, pool_size: int, answer_seconds: float, *, create: bool
) -> Backend:
    if url.startswith("sqlite:"):
        from musterd.store.sqlite.client import SqliteBackend

        return SqliteBackend(url, create=create)
    from musterd.store.postgres.client import PostgresBackend

    return PostgresBackend(url, schema, pool_size, answer_seconds)


def _through(connection: Any, schema: str, jobs: Sequence[NewJob]) -> list[int]:
    from musterd.store.postgres.client import enqueue_through  # psycopg is heavy

    return enqueue_through(connection, schema, jobs)
