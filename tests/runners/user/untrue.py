"""Handlers whose processes say to the daemon what they should not, by mistake or on purpose."""

import gc
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import __main__
from musterd import JobContext


def echo(job: JobContext) -> Any:
    return job.payload


def fork_that_comes_back(job: JobContext) -> str:
    """As an author does who forgets how a fork ends. The parent waits, as authors do."""
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        return "parent"
    if job.payload == "exit":
        sys.exit(3)
    if job.payload == "raise":
        raise ValueError("in the fork")
    return "fork"


def fork_that_lives_on(job: JobContext) -> str:
    """The fork comes back while the next job is under way."""
    if os.fork():
        return "parent"
    time.sleep(job.payload)
    return "fork"


def status_of_a_fork(job: JobContext) -> int:
    pid = os.fork()
    if pid == 0:
        sys.exit(job.payload)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def sockets_of_a_fork(job: JobContext) -> list[int]:
    """How many sockets there are in the handler, in its fork, and in a program of the fork's."""
    counts = [_sockets()]
    report = Path(job.payload)
    pid = os.fork()
    if pid == 0:
        job.progress(99, "from the fork")
        job.spend(tokens=1)
        report.write_text(f"{_sockets()} {job.remaining():g}\n")
        _count_in_a_program(report)
        os._exit(0)
    os.waitpid(pid, 0)
    _count_in_a_program(report)
    return counts


def _count_in_a_program(report: Path) -> None:
    """One that inherits all that may be inherited."""
    line = f"ls -l /proc/self/fd | grep -c socket: >> {report}"
    subprocess.run(["/bin/sh", "-c", line], close_fds=False, check=False)


def _sockets() -> int:
    links = [each for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]
    return sum(str(each.readlink()).startswith("socket:") for each in links)


def _link_and_job() -> tuple[Any, Any]:
    """The program's own ends of the socket: nothing hides them from a handler."""
    main: Any = __main__
    link = next(each for each in gc.get_objects() if type(each) is main.Link)
    jobs = [each for each in gc.get_objects() if type(each) is main.JobLink]
    return link, next(each for each in jobs if not each._is_over)


def says(job: JobContext) -> str:
    """Sends each of these as a message of its own."""
    link, own = _link_and_job()
    for head in job.payload:
        link.send(own._about, head)
    time.sleep(0.2)
    return "said"


def says_bytes(job: JobContext) -> str:
    link, _own = _link_and_job()
    link._socket.sendall(bytes.fromhex(job.payload))
    time.sleep(0.2)
    return "said"


KEPT: list[Any] = []


def keeps_its_claim(_job: JobContext) -> str:
    KEPT.append(_link_and_job()[1]._about)
    return "kept"


def says_for_the_last(_job: JobContext) -> str:
    """An end of the job before, in the right place of the order."""
    _link_and_job()[0].send(KEPT[-1], '{"is": "end", "memory_bytes": 1, "result": true}', '"mine"')
    time.sleep(0.2)
    return "said"


def says_it_twice(_job: JobContext) -> str:
    """The end of the right job, with a number that was there before."""
    link, own = _link_and_job()
    link._said -= 1
    link.send(own._about, '{"is": "end", "memory_bytes": 1, "result": true}', '"mine"')
    time.sleep(0.2)
    return "said"


def says_it_late(job: JobContext) -> str:
    """After its own end, while there is no job."""
    link, own = _link_and_job()

    def later() -> None:
        time.sleep(job.payload)
        link.send(own._about, '{"is": "end", "memory_bytes": 1, "result": true}', '"late"')

    threading.Thread(target=later).start()
    return "in time"


def bad_result(_job: JobContext) -> str:
    link, own = _link_and_job()
    link.send(own._about, '{"is": "end", "memory_bytes": 1, "result": true}', "not JSON")
    time.sleep(0.2)
    return "said"
