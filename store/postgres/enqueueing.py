"""Enqueueing on PostgreSQL as programs: what is asked, in which order. A program asks nothing
itself: one driver carries it out over a plain connection, one over an async one.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias, TypeVar

import psycopg
from psycopg.rows import tuple_row

from musterd.config.job_options import NAMES, OPTIONS
from musterd.store.input import JobWanted, new_jobs
from musterd.store.jobs import NewJob
from musterd.store.lifecycle import Action
from musterd.store.postgres.jobs import new_job_params
from musterd.store.postgres.statements import Row, fill
from musterd.store.sqlfiles import load_statements

T = TypeVar("T")


class Ask(NamedTuple):
    """A statement whose rows are wanted."""

    statement: bytes
    params: Any = None
    binary: bool = False


class CopyIn(NamedTuple):
    """A COPY of these lines; there are no rows."""

    statement: bytes
    parts: Iterable[str]


Program: TypeAlias = Generator[Ask | CopyIn, list[Row], T]

_ARGUMENTS = (f"{one.name} => %({one.name})s::{one.type.sql}" for one in OPTIONS)
CALL = f"select {{schema}}.enqueue(%(kind)s, {', '.join(_ARGUMENTS)})"
CALL_MANY = "select {schema}.enqueue_many(%s::jsonb)"
CALL_ACTION = "select {schema}.%s(%%s::bigint)"
MAY_INSERT = """select has_table_privilege('{schema}.job_rows', 'insert')
    and has_table_privilege('{schema}.kind_rules', 'select')"""


# The sequence is looked up once, in a subselect of its own, and not for every id. The priorities of
# kinds come with them.
NEW_IDS = """select array_agg(nextval((
        select pg_get_serial_sequence('{schema}.job_rows', 'id')::regclass))),
    (select coalesce(jsonb_object_agg(kind, priority), '{}')
     from {schema}.kind_rules where priority <> 0)
    from generate_series(1, %s)"""


COPY = (
    "copy {schema}.job_rows (id, kind, payload, priority, max_attempts, state, target) from stdin"
)
COPIED = frozenset({"payload", "priority", "max_attempts", "hold", "target"})
NOT_COPIED = tuple(name for name in NAMES if name not in COPIED)
DEFAULTS_NOT_COPIED = tuple(NewJob._field_defaults[name] for name in NOT_COPIED)
COPY_JOBS = 500
ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
_not_copied = attrgetter(*NOT_COPIED)


def enqueue(schema: str, jobs: Sequence[NewJob]) -> Program[list[int]]:
    """Makes all of the jobs; gives their ids in order."""
    sql = statements_for_clients(schema)
    if len(jobs) == 1:
        return (yield from enqueue_one(schema, jobs[0]))
    if not (yield Ask(sql["may_insert"]))[0][0]:
        found = yield Ask(sql["enqueue_many"], [jobs_text(jobs)])
    elif any(job.dedup_key is not None for job in jobs):
        found = yield Ask(sql["enqueue_keyed"], new_job_params(jobs))
    elif all(_is_plain(job) for job in jobs):
        parts = (jobs[first : first + COPY_JOBS] for first in range(0, len(jobs), COPY_JOBS))
        return (yield from _copy(sql, len(jobs), parts))
    else:
        found = yield Ask(sql["enqueue"], new_job_params(jobs))
    return [row[0] for row in found]


def enqueue_one(schema: str, job: NewJob) -> Program[list[int]]:
    found = yield Ask(statements_for_clients(schema)["enqueue_one"], _arguments(job))
    return [found[0][0]]


def enqueue_pairs(schema: str, pairs: Sequence[JobWanted]) -> Program[list[int]]:
    """The server takes in one part while the next is checked. What is found to be no job undoes the
    transaction.
    """
    sql = statements_for_clients(schema)
    if len(pairs) == 1 or not (yield Ask(sql["may_insert"]))[0][0]:
        return (yield from enqueue(schema, new_jobs(pairs)))
    firsts = range(0, len(pairs), COPY_JOBS)
    parts = (new_jobs(pairs[first : first + COPY_JOBS], before=first) for first in firsts)
    return (yield from _copy(sql, len(pairs), parts))


def jobs_text(jobs: Iterable[NewJob]) -> str:
    """The argument of the SQL function `enqueue_many`."""
    given = [{**_arguments(job), "payload": json.loads(job.payload)} for job in jobs]
    return json.dumps(given, default=datetime.isoformat)


@cache
def statements_for_clients(schema: str) -> Mapping[str, bytes]:
    calls = {"enqueue_one": CALL, "enqueue_many": CALL_MANY, "may_insert": MAY_INSERT}
    calls |= {"new_ids": NEW_IDS, "copy": COPY}
    actions = {action.value: CALL_ACTION % action.value for action in Action}
    texts = {**load_statements("musterd.store.postgres"), **calls, **actions}
    return {name: fill(text, schema).encode() for name, text in texts.items()}


def carry_out(conn: psycopg.Connection[Any], program: Program[T]) -> T:
    """Over a connection, whatever its own cursors and rows are like."""
    answer: Any = None
    try:
        while True:
            answer = _step(conn, program.send(answer))
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        program.close()


async def carry_out_async(conn: psycopg.AsyncConnection[Any], program: Program[T]) -> T:
    """As `carry_out`."""
    answer: Any = None
    try:
        while True:
            answer = await _step_async(conn, program.send(answer))
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        program.close()


def _step(conn: psycopg.Connection[Any], step: Ask | CopyIn) -> list[Row]:
    # A plain cursor: the connection's own may give rows as dicts, or want other parameters.
    with psycopg.Cursor(conn, row_factory=tuple_row) as cursor:
        if isinstance(step, Ask):
            cursor.execute(step.statement, step.params, binary=step.binary)
            return cursor.fetchall()
        with cursor.copy(step.statement) as copy:
            for part in step.parts:
                copy.write(part)
    return []


async def _step_async(conn: psycopg.AsyncConnection[Any], step: Ask | CopyIn) -> list[Row]:
    async with psycopg.AsyncCursor(conn, row_factory=tuple_row) as cursor:
        if isinstance(step, Ask):
            await cursor.execute(step.statement, step.params, binary=step.binary)
            return await cursor.fetchall()
        async with cursor.copy(step.statement) as copy:
            for part in step.parts:
                await copy.write(part)
    return []


def _arguments(job: NewJob) -> dict[str, Any]:
    """Of the SQL function, by name."""
    scope = None if job.dedup_key is None else str(job.dedup_scope)
    return {**job._asdict(), "dedup_scope": scope}


def _is_plain(job: NewJob) -> bool:
    """Whether it has only options that are columns of the COPY."""
    return _not_copied(job) == DEFAULTS_NOT_COPIED


def _copy(
    sql: Mapping[str, bytes], count: int, parts: Iterable[Sequence[NewJob]]
) -> Program[list[int]]:
    """The fastest way in: ids first, then the rows by COPY, part by part."""
    ids: list[int]
    of_kinds: dict[str, int]
    ids, of_kinds = (yield Ask(sql["new_ids"], [count], binary=True))[0]
    free_ids = iter(ids)
    yield CopyIn(
        sql["copy"],
        ("".join([_line(next(free_ids), job, of_kinds) for job in part]) for part in parts),
    )
    return ids


def _line(job_id: int, job: NewJob, of_kinds: Mapping[str, int]) -> str:
    budget = "\\N" if job.max_attempts is None else job.max_attempts
    state = "pending" if job.hold else "queued"
    priority = of_kinds.get(job.kind, 0) if job.priority is None else job.priority
    kind, payload = _escaped(job.kind), job.payload.replace("\\", "\\\\")
    target = "\\N" if job.target is None else _escaped(job.target)
    return f"{job_id}\t{kind}\t{payload}\t{priority}\t{budget}\t{state}\t{target}\n"


def _escaped(text: str) -> str:
    if text.isidentifier():
        return text
    return text.translate(ESCAPES)
