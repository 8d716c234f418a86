"""What only the SQLite engine does: its file, its thread, its troubles."""

import os
import sqlite3
import stat
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from musterd.store.errors import InputRefused, StoreMisconfigured, StoreUnavailable
from musterd.store.input import PayloadInvalid, decode_payload
from musterd.store.jobs import NewJob
from musterd.store.leases import Ends, Successes
from musterd.store.lifecycle import JobState
from musterd.store.sqlite.engine import SqliteEngine
from tests.contract.job_tools import ending, ids, settle, state_of, take


def make(path: Path | str, **options: Any) -> SqliteEngine:
    chosen: dict[str, Any] = {"busy_timeout_seconds": 2.0} | options
    return SqliteEngine(str(path), lambda: 1_800_000_000.0, **chosen)


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncGenerator[SqliteEngine, Any]:
    engine = make(tmp_path / "store.db")
    await engine.open()
    await engine.migrate()
    yield engine
    await engine.close()


def run(path: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return connection.execute(sql).fetchall()


async def test_folder_and_file_are_nobody_elses_business(tmp_path: Path) -> None:
    path = tmp_path / "new" / "deep" / "store.db"
    engine = make(path)
    await engine.open()
    await engine.close()
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["store.db"]


async def test_a_file_name_may_be_odd(tmp_path: Path) -> None:
    path = tmp_path / "file:a b?mode=ro#é.db"
    engine = make(path)
    await engine.open()
    await engine.migrate()
    await engine.close()
    assert path.exists()


async def test_what_is_written_is_written_through(engine: SqliteEngine, tmp_path: Path) -> None:
    assert run(tmp_path / "store.db", "pragma journal_mode") == [("wal",)]
    # 2 = FULL: a commit is on the disk before its call returns.
    assert await in_its_thread(engine, "pragma synchronous") == [(2,)]


async def test_a_file_that_is_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.write_text("just a text, and long enough to be looked at " * 20)
    engine = make(path)
    with pytest.raises(StoreMisconfigured, match="something else"):
        await engine.open()
    await engine.close()


async def test_a_folder_in_the_files_place_is_refused(tmp_path: Path) -> None:
    engine = make(tmp_path)
    with pytest.raises(StoreMisconfigured, match="opening"):
        await engine.open()
    await engine.close()


async def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    engine = make(tmp_path / "taken" / "store.db")
    with pytest.raises(StoreMisconfigured, match="opening"):
        await engine.open()
    await engine.close()


async def test_opening_may_be_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.mkdir()
    engine = make(path)
    with pytest.raises(StoreMisconfigured):
        await engine.open()
    path.rmdir()
    await engine.open()
    await engine.migrate()
    await engine.close()


async def test_a_full_disk_is_named_and_loses_nothing(engine: SqliteEngine) -> None:
    await engine.jobs.enqueue([NewJob("a")])
    await in_its_thread(engine, "pragma max_page_count = 1")
    with pytest.raises(StoreUnavailable) as refused:
        await engine.jobs.enqueue([NewJob("a", '"' + "x" * 900 + '"')] * 500)
    assert refused.value.trouble == "disk_full"
    assert "enqueue" in str(refused.value)
    await in_its_thread(engine, "pragma max_page_count = 1000000")
    assert (await engine.queue.counts()).enqueued_total == 1
    assert len(await engine.jobs.enqueue([NewJob("a")] * 500)) == 500


async def test_a_read_only_store_is_named(engine: SqliteEngine) -> None:
    await in_its_thread(engine, "pragma query_only = on")
    with pytest.raises(StoreUnavailable) as refused:
        await engine.jobs.enqueue([NewJob("a")])
    assert refused.value.trouble == "read_only"
    assert (await engine.queue.counts()).enqueued_total == 0


async def in_its_thread(engine: SqliteEngine, sql: str) -> list[Any]:
    """Runs a pragma on the engine's own connection, which is the only one that it changes."""
    return await engine._call(lambda database: database.connection.execute(sql).fetchall())  # pyright: ignore[reportPrivateUsage] - no other way in


async def test_a_cancelled_write_that_has_begun_is_whole(engine: SqliteEngine) -> None:
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(engine.jobs.enqueue, [NewJob("a")] * 3000)
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()
    # The nursery ended, so the write did: nothing is still on its way.
    assert (await engine.queue.counts()).enqueued_total in (0, 3000)


async def test_a_call_cancelled_before_it_begins_writes_nothing(engine: SqliteEngine) -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        await engine.jobs.enqueue([NewJob("a")])
    assert scope.cancelled_caught
    assert (await engine.queue.counts()).enqueued_total == 0


async def test_the_loop_turns_while_a_call_blocks(engine: SqliteEngine, tmp_path: Path) -> None:
    ticks = 0
    with closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as other:
        other.execute("begin immediate")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(engine.jobs.enqueue, [NewJob("a")])
            for _ in range(20):
                await trio.sleep(0.002)
                ticks += 1
            other.execute("rollback")
    assert ticks == 20


async def test_an_inline_engine_makes_no_thread_and_runs_under_any_clock(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    before = threading.active_count()
    engine = make(tmp_path / "store.db", inline=True)
    await engine.open()
    await engine.migrate()
    await engine.jobs.enqueue([NewJob("a")])
    assert len(await take(engine)) == 1
    assert threading.active_count() == before
    assert trio.current_time() == 0
    await engine.close()


async def test_a_store_in_memory_forgets_when_it_is_closed() -> None:
    engine = make(":memory:")
    await engine.open()
    await engine.migrate()
    await engine.jobs.enqueue([NewJob("a")])
    await engine.close()
    await engine.open()
    assert (await engine.schema()).found == 0
    await engine.close()


async def test_a_row_that_is_no_text_spoils_only_its_own_job(
    engine: SqliteEngine, tmp_path: Path
) -> None:
    good, bad = await engine.jobs.enqueue([NewJob("a", '"good"'), NewJob("a", '"bad"')])
    path = tmp_path / "store.db"
    run(path, f"update job_rows set payload = cast(x'22ff22' as text) where id = {bad}")
    claims = await take(engine, workers=2)
    assert ids(claims) == [good, bad]
    assert decode_payload(claims[0].payload) == "good"
    with pytest.raises(PayloadInvalid):
        decode_payload(claims[1].payload)
    await settle(engine, *(ending(claim) for claim in claims))
    assert await state_of(engine, bad) is JobState.SUCCEEDED


TIMES = ("started_at", "finished_at", "requested_at", "cleared_at", "stale_at", "changed_at",
         "scheduled_for")  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        *(
            "schedule = x'00'",
            "schedule = 'a' || char(0)",
            "spent = x'7b7d'",
            f"attempt = {2**63 - 1}",
            f"forgiven = {2**63 - 1}",
        ),
        *(f"{column} = {value}" for column in TIMES for value in ("'soon'", "1e300", "-7e16")),
    ],
)
async def test_what_no_claim_or_list_could_read_is_refused(
    engine: SqliteEngine, tmp_path: Path, change: str
) -> None:
    """One such row stopped all claims, or each list that it stood in."""
    made = await engine.jobs.enqueue([NewJob("a"), NewJob("a")])
    with pytest.raises(sqlite3.IntegrityError, match="CHECK constraint failed"):
        run(tmp_path / "store.db", f"update job_rows set {change} where id = {made[0]}")
    assert ids(await take(engine, workers=2)) == made


async def test_long_payloads_come_whole_and_in_order(engine: SqliteEngine) -> None:
    texts = [f'"{character * length}"' for length in (20_000, 1, 30_000) for character in "aé"]
    made = await engine.jobs.enqueue([NewJob("a", text) for text in texts])
    claims = await take(engine, workers=9)
    assert [(one.id, one.payload) for one in claims] == list(zip(made, texts, strict=True))


async def test_results_of_every_sort_end_together(engine: SqliteEngine, tmp_path: Path) -> None:
    results = ['"é\\n\\u0000"', None, '""', "[1]", None, '"' + "x" * 50_000 + '"']
    await engine.jobs.enqueue([NewJob("a")] * len(results))
    claims = await take(engine, workers=3, ahead=3)
    count = len(claims)
    started, ended_at = [0.0] * count, [1.0] * count
    ended = Successes.of(claims, [7] * count, started, ended_at, results, ended_at)
    assert not (await engine.leases.exchange(Ends(successes=ended), None)).rejected
    found = run(tmp_path / "store.db", "select result from job_rows order by id")
    assert found == [(one,) for one in results]


@pytest.mark.parametrize("result", ["\ud800", "1\0"])
async def test_a_result_that_is_no_text_undoes_the_batch(engine: SqliteEngine, result: str) -> None:
    await engine.jobs.enqueue([NewJob("a")])
    (claim,) = await take(engine)
    ended = Successes.of([claim], [1], [0.0], [0.0], [f'"{result}"'], [0.0])
    with pytest.raises(InputRefused):
        await engine.leases.exchange(Ends(successes=ended), None)
    assert await state_of(engine, 1) is JobState.RUNNING


async def test_a_refusal_names_the_job(engine: SqliteEngine) -> None:
    with pytest.raises(InputRefused, match=r"job 2 of 3 \('b'\).*payload_is_json"):
        await engine.jobs.enqueue([NewJob("a"), NewJob("b", "oops"), NewJob("c")])


async def test_a_link_to_the_file_has_the_same_lock(engine: SqliteEngine, tmp_path: Path) -> None:
    await engine.start_node("north")
    (tmp_path / "link.db").symlink_to(tmp_path / "store.db")
    other = make(tmp_path / "link.db")
    await other.open()
    with pytest.raises(StoreMisconfigured, match=f"process {os.getpid()}"):
        await other.start_node("south")
    await other.close()


async def test_a_pipe_left_behind_is_used_again_and_stops_nobody(tmp_path: Path) -> None:
    for _ in range(2):
        engine = make(tmp_path / "store.db")
        await engine.open()
        await engine.migrate()
        await engine.jobs.enqueue([NewJob("a")])
        await engine.start_node("north")
        await engine.close()
    assert stat.S_ISFIFO((tmp_path / "store.db.wake").stat().st_mode)


async def test_a_file_in_the_pipes_place_is_refused_and_the_lock_let_go(tmp_path: Path) -> None:
    pipe = tmp_path / "store.db.wake"
    pipe.write_text("")
    engine = make(tmp_path / "store.db")
    await engine.open()
    await engine.migrate()
    with pytest.raises(StoreMisconfigured, match="no pipe"):
        await engine.start_node("north")
    pipe.unlink()
    assert await engine.start_node("north") == 0
    await engine.close()


async def test_who_waits_for_hints_is_told_when_the_store_closes(engine: SqliteEngine) -> None:
    await engine.start_node("north")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(expect_closed, engine)
        await trio.testing.wait_all_tasks_blocked()
        await engine.close()


async def expect_closed(engine: SqliteEngine) -> None:
    with pytest.raises(StoreUnavailable, match="closed"):
        await engine.queue.wait_for_hint()


async def test_jobs_that_are_due_later_cost_a_claim_nothing(engine: SqliteEngine) -> None:
    await engine.jobs.enqueue([NewJob("a", priority=p, delay_seconds=99) for p in range(50)] * 400)
    made = await engine.jobs.enqueue([NewJob("a", priority=-1)])
    began = time.perf_counter()
    assert ids(await take(engine)) == made
    assert time.perf_counter() - began < 2
