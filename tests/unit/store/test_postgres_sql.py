"""The SQL functions that other programs call, and the roles that may call them."""

import json
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import contextmanager
from operator import attrgetter
from typing import Any

import psycopg
import pytest

from musterd.config.job_options import NAMES, OPTIONS, JobOption
from musterd.store.lifecycle import EFFECTS, Action, JobState
from musterd.store.postgres.migrating import apply_roles, role_names, roles_sql
from musterd.store.report import control_refusal
from tests.contract.job_tools import ending, settle, take_one
from tests.contract.rigs import PostgresRig, opened
from tests.contract.test_job_options import TRACE
from tests.contract.test_laws import bring_to
from tests.support.option_tables import sql_arguments

FUNCTIONS = (
    *("enqueue", "enqueue_many", "cancel", "pause", "resume", "release", "clear"),
    "nodes_desired",
)


@pytest.fixture
async def rig(fresh_database: Callable[[], str]) -> AsyncGenerator[PostgresRig, Any]:
    async with opened(PostgresRig(fresh_database())) as ready:
        assert isinstance(ready, PostgresRig)
        yield ready


async def test_a_job_with_all_options(rig: PostgresRig) -> None:
    (job_id,) = rig.raw(
        """select musterd.enqueue('a', '{"x": [1]}', priority => -7, delay_seconds => 2.5,
           dedup_key => 'k', dedup_scope => 'forever', hold => true, max_attempts => 4)"""
    )[0]
    record = await rig.engine.jobs.get(job_id)
    assert record is not None
    assert (record.kind, record.payload, record.priority) == ("a", '{"x": [1]}', -7)
    assert (record.state, record.max_attempts, record.dedup_key) == (JobState.PENDING, 4, "k")
    assert (record.run_at - record.created_at).total_seconds() == 2.5
    assert rig.raw("select musterd.enqueue('b', dedup_key => 'k')") == [(job_id,)]


async def test_the_function_has_the_declared_options(rig: PostgresRig) -> None:  # noqa: ASYNC124 - its fixture waits
    ((arguments,),) = rig.raw(
        """select string_agg(name || ' ' || format_type(type, null), ', ' order by place)
           from pg_proc, unnest(proargnames, proargtypes::oid[]) with ordinality
               as argument (name, type, place)
           where pronamespace = 'musterd'::regnamespace and proname = 'enqueue'"""
    )
    declared = ", ".join(["kind text", *sql_arguments()])
    for short, name in {
        "float8": "double precision", "timestamptz": "timestamp with time zone"
    }.items():  # fmt: skip
        declared = declared.replace(short, name)
    assert arguments == declared


async def test_by_position_tenant_is_where_it_was(rig: PostgresRig) -> None:  # noqa: ASYNC124 - its fixture waits
    """`tenant` stands where it always stood, and behind it what came later."""
    places = "'a', '{}', null, null, null, null, null, false, null, 't', 'https://example.com/'"
    rig.raw(f"select musterd.enqueue({places}, 'default', '{TRACE}')")
    assert rig.raw("select target, traceparent from job_rows") == [("t", TRACE)]


async def test_many_jobs_take_the_declared_options(rig: PostgresRig) -> None:  # noqa: ASYNC124 - its fixture waits
    with pytest.raises(psycopg.errors.InvalidParameterValue) as refused:
        rig.raw("""select musterd.enqueue_many('[{"kind": "a", "prio": 1}]')""")
    assert refused.value.diag.message_hint == f"options are {', '.join(NAMES)}"
    every = json.dumps([{"kind": "a", **dict.fromkeys(NAMES)}])
    assert rig.raw(f"select musterd.enqueue_many('{every}')") == [(1,)]


@pytest.mark.parametrize(
    "option", [one for one in OPTIONS if one.type.bounds], ids=attrgetter("name")
)
async def test_bounds_are_those_declared(rig: PostgresRig, option: JobOption) -> None:  # noqa: ASYNC124 - its fixture waits
    assert option.type.bounds is not None
    smallest, largest = option.type.bounds
    for value in (smallest, largest):
        rig.raw(f"select musterd.enqueue('a', {option.name} => {value})")
    for value in (smallest - 1, largest + 1):
        with pytest.raises(psycopg.errors.InvalidParameterValue) as refused:
            rig.raw(f"select musterd.enqueue('a', {option.name} => {value})")
        said = f"{option.name}: found {value}, wanted {option.type.wanted}"
        assert refused.value.diag.message_primary == said


async def test_the_least_that_is_needed(rig: PostgresRig) -> None:
    (job_id,) = rig.raw("select musterd.enqueue('a')")[0]
    record = await rig.engine.jobs.get(job_id)
    assert record is not None
    assert (record.payload, record.priority, record.run_at) == ("{}", 0, record.created_at)
    assert (await take_one(rig.engine)).id == job_id


async def test_many_keep_their_order_and_share_keys(rig: PostgresRig) -> None:  # noqa: ASYNC124 - its fixture waits
    plain = """select musterd.enqueue_many('[{"kind": "a"}, {"kind": "b", "priority": 3},
        {"kind": "c", "payload": null, "run_at": "2099-01-01T00:00:00Z"}]')"""
    made = [row[0] for row in rig.raw(plain)]
    assert [row[0] for row in rig.raw("select kind from jobs order by id")] == ["a", "b", "c"]
    assert made == sorted(made)
    keyed = """select musterd.enqueue_many('[{"kind": "a", "dedup_key": "k"}, {"kind": "b"},
        {"kind": "c", "dedup_key": "k", "dedup_scope": 60}]')"""
    first, second, third = [row[0] for row in rig.raw(keyed)]
    assert (first == third, second > first) == (True, True)
    assert rig.raw("select musterd.enqueue_many('[]')") == []


async def test_a_job_is_made_with_the_callers_transaction(rig: PostgresRig) -> None:
    with psycopg.connect(rig.url) as connection:
        connection.execute("select musterd.enqueue('a')")
        connection.rollback()
    assert (await rig.engine.queue.counts()).enqueued_total == 0


async def test_a_trigger_may_enqueue(rig: PostgresRig) -> None:  # noqa: ASYNC124 - its fixture waits
    rig.raw(
        """create table public.orders (number int);
        create function public.made() returns trigger language plpgsql as $$ begin
            perform musterd.enqueue('order', jsonb_build_object('number', new.number));
            return new; end $$;
        create trigger made after insert on public.orders
            for each row execute function public.made();
        insert into public.orders select generate_series(1, 3)"""
    )
    assert [row[0] for row in rig.raw("select payload ->> 'number' from jobs order by id")] == [
        "1", "2", "3",
    ]  # fmt: skip


REFUSED = {
    "kind => ''": "kind: found 0 characters, wanted a name of 1 to 100 characters",
    "kind => null": "kind: found null, wanted a name of 1 to 100 characters",
    "'a', priority => 40000": "priority: found 40000, wanted a whole number, -32768 to 32767",
    "'a', max_attempts => 0": "max_attempts: found 0, wanted a whole number, 1 to 10001",
    "'a', delay_seconds => -1": "delay_seconds: found -1, wanted 0 to 3153600000 seconds",
    "'a', delay_seconds => 'NaN'": "delay_seconds: found NaN, wanted 0 to 3153600000 seconds",
    "'a', delay_seconds => 1, run_at => now()": "run_at and delay_seconds exclude each other",
    "'a', dedup_key => ''": "dedup_key: wanted a text of 1 to 200 characters",
    "'a', dedup_key => 'k', dedup_scope => 'soon'": (
        "dedup_scope: found soon, wanted until_finished, forever, or 0 to 3153600000 seconds"
    ),
    "'a', dedup_scope => 'forever'": "dedup_scope: found without dedup_key",
}


@pytest.mark.parametrize("arguments", REFUSED)
async def test_a_bad_option_is_refused_by_its_name(rig: PostgresRig, arguments: str) -> None:  # noqa: ASYNC124 - its fixture waits
    with pytest.raises(psycopg.errors.InvalidParameterValue) as refused:
        rig.raw(f"select musterd.enqueue({arguments})")
    assert refused.value.diag.message_primary == REFUSED[arguments]


@pytest.mark.parametrize(
    ("jobs", "message"),
    [
        ("{}", "jobs: found object, wanted an array of objects"),
        ("null", "jobs: found null, wanted an array of objects"),
        ("[1]", "found number, wanted an object with kind, payload and options"),
        ('[{"kind": "a"}, {"kind": "a", "prio": 1}]', "unknown option 'prio'"),
        ('[{"kind": 7}]', "kind: found 7, wanted a name of 1 to 100 characters"),
        (
            '[{"kind": "a", "priority": 1.5}]',
            "priority: found 1.5, wanted a whole number, -32768 to 32767",
        ),
        ('[{"kind": "a", "hold": "yes"}]', "hold: found yes, wanted true or false"),
    ],
)
async def test_one_bad_job_takes_the_others_with_it(
    rig: PostgresRig, jobs: str, message: str
) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue) as refused:
        rig.raw(f"select musterd.enqueue_many('{jobs}')")
    assert refused.value.diag.message_primary == message
    assert (await rig.engine.queue.counts()).enqueued_total == 0


@pytest.mark.parametrize("arguments", ["'a', prio => 1", "", "'a', payload => '{'"])
async def test_what_is_no_call_is_refused(rig: PostgresRig, arguments: str) -> None:  # noqa: ASYNC124 - its fixture waits
    with pytest.raises(psycopg.Error):
        rig.raw(f"select musterd.enqueue({arguments})")


async def test_a_row_with_a_key_that_is_held_is_refused(rig: PostgresRig) -> None:
    rig.raw("insert into jobs (kind, dedup_key) values ('a', 'k')")
    with pytest.raises(psycopg.errors.UniqueViolation, match="job 1 holds the key 'k'"):
        rig.raw("insert into jobs (kind, dedup_key) values ('a', 'k')")
    await settle(rig.engine, ending(await take_one(rig.engine)))
    rig.raw("insert into job_rows (kind, dedup_key, state) values ('a', 'k', 'pending')")
    assert (await rig.engine.queue.counts()).by_state[JobState.PENDING] == 1


@pytest.mark.parametrize("action", Action)
async def test_actions_in_the_words_of_the_command_line(rig: PostgresRig, action: Action) -> None:
    for state in JobState:
        job_id = await bring_to(rig, state)
        call = f"select musterd.{action.value}({job_id})"
        if (action, state) in EFFECTS:
            record = (rig.raw(call)[0][0], await rig.engine.jobs.get(job_id))
            assert record[1] is not None
            assert record[0] == record[1].state.value
        else:
            with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState) as refused:
                rig.raw(call)
            expected = control_refusal(job_id, action.value, state.value)
            assert refused.value.diag.message_primary == expected
        rig.raw(f"delete from job_rows where id >= {job_id - 1}")
    with pytest.raises(psycopg.errors.NoDataFound, match="there is no job 999"):
        rig.raw(f"select musterd.{action.value}(999)")


async def test_every_function_has_a_pinned_path_and_none_is_everybodys(rig: PostgresRig) -> None:  # noqa: ASYNC124 - its fixture waits
    functions = rig.raw(
        """select proname, prosecdef, coalesce(proconfig::text, ''),
                  has_function_privilege('public', p.oid, 'execute')
           from pg_proc p where pronamespace = 'musterd'::regnamespace"""
    )
    assert len(functions) > len(FUNCTIONS)
    offenders = [
        name
        for name, _definer, config, public in functions
        if public or "search_path=pg_catalog, pg_temp" not in config
    ]
    assert offenders == []
    # These triggers count, place and check what others write, with tables and functions that
    # these may not use.
    triggers = {
        "note_new_jobs", "keep_place", "leave_place", "leave_all_places", "refuse_request",
        "refuse_change", "refuse_new_job", "take_priority", "stay_behind", "publish_end",
    }  # fmt: skip
    assert {name for name, definer, *_ in functions if definer} == {*FUNCTIONS, *triggers}


@contextmanager
def acting_as(rig: PostgresRig, duty: str) -> Generator[psycopg.Connection[Any]]:
    with psycopg.connect(rig.url, autocommit=True) as connection:
        connection.execute(f'set role "{role_names("musterd")[duty]}"'.encode())
        yield connection


@pytest.fixture
def roles(rig: PostgresRig) -> PostgresRig:
    for _ in range(2):  # safe to run again
        apply_roles(rig.url, "musterd")
    return rig


def are_refused(connection: psycopg.Connection[Any], *statements: str) -> None:
    for statement in statements:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(statement.encode())


async def test_who_may_enqueue_may_call_and_no_more(roles: PostgresRig) -> None:
    with acting_as(roles, "enqueue") as connection:
        for call in (
            "enqueue('a', hold => true, dedup_key => 'k')", "enqueue_many('[{\"kind\": \"a\"}]')",
            "release(1)", "pause(1)", "clear(1)", "cancel(2)",
        ):  # fmt: skip
            connection.execute(f"select musterd.{call}".encode())
        are_refused(
            connection,
            "select * from musterd.jobs", "select * from musterd.jobs_without_payload",
            "insert into musterd.jobs (kind) values ('a')", "delete from musterd.job_rows",
            "select musterd.control_job('cancel', 1)", "select musterd.key_holder('k')",
            "select * from musterd.dedup_keys", "create table musterd.mine ()",
        )  # fmt: skip
    assert (await roles.engine.queue.counts()).by_state[JobState.CANCELED] == 2


async def test_who_may_read_sees_no_payload_and_changes_nothing(roles: PostgresRig) -> None:  # noqa: ASYNC124 - its fixture waits
    roles.raw("""select musterd.enqueue('a', '{"secret": 1}')""")
    with acting_as(roles, "read") as connection:
        row = connection.execute("select * from musterd.jobs_without_payload").fetchone()
        assert row is not None
        assert "secret" not in str(row)
        assert connection.execute("select queued from musterd.queue_depth").fetchone() == (1,)
        are_refused(
            connection,
            "select * from musterd.jobs", "select * from musterd.job_rows",
            "select * from musterd.attempts", "select musterd.enqueue('a')",
            "select musterd.cancel(1)",
        )  # fmt: skip
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
            connection.execute("update musterd.jobs_without_payload set kind = 'b'")


async def test_the_daemons_role_can_work(roles: PostgresRig) -> None:  # noqa: ASYNC124 - its fixture waits
    with acting_as(roles, "daemon") as connection:
        connection.execute("select musterd.enqueue('a', dedup_key => 'k')")
        connection.execute("insert into musterd.jobs (kind, dedup_key) values ('a', 'j')")
        connection.execute("select * from musterd.control_job('cancel', 1)")
        connection.execute("delete from musterd.count_changes")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("drop table musterd.job_rows")


def test_the_roles_are_named_after_the_schema() -> None:
    text = roles_sql("other")
    assert '"other_enqueue", "other_read", "other_daemon"' in text
    assert "musterd" not in text
