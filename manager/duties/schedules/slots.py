"""Which slots of a schedule are to be seen to, and how: pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice, zip_longest

import attrs

from musterd.config.cron import Rhythm
from musterd.config.schedules import Missed

ON_TIME = timedelta(seconds=30)  # a slot that is older has been missed
MISSED_MAX = 1000  # with `missed = "all"`: of more, the latest
_FIRST_SPAN = timedelta(minutes=1)
_AT_A_TIME_MAX = MISSED_MAX + 1


@attrs.frozen
class Seeing:
    """What to do now. Slots up to `let_go_to` are left out, `let_go` of them as far as counted;
    then those of `fire` are fired in their order. `following` is the slot that comes next.
    """

    following: datetime | None
    fire: tuple[datetime, ...] = ()
    let_go_to: datetime | None = None
    let_go: int = 0


def seeing(rhythm: Rhythm, last_slot: datetime, now: datetime, missed: Missed) -> Seeing:
    """What becomes of the slots after `last_slot` up to `now`."""
    found, following = _latest(rhythm, last_slot, now)
    on_time = [slot for slot in found if now - slot <= ON_TIME]
    late = found[: len(found) - len(on_time)]
    kept = {"skip": 0, "once": 1, "all": MISSED_MAX}[missed]
    wanted = late[max(0, len(late) - kept) :]
    left_out = late[: len(late) - len(wanted)]
    if not left_out:
        return Seeing(following, tuple(wanted + on_time))
    return Seeing(following, tuple(wanted + on_time), left_out[-1], len(left_out))


def let_all_go(rhythm: Rhythm, last_slot: datetime, now: datetime) -> Seeing:
    """For a schedule that is switched off: its slots are nobody's."""
    found, _ = _latest(rhythm, last_slot, now)
    return Seeing(None, (), found[-1] if found else None)


def upcoming(rhythm: Rhythm, after: datetime, count: int) -> list[datetime]:
    """The next slots, at most so many."""
    found: list[datetime] = []
    for slot in _slots(rhythm, after):
        if len(found) == count:
            break
        found.append(slot)
    return found


def in_turns(wanted: Mapping[str, Sequence[datetime]], most: int) -> list[tuple[str, datetime]]:
    """The first `most` slots of several schedules: the first of each, then the second of each, …
    So one that has missed a thousand keeps none of the others waiting.
    """
    rows = zip_longest(*wanted.values())
    turns = ((name, slot) for row in rows for name, slot in zip(wanted, row, strict=True))
    return list(islice(((name, slot) for name, slot in turns if slot is not None), most))


def _latest(
    rhythm: Rhythm, last_slot: datetime, now: datetime
) -> tuple[list[datetime], datetime | None]:
    """The slots after `last_slot` up to `now`, in their order, of very many the latest ones; and
    the one after these.

    Mostly the first slot is still to come, and that is all. Else, where there are many, goes back
    step by step: however long nobody was there, and however unevenly they lie, only so many are
    computed.
    """
    found, following = _within(rhythm, last_slot, now)
    if found is not None:
        return found[-MISSED_MAX - 1 :], following
    found = []
    span, end = _FIRST_SPAN, now
    while end > last_slot and len(found) <= MISSED_MAX:
        start = max(last_slot, end - span)
        earlier, _ = _within(rhythm, start, end)
        if earlier is None:
            span /= 4
            continue
        found, end = earlier + found, start
        span *= 2
    return found[-MISSED_MAX - 1 :], rhythm.next_after(now)


def _within(
    rhythm: Rhythm, start: datetime, end: datetime
) -> tuple[list[datetime] | None, datetime | None]:
    """The slots after `start` up to `end`, None = more than are worth computing at a time; and the
    one after these.
    """
    found: list[datetime] = []
    for slot in _slots(rhythm, start):
        if slot > end:
            return found, slot
        if len(found) == _AT_A_TIME_MAX:
            return None, None
        found.append(slot)
    return found, None


def _slots(rhythm: Rhythm, after: datetime) -> Iterator[datetime]:
    slot = rhythm.next_after(after)
    while slot is not None:
        yield slot
        slot = rhythm.next_after(slot)
