"""Python's `logging` in handlers that run inside the daemon: it goes to the log of their job, and
not to the daemon's.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from musterd.store.job_log import Voice
from musterd.workers.outcome import Recorder

OWN = "musterd"  # what the daemon says itself is never a job's
SPEAKER: ContextVar[Recorder | None] = ContextVar("musterd_speaker", default=None)
_LEVELS = (
    (logging.CRITICAL, "critical"),
    (logging.ERROR, "error"),
    (logging.WARNING, "warning"),
    (logging.INFO, "info"),
)


@contextmanager
def heard_by(recorder: Recorder) -> Generator[None]:
    """What is logged in this block, and in the tasks that it starts, is in the recorder's log."""
    token = SPEAKER.set(recorder)
    try:
        yield
    finally:
        SPEAKER.reset(token)


def is_of_a_job(record: logging.LogRecord) -> bool:
    """Whether a handler of a job has logged this. To be asked where it was logged."""
    return SPEAKER.get() is not None and record.name.partition(".")[0] != OWN


class _Ear(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        recorder = SPEAKER.get()
        if recorder is None or not is_of_a_job(record):
            return
        try:
            level = next((word for least, word in _LEVELS if record.levelno >= least), "debug")
            recorder.log.say(self.format(record), Voice("logging", level))
        except Exception:  # noqa: BLE001 - as every handler of logging does
            self.handleError(record)


def hear_logging() -> None:
    """From now on, from INFO on unless somebody has set another level; safe to repeat."""
    root = logging.getLogger()
    if not any(isinstance(one, _Ear) for one in root.handlers):
        ear = _Ear()
        ear.setFormatter(logging.Formatter("%(name)s: %(message)s"))
        root.addHandler(ear)
    if root.level == logging.WARNING:
        root.setLevel(logging.INFO)
