"""Duties and schedules: what one node at a time does for all."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import attrs

from musterd.store.duties import FOLDED_ROWS, DutyNews, DutyRecord, DutyReport, Holder
from musterd.store.nodes import PAUSES_OF_THE_DEAD
from musterd.store.postgres.statements import Execute, Params, Run, numbers, texts, words
from musterd.store.schedules import Fired, Firing, ScheduleRecord, Wish


class PostgresDuties:
    """See `store.duties` for what each method promises."""

    def __init__(self, run: Run, execute: Execute) -> None:
        self._run, self._execute = run, execute

    async def look(self, duties: Sequence[str]) -> DutyNews:
        params = {"duties": texts(duties), "pauses": PAUSES_OF_THE_DEAD}
        ((free, seconds, nodes),) = await self._run("look_at_duties", params)
        return DutyNews(tuple(free), seconds, nodes)

    async def take(self, duties: Sequence[str], holder: Holder) -> frozenset[str]:
        params = {
            "duties": texts(duties),
            "tenant": holder.tenant,
            "node": holder.node,
            "node_id": holder.node_id,
            "term": holder.term,
            "lease_seconds": holder.lease_seconds,
        }
        return frozenset(row[0] for row in await self._run("take_duties", params))

    async def renew(self, reports: Sequence[DutyReport], lease_seconds: float) -> frozenset[str]:
        params = {**_reported(reports), "lease_seconds": lease_seconds}
        return frozenset(row[0] for row in await self._run("renew_duties", params))

    async def release(self, reports: Sequence[DutyReport]) -> None:
        await self._execute("release_duties", _reported(reports))

    async def duties(self) -> list[DutyRecord]:
        return [DutyRecord(*row) for row in await self._run("duties", {})]

    async def fold_counts(self) -> int:
        folded = await self._run("fold_counts", {"rows": FOLDED_ROWS})
        return folded[0][0] if folded else 0


def _reported(reports: Sequence[DutyReport]) -> Params:
    return {
        "duties": texts(one.duty for one in reports),
        "terms": words(one.term for one in reports),
        "runs": numbers(one.runs for one in reports),
        "items": numbers(one.items for one in reports),
        "errors": numbers(one.errors for one in reports),
        "last_errors": texts(one.last_error for one in reports),
        "run_seconds": numbers(one.run_seconds for one in reports),
        "running_seconds": numbers(one.running_seconds for one in reports),
    }


class PostgresSchedules:
    """See `store.schedules` for what each method promises."""

    def __init__(self, run: Run, execute: Execute) -> None:
        self._run, self._execute = run, execute

    async def know(self, names: Sequence[str]) -> list[ScheduleRecord]:
        found = await self._run("know_schedules", {"names": texts(names)})
        by_name = {row[0]: ScheduleRecord(*row) for row in found}
        # Of two nodes that meet a new schedule at once, one may see it only a moment later.
        return [by_name[name] for name in names if name in by_name]

    async def fire(self, firing: Firing) -> Fired:
        ((taken, job_id),) = await self._run("fire_schedule", attrs.asdict(firing))
        return Fired(taken, job_id)

    async def let_go(self, name: str, up_to: datetime, count: int) -> bool:
        params = {"name": name, "up_to": up_to, "count": count}
        return await self._execute("let_slots_go", params) > 0

    async def rewind(self, name: str, ahead: timedelta) -> bool:
        return await self._execute("rewind_schedule", {"name": name, "ahead": ahead}) > 0

    async def steer(self, wish: Wish, name: str) -> bool:
        return await self._execute(f"{wish}_schedule", {"name": name}) > 0
