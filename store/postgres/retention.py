"""Retention in PostgreSQL."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import attrs
import psycopg
import trio

from musterd.store.control import Deletion, Obstacle, obstacle_of
from musterd.store.jobs import JobRecord
from musterd.store.lifecycle import JobState
from musterd.store.postgres.connection import Pool, TrioConnection
from musterd.store.postgres.control import ID_MAX
from musterd.store.postgres.statements import Params, Row, Run, numbers, texts
from musterd.store.postgres.time_limit import TimeLimit
from musterd.store.retention import (
    MESSAGES_KEPT_SECONDS,
    BatchResult,
    DeleteRequest,
    JobPosition,
    Keeper,
    Kept,
    RetentionTask,
    apart,
    rules_of,
)

Send = Callable[[TrioConnection, str, Params], Awaitable[psycopg.AsyncCursor[Row]]]
Whole = Callable[[Sequence[Row], Run], Awaitable[list[JobRecord]]]


# Jobs that ended within one hundredth of what they are kept for, and within a minute, go together.
CLOSE_SHARE = 0.01
CLOSE_SECONDS_MAX = 60.0


@attrs.frozen
class PostgresRetention:
    """See `store.retention` for what each method promises. `whole` makes records of jobs' rows."""

    pool: Pool
    run: Run
    send: Send
    whole: Whole
    timeout_seconds: float

    async def mark(self, task: RetentionTask, after: JobPosition | None) -> BatchResult:
        if after is None:
            await self.run("gather_endings", _closeness(task))
        ((done, *further),) = await self.run("mark_stale", _walk(task, after, stale=False))
        return BatchResult(done, _place(further))

    async def delete(self, task: RetentionTask, after: JobPosition | None) -> BatchResult:
        with TimeLimit(self.timeout_seconds, "deleting jobs"):
            async with self.pool.use("deleting jobs") as conn:
                await conn.execute("begin", prepare=False)
                walked = await self.send(conn, "pick_expired", _walk(task, after, stale=True))
                ((ids, endings, *further),) = await walked.fetchall()
                done = await self._delete(conn, ids, endings, task) if ids else 0
                await conn.execute("commit", prepare=False)
        return BatchResult(done, _place(further))

    async def delete_one(self, job_id: int, request: DeleteRequest) -> Deletion:
        if abs(job_id) > ID_MAX:
            await trio.lowlevel.checkpoint()
            return Deletion(None)
        with TimeLimit(self.timeout_seconds, "deleting a job"):
            async with self.pool.use("deleting a job") as conn:
                await conn.execute("begin", prepare=False)
                found = await self._stand(conn, job_id)
                if found.is_done and not await self._delete(conn, [job_id], [], request):
                    found = found._replace(obstacle=Obstacle.BUSY)
                await conn.execute("commit", prepare=False)
        return found

    async def _stand(self, conn: TrioConnection, job_id: int) -> Deletion:
        await self.send(conn, "lock_one", {"id": job_id})
        rows = await (await self.send(conn, "pick_one", {"id": job_id})).fetchall()
        if not rows:
            return Deletion(None)
        ((state, target, halts, is_untold),) = rows
        obstacle = obstacle_of(JobState(state), halts=halts, is_untold=is_untold)
        return Deletion(JobState(state), target, obstacle)

    async def _delete(
        self,
        conn: TrioConnection,
        ids: Sequence[int],
        endings: Sequence[int],
        task: RetentionTask | DeleteRequest,
    ) -> int:
        """An ending that is not among `endings` may go on naming them, in vain."""
        objects = await self._kept(conn, ids, task.keeper) if task.keeper else {}
        params = {
            "ids": numbers(ids),
            "endings": numbers(endings),
            "hook": task.hook,
            "by": task.by if isinstance(task, DeleteRequest) else None,
            "object_ids": numbers(objects),
            "archived": texts(one.archived for one in objects.values()),
            "sent": texts(one.sent for one in objects.values()),
        }
        deleted = await self.send(conn, "delete_expired", params)
        ((done,),) = await deleted.fetchall()
        return int(done)

    async def _kept(
        self, conn: TrioConnection, ids: Sequence[int], keeper: Keeper
    ) -> dict[int, Kept]:
        async def run(name: str, params: Params) -> list[Row]:
            return await (await self.send(conn, name, params)).fetchall()

        records = await self.whole(await run("jobs_of", {"ids": numbers(ids)}), run)
        kept = await apart(partial(keeper, records))
        return {record.id: one for record, one in zip(records, kept, strict=True)}

    async def forget_leftovers(self, batch: int) -> int:
        params = {"batch": batch, "age": MESSAGES_KEPT_SECONDS}
        ((done,),) = await self.run("forget_leftovers", params)
        return int(done)


def _walk(task: RetentionTask, after: JobPosition | None, *, stale: bool) -> Params:
    rules = rules_of(task.ages)
    place = after or ("", "", "-infinity", 0)
    return {
        "states": texts(state for state, _, _ in rules),
        "kinds": texts(kind for _, kind, _ in rules),
        "ages": numbers(age for _, _, age in rules),
        "after_state": place[0],
        "after_kind": place[1],
        "after_at": place[2],
        "after_id": place[3],
        "stale": stale,
        "batch": task.batch,
        "hook": task.hook,
    }


def _closeness(task: RetentionTask) -> Params:
    """What counts as one moment, of jobs that are kept for so long."""
    shortest = task.ages.shortest or 0.0
    close_seconds = min(CLOSE_SECONDS_MAX, max(shortest * CLOSE_SHARE, 0.001))
    return {"stale": False, "after_state": "", "after_kind": "", "close_seconds": close_seconds}


def _place(found: Sequence[Any]) -> JobPosition | None:
    """Here the id is that of an ending, and the time its own."""
    return None if found[0] is None else JobPosition._make(found)
