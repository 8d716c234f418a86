"""What can go wrong at the store, by what the caller should do about it."""

from __future__ import annotations

import errno

NO_THREAD = "can't start new thread"  # as Python says it


class StoreError(Exception):
    """Base of all below. The message names what was tried, what was found, and what helps."""


class StoreUnavailable(StoreError):
    """Weather: the store is away, full, read-only or overloaded. Nothing was written. Try again
    later, with backoff.

    `trouble` is one short word for logs and status: unreachable, starting, disk_full, read_only,
    too_many_connections, no_thread, timeout, conflict.
    """

    def __init__(self, message: str, trouble: str) -> None:
        super().__init__(message)
        self.trouble = trouble


class OutcomeUnknown(StoreUnavailable):
    """The request was sent and its reply never came: it may have been carried out. Read back by
    token, then go on.
    """


class StoreMisconfigured(StoreError):
    """Waiting will not help: wrong password, no such database, missing rights, a schema this
    program does not know.
    """


class InputRefused(StoreError):
    """The store refused these very values (not this moment). The message says which and why."""


class NoSuchJob(StoreError):
    """There is no job of this id."""


class NotAllowed(StoreError):
    """The job's state does not allow what was asked; the message says which states do."""


def no_thread(error: RuntimeError) -> OSError:
    """What it stands for that a thread could not be started. Raises any other error."""
    if str(error) != NO_THREAD:
        raise error
    return OSError(errno.EAGAIN, "no thread can be started: a limit on processes is reached")
