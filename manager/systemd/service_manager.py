"""The service manager that started this process, and how it is told something."""

from __future__ import annotations

import socket
from collections.abc import Iterable, MutableMapping

import attrs

ADDRESS, WATCHDOG_USEC, WATCHDOG_PID = "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"
MICROSECONDS = 1_000_000


@attrs.frozen
class ServiceManager:
    """Listens at `address`: a path, or `@name` for an abstract one. It wants to hear from a daemon
    that is well at least every `watchdog_seconds`; None = it does not watch.
    """

    address: str
    watchdog_seconds: float | None = None

    def tell(self, lines: Iterable[str]) -> bool:
        """Sends the lines as one message. Never waits and never raises; False = it was not sent:
        nobody listens there, or the queue is full.
        """
        where = "\0" + self.address[1:] if self.address.startswith("@") else self.address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.setblocking(False)
                sender.sendto("\n".join(lines).encode(), where)
        except OSError:
            return False
        return True


def take_service_manager(environ: MutableMapping[str, str], pid: int) -> ServiceManager | None:
    """Gives the service manager that waits to hear from this process, which is `pid`; None = there
    is none. Its variables are taken out of `environ`, so that no child can speak for us.
    """
    address = environ.pop(ADDRESS, "")
    usec, watched = environ.pop(WATCHDOG_USEC, ""), environ.pop(WATCHDOG_PID, "")
    if not address.startswith(("/", "@")):
        return None  # none, or of a kind that only virtual machines have
    is_ours = watched in ("", str(pid))
    is_watching = is_ours and usec.isascii() and usec.isdecimal() and int(usec) > 0
    return ServiceManager(address, int(usec) / MICROSECONDS if is_watching else None)
