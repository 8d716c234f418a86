"""Statements that must not grow dear with the queue, whatever values they are sent with."""

import re
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any

import psycopg
import pytest
import trio

from musterd.store.postgres.statements import fill
from musterd.store.sqlfiles import load_statements
from tests.contract.rigs import SCHEMA, PostgresRig, opened


@pytest.fixture
async def rig(fresh_database: Callable[[], str]) -> AsyncGenerator[PostgresRig, Any]:
    async with opened(PostgresRig(fresh_database())) as ready:
        assert isinstance(ready, PostgresRig)
        yield ready


def plan(rig: PostgresRig, name: str, values: dict[str, str]) -> str:
    """The plan for any values."""
    return "\n".join(explained(rig, name, values))


def explained(rig: PostgresRig, name: str, values: dict[str, str], how: str = "") -> list[Any]:
    text = fill(load_statements("musterd.store.postgres")[name], SCHEMA)
    names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", text)))
    for number, each in enumerate(names, start=1):
        text = text.replace(f"%({each})s", f"${number}")
    sent = ", ".join(values.get(each, "null") for each in names)
    with psycopg.connect(rig.url, prepare_threshold=None) as connection:
        connection.execute("set plan_cache_mode = force_generic_plan")
        connection.execute(f"prepare asked as {text}".encode())
        asked = f"explain ({how or 'costs'}) execute asked{f'({sent})' if sent else ''}"
        return [line for (line,) in connection.execute(asked.encode())]


async def test_one_job_is_looked_up(rig: PostgresRig) -> None:
    """Not found by a walk from the newest one."""
    fill_with_ended(rig, 30_000)
    await trio.lowlevel.checkpoint()
    found = plan(rig, "jobs_of", {"ids": "'{1}'"})
    assert "Index Cond: (id = ANY (" in found
    assert "Seq Scan on job_rows" not in found


SEARCHES: dict[str, dict[str, str]] = {
    "all": {},
    "a rare kind": {"kind": "'rare'"},
    "a later page": {"before_id": "9000", "target": "'t'"},
    "a state": {"states": "'{succeeded}'", "kind": "'rare'"},
    "resting": {"states": "'{failed,canceled}'", "resting": "'{failed,canceled}'",
        "walks": "false", "error": "'timeout'"},
    "resting, a later page": {"states": "'{failed}'", "resting": "'{failed}'", "walks": "false",
        "before_id": "9000", "kind": "'rare'"},
    "in hand": {"states": "'{running}'", "walks": "false"},
    "queued": {"states": "'{queued}'", "lines_up": "true", "kind": "'a'"},
    "queued and at rest": {"states": "'{queued,failed}'", "lines_up": "true",
        "resting": "'{failed}'", "kind": "'rare'"},
    "queued, in a long line": {"states": "'{queued}'", "lines_up": "true", "span": "70"},
    "a key": {"dedup_key": "'k'"},
    "a day": {"since": "clock_timestamp() - interval '2 days'",
        "until": "clock_timestamp() - interval '1 day'", "kind": "'rare'"},
    "ends of a day": {"since": "clock_timestamp() - interval '2 days'",
        "until": "clock_timestamp() - interval '1 day'", "kind": "'rare'", "by_end": "true"},
}  # fmt: skip
UNASKED = {
    "walks": "true",
    "lines_up": "false",
    "resting": "'{}'",
    "by_end": "false",
    "span": "500",
    "bound": "50",
}


async def test_a_search_comes_by_no_more_jobs_than_it_may(rig: PostgresRig) -> None:
    """Whatever is asked, with a plan for any values and none of the daemon's own settings."""
    fill_with_ended(rig, 12_000)
    rig.raw(
        "insert into job_rows (kind) select 'a' from generate_series(1, 5000); analyze job_rows"
    )
    await trio.lowlevel.checkpoint()
    for sought, values in SEARCHES.items():
        (nodes,) = explained(rig, "jobs", {**UNASKED, **values}, "analyze, format json")
        walks = [node for node in every_node(nodes[0]["Plan"]) if is_of_jobs(node)]
        assert walks
        assert {node["Node Type"] for node in walks} == {"Index Scan"}, sought
        assert {node["Index Name"] for node in walks} <= {"job_rows_pkey", "job_rows_resting"}
        for node in walks:
            passed = node.get("Rows Removed by Filter", 0)
            met = node["Actual Loops"] * (node["Actual Rows"] + passed)
            assert met <= 1000, (sought, node)


def is_of_jobs(node: dict[str, Any]) -> bool:
    return node.get("Relation Name") == "job_rows"


def every_node(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for below in node.get("Plans", ()):
        yield from every_node(below)


@pytest.mark.parametrize("view", ["jobs", "jobs_without_payload", "live_jobs"])
async def test_the_lease_of_a_job_is_looked_up(rig: PostgresRig, view: str) -> None:
    await trio.lowlevel.checkpoint()
    with psycopg.connect(rig.url) as connection:
        connection.execute("set enable_seqscan = off")
        asked = f"explain select * from {SCHEMA}.{view} where id = 1"
        lines = [line for (line,) in connection.execute(asked.encode())]
    looks = [line for line in lines if " on leases" in line]
    assert looks
    assert all("leases_of_span" in line for line in looks)


def test_what_is_archived_is_what_is_shown() -> None:
    """The rows that make records have the same columns."""
    statements = load_statements("musterd.store.postgres")
    for name in ("jobs", "jobs_of"):
        assert "select {job_columns}\n" in statements[name]


def fill_with_ended(rig: PostgresRig, count: int) -> None:
    """Jobs that ended over the last 100 days, of five kinds, half of them stale, each by itself."""
    rig.raw(
        f"""set session_replication_role = replica;
        insert into job_rows (kind, state, finished_at, last_outcome, stale_at)
        select 'kind' || n % 5, (array['succeeded', 'failed', 'canceled'])[n % 3 + 1],
               clock_timestamp() - n * interval '100 days' / {count}, 'succeeded',
               case when n % 2 = 0 then clock_timestamp() end
        from generate_series(1, {count}) n;
        insert into endings (state, kind, stale, at, jobs)
        select state, kind, stale_at is not null, finished_at,
               int8multirange(int8range(id, id, '[]')) from job_rows;
        analyze job_rows, endings"""
    )


WALK = {
    "states": "'{succeeded,failed,canceled}'",
    "kinds": "'{NULL,NULL,NULL}'",
    "ages": "'{604800,604800,604800}'",
    "after_state": "''",
    "after_kind": "''",
    "after_at": "'-infinity'",
    "after_id": "0",
    "batch": "500",
}


@pytest.mark.parametrize(("name", "stale"), [("mark_stale", "false"), ("pick_expired", "true")])
async def test_retention_walks_along_the_endings(rig: PostgresRig, name: str, stale: str) -> None:
    fill_with_ended(rig, 30_000)
    await trio.lowlevel.checkpoint()
    found = plan(rig, name, {**WALK, "stale": stale})
    assert not re.search("Seq Scan on (job_rows|endings)", found)
    assert found.count("endings_order") >= 3


async def test_halted_targets_are_counted_along_their_index(rig: PostgresRig) -> None:
    """From one target to the next: a hundred thousand jobs that halt ten targets cost ten looks."""
    rig.raw(
        """set session_replication_role = replica;
        insert into job_rows (kind, state, target, finished_at, last_outcome)
        select 'a', 'failed', 't' || n % 10, clock_timestamp(), 'failed'
        from generate_series(1, 100000) n;
        insert into job_rows (kind, state, finished_at, last_outcome)
        select 'a', 'failed', clock_timestamp(), 'failed' from generate_series(1, 20000) n;
        analyze job_rows"""
    )
    rig.tampered = True  # no ending names them
    counts = await rig.engine.queue.counts()
    assert counts.targets_halted == 10
    found = plan(rig, "counts", {})
    assert found.count("Index Only Scan using job_rows_halting") == 2
    assert "Seq Scan on job_rows" not in found


async def test_kinds_that_fail_and_kinds_that_wait_are_found_along_indexes(
    rig: PostgresRig,
) -> None:
    fill_with_ended(rig, 30_000)
    rig.raw(
        """set session_replication_role = replica;
        insert into ready (priority, run_at, first_id, last_id, kind)
        select n % 3, clock_timestamp() + (n - 10000) * interval '1 s', n, n, 'a'
        from generate_series(1, 20000) n;
        analyze ready"""
    )
    rig.tampered = True
    await trio.lowlevel.checkpoint()
    found = plan(rig, "failing_kinds", {"seconds": "3600", "kinds": "200", "bound": "20"})
    assert "Seq Scan on" not in found
    assert found.count("endings_order") == 4
    walk = {"bound": "1000", "late_seconds": "1"}
    walk |= dict.fromkeys(("mark_priorities", "mark_ids", "mark_run_ats"), "'{}'")
    found = plan(rig, "waiting_kinds", walk)
    assert "Seq Scan on" not in found
    assert "Sort  " not in found
    assert found.count("ready_order") >= 3
