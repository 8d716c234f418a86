"""Each option of a job by every way in and every way out, on both engines: what is declared
arrives, and what is out of its bounds is refused. A new option needs no test of its own for that,
unless its type is new or it is shown under another name.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import psycopg
import pytest
import trio

from musterd import Client, InputRefused
from musterd.config.job_options import (
    BY_NAME,
    FLAG,
    OPTIONS,
    SECONDS,
    SECONDS_MAX,
    JobOption,
    OptionType,
)
from musterd.store.input import new_job
from musterd.store.jobs import NewJob
from musterd.store.lifecycle import Action
from musterd.store.report import job_object
from tests.contract.rigs import PostgresRig, Rig, SqliteRig
from tests.contract.test_client import url_of
from tests.support.command import Done, Home
from tests.support.web_scene import Web, serving

KIND = "report"
KEY = "k"
HOST = "https://example.com/"
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

Options: TypeAlias = Mapping[str, Any]
Way: TypeAlias = Callable[[Options], Awaitable[int]]


class Refused(Exception):
    """A way in has refused a job."""


# -- values


def _length_max(kind: OptionType) -> int:
    found = kind.schema["maxLength"]
    assert isinstance(found, int)
    return found


def _url(length: int) -> str:
    return HOST.ljust(length, "x")


def _of_whole_numbers(kind: OptionType) -> tuple[list[Any], list[Any]]:
    assert kind.bounds is not None
    smallest, largest = kind.bounds
    return [smallest, largest], [smallest - 1, largest + 1]


def _of_texts(kind: OptionType) -> tuple[list[Any], list[Any]]:
    return ["x", "ü" * _length_max(kind)], ["", "x" * (_length_max(kind) + 1)]


# By the name of each type: values at its bounds, and values beyond them.
VALUES: Mapping[str, Callable[[OptionType], tuple[list[Any], list[Any]]]] = {
    "JSON": lambda _: ([{"a": [1, "ü"]}], []),
    "whole number": _of_whole_numbers,
    "text": _of_texts,
    "URL": lambda kind: ([_url(_length_max(kind))], ["", _url(_length_max(kind) + 1)]),
    "traceparent": lambda _: ([TRACE], ["", TRACE[:-1], TRACE.upper(), f"ff{TRACE[2:]}"]),
    "true or false": lambda _: ([True], ["maybe"]),
    "seconds": lambda _: ([2.5], [-1, SECONDS_MAX + 1]),
    "time": lambda _: ([datetime(2099, 1, 2, 3, 4, 5, tzinfo=UTC)], ["soon"]),
    "`until_finished`, `forever`, or seconds": lambda _: (["forever", 60], ["soon", -1]),
}


def good(option: JobOption) -> Sequence[Any]:
    return VALUES[option.type.name](option.type)[0]


def bad(option: JobOption) -> Sequence[Any]:
    return VALUES[option.type.name](option.type)[1]


def given(option: JobOption, value: Any) -> dict[str, Any]:
    needed = {} if option.needs is None else {option.needs: good(BY_NAME[option.needs])[0]}
    return {**needed, option.name: value}


def in_json(options: Options) -> dict[str, Any]:
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in options.items()
    }


# -- ways in


def wanted(options: Options) -> NewJob:
    rest = dict(options)
    return new_job(KIND, rest.pop("payload", None), rest)


def with_key(options: Options) -> Options:
    return {"dedup_key": KEY, **options}


async def by_engine(rig: Rig, options: Options) -> int:
    return (await rig.engine.jobs.enqueue([wanted(options)]))[0]


async def by_engine_keyed(rig: Rig, options: Options) -> int:
    return (await rig.engine.jobs.enqueue_keyed([wanted(with_key(options))]))[0].id


async def by_client(client: Client, options: Options) -> int:
    return await trio.to_thread.run_sync(lambda: client.enqueue(KIND, **options))


async def by_client_many(client: Client, options: Options) -> int:
    many = [{"kind": KIND, **options}]
    return (await trio.to_thread.run_sync(lambda: client.enqueue_many(many)))[0]


async def by_http(web: Web, options: Options) -> int:
    answer = await web.post("/jobs", {"kind": KIND, **in_json(options)})
    if answer.status == 422:
        raise Refused(answer.json["detail"])
    assert answer.status == 201, answer.text
    made: int = answer.json["id"]
    return made


async def by_function(rig: PostgresRig, options: Options) -> int:
    """`enqueue` by the names of its arguments."""
    await trio.lowlevel.checkpoint()
    arguments = [f"{name} => %s::{BY_NAME[name].type.sql}" for name in options]
    values = [
        json.dumps(value) if BY_NAME[name].type.sql == "jsonb" else value
        for name, value in options.items()
    ]
    return called(rig, f"enqueue('{KIND}', {', '.join(arguments)})", values)


async def by_function_many(rig: PostgresRig, options: Options) -> int:
    await trio.lowlevel.checkpoint()
    return called(rig, "enqueue_many(%s)", [json.dumps([{"kind": KIND, **in_json(options)}])])


def called(rig: PostgresRig, call: str, values: Sequence[Any]) -> int:
    with psycopg.connect(rig.url, autocommit=True) as connection:
        made: int = connection.execute(f"select musterd.{call}".encode(), values).fetchall()[0][0]
    return made


async def by_insert(rig: PostgresRig, options: Options) -> int:
    """Into the view; into the table below it what the view shows as something else."""
    await trio.lowlevel.checkpoint()
    names = [*options]
    values = [json.dumps(one) if isinstance(one, dict) else one for one in options.values()]
    places = ", ".join(["%s"] * (len(names) + 1))
    into = "jobs" if set(names) <= columns_to_insert(rig) else "job_rows"
    sql = (
        f"insert into musterd.{into} ({', '.join(['kind', *names])}) values ({places}) returning id"
    )
    with psycopg.connect(rig.url, autocommit=True) as connection:
        made: int = connection.execute(sql.encode(), [KIND, *values]).fetchall()[0][0]
    return made


def columns_to_insert(rig: PostgresRig) -> set[str]:
    return {
        name
        for (name,) in rig.raw(
            "select column_name from information_schema.columns"
            " where table_schema = 'musterd' and table_name = 'jobs' and is_updatable = 'YES'"
        )
    }


@asynccontextmanager
async def ways(rig: Rig) -> AsyncGenerator[dict[str, Way]]:
    """All that check what they are given; the engine tells the time by the clock of the others."""
    if isinstance(rig, SqliteRig):
        rig.now = time.time()
    with Client(url_of(rig)) as client:
        async with serving(engine=rig.engine) as web:
            found: dict[str, Way] = {
                "engine": partial(by_engine, rig),
                "engine, with a key": partial(by_engine_keyed, rig),
                "client": partial(by_client, client),
                "client, many": partial(by_client_many, client),
                "HTTP": partial(by_http, web),
            }
            if isinstance(rig, PostgresRig):
                found["function"] = partial(by_function, rig)
                found["function for many"] = partial(by_function_many, rig)
                found["function for many, with a key"] = lambda options: by_function_many(
                    rig, with_key(options)
                )
            yield found


# -- ways out


@attrs.frozen
class Seen:
    """A job by one way out, its times read, and what tells whether it still holds its key."""

    shown: Mapping[str, Any]
    holds_key: bool

    def seconds(self, earlier: str, later: str) -> float:
        gone: timedelta = self.shown[later] - self.shown[earlier]
        return round(gone.total_seconds(), 2)


# What tells the value of an option that is not shown as it was given.
ELSEWHERE: Mapping[str, Callable[[Seen, Any], bool]] = {
    "delay_seconds": lambda seen, value: seen.seconds("created_at", "run_at") == value,
    "dedup_scope": lambda seen, _: seen.holds_key,  # after the job has ended
    "hold": lambda seen, value: (seen.shown["state"] == "pending") is value,
    "webhook": lambda seen, value: seen.shown["webhook"]["url"] == value,
}


async def outs(rig: Rig, job_id: int, key: str) -> dict[str, Seen]:
    """The job by each way out. It is canceled then, so that its key is free again."""
    control, jobs = rig.engine.control, rig.engine.jobs
    record = await jobs.get(job_id)
    assert record is not None
    shown = job_object(record, "default", None)
    view = in_view(rig, job_id)
    await control.apply(Action.CANCEL, job_id)
    ((second_id, is_new),) = await jobs.enqueue_keyed([NewJob(KIND, dedup_key=key)])
    await control.apply(Action.CANCEL, second_id)
    return {
        "job object": Seen({name: read(name, value) for name, value in shown.items()}, not is_new),
        "view": Seen(view, not is_new),
    }


def in_view(rig: Rig, job_id: int) -> dict[str, Any]:
    named = ["created_at", "state"] + [
        one.name for one in OPTIONS if one.name not in ELSEWHERE or one.name == "webhook"
    ]
    (row,) = rig.raw(f"select {', '.join(named)} from jobs where id = {job_id}")
    found = dict(zip(named, row, strict=True))
    if isinstance(rig, SqliteRig):
        found |= {name: found[name] and json.loads(found[name]) for name in ("payload", "webhook")}
    return {name: read(name, value) for name, value in found.items()}


def read(name: str, value: Any) -> Any:
    is_time = name.endswith("_at") and isinstance(value, str)
    return datetime.fromisoformat(value) if is_time else value


async def check_arrived(rig: Rig, way: Way, option: JobOption, value: Any) -> list[str]:
    """By which ways out the option is not seen."""
    options = given(option, value)
    job_id = await way(options)
    key = str(options.get("dedup_key", KEY))
    seen = await outs(rig, job_id, key)
    rig.raw("delete from dedup_keys")
    return [out for out, found in seen.items() if not is_told(found, option, value)]


def is_told(seen: Seen, option: JobOption, value: Any) -> bool:
    if option.name in ELSEWHERE:
        return ELSEWHERE[option.name](seen, value)
    return bool(seen.shown[option.name] == value)


# -- the law


@pytest.mark.parametrize("option", OPTIONS, ids=attrgetter("name"))
async def test_it_arrives_by_every_way_and_is_seen_by_every_way(
    shared: Rig, option: JobOption
) -> None:
    async with ways(shared) as found:
        if isinstance(shared, PostgresRig) and option.name in column_names(shared):
            found["insert"] = partial(by_insert, shared)
        lost = [
            f"{option.name} = {str(value)[:20]!r} by {way}, in the {out}"
            for way, enqueue in found.items()
            for value in good(option)
            for out in await check_arrived(shared, enqueue, option, value)
        ]
    assert lost == []


@pytest.mark.parametrize("option", OPTIONS, ids=attrgetter("name"))
async def test_out_of_its_bounds_it_is_refused_by_every_way(shared: Rig, option: JobOption) -> None:
    async with ways(shared) as found:
        taken = [
            f"{option.name} = {str(value)[:20]!r} by {way}"
            for way, enqueue in found.items()
            for value in bad(option)
            if not await is_refused(enqueue, given(option, value))
        ]
    assert taken == []
    assert (await shared.engine.queue.counts()).enqueued_total == 0


async def is_refused(way: Way, options: Options) -> bool:
    try:
        await way(options)
    except (InputRefused, Refused, psycopg.DataError):
        return True
    return False


# The tables set no upper limit to it, because it grows with each attempt that does not count.
GROWS = "max_attempts"


@pytest.mark.parametrize(
    "option",
    [one for one in OPTIONS if one.type.bounds or "maxLength" in one.type.schema],
    ids=attrgetter("name"),
)
async def test_out_of_its_bounds_no_table_takes_it(shared: Rig, option: JobOption) -> None:  # noqa: ASYNC124 - its fixture waits
    if option.name not in column_names(shared):
        pytest.skip(f"{option.name} is no column")
    for value in bad(option)[: 1 if option.name == GROWS else None]:
        insert = f"insert into job_rows (kind, created_at, run_at, {option.name})"
        now = "now(), now()" if isinstance(shared, PostgresRig) else "1, 1"
        quoted = f"'{value}'" if isinstance(value, str) else value
        with pytest.raises((psycopg.IntegrityError, psycopg.DataError, sqlite3.IntegrityError)):
            shared.raw(f"{insert} values ('{KIND}', {now}, {quoted})")


async def test_the_command_line_takes_every_flag(shared: Rig, tmp_path: Path) -> None:
    home = Home(tmp_path, url_of(shared))
    lost: list[str] = []
    flagged = [one for one in OPTIONS if one.flags]
    for group in ([one for one in flagged if not one.excludes], [*filter(_excludes, flagged)]):
        options = {one.name: good(one)[-1] for one in group}
        words = [word for one in group for word in on_command_line(one, options[one.name])]
        done = await on_thread(home, "--json", *words)
        assert done.code == 0, done.err
        seen = await outs(shared, done.json["id"], str(options.get("dedup_key", KEY)))
        lost += [
            f"{one.name} by the command line, in the {out}"
            for one in group
            for out, found in seen.items()
            if not is_told(found, one, options[one.name])
        ]
    assert lost == []


async def test_the_command_line_refuses_what_is_out_of_bounds(
    unopened_sqlite: SqliteRig, tmp_path: Path
) -> None:
    home = Home(tmp_path, url_of(unopened_sqlite))
    for option in OPTIONS:
        if not option.flags or option.type is FLAG:
            continue
        for value in bad(option)[:1]:
            words = on_command_line(option, value)
            done = await on_thread(home, *words)
            assert (done.code, done.out) == (2, ""), (option.name, done)


async def on_thread(home: Home, *words: str) -> Done:
    return await trio.to_thread.run_sync(lambda: home.call("enqueue", KIND, *words))


def _excludes(option: JobOption) -> bool:
    return option.excludes is not None


def on_command_line(option: JobOption, value: Any) -> list[str]:
    flag = option.flags[0]
    if option.type is FLAG:
        return [flag]
    if isinstance(value, datetime):
        return [f"{flag}={value.isoformat()}"]
    text = json.dumps(value) if isinstance(value, dict) else str(value)
    return [f"{flag}={text}{'s' if option.type is SECONDS else ''}"]


def column_names(rig: Rig) -> set[str]:
    if isinstance(rig, SqliteRig):
        return {row[1] for row in rig.raw("pragma table_info(job_rows)")}
    return {name for (name,) in rig.raw("select column_name from information_schema.columns"
        " where table_schema = 'musterd' and table_name = 'job_rows'")}  # fmt: skip
