"""The health of a store: what both engines say, and what only a server has."""

from collections.abc import Iterator

import psycopg
import pytest
import trio
from psycopg.conninfo import conninfo_to_dict

from musterd.console.doctor.postgres import TABLE_OPTIONS
from musterd.store.jobs import NewJob
from tests.contract.rigs import PostgresRig, Rig, SqliteRig, closing_engine

ROLE, PASSWORD = "health_reader", "not-a-secret"


def monotonic() -> float:
    return trio.current_time()


async def test_signs_tell_of_size(rig: Rig) -> None:
    before = await rig.engine.health.signs()
    await rig.engine.jobs.enqueue([NewJob("report", '{"text": "' + "x" * 1000 + '"}')] * 500)
    after = await rig.engine.health.signs()
    assert before.size_bytes is not None
    assert after.size_bytes is not None
    assert after.size_bytes > before.size_bytes > 0


async def test_the_clock_is_the_stores(rig: Rig) -> None:
    if isinstance(rig, SqliteRig):
        assert await rig.engine.health.now() == rig.now
    else:
        ((found,),) = rig.raw("select extract(epoch from clock_timestamp())")
        assert abs(await rig.engine.health.now() - float(found)) < 5.0


async def test_nothing_stands_in_between(rig: Rig) -> None:
    assert await rig.engine.health.pool_mode() == "none"


async def test_an_embedded_store_has_no_server(unopened_sqlite: Rig) -> None:
    async with closing_engine(unopened_sqlite.engine) as engine:
        await engine.open()
        await engine.migrate()
        health = engine.health
        signs = await health.signs()
        assert (signs.horizon_age_seconds, signs.dead_rows) == (None, None)
        assert await health.server() is None
        assert await health.replication() is None
        assert await health.connections() is None
        assert [*await health.holders(), *await health.tables()] == []
        assert list(await health.missing_rights()) == []


async def test_a_file_is_looked_at(unopened_sqlite: Rig) -> None:
    async with closing_engine(unopened_sqlite.engine) as engine:
        await engine.open()
        await engine.migrate()
        found = await engine.health.file(monotonic, 60.0)
        assert found is not None
        assert (found.fault, found.checked_whole, found.journal_mode) == (None, True, "wal")
        assert (found.mode, found.is_held) == (0o600, False)
        await engine.start_node("north")
        held = await engine.health.file(monotonic, 60.0)
        assert held is not None
        assert (held.is_held, held.holder is not None) == (True, True)


async def test_the_look_at_a_file_ends_in_time(unopened_sqlite: Rig) -> None:
    async with closing_engine(unopened_sqlite.engine) as engine:
        await engine.open()
        await engine.migrate()
        await engine.jobs.enqueue([NewJob("report", "{}")] * 5_000)
        moments = iter(range(1_000_000))  # each look at the clock is a second later
        found = await engine.health.file(lambda: float(next(moments)), 0.5)
        assert found is not None
        assert (found.fault, found.checked_whole) == (None, False)
        assert len(await engine.jobs.enqueue([NewJob("report", "{}")])) == 1


async def test_who_holds_the_horizon(postgres_rig: PostgresRig) -> None:
    health = postgres_rig.engine.health
    assert [one for one in await health.holders() if one.application == "a report"] == []
    with psycopg.connect(postgres_rig.url, application_name="a report") as session:
        session.execute("set transaction isolation level repeatable read")
        session.execute("select 1")
        await trio.sleep(0.05)
        found = [one for one in await health.holders() if one.application == "a report"]
        assert [(one.sort, one.id, one.state) for one in found] == [
            ("session", str(session.info.backend_pid), "idle in transaction")
        ]
        seconds = found[0].age_seconds
        assert seconds is not None
        assert seconds >= 0.05
        age = (await health.signs()).horizon_age_seconds
        assert age is not None
        assert age >= seconds
        postgres_rig.raw("update queue_state set paused_by = paused_by")
        (later,) = [one for one in await health.holders() if one.application == "a report"]
        assert later.age_transactions > found[0].age_transactions


async def test_our_tables_have_the_options_that_the_doctor_wants(postgres_rig: PostgresRig) -> None:
    found = {table.name: dict(table.options) for table in await postgres_rig.engine.health.tables()}
    assert {name: options for name, options in found.items() if options} == TABLE_OPTIONS


async def test_dead_rows_are_counted(postgres_rig: PostgresRig) -> None:
    await postgres_rig.engine.jobs.enqueue([NewJob("report", "{}")] * 100)
    postgres_rig.raw("update job_rows set priority = 1")
    health = postgres_rig.engine.health
    for _ in range(200):  # the server's own statistics come a moment later
        if (await health.signs()).dead_rows == 100:
            break
        await trio.sleep(0.05)
    (rows,) = [table for table in await health.tables() if table.name == "job_rows"]
    assert (rows.dead_rows, rows.vacuumed_seconds_ago) == (100, None)
    postgres_rig.raw("vacuum job_rows")
    for _ in range(200):
        if [one for one in await health.tables() if one.vacuumed_seconds_ago is not None]:
            return
        await trio.sleep(0.05)
    raise AssertionError("the vacuum is not told of")


async def test_the_server_says_what_a_fresh_session_gets(postgres_rig: PostgresRig) -> None:
    found = await postgres_rig.engine.health.server()
    assert found is not None
    assert found.version >= 140000
    assert (found.in_recovery, found.is_superuser, found.sees_statistics) == (False, True, True)
    # The limits that a session of ours sets for itself are not the role's.
    assert found.settings["statement_timeout"] == "0"
    assert found.settings["fsync"] == "off"


@pytest.fixture
def role(postgres_rig: PostgresRig) -> Iterator[str]:
    """The URL of a role that may connect, and nothing else."""
    postgres_rig.raw(f"create role {ROLE} login password '{PASSWORD}'")
    known = conninfo_to_dict(postgres_rig.url)
    yield (f"postgresql://{ROLE}:{PASSWORD}@{known['host']}:{known['port']}/{known['dbname']}")
    postgres_rig.raw(f"drop owned by {ROLE}")
    postgres_rig.raw(f"drop role {ROLE}")


async def test_a_role_without_rights_is_told_which_it_lacks(
    postgres_rig: PostgresRig, role: str
) -> None:
    async with closing_engine(PostgresRig(role).engine) as other:
        await other.open()
        missing = {(one.thing, one.right) for one in await other.health.missing_rights()}
        assert ("schema musterd", "USAGE") in missing
        assert ("table job_rows", "UPDATE") in missing
        found = await other.health.server()
        assert found is not None
        assert (found.role, found.is_superuser, found.sees_statistics) == (ROLE, False, False)
    assert list(await postgres_rig.engine.health.missing_rights()) == []


async def test_a_role_that_does_not_see_others_still_knows_who_holds(
    postgres_rig: PostgresRig, role: str
) -> None:
    async with closing_engine(PostgresRig(role).engine) as other:
        await other.open()
        with psycopg.connect(postgres_rig.url, application_name="a report") as session:
            session.execute("set transaction isolation level repeatable read")
            session.execute("select 1")
            pid = str(session.info.backend_pid)
            found = [one for one in await other.health.holders() if one.id == pid]
            assert [(one.sort, one.age_seconds) for one in found] == [("session", None)]
            first = (await other.health.signs()).horizon_age_seconds
            await trio.sleep(0.1)
            second = (await other.health.signs()).horizon_age_seconds
            # It is at least as old as we have known it.
            assert first is not None
            assert second is not None
            assert second >= first + 0.1


async def test_connections_are_counted(postgres_rig: PostgresRig) -> None:
    before = await postgres_rig.engine.health.connections()
    with psycopg.connect(postgres_rig.url):
        after = await postgres_rig.engine.health.connections()
    assert before is not None
    assert after is not None
    assert (before.most, before.role_limit) == (200, -1)
    assert after.database_used == before.database_used + 1
    assert after.ours == before.ours >= 1


async def test_replication_slots_are_named(postgres_rig: PostgresRig) -> None:
    name = "health_slot"
    postgres_rig.raw(f"select pg_create_physical_replication_slot('{name}', true)")
    try:
        found = await postgres_rig.engine.health.replication()
    finally:
        postgres_rig.raw(f"select pg_drop_replication_slot('{name}')")
    assert found is not None
    (slot,) = [one for one in found.slots if one.name == name]
    assert not slot.is_active
    assert slot.kept_bytes is not None
    assert found.wanted_standbys == ""
