"""What a command's process is before it becomes the command: sets what only the process itself can
set, then runs the program in its own place.

A script of the standard library alone, run as `python -I -S launcher.py SPEC PROGRAM ARGUMENT...`;
SPEC is JSON: {parent, progress, lc_ctype, cwd,
umask, rlimits}. Exits like a shell: 127 if the program is not
found, 126 if it can't be run or its surroundings can't be made, with the reason on stderr.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import sys

TYPE_CHECKING = False  # typing's own, without the cost of importing it
if TYPE_CHECKING:
    from collections.abc import Callable

PROGRESS_FD = 3
PR_SET_PDEATHSIG = 1
TAG_FIRST = 1 << 62
EXIT_NOT_RUNNABLE = 126
EXIT_NOT_FOUND = 127


def main() -> None:
    spec, argv = json.loads(sys.argv[1]), sys.argv[2:]
    die_with(spec["parent"])
    be_killed_first()
    be_tagged()
    if spec["progress"] != PROGRESS_FD:
        os.dup2(spec["progress"], PROGRESS_FD)
        os.close(spec["progress"])
    forget_python(spec["lc_ctype"])
    os.umask(spec["umask"])
    if spec["cwd"] is not None:
        attempt(f"enter the folder {spec['cwd']!r}", os.chdir, spec["cwd"])
    for number, most in spec["rlimits"]:
        attempt(f"set limit {number} to {most}", limit, number, most)
    attempt(f"run {argv[0]!r}", os.execvp, argv[0], argv)


def die_with(parent: int) -> None:
    """Asks the kernel for KILL when the parent dies. Where there is no such thing, does nothing."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes  # noqa: PLC0415 - there is need for it on Linux alone

    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:  # it died before it was asked for
        os._exit(EXIT_NOT_RUNNABLE)


def be_killed_first() -> None:
    """Where memory runs out, it is a job that goes, not the daemon."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123 - without pathlib's cost
            file.write("1000")
    except OSError:
        return


def be_tagged() -> None:
    """What it starts can be told by this limit, wherever it goes: see orphans.py."""
    if not sys.platform.startswith("linux"):
        return
    import resource  # noqa: PLC0415 - there is need for it on Linux alone

    limit(resource.RLIMIT_RTTIME, TAG_FIRST + os.getpid())


def forget_python(lc_ctype: str | None) -> None:
    """Undoes what this interpreter, or whatever started the daemon, did to what is inherited."""
    for number in signal.valid_signals():
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.environ.pop("LC_CTYPE", None)
    if lc_ctype is not None:
        os.environ["LC_CTYPE"] = lc_ctype


def limit(number: int, most: int) -> None:
    import resource  # noqa: PLC0415 - most commands have no limits

    _soft, hard = resource.getrlimit(number)
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(number, (most, most))


def attempt(what: str, call: Callable[..., object], *arguments: object) -> None:
    try:
        call(*arguments)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        sys.stderr.write(f"musterd: cannot {what}: {reason}\n")
        sys.stderr.flush()
        missing = getattr(error, "errno", None) == errno.ENOENT and call is os.execvp
        os._exit(EXIT_NOT_FOUND if missing else EXIT_NOT_RUNNABLE)


if __name__ == "__main__":
    main()
