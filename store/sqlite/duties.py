"""Duties and schedules: what one node does for all."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

import attrs

from musterd.store.duties import DutyNews, DutyRecord, DutyReport, Holder
from musterd.store.jobs import NewJob
from musterd.store.nodes import PAUSES_OF_THE_DEAD
from musterd.store.schedules import Fired, Firing, ScheduleRecord, Wish
from musterd.store.sqlite import rows
from musterd.store.sqlite.database import Database, Part, answers, called
from musterd.store.sqlite.jobs import make


def look(database: Database, duties: Sequence[str]) -> DutyNews:
    with database.reading("looking at duties") as now:
        ends = {
            duty: expires_at
            for duty, term, _, expires_at, _ in database.rows("held_duties")
            if term is not None and expires_at > now
        }
        ((nodes,),) = database.rows("live_nodes", {"now": now, "pauses": PAUSES_OF_THE_DEAD})
    held = [ends[duty] for duty in duties if duty in ends]
    seconds = (min(held) - now) / rows.SECOND if held else None
    return DutyNews(tuple(sorted(set(duties) - ends.keys())), seconds, nodes)


def take(database: Database, duties: Sequence[str], holder: Holder) -> frozenset[str]:
    with database.writing("taking duties") as now:
        params = attrs.asdict(holder) | {"node_id": holder.node_id.bytes, "term": holder.term.bytes}
        params |= {"now": now, "expires_at": now + rows.microseconds(holder.lease_seconds)}
        return frozenset(
            duty
            for duty in duties
            if database.execute("take_duty", {**params, "duty": duty}).rowcount
        )


def renew(
    database: Database, reports: Sequence[DutyReport], lease_seconds: float
) -> frozenset[str]:
    with database.writing("renewing duties") as now:
        expires_at = now + rows.microseconds(lease_seconds)
        return frozenset(
            one.duty
            for one in reports
            if database.execute("renew_duty", _params(one, now, expires_at)).rowcount
        )


def release(database: Database, reports: Sequence[DutyReport]) -> None:
    with database.writing("giving duties up") as now:
        for one in reports:
            database.execute("release_duty", _params(one._replace(running_seconds=None), now, None))


def records(database: Database) -> list[DutyRecord]:
    with database.reading("listing duties") as now:
        return [_duty_record(row, now) for row in database.rows("duties")]


def _params(one: DutyReport, now: int, expires_at: int | None) -> rows.Params:
    running = one.running_seconds
    since = None if running is None else now - rows.microseconds(running)
    params = {**one._asdict(), "term": one.term.bytes, "now": now, "running_since": since}
    return params if expires_at is None else {**params, "expires_at": expires_at}


def _duty_record(row: rows.Row, now: int) -> DutyRecord:
    duty, node, node_id, term, acquired_at, heartbeat_at, expires_at, last_run_at = row[:8]
    runs, items, errors, last_error, hand_overs, run_seconds, running_since = row[8:]
    is_held = term is not None and expires_at > now
    node, node_id = (node, UUID(bytes=node_id)) if is_held else (None, None)
    since = left = running = None
    if is_held and running_since is not None:
        running = (now - running_since) / rows.SECOND
    if term is not None:
        since, left = (now - acquired_at) / rows.SECOND, (expires_at - now) / rows.SECOND
    return DutyRecord(
        duty, node, node_id, rows.moment(acquired_at), rows.moment(heartbeat_at), since, left,
        rows.moment(last_run_at), runs, items, errors, last_error, hand_overs, run_seconds, running,
        rows.moment_at(now),
    )  # fmt: skip


def know(database: Database, names: Sequence[str]) -> list[ScheduleRecord]:
    with database.reading("looking at schedules") as now:
        found = {name: database.rows("know_schedule", {"name": name}) for name in names}
    unknown = [name for name, known in found.items() if not known]
    if unknown:
        with database.writing("beginning schedules") as now:
            for name in unknown:
                database.execute("begin_schedule", {"name": name, "now": now})
                found[name] = database.rows("know_schedule", {"name": name})
    return [_schedule_record(found[name][0], now) for name in names]


def fire(database: Database, firing: Firing) -> Fired:
    slot = None if firing.slot is None else rows.stamp(firing.slot)
    with database.writing("firing a schedule") as now:
        database.execute("begin_schedule", {"name": firing.schedule, "now": now})
        took = database.execute("take_slot", {"name": firing.schedule, "slot": slot})
        if not took.rowcount:
            return Fired(False, None)
        job_id = None
        if not (firing.skip_if_busy and _is_busy(database, firing.schedule)):
            job_id = make(database, [_job(firing)], now)[0].id
            made = {"id": job_id, "schedule": firing.schedule, "slot": slot}
            database.execute("mark_scheduled", made)
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


def _schedule_record(row: rows.Row, now: int) -> ScheduleRecord:
    name, last_slot, last_fired_at, job_id, state, fired, skipped, missed, paused_at = row
    fired_at, paused, now_ = rows.moment(last_fired_at), rows.moment(paused_at), rows.moment_at(now)
    slot = rows.moment_at(last_slot)
    return ScheduleRecord(name, slot, fired_at, job_id, state, fired, skipped, missed, paused, now_)


class SqliteDuties(Part):
    """See `store.duties` for what each method promises. A file has one daemon: nobody has to be
    woken when it gives a duty up.
    """

    look = called(look)
    take = called(take)
    renew = called(renew)
    release = called(release)
    duties = called(records)
    fold_counts = answers(0)


class SqliteSchedules(Part):
    """See `store.schedules` for what each method promises."""

    know = called(know)
    let_go = called(let_go)
    rewind = called(rewind)
    steer = called(steer)

    async def fire(self, firing: Firing) -> Fired:
        fired = await self.call(fire, firing)
        if fired.job_id is not None:
            self._hints.ring()
        return fired
