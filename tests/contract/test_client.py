"""The client, on both stores, and what only PostgreSQL can give it."""

import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
import trio
from psycopg.conninfo import make_conninfo

from musterd import (
    Client,
    InputRefused,
    NoSuchJob,
    NotAllowed,
    StoreMisconfigured,
    StoreUnavailable,
)
from musterd.store.jobs import NewJob
from musterd.store.lifecycle import JobState
from musterd.store.phases import KindRule
from musterd.store.postgres.migrating import apply_roles, role_names
from tests.contract.job_tools import ending, settle, take_one
from tests.contract.rigs import PostgresRig, Rig, SqliteRig


def url_of(rig: Rig) -> str:
    if isinstance(rig, PostgresRig):
        return rig.url
    assert isinstance(rig, SqliteRig)
    return f"sqlite:///{rig.path}"


@pytest.fixture
def client(shared: Rig) -> Generator[Client]:
    with Client(url_of(shared)) as made:
        yield made


async def test_a_job_and_its_options(shared: Rig, client: Client) -> None:
    due = datetime(2099, 1, 2, tzinfo=UTC)
    job_id = client.enqueue("a", {"x": ["ü", 1.5]}, priority=3, run_at=due, max_attempts=2)
    found = client.job(job_id)
    assert (found["kind"], found["payload"], found["priority"]) == ("a", {"x": ["ü", 1.5]}, 3)
    assert (found["run_at"], found["max_attempts"]) == ("2099-01-02T00:00:00.000000Z", 2)
    plain = client.job(client.enqueue("b"))
    assert (plain["payload"], plain["state"]) == ({}, "queued")
    record = await shared.engine.jobs.get(job_id)
    assert record is not None


async def test_many_keep_their_order(shared: Rig, client: Client) -> None:
    made = client.enqueue_many([("a", {"i": 0}), {"kind": "b", "priority": 7}, ("c", None)] * 100)
    assert len(made) == 300
    assert made == sorted(made)
    assert [client.job(job_id)["kind"] for job_id in made[:3]] == ["a", "b", "c"]
    assert client.enqueue_many([]) == []
    assert (await shared.engine.queue.counts()).enqueued_total == 300


async def test_many_pairs_are_all_made_or_none(shared: Rig, client: Client) -> None:
    pairs: list[tuple[str, Any]] = [("a", {"i": number}) for number in range(1_200)]
    made = client.enqueue_many(pair for pair in pairs)
    assert made == sorted(set(made))
    assert [client.job(made[place])["payload"]["i"] for place in (0, 499, 500, 1_199)] == [
        *(0, 499, 500, 1_199)
    ]
    with pytest.raises(InputRefused, match=r"^job 1101: payload: .*set is not JSON"):
        client.enqueue_many([*pairs[:1_100], ("a", {1, 2}), ("a", 1)])
    assert (await shared.engine.queue.counts()).enqueued_total == 1_200
    assert client.enqueue_many([("b", 1), ("b", 2)])[0] > made[-1]


async def test_odd_texts_arrive_as_they_were(client: Client) -> None:  # noqa: ASYNC124 - its fixture waits
    kind, payload = 'a\\b\t"ü\n\r\\N', {"v": 'x\\n\t\n"ü🦀\\'}
    held = {"kind": "b", "hold": True, "max_attempts": 3}
    first, second, third = client.enqueue_many([(kind, payload), held, ("c", None)])
    found = client.job(first)
    assert (found["kind"], found["payload"]) == (kind, payload)
    assert client.job(second)["state"] == "pending"
    assert [client.job(one)["max_attempts"] for one in (second, third)] == [3, None]


async def test_a_target_arrives_whichever_way_it_goes(shared: Rig, client: Client) -> None:
    name = "a\\b\t'\"ü"
    made = [client.enqueue("a", target=name), *client.enqueue_many([{"kind": "a", "target": name}])]
    keyed = {"kind": "a", "target": name, "dedup_key": "k"}
    late = {"kind": "a", "target": name, "delay_seconds": 0}
    made += client.enqueue_many([keyed, ("a", None)])[:1] + client.enqueue_many([late, keyed])[:1]
    assert [client.job(job_id)["target"] for job_id in made] == [name] * 4
    with pytest.raises(InputRefused, match="target: wanted a text of 1 to 200 characters"):
        client.enqueue("a", target="")
    if isinstance(shared, PostgresRig):
        shared.raw("select musterd.enqueue('a', target => 'u')")
        shared.raw("""select musterd.enqueue_many('[{"kind": "a", "target": "u"}]')""")
        with pytest.raises(psycopg.DataError, match="target: wanted a text of 1 to 200"):
            shared.raw("select musterd.enqueue('a', target => '')")
        assert shared.raw("select count(*) from jobs where target = 'u'") == [(2,)]
    assert (await shared.engine.queue.counts()).by_state[JobState.QUEUED] >= len(made)


async def test_without_a_priority_a_job_has_that_of_its_kind(shared: Rig, client: Client) -> None:
    await shared.engine.nodes.declare_kinds({"urgent": KindRule(priority=7), "a": KindRule()})
    keyed = {"kind": "urgent", "dedup_key": "k"}
    late = {"kind": "urgent", "delay_seconds": 0}
    made = [client.enqueue("urgent"), *client.enqueue_many([("urgent", None), ("urgent", 1)])]
    made += client.enqueue_many([keyed, late]) + client.enqueue_many([late])
    made += await shared.engine.jobs.enqueue([NewJob("urgent")])
    if isinstance(shared, PostgresRig):
        shared.raw("select musterd.enqueue('urgent')")
        shared.raw("""select musterd.enqueue_many('[{"kind": "urgent"}, {"kind": "urgent"}]')""")
        shared.raw("insert into jobs (kind) values ('urgent')")
        assert shared.raw("select priority, count(*) from jobs group by 1") == [(7, len(made) + 4)]
    assert {client.job(job_id)["priority"] for job_id in made} == {7}
    others = [client.enqueue("a"), client.enqueue("unknown"), client.enqueue("urgent", priority=-1)]
    others += client.enqueue_many([{"kind": "urgent", "priority": 0}])
    assert [client.job(job_id)["priority"] for job_id in others] == [0, 0, -1, 0]
    await shared.engine.nodes.declare_kinds({"urgent": KindRule()})
    assert client.job(client.enqueue("urgent"))["priority"] == 0


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redis://u:secret@x", "found redis://…, wanted sqlite:///path or postgresql://"),
        ("mysql://x", "found mysql://…, wanted sqlite:///path or postgresql://"),
        ("jobs.db", 'found "jobs.db", wanted sqlite:///path or postgresql://'),
        ("u:secret@db", "wanted sqlite:///path or postgresql://"),
        ("sqlite://jobs.db", "found sqlite://jobs.db, wanted sqlite:///relative/path or"),
    ],
)
def test_a_url_of_another_kind_of_store_is_refused(url: str, said: str) -> None:
    with pytest.raises(StoreMisconfigured, match=r"^URL: ") as found:
        Client(url)
    assert said in str(found.value)
    assert "secret" not in str(found.value)


def test_a_refused_port_makes_no_noise() -> None:
    code = (
        "import musterd\n"
        "try: musterd.Client('postgresql://x@127.0.0.1:1/x').job(1)\n"
        "except musterd.StoreUnavailable as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ("127.0.0.1" in done.stdout, done.stderr) == (True, "")


async def test_a_job_may_name_its_tenant(shared: Rig, client: Client) -> None:
    await shared.engine.nodes.declare_kinds({}, tenant="default")
    assert client.job(client.enqueue("a", tenant="default"))["tenant"] == "default"
    with pytest.raises(StoreMisconfigured):  # it has no schema yet, or no file
        client.enqueue("a", tenant="acme")
    if isinstance(shared, PostgresRig):
        shared.raw("select musterd.enqueue('a', tenant => 'default')")
        with pytest.raises(psycopg.DataError, match="tenant: found acme, wanted default"):
            shared.raw("select musterd.enqueue('a', tenant => 'acme')")
    else:
        with Client(url_of(shared), create=True) as maker:
            job_id = maker.enqueue("b", tenant="acme")
        with Client(url_of(shared), tenant="acme") as acme:
            assert (acme.job(job_id)["tenant"], acme.job(job_id)["kind"]) == ("acme", "b")


async def test_a_key_gives_the_job_that_holds_it(client: Client) -> None:  # noqa: ASYNC124 - its fixture waits
    first = client.enqueue("a", dedup_key="k")
    assert client.enqueue("a", dedup_key="k", dedup_scope="forever") == first
    made = client.enqueue_many([{"kind": "a", "dedup_key": "k"}, ("b", 1)])
    assert (made[0], made[1] > first) == (first, True)


async def test_actions_and_their_refusals(client: Client) -> None:  # noqa: ASYNC124 - its fixture waits
    job_id = client.enqueue("a", hold=True)
    assert client.release(job_id) == "queued"
    assert client.pause(job_id) == "paused"
    assert client.resume(job_id) == "queued"
    with pytest.raises(NotAllowed, match="is queued: clear wants a job that is paused or failed"):
        client.clear(job_id)
    assert client.cancel(job_id) == "canceled"
    for call in (client.cancel, client.job, client.wait):
        with pytest.raises(NoSuchJob, match="there is no job 999"):
            call(999)


async def test_waiting_for_the_end(shared: Rig, client: Client) -> None:
    job_id = client.enqueue("a")
    with pytest.raises(TimeoutError, match=f"job {job_id} is still queued"):
        client.wait(job_id, 0)
    claim = await take_one(shared.engine)
    ended: list[dict[str, Any]] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.to_thread.run_sync, lambda: ended.append(client.wait(job_id, 20)))
        await settle(shared.engine, ending(claim, result="[7]"))
    assert (ended[0]["state"], ended[0]["result"]) == ("succeeded", [7])


REFUSED: list[tuple[Any, Any, dict[str, Any], str]] = [
    ("", None, {}, "kind: found 0 characters"),
    (7, None, {}, "kind: found 7, wanted a name"),
    ("a", None, {"prio": 1}, "unknown option 'prio'"),
    ("a", None, {"priority": 40000}, "priority: found 40000, wanted a whole number, -32768 to"),
    ("a", None, {"priority": 1.5}, "priority: found 1.5"),
    ("a", None, {"delay_seconds": -1}, "delay_seconds: found -1, wanted 0 to 3153600000 seconds"),
    ("a", None, {"delay_seconds": float("nan")}, "delay_seconds: found nan"),
    ("a", None, {"hold": "yes"}, "hold: found yes, wanted true or false"),
    ("a", None, {"run_at": datetime(2099, 1, 1)}, "wanted a datetime with a time zone"),  # noqa: DTZ001 - the fault
    ("a", None, {"run_at": datetime.now(UTC), "delay_seconds": 1}, "exclude each other"),
    ("a", None, {"dedup_key": ""}, "dedup_key: wanted a text of 1 to 200 characters"),
    ("a", None, {"dedup_key": "k", "dedup_scope": "soon"}, "dedup_scope: found soon"),
    ("a", None, {"dedup_scope": "forever"}, "dedup_scope: found without dedup_key"),
    ("a", float("inf"), {}, "payload: Out of range float"),
    ("a", object(), {}, "payload: Object of type object"),
    ("a", "\0", {}, "NUL"),
]


@pytest.mark.parametrize(("kind", "payload", "options", "message"), REFUSED)
def test_what_no_job_can_have(
    kind: Any, payload: Any, options: dict[str, Any], message: str
) -> None:
    nowhere = Client("sqlite:////nowhere/at/all.db")
    with pytest.raises(InputRefused, match=message):
        nowhere.enqueue(kind, payload, **options)
    with pytest.raises(InputRefused, match=f"job 2: .*{message}"):
        nowhere.enqueue_many([("a", 1), {"kind": kind, "payload": payload, **options}])


async def test_threads_share_one_client(client: Client) -> None:  # noqa: ASYNC124 - its fixture waits
    made: list[int] = []
    threads = [
        threading.Thread(target=lambda: made.extend(client.enqueue("a") for _ in range(20)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 160


async def test_a_closed_client_connects_again(client: Client) -> None:  # noqa: ASYNC124 - its fixture waits
    first = client.enqueue("a")
    client.close()
    client.close()
    assert client.enqueue("a") == first + 1


def test_an_embedded_store_that_is_not_there_is_made_only_on_demand(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/new/store.db"
    with Client(url) as client:
        with pytest.raises(StoreMisconfigured, match=r"no store at .*create=True"):
            client.enqueue("a")
        assert not (tmp_path / "new").exists()
        with Client(url, create=True) as maker:
            assert maker.enqueue("a") == 1
        assert client.enqueue("a") == 2, "it looks again"
    with Client(url, tenant="acme", create=True) as other:
        assert other.enqueue("a") == 1


def test_an_emptied_file_is_refused(tmp_path: Path) -> None:
    """Whoever made it anew would hide from the daemon that its jobs are gone."""
    file = tmp_path / "store.db"
    file.touch()
    (tmp_path / "store.db.lock").touch()
    with Client(f"sqlite:///{file}", create=True) as client:
        with pytest.raises(StoreMisconfigured, match="the file is empty, and a daemon has worked"):
            client.enqueue("a")
        assert file.stat().st_size == 0


async def test_a_job_in_the_callers_transaction(postgres_rig: PostgresRig) -> None:
    with Client(postgres_rig.url) as client, psycopg.connect(postgres_rig.url) as connection:
        client.enqueue("a", {"x": 1}, connection=connection)
        client.enqueue_many([("a", 1), ("b", 2)], connection=connection)
        connection.rollback()
        kept = client.enqueue("c", connection=connection)
        connection.commit()
        assert client.job(kept)["kind"] == "c"
    assert (await postgres_rig.engine.queue.counts()).enqueued_total == 1


async def test_a_client_needs_no_right_but_to_call(postgres_rig: PostgresRig) -> None:
    apply_roles(postgres_rig.url, "musterd")
    role = role_names("musterd")["enqueue"]
    postgres_rig.raw(f"create role app login password 'secret' in role {role}")
    try:
        with Client(make_conninfo(postgres_rig.url, user="app", password="secret")) as client:
            one = client.enqueue("a", {"x": 1}, dedup_key="k")
            assert client.enqueue_many([{"kind": "a", "dedup_key": "k"}, ("b", [1])])[0] == one
            assert client.cancel(one) == "canceled"
            with pytest.raises(StoreMisconfigured, match="lacks a right"):
                client.job(one)
    finally:
        postgres_rig.raw("drop role app")
    assert (await postgres_rig.engine.queue.counts()).by_state[JobState.QUEUED] == 1


def test_a_store_that_is_away_is_said_to_be_away() -> None:
    with Client("postgresql://127.0.0.1:1/x") as client, pytest.raises(StoreUnavailable):
        client.enqueue("a")


async def test_a_schema_that_is_not_there(fresh_database: Callable[[], str]) -> None:
    with Client(fresh_database()) as client, pytest.raises(StoreMisconfigured, match="db migrate"):
        client.enqueue("a")
    await trio.lowlevel.checkpoint()
