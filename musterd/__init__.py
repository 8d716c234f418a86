"""musterd: durable jobs under leases, and a crew that grows and shrinks with the queue."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from musterd.store.async_client import AsyncClient
    from musterd.store.client import Client
    from musterd.store.errors import (
        InputRefused,
        NoSuchJob,
        NotAllowed,
        OutcomeUnknown,
        StoreError,
        StoreMisconfigured,
        StoreUnavailable,
    )
    from musterd.tasks import task
    from musterd.workers.context import BudgetExceeded, Cancel, Fatal, JobContext, Retry, Snooze

__version__ = "0.1.0"
__all__ = [
    "AsyncClient",
    "BudgetExceeded",
    "Cancel",
    "Client",
    "Fatal",
    "InputRefused",
    "JobContext",
    "NoSuchJob",
    "NotAllowed",
    "OutcomeUnknown",
    "Retry",
    "Snooze",
    "StoreError",
    "StoreMisconfigured",
    "StoreUnavailable",
    "__version__",
    "task",
]
_HOMES = {"Client": "store.client", "AsyncClient": "store.async_client", "task": "tasks"}
_CONTEXT = {"BudgetExceeded", "Cancel", "Fatal", "JobContext", "Retry", "Snooze"}


def __getattr__(name: str) -> Any:
    """Loads a public name when it is first asked for: the import itself costs nothing."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - as above

    home = "workers.context" if name in _CONTEXT else "store.errors"
    home = _HOMES.get(name, home)
    globals()[name] = getattr(import_module(f"musterd.{home}"), name)
    return globals()[name]
