"""Retention: ended jobs become stale, then are deleted. Each call is one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

from musterd.store.control import Deletion, obstacle_of
from musterd.store.jobs import JobRecord
from musterd.store.lifecycle import JobState
from musterd.store.retention import (
    DELETED,
    MESSAGES_KEPT_SECONDS,
    STALE,
    BatchResult,
    DeleteRequest,
    JobPosition,
    Kept,
    RetentionTask,
)
from musterd.store.sqlite import rows
from musterd.store.sqlite.database import Aside, Call, Database, Part, called
from musterd.store.sqlite.hints import Hints
from musterd.store.sqlite.job_events import About, JobEvents
from musterd.store.sqlite.jobs import record

T = TypeVar("T")
ENDED = (JobState.CANCELED, JobState.FAILED, JobState.SUCCEEDED)  # as they are sorted
HALTS_NOTHING = "(state <> 'failed' or target is null or cleared_at is not null)"
TO_MARK = (
    "(state = 'succeeded' or state = 'failed' or state = 'canceled') and stale_at is null"
    f" and {HALTS_NOTHING}"
)
TO_DELETE = f"stale_at is not null and {HALTS_NOTHING}"
NOTHING_KEPT = Kept(None, None)


def mark(database: Database, task: RetentionTask, after: JobPosition | None) -> BatchResult:
    with database.writing("marking stale jobs") as now:
        looked = _looked(database, TO_MARK, task, (after, now))
        events = JobEvents(database, now)
        done = 0
        for place in _without_messages(database, looked):
            ((*about,),) = database.rows("mark_stale", {"id": place.id, "now": now})
            _record(events, About(*about), {"state": place.state}, (STALE, task.hook, None))
            done += 1
        events.write()
    return BatchResult(done, _further(looked, task))


def expired(database: Database, task: RetentionTask, after: JobPosition | None) -> list[JobRecord]:
    """The jobs of the next batch, for their keeper."""
    with database.reading("reading jobs that go") as now:
        looked = _looked(database, TO_DELETE, task, (after, now))
        return [record(database, place.id) for place in _without_messages(database, looked)]


def delete(
    database: Database,
    task: RetentionTask,
    after: JobPosition | None,
    given: Mapping[int, Kept] | None = None,
) -> BatchResult:
    """`given`: what the keeper gave for each of the jobs that may go; None = it has none."""
    with database.writing("deleting jobs") as now:
        looked = _looked(database, TO_DELETE, task, (after, now))
        places = _without_messages(database, looked)
        going = [place for place in places if given is None or place.id in given]
        events = JobEvents(database, now)
        for place in going:
            _go(events, place, NOTHING_KEPT if given is None else given[place.id], task)
        events.write()
    return BatchResult(len(going), _further(looked, task))


def prospect(database: Database, job_id: int) -> tuple[Deletion, JobRecord | None]:
    """What a request to delete it would come to, and the job for its keeper if that is to go."""
    with database.reading("looking at a job"):
        found = _stand(database, job_id)
        return found, record(database, job_id) if found.is_done else None


def delete_one(
    database: Database, job_id: int, request: DeleteRequest, kept: Kept = NOTHING_KEPT
) -> Deletion:
    with database.writing("deleting a job") as now:
        found = _stand(database, job_id)
        if found.is_done and found.state is not None:
            events = JobEvents(database, now)
            place = JobPosition(found.state.value, "", rows.EPOCH, job_id)
            _go(events, place, kept, request)
            events.write()
    return found


def _stand(database: Database, job_id: int) -> Deletion:
    rows_of_it = database.rows("stand_of", {"id": job_id}) if abs(job_id) <= rows.ID_MAX else []
    if not rows_of_it:
        return Deletion(None)
    ((state, _request, target, _kind, _attempt, cleared_at, _webhook),) = rows_of_it
    halts = state == JobState.FAILED and target is not None and cleared_at is None
    is_untold = bool(database.rows("message_waits", {"id": job_id}))
    obstacle = obstacle_of(JobState(state), halts=halts, is_untold=is_untold)
    return Deletion(JobState(state), target, obstacle)


def _go(
    events: JobEvents, place: JobPosition, kept: Kept, task: RetentionTask | DeleteRequest
) -> None:
    about = _delete(events.database, place.id, events.now)
    if kept.archived is not None:
        archived = {"id": place.id, "job": kept.archived, "now": events.now}
        events.database.execute("archive_job", archived)
    data = {"by": task.by} if isinstance(task, DeleteRequest) else {}
    _record(events, about, {"state": place.state, **data}, (DELETED, task.hook, kept.sent))


def forget_leftovers(database: Database, batch: int) -> int:
    with database.writing("forgetting leftovers") as now:
        keys = database.execute("forget_keys", {"now": now, "count": batch}).rowcount
        until = now - rows.microseconds(MESSAGES_KEPT_SECONDS)
        messages = database.execute("forget_messages", {"until": until, "count": batch}).rowcount
    return keys + messages


def _looked(
    database: Database, which: str, task: RetentionTask, since: tuple[JobPosition | None, int]
) -> list[JobPosition]:
    """The next jobs whose time has come, at most a batch of them."""
    looked: list[JobPosition] = []
    for place, until in _groups(database, which, task, since):
        params = {
            "state": place.state,
            "kind": place.kind,
            "until": until,
            "after_at": rows.stamp(place.finished_at),
            "after_id": place.id,
            "count": task.batch - len(looked),
        }
        for finished_at, job_id in database.execute_filled("ended_jobs", params, which=which):
            ended = rows.moment_at(finished_at)
            looked.append(JobPosition(place.state, place.kind, ended, job_id))
        if len(looked) == task.batch:
            break
    return looked


def _groups(
    database: Database, which: str, task: RetentionTask, since: tuple[JobPosition | None, int]
) -> Iterator[tuple[JobPosition, int]]:
    """Where to begin in each kind and state, and up to which end their time has come."""
    after, now = since
    if after is not None and (until := _until(task, after, now)) is not None:
        yield after, until
    for state in ENDED:
        if after is not None and state < after.state:
            continue
        kind = after.kind if after is not None and state == after.state else ""
        wanted = {"state": state.value}
        while found := database.execute_filled(
            "ended_kind", {**wanted, "kind": kind}, which=which
        ).fetchall():
            kind = found[0][0]
            place = JobPosition(state.value, kind, rows.EPOCH, 0)
            until = _until(task, place, now)
            if until is not None:
                yield place, until


def _until(task: RetentionTask, place: JobPosition, now: int) -> int | None:
    age = task.ages.of(JobState(place.state), place.kind)
    return None if age is None else now - rows.microseconds(age)


def _without_messages(database: Database, looked: Sequence[JobPosition]) -> Iterator[JobPosition]:
    for place in looked:
        if not database.rows("message_waits", {"id": place.id}):
            yield place


def _delete(database: Database, job_id: int, now: int) -> About:
    wanted = {"id": job_id}
    ((*about, key),) = database.rows("delete_expired", wanted)
    for name in ("delete_attempts", "delete_phases", "delete_messages"):
        database.execute(name, wanted)
    if key is not None:
        database.execute("delete_key", {**wanted, "key": key, "now": now})
    return About(*about)


def _record(
    events: JobEvents,
    about: About,
    data: Mapping[str, object],
    what: tuple[str, str | None, str | None],
) -> None:
    type_, hook, body = what
    events.record(type_, about._replace(attempt=None), data)
    if hook is not None:
        message = {"id": about.id, "hook": hook, "type": type_, "attempt": about.attempt}
        events.database.execute("add_message", {**message, "now": events.now, "body": body})


def _further(looked: Sequence[JobPosition], task: RetentionTask) -> JobPosition | None:
    return looked[-1] if len(looked) == task.batch else None


class SqliteRetention(Part):
    """See `store.retention` for what each method promises."""

    def __init__(self, call: Call, hints: Hints, aside: Aside) -> None:
        super().__init__(call, hints)
        self._aside = aside

    mark = called(mark)
    forget_leftovers = called(forget_leftovers)

    async def delete(self, task: RetentionTask, after: JobPosition | None) -> BatchResult:
        """The keeper has a thread of its own: a disk that hangs must not hold up the database."""
        if task.keeper is None:
            return await self.call(delete, task, after)
        jobs = await self.call(expired, task, after)
        kept = await self._aside(partial(task.keeper, jobs)) if jobs else ()
        given = {job.id: one for job, one in zip(jobs, kept, strict=True)}
        return await self.call(delete, task, after, given)

    async def delete_one(self, job_id: int, request: DeleteRequest) -> Deletion:
        if request.keeper is None:
            return await self.call(delete_one, job_id, request)
        found, job = await self.call(prospect, job_id)
        if job is None:
            return found
        (kept,) = await self._aside(partial(request.keeper, [job]))
        return await self.call(delete_one, job_id, request, kept)
