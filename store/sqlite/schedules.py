"""The schedules in SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from musterd.store.jobs import NewJob
from musterd.store.schedules import Fired, Firing, ScheduleRecord, Wish
from musterd.store.sqlite import rows, writing
from musterd.store.sqlite.database import Database
from musterd.store.sqlite.hints import Hints
from musterd.store.sqlite.runner import Call


class SqliteSchedules:
    """See `store.schedules` for what each method promises."""

    def __init__(self, call: Call, hints: Hints) -> None:
        self._call, self._hints = call, hints

    async def know(self, names: Sequence[str]) -> list[ScheduleRecord]:
        return await self._call(know, names)

    async def fire(self, firing: Firing) -> Fired:
        fired = await self._call(fire, firing)
        if fired.job_id is not None:
            self._hints.ring()
        return fired

    async def let_go(self, name: str, up_to: datetime, count: int) -> bool:
        return await self._call(let_go, name, up_to, count)

    async def rewind(self, name: str, ahead: timedelta) -> bool:
        return await self._call(rewind, name, ahead)

    async def steer(self, wish: Wish, name: str) -> bool:
        return await self._call(steer, wish, name)


def know(database: Database, names: Sequence[str]) -> list[ScheduleRecord]:
    with database.reading("looking at schedules") as now:
        found = {name: database.rows("know_schedule", {"name": name}) for name in names}
    unknown = [name for name, known in found.items() if not known]
    if unknown:
        with database.writing("beginning schedules") as now:
            for name in unknown:
                database.execute("begin_schedule", {"name": name, "now": now})
                found[name] = database.rows("know_schedule", {"name": name})
    return [_record(found[name][0], now) for name in names]


def fire(database: Database, firing: Firing) -> Fired:
    slot = None if firing.slot is None else rows.stamp(firing.slot)
    with database.writing("firing a schedule") as now:
        database.execute("begin_schedule", {"name": firing.schedule, "now": now})
        took = database.execute("take_slot", {"name": firing.schedule, "slot": slot})
        if not took.rowcount:
            return Fired(False, None)
        job_id = None
        if not (firing.skip_if_busy and _is_busy(database, firing.schedule)):
            job_id = writing.make(database, [_job(firing)], now)[0].id
        noted = {"name": firing.schedule, "slot": slot, "job_id": job_id, "now": now}
        database.execute("note_firing", noted)
    return Fired(True, job_id)


def let_go(database: Database, name: str, up_to: datetime, count: int) -> bool:
    with database.writing("leaving slots out"):
        params = {"name": name, "up_to": rows.stamp(up_to), "count": count}
        return database.execute("let_slots_go", params).rowcount == 1


def rewind(database: Database, name: str, ahead: timedelta) -> bool:
    with database.writing("beginning a schedule anew") as now:
        params = {"name": name, "now": now, "ahead": ahead // timedelta(microseconds=1)}
        return database.execute("rewind_schedule", params).rowcount == 1


def steer(database: Database, wish: Wish, name: str) -> bool:
    with database.writing("steering a schedule") as now:
        if wish == "pause":
            database.execute("begin_schedule", {"name": name, "now": now})
        return database.execute(f"{wish}_schedule", {"name": name, "now": now}).rowcount == 1


def _is_busy(database: Database, name: str) -> bool:
    ((busy,),) = database.rows("busy_schedule", {"name": name})
    return bool(busy)


def _job(firing: Firing) -> NewJob:
    return NewJob(
        kind=firing.kind, payload=firing.payload, priority=firing.priority, target=firing.target
    )


def _record(row: rows.Row, now: int) -> ScheduleRecord:
    name, last_slot, last_fired_at, job_id, state, fired, skipped, missed, paused_at = row
    began, moment = rows.moment(last_slot), rows.moment(now)
    assert began is not None  # neither is ever null
    assert moment is not None
    return ScheduleRecord(
        name, began, rows.moment(last_fired_at), job_id, state, fired, skipped, missed,
        rows.moment(paused_at), moment,
    )  # fmt: skip
