"""A program in a process group of its own: started, waited for, ended with all it has started."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Self

import attrs
import trio

from musterd.catalog.accounts import NoAccount, account_of
from musterd.workers.runners.orphans import end_orphans

KILL_SECONDS_MAX = 5.0  # from KILL until a process that the kernel holds is given up
LOOK_SECONDS = 0.005
GONE_LOOKS_MAX = 200  # for what else was in the group, after KILL
LOOK_SECONDS_MAX = 0.1


@attrs.frozen
class Start:
    """What to run. `stdin`, `stdout`, `stderr` and `pass_fds` are the child's ends; they stay the
    caller's to close. No other file of ours reaches the child, and no variable but `environment`.
    """

    argv: Sequence[str]
    environment: Mapping[str, str]
    grace_seconds: float  # from TERM to KILL
    stdin: int = subprocess.DEVNULL
    stdout: int = subprocess.DEVNULL
    stderr: int = subprocess.DEVNULL
    pass_fds: tuple[int, ...] = ()
    cwd: Path | None = None
    umask: int = -1  # -1 = ours
    user: str = ""  # "" = ours


class Whom(NamedTuple):
    """As `Popen` wants it; None = as we are."""

    uid: int | None = None
    gid: int | None = None
    groups: Sequence[int] | None = None


def as_whom(user: str) -> tuple[Whom, Mapping[str, str]]:
    """Whom a child is to become, and what it is told of that. Raises OSError if there is no such
    user.
    """
    if not user:
        return Whom(), {}
    try:
        account = account_of(user)
    except NoAccount as error:
        raise OSError(errno.ENOENT, str(error)) from None
    whom = Whom() if account.is_ours else Whom(account.uid, account.gid, account.groups)
    return whom, account.variables


class ProcessGroup:
    """A program and its children, leaders of their own session and group.

    `async with group:` ends them all when it is left, whichever way: what still runs is sent TERM,
    after the grace KILL, and the program is reaped. Its exit status is then in `status`: negative =
    the signal that ended it, None = not even KILL could end it in time.

    The program's end is the end of the group, and of what has left it: children left behind are
    killed. Until then the program is not reaped, so that its number, which is the group's, cannot
    become another's.
    """

    def __init__(self, start: Start) -> None:
        """Starts it; raises OSError if that fails.

        To be called on the main thread: what asks the kernel to die with its parent
        (PR_SET_PDEATHSIG) dies with the thread that has started it. The fork is a vfork, made and
        done in a millisecond or two.
        """
        # Not trio's open_process: it starts children on threads that end when idle.
        whom, variables = as_whom(start.user)
        self._popen = subprocess.Popen(
            list(start.argv), env={**start.environment, **variables},
            cwd=start.cwd, umask=start.umask,
            stdin=start.stdin, stdout=start.stdout, stderr=start.stderr, pass_fds=start.pass_fds,
            start_new_session=True, user=whom.uid, group=whom.gid, extra_groups=whom.groups,
        )  # fmt: skip
        self.pid = self._popen.pid
        self.grace_seconds = start.grace_seconds

    @property
    def status(self) -> int | None:
        return self._popen.returncode

    async def wait(self) -> None:
        """Returns when the program has ended; a cancel changes nothing for it."""
        if hasattr(os, "pidfd_open"):
            await self._wait_by_pidfd()
            return
        pause_seconds = LOOK_SECONDS
        while not self.has_ended:
            await trio.sleep(pause_seconds)
            pause_seconds = min(LOOK_SECONDS_MAX, 1.5 * pause_seconds)

    async def _wait_by_pidfd(self) -> None:
        if self.has_ended:
            return
        pidfd = os.pidfd_open(self.pid)
        try:
            await trio.lowlevel.wait_readable(pidfd)
        finally:
            os.close(pidfd)

    @property
    def has_ended(self) -> bool:
        """Whether the program has."""
        if self._popen.returncode is not None:
            return True
        looks = os.WEXITED | os.WNOWAIT | os.WNOHANG  # WNOWAIT: sees the end, does not reap
        return os.waitid(os.P_PID, self.pid, looks) is not None

    def terminate(self) -> None:
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """Ends the whole group at once. `async with` still has to be left."""
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        if self._popen.returncode is not None:
            return  # reaped: the number may be another's by now
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            return  # nothing there that can be signalled; macOS refuses where all are zombies

    async def stop(self) -> None:
        """Ends the group: TERM, the grace, KILL. Bounded, not to be cancelled, safe to repeat."""
        with trio.CancelScope(shield=True):
            if not self.has_ended:
                self.terminate()
                with trio.move_on_after(self.grace_seconds):
                    await self.wait()
            self.kill()
            with trio.move_on_after(KILL_SECONDS_MAX):
                await self.wait()
            if self._popen.poll() is not None:
                await end_orphans()
                await self._see_it_gone()

    async def _see_it_gone(self) -> None:
        """Waits until the killed rest has gone, a moment at most: it can't come back."""
        for _ in range(GONE_LOOKS_MAX):
            if not _is_there(self.pid):
                return
            await trio.sleep(LOOK_SECONDS)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        longest_seconds = self.grace_seconds + 2 * KILL_SECONDS_MAX
        with trio.CancelScope(shield=True, deadline=trio.current_time() + longest_seconds):
            await self.stop()


def _is_there(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True
