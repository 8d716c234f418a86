"""A node that is short of file descriptors, processes or memory keeps what it has for itself: it
starts no children and takes no connections, and no job pays for it.
"""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Callable

from musterd.store.leases import Claim
from musterd.workers.outcome import Contained, Outcome

RESERVED = 32  # descriptors for the store, the log, and what is under way
RESERVED_SHARE = 4  # but at most this part of what there may be
WAIT_SECONDS = 5.0
SHORT = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN})


def is_short() -> bool:
    """Whether so few descriptors are left that they are kept. The lowest number that is free says
    how many are in use.
    """
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        lowest = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return True
    os.close(lowest)
    return lowest >= most - min(RESERVED, most // RESERVED_SHARE)


def keep_reserve() -> None:
    """Raises OSError where nothing more is to be opened for jobs."""
    if is_short():
        raise OSError(errno.EMFILE, "few file descriptors are left, and the daemon keeps them")


def put_off(error: OSError, claim: Claim, contained: Callable[[Contained], None]) -> Outcome | None:
    """The outcome where the node lacks something that it may soon have again: the job waits and
    burns no attempt. None = it is another error.
    """
    if error.errno not in SHORT:
        return None
    contained(Contained("start", claim.kind, claim.id, error, claim.attempt))
    message = f"its node has too little to start it: {error.strerror}"
    return Outcome("snooze", message=message, delay_seconds=WAIT_SECONDS)
