"""The schedules in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import attrs

from musterd.store.postgres.arrays import texts
from musterd.store.postgres.parts import Execute, Run
from musterd.store.schedules import Fired, Firing, ScheduleRecord, Wish


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
