"""The async client, on asyncio and on Trio, on both stores: the words of the blocking one; waits
are told, and hold up nobody.
"""

import asyncio  # noqa: TID251 - what other programs run on
import re
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

import psycopg
import pytest
import trio
from psycopg.conninfo import make_conninfo
from psycopg.rows import DictRow, dict_row

from musterd import (
    AsyncClient,
    Client,
    InputRefused,
    NoSuchJob,
    NotAllowed,
    StoreMisconfigured,
    StoreUnavailable,
)
from musterd.store import client as blocking
from musterd.store.lifecycle import JobState
from musterd.store.postgres import endings
from musterd.store.postgres.migrating import apply_roles, role_names
from tests.contract.job_tools import ending, settle, take_one
from tests.contract.rigs import PostgresRig, Rig, SqliteRig, opened
from tests.support.pgbouncer import PgBouncer

T = TypeVar("T")
Run = Callable[[Callable[[], Coroutine[Any, Any, Any]]], Any]
SOON_SECONDS = 10.0  # long before anybody looks again unasked


def on_asyncio(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    return asyncio.run(main())


@pytest.fixture(params=["asyncio", "trio"])
def run(request: pytest.FixtureRequest) -> Run:
    return on_asyncio if request.param == "asyncio" else trio.run


@pytest.fixture
def store(unopened_shared: Rig) -> Rig:
    """With its schema, closed."""
    trio.run(migrate, unopened_shared)
    return unopened_shared


@pytest.fixture
def postgres_store(fresh_database: Callable[[], str]) -> PostgresRig:
    rig = PostgresRig(fresh_database())
    trio.run(migrate, rig)
    return rig


async def migrate(rig: Rig) -> None:
    async with opened(rig):
        await trio.lowlevel.checkpoint()


def url_of(rig: Rig) -> str:
    if isinstance(rig, PostgresRig):
        return rig.url
    assert isinstance(rig, SqliteRig)
    return f"sqlite:///{rig.path}"


async def together(*tasks: Callable[[], Awaitable[Any]]) -> list[Any]:
    """What each gives, on whichever loop this runs."""
    found: list[Any] = [None] * len(tasks)

    async def one(place: int) -> None:
        found[place] = await tasks[place]()

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        async with trio.open_nursery() as nursery:
            for place in range(len(tasks)):
                nursery.start_soon(one, place)
    else:
        await asyncio.gather(*map(one, range(len(tasks))))
    return found


async def nap(seconds: float) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        await trio.sleep(seconds)
    else:
        await asyncio.sleep(seconds)


def end_later(rig: Rig, seconds: float, state: JobState = JobState.SUCCEEDED) -> threading.Thread:
    """A node ends the only job that is due, after that time."""

    async def end() -> None:
        await trio.sleep(seconds)
        again = rig.another()
        await again.open()
        try:
            await settle(again, ending(await take_one(again), state, result="[7]"))
        finally:
            with trio.CancelScope(shield=True):
                await again.close()

    thread = threading.Thread(target=trio.run, args=[end])
    thread.start()
    return thread


def test_the_words_of_the_blocking_client(store: Rig, run: Run) -> None:
    async def main() -> None:
        due = datetime(2099, 1, 2, tzinfo=UTC)
        async with AsyncClient(url_of(store)) as client:
            one = await client.enqueue("a", {"x": ["ü", 1.5]}, priority=3, run_at=due)
            many = await client.enqueue_many([("a", 1), {"kind": "b", "hold": True}, ("c", None)])
            pairs = await client.enqueue_many([("a", number) for number in range(1_200)])
            assert [one, *many, *pairs] == sorted({one, *many, *pairs})
            assert await client.enqueue_many([]) == []
            keyed = await client.enqueue("a", dedup_key="k")
            assert await client.enqueue("a", dedup_key="k") == keyed
            with Client(url_of(store)) as other:
                assert await client.job(one) == other.job(one)
            assert await client.release(many[1]) == "queued"
            assert await client.pause(one) == "paused"
            assert await client.resume(one) == "queued"
            with pytest.raises(NotAllowed, match="clear wants a job that is paused or failed"):
                await client.clear(one)
            assert await client.cancel(one) == "canceled"
            assert (await client.wait(one))["reason"] == "canceled on request"
            for call in (client.cancel, client.job, client.wait):
                with pytest.raises(NoSuchJob, match="there is no job 99999"):
                    await call(99999)
            with pytest.raises(InputRefused, match="job 2: unknown option 'prio'"):
                await client.enqueue_many([("a", 1), {"kind": "a", "prio": 1}])
            assert (await client.job(await client.enqueue("a", tenant="default")))["kind"] == "a"
            with pytest.raises(StoreMisconfigured):
                await client.enqueue("a", tenant="acme")

    run(main)


@pytest.mark.parametrize("state", [JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELED])
def test_a_wait_ends_with_its_job(store: Rig, run: Run, state: JobState) -> None:
    async def main() -> dict[str, Any]:
        async with AsyncClient(url_of(store)) as client:
            job_id = await client.enqueue("a")
            with pytest.raises(TimeoutError, match=f"job {job_id} is still queued after 0.1 s"):
                await client.wait(job_id, 0.1)
            ended = end_later(store, 0.3, state)
            turns = 0

            async def count() -> None:
                nonlocal turns
                while ended.is_alive():
                    await nap(0.01)
                    turns += 1

            found, _ = await together(partial(client.wait, job_id, 60), count)
            ended.join()
            assert turns > 5, "the loop stood still"
            return dict(found)

    began = time.monotonic()
    assert run(main)["state"] == state.value
    assert time.monotonic() - began < SOON_SECONDS


def test_the_blocking_client_is_told_too(postgres_store: PostgresRig) -> None:
    with Client(postgres_store.url) as client:
        job_id = client.enqueue("a")
        ended = end_later(postgres_store, 0.3)
        began = time.monotonic()
        assert client.wait(job_id, 60)["result"] == [7]
        assert time.monotonic() - began < SOON_SECONDS
        ended.join()


def test_waits_are_told_over_one_connection_and_ask_nothing_meanwhile(
    postgres_store: PostgresRig, run: Run
) -> None:
    async def main() -> None:
        async with AsyncClient(postgres_store.url) as client:
            jobs = await client.enqueue_many([("a", number) for number in range(60)])

            async def look_and_cancel() -> None:
                await nap(1.5)
                sessions = postgres_store.raw(
                    "select count(*) from pg_stat_activity where datname = current_database()"
                    " and pid <> pg_backend_pid()"
                )[0][0]
                assert sessions <= 5, "four to ask with, and one that listens"
                reads = len(looked)
                await nap(1.0)
                assert len(looked) == reads, "nobody asks while nothing happens"
                for one in jobs:
                    await client.cancel(one)

            looked: list[int] = []
            backend: Any = client._backend  # pyright: ignore[reportPrivateUsage] - what it is asked
            read = backend.job

            def noted(job_id: int) -> object:
                looked.append(job_id)
                return read(job_id)

            backend.job = noted
            found = await together(look_and_cancel, *[partial(client.wait, one) for one in jobs])
            assert [one["state"] for one in found[1:]] == ["canceled"] * 60

    began = time.monotonic()
    run(main)
    assert time.monotonic() - began < SOON_SECONDS + 5


def test_an_end_that_is_under_way_is_not_missed(postgres_store: PostgresRig) -> None:
    with Client(postgres_store.url) as client, psycopg.connect(postgres_store.url) as other:
        job_id = client.enqueue("a")
        other.execute("select musterd.cancel(%s)", [job_id])
        timer = threading.Timer(0.5, other.commit)
        timer.start()
        began = time.monotonic()
        assert client.wait(job_id)["state"] == "canceled"
        assert time.monotonic() - began < SOON_SECONDS
        timer.join()


def test_a_listener_that_is_cut_off_listens_anew(postgres_store: PostgresRig, run: Run) -> None:
    cut = (
        "select count(pg_terminate_backend(pid)) from pg_stat_activity where query like 'listen %'"
    )

    async def main() -> None:
        async with AsyncClient(postgres_store.url) as client:
            job_id = await client.enqueue("a")

            async def cut_and_cancel() -> None:
                await nap(0.5)
                assert postgres_store.raw(cut) == [(1,)]
                await nap(0.5)
                assert postgres_store.raw(cut) == [(1,)], "it had not come back"
                await nap(0.5)
                await client.cancel(job_id)

            found = await together(partial(client.wait, job_id), cut_and_cancel)
            assert found[0]["state"] == "canceled"

    began = time.monotonic()
    run(main)
    assert time.monotonic() - began < SOON_SECONDS


def test_a_listener_goes_when_nobody_waits(
    postgres_store: PostgresRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endings, "IDLE_SECONDS", 0.2)
    listening = "select count(*) from pg_stat_activity where query like 'listen %'"
    with Client(postgres_store.url) as client:
        job_id = client.enqueue("a")
        with pytest.raises(TimeoutError):
            client.wait(job_id, 0.5)
        time.sleep(1.0)
        assert postgres_store.raw(listening) == [(0,)]
        with pytest.raises(TimeoutError):
            client.wait(job_id, 0.1)
        assert postgres_store.raw(listening) == [(1,)]


def test_through_a_pooler_it_looks_again_or_listens_elsewhere(
    postgres_store: PostgresRig, pooler: PgBouncer, run: Run
) -> None:
    pooled = pooler.url(postgres_store.url.rpartition("/")[2])

    async def main() -> None:
        for listen_url in (None, postgres_store.url):
            more: Any = {} if listen_url is None else {"listen_url": listen_url}
            async with AsyncClient(pooled, **more) as client:
                job_id = await client.enqueue("a")

                async def cancel(client: AsyncClient = client, job_id: int = job_id) -> None:
                    await nap(0.3)
                    await client.cancel(job_id)

                found = await together(partial(client.wait, job_id, 20), cancel)
                assert found[0]["state"] == "canceled"

    run(main)


def test_a_wait_without_the_right_to_be_told_looks_again(postgres_store: PostgresRig) -> None:
    """As with a role that may read all and write nothing."""
    apply_roles(postgres_store.url, "musterd")
    role = role_names("musterd")["daemon"]
    postgres_store.raw(f"create role reader login password 'secret' in role {role}")
    postgres_store.raw("revoke select on hint_channel from musterd_daemon")
    try:
        url = make_conninfo(postgres_store.url, user="reader", password="secret")
        with Client(url) as client:
            job_id = client.enqueue("a")
            ended = end_later(postgres_store, 0.3)
            assert client.wait(job_id, 20)["state"] == "succeeded"
            ended.join()
    finally:
        postgres_store.raw("drop role reader")


async def give_up_on_trio(waiting: Coroutine[Any, Any, Any]) -> None:
    with trio.move_on_after(0.5) as scope:
        await waiting
    assert scope.cancelled_caught


async def give_up_on_asyncio(waiting: Coroutine[Any, Any, Any]) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await waiting


def test_what_is_given_up_leaves_nothing_behind(store: Rig, run: Run) -> None:
    async def main() -> None:
        async with AsyncClient(url_of(store)) as client:
            job_id = await client.enqueue("a")
            backend: Any = client._backend  # pyright: ignore[reportPrivateUsage] - what it keeps
            give_up = give_up_on_trio if run is trio.run else give_up_on_asyncio
            await give_up(client.wait(job_id))
            if isinstance(store, PostgresRig):
                assert backend._endings._expected == {}
            assert (await client.job(job_id))["state"] == "queued"

    run(main)


def test_one_client_serves_several_loops_and_connects_again(store: Rig) -> None:
    client = AsyncClient(url_of(store))

    async def make() -> int:
        made = await client.enqueue("a")
        await client.close()
        await client.close()
        return made

    assert [on_asyncio(make), trio.run(make), on_asyncio(make)] == [1, 2, 3]


def test_a_store_that_is_away_is_said_to_be_away(run: Run) -> None:
    async def main() -> None:
        async with AsyncClient("postgresql://127.0.0.1:1/x") as client:
            with pytest.raises(StoreUnavailable):
                await client.enqueue("a")

    run(main)


def test_a_job_in_the_callers_async_transaction(postgres_store: PostgresRig) -> None:
    async def main() -> None:
        client = AsyncClient(postgres_store.url)
        async with await psycopg.AsyncConnection[DictRow].connect(
            postgres_store.url, row_factory=dict_row
        ) as connection:
            await client.enqueue("a", {"x": 1}, connection=connection)
            await client.enqueue_many([("a", 1), ("b", 2)], connection=connection)
            await connection.rollback()
            kept = await client.enqueue("c", connection=connection)
            pairs: list[tuple[str, Any]] = [("d", number) for number in range(1_200)]
            many = await client.enqueue_many(pairs, connection=connection)
            keyed = {"kind": "e", "dedup_key": "k"}
            again = await client.enqueue_many([keyed, keyed], connection=connection)
            assert again[0] == again[1]
            await connection.commit()
            assert (await client.job(kept))["kind"] == "c"
            assert (await client.job(many[1_199]))["payload"] == 1_199
        await client.close()

    asyncio.run(main())
    assert postgres_store.raw("select count(*) from job_rows") == [(1_202,)]


def test_rows_as_dicts_are_fine_for_the_blocking_client(postgres_store: PostgresRig) -> None:
    with (
        Client(postgres_store.url) as client,
        psycopg.Connection[DictRow].connect(postgres_store.url, row_factory=dict_row) as connection,
    ):
        job_id = client.enqueue("a", connection=connection)
        connection.commit()
        assert client.job(job_id)["kind"] == "a"


def test_a_connection_that_it_cannot_use_is_refused(
    postgres_store: PostgresRig, tmp_path: Any
) -> None:
    async def main() -> None:
        client = AsyncClient(postgres_store.url)
        with (
            psycopg.connect(postgres_store.url) as connection,
            pytest.raises(InputRefused, match=r"found psycopg\.Connection.* Client takes it"),
        ):
            await client.enqueue("a", connection=connection)
        with Client(postgres_store.url) as other:
            async with await psycopg.AsyncConnection.connect(postgres_store.url) as asynchronous:
                with pytest.raises(InputRefused, match="AsyncClient takes it"):
                    other.enqueue("a", connection=asynchronous)
            with pytest.raises(InputRefused, match=r"connection: found builtins\.str"):
                other.enqueue("a", connection="postgresql://")
        await client.close()
        embedded = Client(f"sqlite:///{tmp_path}/x.db")
        with pytest.raises(InputRefused, match="an embedded store is a file of its own"):
            embedded.enqueue("a", connection=object())

    asyncio.run(main())


def test_an_argument_that_is_mistyped_is_named() -> None:
    wrong: Any = {"poolsize": 4}
    for client in (Client, AsyncClient):
        with pytest.raises(TypeError, match=f"{client.__name__} takes no argument 'poolsize'"):
            client("sqlite:///x.db", **wrong)


def test_the_blocking_client_says_once_that_it_blocks_a_loop(
    store: Rig, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocking, "has_warned", False)

    async def main() -> None:  # noqa: ASYNC124 - that it runs on a loop is enough
        with pytest.warns(RuntimeWarning, match=r"use musterd\.AsyncClient.*to_thread") as found:
            client.enqueue("a")
        assert found[0].filename == __file__
        client.enqueue("a")

    with warnings.catch_warnings(), Client(url_of(store)) as client:
        warnings.simplefilter("error")
        client.enqueue("a")
        run(main)


# What pip would bring for a daemon, beside attrs, psycopg and psycopg-pool.
FOR_DAEMONS = (
    "cattrs", "click", "cronsim", "httpcore", "hypercorn", "prometheus_client", "starlette",
    "tomli", "trio", "tzdata",
)  # fmt: skip
BARE = """
import asyncio, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {forbidden!r}:
            raise ModuleNotFoundError(f"no module named {{name}}", name=name)

sys.meta_path.insert(0, Missing())
import musterd

async def main():
    async with musterd.AsyncClient({url!r}) as client:
        job_id = await client.enqueue("a", {{"x": 1}}, dedup_key="k")
        await client.enqueue_many([("b", 1), ("c", 2)])
        try:
            await client.wait(job_id, 0.1)
        except TimeoutError:
            pass
        await client.cancel(job_id)
        return (await client.wait(job_id))["state"]

with musterd.Client({url!r}) as client:
    assert client.job(client.enqueue("a"))["state"] == "queued"
print(asyncio.run(main()))
"""


def test_clients_need_no_more_than_a_driver(store: Rig) -> None:
    others = {"sqlite3"} if isinstance(store, PostgresRig) else {"psycopg", "psycopg_pool"}
    code = BARE.format(forbidden={*FOR_DAEMONS, *others}, url=url_of(store))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("canceled\n", "")


def test_the_import_itself_loads_nothing() -> None:
    code = "import sys; before = set(sys.modules); import musterd; print(set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(re.findall(r"'([^']+)'", done.stdout))
    assert {name for name in loaded if name.startswith("musterd")} == {"musterd"}
    assert not loaded & {*FOR_DAEMONS, "attrs", "psycopg", "asyncio", "sqlite3"}
