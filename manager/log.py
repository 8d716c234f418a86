"""The daemon's log on stderr: one event per line, as text for people, or as logfmt or JSON.

An event is a short fixed phrase with fields: `event(log, INFO, "crew resized", before=2, after=5)`.
Values are escaped, so that an event is always one line. Writing never raises.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Mapping, MutableMapping
from datetime import UTC, datetime
from typing import Any, Literal, TextIO, TypeAlias

from attrs import define, field

from musterd.config.tenant_names import DEFAULT_TENANT
from musterd.store.words import one_line
from musterd.workers.runners.hearing import is_of_a_job

Log: TypeAlias = "logging.Logger | logging.LoggerAdapter[logging.Logger]"
Format = Literal["auto", "text", "logfmt", "json"]

REPEATS_MAX = (
    20  # lines with the same phrase that pass in one window; more are counted, not written
)
WINDOW_SECONDS = 10.0
PHRASES_MAX = 1000  # phrases remembered; a bound, not a wish
ROOT = "musterd"

_SYSLOG_LEVELS = {
    logging.DEBUG: 7,
    logging.INFO: 6,
    logging.WARNING: 4,
    logging.ERROR: 3,
    logging.CRITICAL: 2,
}
_BARE = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:;/@%+-_~()[]{}#*!?&|^$"
)


def event(log: Log, level: int, phrase: str, /, **fields: object) -> None:
    if log.isEnabledFor(level):
        log.log(level, phrase, extra={"fields": fields})


def event_of_list(log: Log, level: int, phrase: str, /, **fields: object) -> None:
    """Like `event`, for a list that is written once: no line of it is held back."""
    if log.isEnabledFor(level):
        log.log(level, phrase, extra={"fields": fields, "is_of_list": True})


def extra(**fields: object) -> dict[str, object]:
    """The fields of an event with a traceback: `log.exception("failed", extra=extra(job_id=1))`."""
    return {"fields": fields}


def tenant_log(log: logging.Logger, tenant: str) -> Log:
    """A log whose events name the tenant, unless it is the default one."""
    return log if tenant == DEFAULT_TENANT else _TenantLog(log, {"tenant": tenant})


class _TenantLog(logging.LoggerAdapter[logging.Logger]):
    def process(
        self, msg: Any, kwargs: MutableMapping[str, Any]
    ) -> tuple[Any, MutableMapping[str, Any]]:
        given = kwargs.get("extra", {})
        fields = {**given.get("fields", {}), **(self.extra or {})}
        return msg, {**kwargs, "extra": {**given, "fields": fields}}


def set_up_log(
    level: str, form: Format, monotonic: Callable[[], float], stream: TextIO | None = None
) -> logging.Logger:
    """Makes the program's log write to `stream` (default: stderr) and returns its logger. Includes
    warnings of libraries. Another call replaces the first.
    """
    target = sys.stderr if stream is None else stream
    handler = _LineHandler(target)
    handler.setFormatter(_formatter(form, target))
    handler.addFilter(_is_ours)  # before what counts repetitions
    handler.addFilter(RepeatFilter(monotonic))
    root = logging.getLogger()
    for old in [known for known in root.handlers if isinstance(known, _LineHandler)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.captureWarnings(capture=True)
    log = logging.getLogger(ROOT)
    log.setLevel(level.upper())
    return log


def _is_ours(record: logging.LogRecord) -> bool:
    """What jobs log is in their own logs; of libraries, warnings and worse."""
    is_own = record.name.partition(".")[0] == ROOT
    return is_own or (record.levelno >= logging.WARNING and not is_of_a_job(record))


def is_journal(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether `stream` is connected to systemd's journal."""
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return environ.get("JOURNAL_STREAM", "") == f"{status.st_dev}:{status.st_ino}"


class TextFormatter(logging.Formatter):
    """For people: time, level if it matters, phrase, fields; a traceback on lines of its own."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).astimezone()
        level = "" if record.levelno == logging.INFO else f"{record.levelname.lower()}: "
        words = [moment.strftime("%H:%M:%S"), level + one_line(_phrase(record))]
        line = " ".join(words + [f"{key}={_bare(item)}" for key, item in _fields(record).items()])
        traceback = _traceback(self, record)
        return "\n  ".join([line, *map(one_line, traceback.splitlines())]) if traceback else line


class LogfmtFormatter(logging.Formatter):
    """`ts=… level=info event="crew resized" before=2 after=5`."""

    def format(self, record: logging.LogRecord) -> str:
        return " ".join(f"{key}={_value(item)}" for key, item in _whole(self, record).items())


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(_whole(self, record), default=_text)


class JournalFormatter(logging.Formatter):
    """Prefixes each line with the `<N>` that tells the journal its level: to the journal, each line
    of a traceback is an entry. The journal adds the time itself.
    """

    def __init__(self, inner: logging.Formatter) -> None:
        super().__init__()
        self._inner = inner

    def format(self, record: logging.LogRecord) -> str:
        prefix = f"<{_SYSLOG_LEVELS.get(record.levelno, 6)}>"
        return "\n".join(prefix + line for line in self._inner.format(record).split("\n"))


@define
class _Window:
    started: float
    written: int = 0
    held_back: int = 0


@define
class RepeatFilter:
    """Holds back phrases that come too often; the next line that passes has their number."""

    monotonic: Callable[[], float]
    _windows: dict[tuple[str, int, str], _Window] = field(
        factory=dict[tuple[str, int, str], _Window]
    )

    def filter(self, record: logging.LogRecord) -> bool:
        if record.__dict__.get("is_of_list"):
            return True
        now = self.monotonic()
        key = (record.name, record.levelno, str(record.msg))
        window = self._windows.get(key)
        if window is None or now - window.started >= WINDOW_SECONDS:
            window = self._fresh(key, now, record)
        window.written += 1
        if window.written <= REPEATS_MAX:
            return True
        window.held_back += 1
        return False

    def _fresh(self, key: tuple[str, int, str], now: float, record: logging.LogRecord) -> _Window:
        old = self._windows.get(key)
        if old is not None and old.held_back:
            record.__dict__["held_back"] = old.held_back
        if len(self._windows) >= PHRASES_MAX:
            self._windows.clear()
        self._windows[key] = _Window(now)
        return self._windows[key]


class _LineHandler(logging.Handler):
    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._stream.write(self.format(record) + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            return  # the log's reader is gone, and there is nowhere left to say so


def _formatter(form: Format, stream: TextIO) -> logging.Formatter:
    if form == "auto":
        form = "text" if stream.isatty() else "logfmt"
    made: logging.Formatter = {
        "text": TextFormatter,
        "logfmt": LogfmtFormatter,
        "json": JsonFormatter,
    }[form]()
    return JournalFormatter(made) if is_journal(stream, os.environ) else made


def _whole(formatter: logging.Formatter, record: logging.LogRecord) -> dict[str, object]:
    moment = datetime.fromtimestamp(record.created, UTC)
    whole: dict[str, object] = {
        "ts": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "level": record.levelname.lower(),
        "event": _phrase(record),
    }
    if record.name != ROOT:
        whole["logger"] = record.name
    for key, item in _fields(record).items():
        whole[key if key not in whole else f"{key}_"] = item
    traceback = _traceback(formatter, record)
    return {**whole, "traceback": traceback} if traceback else whole


def _fields(record: logging.LogRecord) -> dict[str, object]:
    given: object = getattr(record, "fields", None)
    fields: dict[str, object] = dict(given) if isinstance(given, dict) else {}  # pyright: ignore[reportUnknownArgumentType] - set by `event`
    held_back = getattr(record, "held_back", 0)
    return {**fields, "held_back": held_back} if held_back else fields


def _phrase(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError):
        return str(record.msg)  # a library's phrase that does not fit its arguments


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    if record.exc_info is None or record.exc_info[0] is None:
        return ""
    return formatter.formatException(record.exc_info)


def _value(item: object) -> str:
    text = _text(item)
    if text and _BARE.issuperset(text):
        return text
    return '"' + one_line(text.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def _bare(item: object) -> str:
    """Like `_value`, but without quotes that a reader does not need."""
    text = one_line(_text(item))
    return f'"{text}"' if " " in text and '"' not in text else text


def _text(item: object) -> str:
    if item is None or isinstance(item, bool):
        return json.dumps(item)
    if isinstance(item, float):
        return f"{item:.6g}"
    try:
        return str(item)
    except Exception:  # noqa: BLE001 - a value that cannot be shown must not cost the line
        return f"<{type(item).__name__}>"
