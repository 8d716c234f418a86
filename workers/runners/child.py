"""The process that runs Python handlers: a program of its own, standard library only.

Started by `process.py` as `python -I child.py OPTIONS`, in the user's interpreter. Of
musterd it loads the two files that handlers import from, by their paths; a user's module may have
any other name. It reads jobs from its socket and answers each with one ending; what a handler
says goes into the pipe that is its stdout, with marks where it is no print: `joblog.py` reads them.
The stderr of its descriptor is a pipe of its own. Ends when the socket does.

A message is a frame (`FRAME`: how many bytes follow, its number, whose it is), a JSON object, a
newline, and a body that the object describes. `child_messages.py` is the other side of that. Only
this very process may speak: one that a handler has forked loses the socket at its birth.
"""

from __future__ import annotations

import ctypes
import importlib.util
import io
import json
import os
import resource
import signal
import socket
import struct
import sys
import threading
import time
import types
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NoReturn

HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100,PTH120 - without pathlib's cost
NOTE_SECONDS = 0.1  # notes of progress go out at most this often
UTF8_BYTES_MAX = 4  # of a character
JSON_BYTES_MAX = 12  # of a character, as JSON writes it in ASCII
HEAD_BYTES_MAX = 4_096  # of a message, beside what it carries
PR_SET_PDEATHSIG = 1
TAG_FIRST = 1 << 62
CHUNK_BYTES = 8_192
PAGE_BYTES = resource.getpagesize()
FRAME = struct.Struct("!IQ24s")
NOBODY = bytes(24)
EXIT_PROTOCOL = 76  # EX_PROTOCOL of sysexits.h
MARK = b"\0\1"  # before two letters: the stream (o e l j m), the level (d i w e c)
PRINTED = MARK + b"oi"
LEVELS = ((50, b"c"), (40, b"e"), (30, b"w"), (20, b"i"))  # of logging, from the gravest on
scan = json.JSONDecoder().raw_decode  # for what starts and ends with a brace


class Stopped(SystemExit):
    """TERM came: the handler's `finally` blocks run, then the process ends."""


class Link:
    """The socket to the daemon. Messages may be sent from any thread, but from this process alone:
    in one that was forked from it nothing is sent, and the socket is closed.
    """

    def __init__(self, files: socket.socket) -> None:
        files.set_inheritable(False)  # not for programs that a handler starts either
        self._socket, self.pid = files, os.getpid()
        self._rest = b""  # of what was received, beyond the last message
        self._sending = threading.Lock()
        self._said = self._heard = 0
        os.register_at_fork(after_in_child=files.close)

    def send(self, about: bytes, head: str, body: str = "") -> None:
        if self.pid != os.getpid():  # forked past Python's own hooks
            return
        data = f"{head}\n{body}".encode("utf-8", "surrogatepass")
        with self._sending:
            self._said += 1
            self._socket.sendall(FRAME.pack(len(data), self._said, about) + data)

    def receive(self) -> tuple[bytes, dict[str, Any], str] | None:
        """The next message, and whose it is; None = the daemon has closed its end."""
        message = self._next()
        if message is None:
            return None
        _length, number, about = FRAME.unpack_from(message)
        self._heard += 1
        if number != self._heard:
            give_up(f"message {number} came where {self._heard} was to come")
        head, _, body = message[FRAME.size :].partition(b"\n")
        return about, scan(head.decode())[0], body.decode()

    def answer(self, about: bytes) -> tuple[dict[str, Any], str] | None:
        """What the daemon answers to a question about this job; None = it is gone."""
        message = self.receive()
        if message is None:
            return None
        if message[0] != about:
            give_up("an answer came that is not about the job in hand")
        return message[1:]

    def _next(self) -> bytes | None:
        """One message with its frame; None = the daemon has closed its end."""
        received: bytes | bytearray = self._rest
        self._rest = b""
        while True:
            if len(received) >= FRAME.size:
                end = FRAME.size + FRAME.unpack_from(received)[0]
                if len(received) == end:  # nearly always
                    return bytes(received)
                if len(received) > end:
                    self._rest = bytes(received[end:])
                    return bytes(received[:end])
            chunk = self._socket.recv(CHUNK_BYTES)
            if not chunk:
                return None
            received = _joined(received, chunk)


def _joined(received: bytes | bytearray, chunk: bytes) -> bytes | bytearray:
    if not received:
        return chunk
    grown = received if isinstance(received, bytearray) else bytearray(received)
    grown += chunk
    return grown


def give_up(why: str) -> NoReturn:
    """Daemon and child do not understand each other: no word between them counts any more."""
    try:
        os.write(2, f"musterd: {why}\n".encode())
    finally:
        os._exit(EXIT_PROTOCOL)


def say(file: int, voice: bytes, data: bytes) -> None:
    """Puts what is no print among the prints, so that all is in order."""
    left: bytes | memoryview = b"%b%b%b%b" % (MARK, voice, data.replace(b"\0", b"\\0"), PRINTED)
    while left:
        left = memoryview(left)[os.write(file, left) :]


class Complaints(io.RawIOBase):
    """What a handler's `sys.stderr` writes to: the pipe of its prints."""

    def __init__(self, log_fd: int) -> None:
        self._log_fd = log_fd

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return 2  # for programs that are to have it as theirs

    def write(self, data: Any) -> int:
        say(self._log_fd, b"ew", bytes(data))
        return len(data)


class JobLink:
    """One job's words to the daemon. After its end they go nowhere: a thread may outlive it."""

    def __init__(self, link: Link, about: bytes, log_fd: int) -> None:
        self._link, self._about, self._log_fd = link, about, log_fd
        self._lock = threading.RLock()
        self._pending: dict[str, Any] = {}
        self._next_at = 0.0
        self._timer: threading.Timer | None = None
        self._is_over = False
        self._has_warned = False

    def log(self, text: str, level: str = "info") -> None:
        self._say(b"j" + level[:1].encode(), text)

    def complain(self, text: str, level: str = "warning") -> None:
        """Words of ours."""
        self._say(b"m" + level[:1].encode(), text)

    def _say(self, voice: bytes, text: str) -> None:
        flush_prints()
        if not self._is_over:
            say(self._log_fd, voice, text.encode("utf-8", "replace"))

    def note(self, percent: float, note: str | None) -> None:
        self._put("progress", percent=percent, note=note)

    def spent(self, amounts: Mapping[str, float]) -> None:
        self._put("spend", spent=dict(amounts))

    def remaining_seconds(self) -> float:
        """Asks the daemon, which renews the lease and so knows."""
        if self._is_elsewhere("remaining"):
            return 0.0
        with self._lock:
            if self._is_over:
                return 0.0
            self._link.send(self._about, '{"is": "remaining"}')
            reply = self._link.answer(self._about)
            return 0.0 if reply is None else float(reply[0]["seconds"])

    def phase_result(self, name: str) -> str | None:
        """Asks the daemon for what an earlier phase returned."""
        if self._is_elsewhere("phase_result"):
            raise LookupError("a forked process cannot ask for the results of phases")
        with self._lock:
            if self._is_over:
                raise LookupError("the job is over: its phases are not known any more")
            self._link.send(self._about, json.dumps({"is": "phase", "name": name}))
            reply = self._link.answer(self._about)
            return None if reply is None else reply[1]

    def end(self) -> None:
        """Sends what is still to be said."""
        with self._lock:
            self._send_pending()
            self._is_over = True

    def _is_elsewhere(self, what: str) -> bool:
        """Whether this is a process that the handler has forked: it hears of that in its log. The
        locks of this link may be held for ever there.
        """
        if self._link.pid == os.getpid():
            return False
        if not self._has_warned:
            self._has_warned = True
            self.complain(f"{what}() does nothing in a forked process ({os.getpid()})\n")
        return True

    def _put(self, what: str, **news: Any) -> None:
        if self._is_elsewhere(what):
            return
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
            self._link.send(self._about, json.dumps({"is": "note", **self._pending}))
            self._pending = {}
            self._next_at = time.monotonic() + NOTE_SECONDS


class Executor:
    """Runs one job after another."""

    def __init__(self, link: Link, context: Any, limits: tuple[int, int]) -> None:
        """`limits`: bytes of a message, and of a result."""
        self._link, self._context, self._limits = link, context, limits
        self._log_fd = os.dup(1)  # whatever a handler does to its stdout
        sys.stderr = io.TextIOWrapper(
            io.BufferedWriter(Complaints(self._log_fd)),
            encoding="utf-8",
            errors="backslashreplace",
            line_buffering=True,
        )
        self._functions: dict[tuple[str, str], Callable[[Any], Any]] = {}
        self._memory_fd = _open_memory_file()
        self._hears_logging = False

    def run(self, about: bytes, head: Mapping[str, Any], body: str) -> None:
        link = JobLink(self._link, about, self._log_fd)
        what = (head["kind"], json.loads(body), *head["claim"], head["budgets"], head["spent"])
        phase = None
        if "phase" in head:
            phase = self._context.PhaseFacts(*head["phase"], link.phase_result)
        schedule, slot = head.get("slot", (None, None))
        trace, slot = head.get("trace"), slot and datetime.fromisoformat(slot)
        if trace != os.environ.get("TRACEPARENT"):
            self._be_traced(trace)
        facts = self._context.Facts(*what, phase, schedule, slot, trace)
        job = self._context.JobContext(facts.payload, facts.attempt, lambda: facts, link)
        ending = self._ending(job, link, head["function"])
        link.end()
        flush_prints()
        # Written out: an encoder would take longer than a short handler.
        how = '"result": false' if ending.result is None else '"result": true'
        if ending.ended != "success":
            how = f'"ending": {self._as_json(ending)}'
        said = f'{{"is": "end", "memory_bytes": {self._memory_bytes()}, {how}}}'
        self._link.send(about, said, ending.result or "")

    def _be_traced(self, trace: str | None) -> None:
        """What a handler's own tracing, and the programs that it starts, join."""
        if trace is None:
            del os.environ["TRACEPARENT"]
        else:
            os.environ["TRACEPARENT"] = trace

    def _ending(self, job: Any, link: JobLink, place: list[str]) -> Any:
        try:
            function = self._function(*place)
            if not self._hears_logging:
                self._hears_logging = hear_logging(self._log_fd)
            value = function(job)
            if isinstance(value, types.CoroutineType):
                value = _run_coroutine(value)
            if self._link.pid != os.getpid():
                _end_fork(link, None)
            ending = self._sendable(self._context.ending_of_value(job, value))
        except Stopped:
            if self._link.pid == os.getpid():
                link.end()  # what it said while it cleaned up
            raise
        except BaseException as error:  # noqa: ASYNC103,BLE001 - what user code raises is its end
            if self._link.pid != os.getpid():
                _end_fork(link, error)
            ending = self._context.ending_of_error(job, error)
            if ending.is_crash:
                link.complain(_traceback_text(error), "error")
        return ending

    def _sendable(self, ending: Any) -> Any:
        """A result that is too large for any message is a failure that says so."""
        most, kept = self._limits
        size = len(ending.result or "")
        if size * UTF8_BYTES_MAX > most:
            size = len(ending.result.encode("utf-8", "surrogatepass"))
        if size + HEAD_BYTES_MAX <= most:
            return ending
        fault = f"result: found {size} bytes, wanted at most {kept} ([limits] max_result_bytes)"
        return self._context.Ending("failure", None, ("result_invalid",), fault, None, True)

    def _as_json(self, ending: Any) -> str:
        """Of a message that is too large for any frame the beginning."""
        most = self._limits[0] - HEAD_BYTES_MAX
        text = json.dumps(ending)
        if len(text) > most:
            text = json.dumps(ending._replace(message=ending.message[: most // JSON_BYTES_MAX]))
        return text

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


def _end_fork(link: JobLink, error: BaseException | None) -> NoReturn:
    """A process that the handler has forked came back from it. The job is its parent's: this one
    ends, as it would at the end of a program.
    """
    code: Any = 0
    if isinstance(error, SystemExit):
        code = 0 if error.code is None else error.code
    elif error is not None:
        link.complain(_traceback_text(error), "error")
        code = 1
    if not isinstance(code, int):
        link.complain(f"{code}\n")
        code = 1
    link.complain(f"process {os.getpid()}, forked by the handler, came back and was ended\n")
    flush_prints()
    os._exit(code & 0xFF)


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


def hear_logging(log_fd: int) -> bool:
    """What a handler says by `logging` goes to its log from INFO on, with its level, as long as
    nobody sets up something else. False = nobody has imported it yet, and we do not either.
    """
    logging: Any = sys.modules.get("logging")
    if logging is None:
        return False

    class Heard(logging.Handler):  # type: ignore[misc] # pyright: ignore - a module found at run time
        def emit(self, record: Any) -> None:
            try:
                letter = next((each for least, each in LEVELS if record.levelno >= least), b"d")
                text = f"{self.format(record)}\n"
                say(log_fd, b"l" + letter, text.encode("utf-8", "replace"))
            except Exception:  # noqa: BLE001 - as every handler of logging does
                self.handleError(record)

    heard = Heard()
    heard.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    logging.lastResort = heard  # and no handler of the root: basicConfig() does its work
    if logging.root.level == logging.WARNING and not logging.root.handlers:
        logging.root.setLevel(logging.INFO)
    return True


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
    if sys.platform == "linux":  # what it starts can be told by this limit: see orphans.py
        most = resource.getrlimit(resource.RLIMIT_RTTIME)[1] % (1 << 64)  # -1 = no limit
        tag = min(most, TAG_FIRST + os.getpid())
        resource.setrlimit(resource.RLIMIT_RTTIME, (tag, tag))
    # Line by line, so that what is printed and what is logged stays in order.
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)  # type: ignore[union-attr] # pyright: ignore - a file
    sys.argv = [sys.argv[0]]
    sys.path[:0] = options["search_path"]
    context = _load_own(os.path.dirname(os.path.dirname(HERE)))  # noqa: PTH120 - as above
    link = Link(socket.socket(fileno=options["socket"]))
    executor = Executor(link, context, (options["message_bytes_max"], options["result_bytes_max"]))
    link.send(NOBODY, '{"is": "ready"}')
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
