"""Users of the machine that handlers run as, where the daemon may become them."""

from __future__ import annotations

import os
import pwd
import stat
import sys
from functools import lru_cache
from pathlib import Path

import attrs

# What a process must be allowed to: end others' processes, and take other groups and users.
CAP_KILL, CAP_SETGID, CAP_SETUID = 5, 6, 7
WANTED = (1 << CAP_KILL) | (1 << CAP_SETGID) | (1 << CAP_SETUID)
ACCOUNTS_MAX = 100  # remembered: to look one up may take long


@attrs.frozen
class Account:
    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]  # all of them
    home: str

    @property
    def variables(self) -> dict[str, str]:
        """What a login would set."""
        return {"HOME": self.home, "USER": self.name, "LOGNAME": self.name}

    @property
    def is_ours(self) -> bool:
        """Whether this process is that user, with no more than its groups."""
        return self.uid == os.geteuid() and self.gid == os.getegid()


class NoAccount(Exception):
    """The machine has no such user."""


@lru_cache(ACCOUNTS_MAX)
def account_of(name: str) -> Account:
    """Raises NoAccount."""
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        raise NoAccount(f"there is no user {name}") from None
    groups = tuple(sorted({found.pw_gid, *os.getgrouplist(name, found.pw_gid)}))
    return Account(name, found.pw_uid, found.pw_gid, groups, found.pw_dir)


def why_not_as(name: str) -> str | None:
    """Why nothing can be run as this user; None = it can."""
    try:
        account = account_of(name)
    except NoAccount as error:
        return str(error)
    if account.is_ours or may_change_user():
        return None
    return (
        f"this process may not become {name}: run it as root, or with the capabilities"
        " CAP_SETUID, CAP_SETGID and CAP_KILL"
    )


def why_no_way(account: Account, program: str) -> str | None:
    """Why this user may not run a program that is there; None = nothing forbids it."""
    path = Path(os.path.realpath(program))
    for each in (*reversed(path.parents), path):
        found = each.stat()
        if found.st_uid == account.uid:
            allowed = found.st_mode & stat.S_IXUSR
        elif found.st_gid in account.groups:
            allowed = found.st_mode & stat.S_IXGRP
        else:
            allowed = found.st_mode & stat.S_IXOTH
        if not allowed and account.uid != 0:
            return f"{account.name} may not run {program}: {each} is closed to that user"
    return None


def may_change_user() -> bool:
    held = _capabilities()
    return os.geteuid() == 0 if held is None else held & WANTED == WANTED


def _capabilities() -> int | None:
    """Those in effect; None = this system has none."""
    if not sys.platform.startswith("linux"):
        return None
    for line in Path("/proc/self/status").read_text("ascii", "replace").splitlines():
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16)
    return None
