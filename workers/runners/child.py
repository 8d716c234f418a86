"""The process that runs Python handlers: a program of its own, standard library only.

Started by `process.py` as `python -I child.py OPTIONS`, in the user's interpreter. Of
musterd it loads the two files that handlers import from, by their paths; a user's module may have
any other name. It reads jobs from its socket and answers each with one ending; what a handler
prints goes into the pipe that is its stdout and stderr. Ends when the socket does.

A message is a length (four bytes), a JSON object, a newline, and a body that the object describes.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import resource
import signal
import socket
import sys
import threading
import time
import types
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100,PTH120 - without pathlib's cost
NOTE_SECONDS = 0.1  # notes of progress go out at most this often
PR_SET_PDEATHSIG = 1
CHUNK_BYTES = 8_192
PAGE_BYTES = resource.getpagesize()
scan = json.JSONDecoder().raw_decode  # for what starts and ends with a brace


class Stopped(SystemExit):
    """TERM came: the handler's `finally` blocks run, then the process ends."""


class Link:
    """The socket to the daemon. Messages may be sent from any thread."""

    def __init__(self, files: socket.socket) -> None:
        self._socket = files
        self._buffer = bytearray()
        self._sending = threading.Lock()

    def send(self, head: str, body: str = "") -> None:
        data = f"{head}\n{body}".encode("utf-8", "surrogatepass")
        with self._sending:
            self._socket.sendall(len(data).to_bytes(4, "big") + data)

    def receive(self) -> tuple[dict[str, Any], str] | None:
        """The next message; None = the daemon has closed its end."""
        data = self._take(4)
        data = data and self._take(int.from_bytes(data, "big"))
        if data is None:
            return None
        head, _, body = data.partition(b"\n")
        return scan(head.decode())[0], body.decode()

    def _take(self, count: int) -> bytes | None:
        while len(self._buffer) < count:
            chunk = self._socket.recv(CHUNK_BYTES)
            if not chunk:
                return None
            self._buffer += chunk
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken


class JobLink:
    """One job's words to the daemon. After its end they go nowhere: a thread may outlive it."""

    def __init__(self, link: Link, log_fd: int) -> None:
        self._link, self._log_fd = link, log_fd
        self._lock = threading.RLock()
        self._pending: dict[str, Any] = {}
        self._next_at = 0.0
        self._timer: threading.Timer | None = None
        self._is_over = False

    def log(self, text: str) -> None:
        flush_prints()
        data = text.encode("utf-8", "replace")
        while data and not self._is_over:
            data = data[os.write(self._log_fd, data) :]

    def note(self, percent: float, note: str | None) -> None:
        self._put(percent=percent, note=note)

    def spent(self, amounts: Mapping[str, float]) -> None:
        self._put(spent=dict(amounts))

    def remaining_seconds(self) -> float:
        """Asks the daemon, which renews the lease and so knows."""
        with self._lock:
            if self._is_over:
                return 0.0
            self._link.send('{"is": "remaining"}')
            reply = self._link.receive()
            return 0.0 if reply is None else float(reply[0]["seconds"])

    def phase_result(self, name: str) -> str | None:
        """Asks the daemon for what an earlier phase returned."""
        with self._lock:
            if self._is_over:
                raise LookupError("the job is over: its phases are not known any more")
            self._link.send(json.dumps({"is": "phase", "name": name}))
            reply = self._link.receive()
            return None if reply is None else reply[1]

    def end(self) -> None:
        """Sends what is still to be said."""
        with self._lock:
            self._send_pending()
            self._is_over = True

    def _put(self, **news: Any) -> None:
        with self._lock:
            if self._is_over:
                return
            self._pending.update(news)
            wait = self._next_at - time.monotonic()
            if wait <= 0:
                self._send_pending()
            elif self._timer is None:
                self._timer = threading.Timer(wait, self._on_time)
                self._timer.daemon = True
                self._timer.start()

    def _on_time(self) -> None:
        with self._lock:
            if self._timer is threading.current_thread() and not self._is_over:
                self._send_pending()

    def _send_pending(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._pending:
            self._link.send(json.dumps({"is": "note", **self._pending}))
            self._pending = {}
            self._next_at = time.monotonic() + NOTE_SECONDS


class Executor:
    """Runs one job after another."""

    def __init__(self, link: Link, context: Any) -> None:
        self._link, self._context = link, context
        self._log_fd = os.dup(1)  # whatever a handler does to its stdout
        self._functions: dict[tuple[str, str], Callable[[Any], Any]] = {}
        self._memory_fd = _open_memory_file()

    def run(self, head: Mapping[str, Any], body: str) -> None:
        link = JobLink(self._link, self._log_fd)
        what = (head["kind"], json.loads(body), *head["claim"], head["budgets"], head["spent"])
        phase = None
        if "phase" in head:
            phase = self._context.PhaseFacts(*head["phase"], link.phase_result)
        schedule, slot = head.get("slot", (None, None))
        facts = self._context.Facts(*what, phase, schedule, slot and datetime.fromisoformat(slot))
        job = self._context.JobContext(facts, link)
        ending = self._ending(job, link, head["function"])
        link.end()
        flush_prints()
        # Written out: an encoder would take longer than a short handler.
        how = '"result": false' if ending.result is None else '"result": true'
        if ending.ended != "success":
            how = f'"ending": {json.dumps(ending)}'
        said = f'{{"is": "end", "memory_bytes": {self._memory_bytes()}, {how}}}'
        self._link.send(said, ending.result or "")

    def _ending(self, job: Any, link: JobLink, place: list[str]) -> Any:
        try:
            function = self._function(*place)
            value = function(job)
            if isinstance(value, types.CoroutineType):
                value = _run_coroutine(value)
            ending = self._context.ending_of_value(job, value)
        except Stopped:
            raise
        except BaseException as error:  # noqa: ASYNC103,BLE001 - what user code raises is its end
            ending = self._context.ending_of_error(job, error)
            if ending.is_crash:
                link.log(_traceback_text(error))
        return ending

    def _function(self, module: str, name: str) -> Callable[[Any], Any]:
        function = self._functions.get((module, name))
        if function is None:
            found: Any = importlib.import_module(module)
            for part in name.split("."):
                found = getattr(found, part)
            if not callable(found):
                raise TypeError(f"{module}:{name} is no function but {type(found).__name__}")
            function = self._functions[module, name] = found
        return function

    def _memory_bytes(self) -> int:
        if self._memory_fd is None:
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return int(os.pread(self._memory_fd, 100, 0).split()[1]) * PAGE_BYTES


def _run_coroutine(coroutine: Any) -> Any:
    import asyncio  # noqa: PLC0415,TID251 - a handler's own loop; only where one is async

    return asyncio.run(coroutine)


def _traceback_text(error: BaseException) -> str:
    import traceback  # noqa: PLC0415 - a child that has no error starts without it

    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace))


def _open_memory_file() -> int | None:
    try:
        return os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


def flush_prints() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # noqa: BLE001,PERF203,S110,RUF100 - a handler may have put anything there
            continue


def main() -> None:
    options: Mapping[str, Any] = json.loads(sys.argv[1])
    _die_with(options["parent"])
    signal.signal(signal.SIGTERM, _on_term)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core holds payloads
    _be_killed_first()
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr] # pyright: ignore - a file
    sys.argv = [sys.argv[0]]
    sys.path[:0] = options["search_path"]
    context = _load_own(os.path.dirname(os.path.dirname(HERE)))  # noqa: PTH120 - as above
    link = Link(socket.socket(fileno=options["socket"]))
    executor = Executor(link, context)
    link.send('{"is": "ready"}')
    while (message := link.receive()) is not None:
        executor.run(*message)


def _load_own(package: str) -> Any:
    """Gives `musterd` and its context to handlers, whether or not it is installed here."""
    places = (
        ("musterd", f"{package}/__init__.py", [package]),
        ("musterd.workers.context", f"{package}/workers/context.py", None),
    )
    module: Any = None
    for name, path, folders in places:
        spec = importlib.util.spec_from_file_location(
            name, path, submodule_search_locations=folders
        )
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return module


def _die_with(parent: int) -> None:
    """Ends this process when the daemon does, also in the midst of a job (Linux only; elsewhere it
    ends with its job, when the socket is found closed).
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(0)  # it had ended before


def _be_killed_first() -> None:
    """Where memory runs out, it is a job that goes, not the daemon."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123 - without pathlib's cost
            file.write("1000")
    except OSError:
        return


def _on_term(_number: int, _frame: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Stopped(0)


if __name__ == "__main__":
    main()
