"""Processes that have left their child's group by `setsid`, and whose own parent has ended. The
kernel gives them to the daemon, once it has asked for that, and they end with their child's work.

Whose they are is written where nothing that a program does wipes it away: in a limit, which every
process hands down. Each child sets its own, on the time of real-time scheduling: 146,000 years and
as many microseconds as its number, so it limits nothing. Who lowers it further belongs to nobody,
and ends at once. (Linux only.)
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path

import trio

TAG_FIRST = 1 << 62  # launcher.py and child.py have it too
PR_SET_CHILD_SUBREAPER = 36
SECONDS_MAX = 5.0  # of one try
LOOK_SECONDS = 0.005
FREEZES_MAX = 50  # then those are killed that were caught
AT_ONCE = 16  # processes, then all others on the loop have their turn
LIMIT_NAME = b"Max realtime timeout"

_turn: trio.lowlevel.RunVar[trio.Lock] = trio.lowlevel.RunVar("orphans")


def adopt() -> None:
    """From now on all that children leave behind becomes this process's."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


async def end_orphans() -> int:
    """Ends the orphans of children that have ended, with all that they have started. Returns how
    many could not be ended within SECONDS_MAX.
    """
    if sys.platform != "linux":
        return 0
    async with _turn_of_run():
        frozen: set[int] = set()
        rounds = count()
        with trio.move_on_after(SECONDS_MAX):
            while found := _freeze(frozen):
                await _end(found, frozen, now=next(rounds) >= FREEZES_MAX)
                await trio.sleep(LOOK_SECONDS)
        return len(_freeze(frozen))


def _turn_of_run() -> trio.Lock:
    """One after the other: what one of them sees cannot be reaped by another meanwhile."""
    try:
        return _turn.get()
    except LookupError:
        _turn.set(lock := trio.Lock())
        return lock


def _freeze(frozen: set[int]) -> list[int]:
    """The orphans of ended children, which can neither fork nor flee any more; those that have
    ended, of whomever, are reaped.
    """
    found: list[int] = []
    for pid in _children_of_ours(os.getpid()):
        tag = _tag_of(pid)
        if tag is None or tag == pid:  # no orphan: started by ourselves
            continue
        if _lives(tag):
            _reap(pid)
        elif not _reap(pid):
            found.append(pid)
            _stop(pid, frozen)
    return found


async def _end(found: list[int], frozen: set[int], *, now: bool) -> None:
    """Stops all that descends from these, then kills them, once there were no more to be stopped:
    what is killed one by one forks on.
    """
    before, children_of = len(frozen), _family()
    for nth, pid in enumerate(found, 1):  # which grows
        _stop(pid, frozen)
        found += children_of(pid)
        if nth % AT_ONCE == 0:
            await trio.lowlevel.checkpoint()
    if now or len(frozen) == before:
        for pid in found:
            _send(pid, signal.SIGKILL)


def _stop(pid: int, frozen: set[int]) -> None:
    if pid not in frozen:
        frozen.add(pid)
        _send(pid, signal.SIGSTOP)


def _send(pid: int, number: signal.Signals) -> None:
    """To a child of ours, or one of a process that stands still: its number is no other's."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _lives(child: int) -> bool:
    try:
        looks = os.WEXITED | os.WNOWAIT | os.WNOHANG
        return os.waitid(os.P_PID, child, looks) is None
    except ChildProcessError:
        return False


def _reap(pid: int) -> bool:
    """Whether it has ended."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def _tag_of(pid: int) -> int | None:
    """The number of the child that it comes from, another one if it has changed its tag; None = it
    has the limit of our own.
    """
    ours = resource.getrlimit(resource.RLIMIT_RTTIME)[1]
    limit = limit_of(pid)
    return None if limit in (None, ours) else limit - TAG_FIRST


def limit_of(pid: int) -> int | None:
    """None = it is not to be seen."""
    try:
        return resource.prlimit(pid, resource.RLIMIT_RTTIME)[1]
    except ProcessLookupError:
        return None
    except PermissionError:  # it has another user
        return limit_in_text(pid)


def limit_in_text(pid: int) -> int | None:
    try:
        lines = Path(f"/proc/{pid}/limits").read_bytes().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith(LIMIT_NAME):
            word = line.removeprefix(LIMIT_NAME).split()[1]
            return int(word) if word.isdigit() else resource.RLIM_INFINITY
    return None


# -- who is whose child


def _children_of_ours(pid: int) -> list[int]:
    """Those of the first thread: orphans come to it, and it is the one that starts children."""
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return _family()(pid)


def _family() -> Callable[[int], list[int]]:
    if Path("/proc/thread-self/children").exists():
        return children_of
    return children_by_parent().__getitem__


def children_of(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):  # gone meanwhile
        for thread in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (thread / "children").read_text().split())
    return found


def children_by_parent() -> dict[int, list[int]]:
    """The same by a look at all processes, where the kernel keeps no lists of children."""
    children: dict[int, list[int]] = defaultdict(list)
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                stat = (folder / "stat").read_text()
                children[int(stat.rpartition(")")[2].split()[1])].append(int(folder.name))
    return children
