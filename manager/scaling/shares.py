"""What falls to one node of the jobs that are due: pure. Each node works out its own part from what
it sees of the others; nobody hands the parts out.
"""

from __future__ import annotations

import attrs

from musterd.store.queue import Room

WHOLE = 1 << 64
STRIDE = 0x9E3779B97F4A7C15  # of the golden ratio: lots that lie side by side fall far apart


@attrs.frozen
class Others:
    """The rest of the cluster: how many more jobs the other nodes could run, and how many of these
    are with nodes that come before this one. `lot` is the same for all that see the same due jobs.
    """

    free: int = 0
    before: int = 0
    lot: int = 0


NOBODY = Others()


def others_of(room: Room, lot: int, *, all_busy: bool) -> Others:
    """What to expect of them. `all_busy`: this node's own workers have all found work, so have
    theirs, whatever they said; only new ones can take what is still due.
    """
    if all_busy:
        return Others(room.unhired, room.unhired_before, lot)
    return Others(room.free, room.free_before, lot)


def share_of(due: int, free: int, others: Others, *, overdue: bool = False) -> int:
    """As large a part of `due` as this node's `free` is of all that is free.

    Nodes that see the same get parts that add up to `due` exactly, each less than one job off. The
    odd jobs go to nodes that the lot picks, to one with more room more often. `overdue`: somebody
    has not taken his part; then each rounds up, so that nothing is left to whoever does nothing.
    """
    whole = free + others.free
    if not others.free:
        return due
    if overdue:
        return -(-due * free // whole)
    # All nodes side by side on one line; a job falls to whoever stands where it comes down.
    start = (others.lot * STRIDE % WHOLE) * whole // WHOLE
    return (due * (others.before + free) + start) // whole - (due * others.before + start) // whole
