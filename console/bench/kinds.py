"""The work that is done: a kind that does nothing, and one that tells when it begins."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

from musterd.catalog.kinds import Behaviour, Catalog, Deterministic, Python, WorkKind
from musterd.config.settings import Retry
from musterd.workers.context import JobContext

NOTHING = "nothing"
BEGINS = "tell-begin"

# Set by who starts the node, for all tasks of it: called with a job's id as its handler begins.
on_begin: ContextVar[Callable[[int], None]] = ContextVar("on_begin")


async def tell_begin(job: JobContext) -> None:  # noqa: ASYNC124 - a task kind is an async def
    on_begin.get()(job.fence.id)


def bench_catalog(retry: Retry) -> Catalog:
    """Both kinds. Neither ever fails: `retry` is not asked."""
    handler = Python(__name__, tell_begin.__name__, "task", ())
    return Catalog([_kind(NOTHING, Deterministic(0, 0, "success", 0), retry),
        _kind(BEGINS, handler, retry)])  # fmt: skip


def _kind(name: str, behaviour: Behaviour, retry: Retry) -> WorkKind:
    return WorkKind(
        name=name,
        behaviour=behaviour,
        retryable=False,
        retry=retry,
        time_limit_seconds=None,
        priority=0,
        on_lease_lost="requeue",
        source="musterd bench",
    )
