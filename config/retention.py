"""How long finished jobs are kept, and what happens when their time is up."""

import re
from functools import partial
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

import attrs
from attrs import field, frozen

from musterd.config.faults import Unfit
from musterd.config.validators import Between, Check, at_once

ENDED = ("succeeded", "failed", "canceled")
IN_TABLE = "table"  # the archive that is a table of the store

_HOURS_MAX = 1_000_000
_HOUR = 3_600
_URL_LENGTH_MAX = 2_000
_FUNCTION = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")
_HOOK = 'a URL, or "module:function"'


def _hours() -> Any:
    return field(default=None, validator=attrs.validators.optional(Between(0, _HOURS_MAX)))


@frozen
class Ages:
    """Overrides for some jobs, in hours after their end; None = not set."""

    stale_after_hours: float | None = _hours()
    delete_after_hours: float | None = _hours()


@partial(Check, 'URL, `"module:function"`')
def hook_text(text: str) -> None:
    """Accepts "", a URL without secrets, or the name of a function."""
    if text.startswith(("http://", "https://")):
        _check_hook_url(text)
    elif text and not _FUNCTION.fullmatch(text):
        raise Unfit(_HOOK)


@partial(Check, '`"table"`, absolute path, `""`')
def archive_text(text: str) -> None:
    """Accepts "", "table", or the absolute path of a file."""
    if text in ("", IN_TABLE):
        return
    wanted = f'"", "{IN_TABLE}" or the whole path of a .jsonl file'
    if not text.startswith("/") or not text.isprintable():
        raise Unfit(wanted)
    if PurePosixPath(text).suffix != ".jsonl":
        raise Unfit(wanted, "it holds one JSON object a line")


@frozen
class Retention:
    """What becomes of jobs after they end; hours count from the end of the job."""

    stale_after_hours: float = at_once(
        "after this, a job is marked stale and reported; 0 = never", Between(0, _HOURS_MAX)
    )
    delete_after_hours: float = at_once(
        "after this, a job is deleted; 0 = never, and the table grows forever",
        Between(0, _HOURS_MAX),
    )
    succeeded: Ages = at_once("other hours for jobs that succeeded", is_table=True)
    failed: Ages = at_once("other hours for jobs that failed", is_table=True)
    canceled: Ages = at_once("other hours for jobs that were canceled", is_table=True)
    interval_seconds: float = at_once(
        "time between checks; longer while nothing is due, shorter for short hours",
        Between(1, 24 * _HOUR),
    )
    batch: int = at_once("most jobs marked or deleted in one transaction", Between(1, 1_000))
    on_stale: str = at_once('receives each stale job: a URL, or "module:function"', hook_text)
    on_delete: str = at_once(
        'receives each job before it is deleted: a URL, or "module:function"', hook_text
    )
    archive: str = at_once(
        'where jobs are copied before they are deleted: "table", or /path/to/file.jsonl',
        archive_text,
    )


@frozen
class Kept:
    """How long jobs are kept after their end; None = forever. Never stale after deletion."""

    stale_seconds: float | None
    delete_seconds: float | None


NOTHING = Ages()


def kept(retention: Retention, state: str, own: Ages = NOTHING) -> Kept:
    """The ages for jobs that ended in `state`; `own` are those of their kind. The kind's take
    precedence over the state's, and those over the general ones.
    """
    said: Ages = getattr(retention, state)
    stale = _seconds(own.stale_after_hours, said.stale_after_hours, retention.stale_after_hours)
    delete = _seconds(own.delete_after_hours, said.delete_after_hours, retention.delete_after_hours)
    if delete is not None:
        stale = delete if stale is None else min(stale, delete)
    return Kept(stale, delete)


def is_sound(ages: Ages | Retention) -> bool:
    """Whether jobs go stale before they are deleted, if both ages are set."""
    stale, delete = ages.stale_after_hours, ages.delete_after_hours
    return not stale or not delete or stale <= delete


def function_of(hook: str) -> tuple[str, str] | None:
    """Module and function, if the hook is a function."""
    if not hook or "://" in hook:
        return None
    module, _, function = hook.partition(":")
    return module, function


def _seconds(*said: float | None) -> float | None:
    """The first that is set; None = never."""
    hours = next((each for each in said if each is not None), 0)
    return hours * _HOUR if hours else None


def _check_hook_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise Unfit(_HOOK, "its host or port cannot be read") from None
    if not parts.hostname or port == 0 or not url.isprintable() or " " in url:
        raise Unfit(_HOOK, "its host or port cannot be read")
    if "@" in parts.netloc:
        raise Unfit("a URL without user and password")
    if parts.fragment or len(url) > _URL_LENGTH_MAX:
        raise Unfit(f"a URL without #, of at most {_URL_LENGTH_MAX} characters")
