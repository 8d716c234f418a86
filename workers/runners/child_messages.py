"""What a child process and the daemon send each other: whose message it is, and what shape it has.

A message is a head (`FRAME`: how many bytes follow, its number, whose it is), a JSON object, a
newline, and a body that the object describes. Each side numbers what it sends, for as long as the
child lives, and each message names the claim that it is about. So one that was sent twice, too late
or by somebody else is never taken for a word about the job in hand. `child.py` has its own copy of
the frame: it runs where nothing of musterd can be imported.
"""

from __future__ import annotations

import json
import struct
from typing import Any, NamedTuple

from musterd.store.leases import Claim
from musterd.workers.context import (
    DELAY_SECONDS_MAX,
    NOTE_LENGTH_MAX,
    Ending,
    keepable,
    shown,
    spent_fault,
)

FRAME = struct.Struct("!IQ24s")
FRAME_BYTES = FRAME.size
_WHOSE = struct.Struct("!q16s")
NOBODY = bytes(_WHOSE.size)  # of a message that is about no job
ENDS = frozenset({"failure", "cancel", "retry", "snooze"})
PERCENT_MAX = 100
NAMES_MAX = 100  # classes that an error derives from
NAME_LENGTH_MAX = 500
_scan = json.JSONDecoder().raw_decode  # quicker than json.loads, which looks for blanks around


class MessageFault(Exception):
    """What came is not what the child may say now. The message says what came."""


class Ready(NamedTuple):
    """It waits for jobs."""


class Ended(NamedTuple):
    """A job's end, and the memory that the child holds after it."""

    ending: Ending
    memory_bytes: int


class Report(NamedTuple):
    """How far the job is, and what it has spent (JSON text); None = nothing new of that."""

    percent: float | None
    note: str | None
    spent: str | None


class Question(NamedTuple):
    """It waits for an answer: the seconds left (None), or the result of the phase of that name."""

    phase: str | None


Message = Ready | Ended | Report | Question


def whose(claim: Claim) -> bytes:
    """By this the messages about a claim are known: a token alone is that of a whole batch."""
    return _WHOSE.pack(claim.id, claim.token.bytes)


class Inbox:
    """Makes messages of the bytes of one child."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._received: bytes | bytearray = b""
        self._heard = 0
        self._about = NOBODY

    def expect(self, about: bytes) -> None:
        """From now on messages are about this."""
        self._about = about

    def add(self, chunk: bytes) -> None:
        if not self._received:
            self._received = chunk
            return
        if not isinstance(self._received, bytearray):
            self._received = bytearray(self._received)
        self._received += chunk

    @property
    def is_empty(self) -> bool:
        return not self._received

    def next(self) -> Message | None:
        """The next message, if it is there whole. Raises MessageFault for one that is foreign, out
        of its turn, too large, or not in shape.
        """
        received = self._received
        if len(received) < FRAME_BYTES:
            return None
        length, number, about = FRAME.unpack_from(received)
        if number != self._heard + 1 or about != self._about:
            raise MessageFault(self._foreign(number, about))
        if length > self._bytes_max:
            raise MessageFault(f"sent {length} bytes, more than {self._bytes_max}")
        end = FRAME_BYTES + length
        if len(received) < end:
            return None
        self._heard = number
        self._received = received[end:]
        return message_of(bytes(received[FRAME_BYTES:end]))

    def _foreign(self, number: int, about: bytes) -> str:
        if about != self._about:
            return "sent a message that is not about the job in hand"
        return f"sent message {number} where {self._heard + 1} was to come"


def message_of(data: bytes) -> Message:
    """Raises MessageFault for what has no known shape."""
    head, _, body = data.partition(b"\n")
    try:
        said: Any = _scan(head.decode())[0]
        text = body.decode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):
        raise MessageFault("sent what is no message") from None
    if not _is_a(said, dict):
        raise MessageFault(f"sent {shown(said)}, which is no message")
    fields: dict[str, Any] = said
    what = fields.get("is")
    if what == "end":
        return _ended(fields, text)
    if what == "note":
        return _report(fields)
    if what == "remaining":
        return Question(None)
    if what == "phase":
        return Question(_text(fields, "name"))
    if what == "ready":
        return Ready()
    raise MessageFault(f"sent {shown(what)}, which means nothing")


def _ended(fields: dict[str, Any], body: str) -> Ended:
    memory_bytes = fields.get("memory_bytes")
    if type(memory_bytes) is not int or memory_bytes < 0:
        raise _not_in_shape("memory_bytes", memory_bytes)
    if "ending" in fields:
        return Ended(_ending(fields["ending"]), memory_bytes)
    return Ended(Ending("success", body if fields.get("result") else None), memory_bytes)


def _ending(value: Any) -> Ending:
    if not _is_a(value, list) or len(value) != len(Ending._fields):
        raise _not_in_shape("ending", value)
    ended, _result, names, message, in_seconds, final, is_crash = value
    if not _is_a(ended, str) or ended not in ENDS:
        raise _not_in_shape("ending", ended)
    if not _is_a(names, list) or not all(_is_a(name, str) for name in names):
        raise _not_in_shape("names", names)
    if not _is_a(message, str):
        raise _not_in_shape("message", message)
    if not _is_a(final, bool) or not _is_a(is_crash, bool):
        raise _not_in_shape("ending", value)
    short = tuple(name[:NAME_LENGTH_MAX] for name in names[:NAMES_MAX])
    return Ending(ended, None, short, message, _delay(ended, in_seconds), final, is_crash)


def _delay(ended: str, seconds: Any) -> float | None:
    if seconds is None:
        if ended == "snooze":
            raise _not_in_shape("in_seconds", seconds)
        return None
    if not _is_a(seconds, int, float) or not 0 <= seconds <= DELAY_SECONDS_MAX:
        raise _not_in_shape("in_seconds", seconds)
    return float(seconds)


def _report(fields: dict[str, Any]) -> Report:
    percent, note, spent = fields.get("percent"), fields.get("note"), fields.get("spent")
    if percent is not None:
        if not _is_a(percent, int, float) or not 0 <= percent <= PERCENT_MAX:
            raise _not_in_shape("percent", percent)
        percent = float(percent)
    if note is not None:
        if not _is_a(note, str):
            raise _not_in_shape("note", note)
        note = keepable(note)[:NOTE_LENGTH_MAX]
    if spent is not None:
        if not _is_a(spent, dict) or spent_fault(spent) is not None:
            raise _not_in_shape("spent", spent)
        spent = json.dumps(spent)
    return Report(percent, note, spent)


def _text(fields: dict[str, Any], key: str) -> str:
    value = fields.get(key)
    if type(value) is not str:
        raise _not_in_shape(key, value)
    return value


def _is_a(value: Any, *types: type) -> bool:
    """Exactly: to Python True is an int. Comparing with a bound sorts out what is not finite."""
    return type(value) in types


def _not_in_shape(key: str, found: object) -> MessageFault:
    return MessageFault(f"sent {key} = {shown(found)}")
