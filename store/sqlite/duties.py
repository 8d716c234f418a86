"""The duties in SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import trio

from musterd.store.duties import DutyNews, DutyRecord, DutyReport, Holder
from musterd.store.nodes import PAUSES_OF_THE_DEAD
from musterd.store.sqlite import rows
from musterd.store.sqlite.database import Database
from musterd.store.sqlite.runner import Call


class SqliteDuties:
    """See `store.duties` for what each method promises. A file has one daemon: nobody has to be
    woken when it gives a duty up.
    """

    def __init__(self, call: Call) -> None:
        self._call = call

    async def look(self, duties: Sequence[str]) -> DutyNews:
        return await self._call(look, duties)

    async def take(self, duties: Sequence[str], holder: Holder) -> frozenset[str]:
        return await self._call(take, duties, holder)

    async def renew(self, reports: Sequence[DutyReport], lease_seconds: float) -> frozenset[str]:
        return await self._call(renew, reports, lease_seconds)

    async def release(self, reports: Sequence[DutyReport]) -> None:
        await self._call(release, reports)

    async def duties(self) -> list[DutyRecord]:
        return await self._call(records)

    async def fold_counts(self) -> int:
        await trio.lowlevel.checkpoint()
        return 0  # a single writer counts at once


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
        params = {
            "tenant": holder.tenant,
            "node": holder.node,
            "node_id": holder.node_id.bytes,
            "term": holder.term.bytes,
            "now": now,
            "expires_at": now + rows.microseconds(holder.lease_seconds),
        }
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
            database.execute("release_duty", _params(one, now, None))


def records(database: Database) -> list[DutyRecord]:
    with database.reading("listing duties") as now:
        return [_record(row, now) for row in database.rows("duties")]


def _params(one: DutyReport, now: int, expires_at: int | None) -> rows.Params:
    params = {**one._asdict(), "term": one.term.bytes, "now": now}
    return params if expires_at is None else {**params, "expires_at": expires_at}


def _record(row: rows.Row, now: int) -> DutyRecord:
    duty, node, node_id, term, acquired_at, heartbeat_at, expires_at, last_run_at = row[:8]
    runs, items, errors, last_error, hand_overs = row[8:]
    is_held = term is not None and expires_at > now
    return DutyRecord(
        duty,
        node if is_held else None,
        UUID(bytes=node_id) if is_held else None,
        rows.moment(acquired_at),
        rows.moment(heartbeat_at),
        (now - acquired_at) / rows.SECOND if term is not None else None,
        (expires_at - now) / rows.SECOND if term is not None else None,
        rows.moment(last_run_at),
        runs,
        items,
        errors,
        last_error,
        hand_overs,
        rows.EPOCH + timedelta(microseconds=now),
    )
