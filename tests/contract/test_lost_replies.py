"""Replies of a commit that never come: what a client says of it is what happened."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Any

import psycopg
import pytest
import trio

from musterd import Client, OutcomeUnknown
from tests.contract.rigs import PostgresRig, opened
from tests.support.postgres_server import PostgresServer
from tests.support.wire_proxy import Cut, WireProxy


@pytest.fixture
async def server(fresh_database: Callable[[], str]) -> AsyncGenerator[PostgresRig, Any]:
    async with opened(PostgresRig(fresh_database())) as ready:
        assert isinstance(ready, PostgresRig)
        yield ready


@pytest.mark.parametrize("cut", ["request", "reply"])
async def test_a_lost_commit_makes_one_job_all_the_same(server: PostgresRig, cut: Any) -> None:
    with WireProxy(server.url) as proxy, Client(proxy.url) as client:
        first = client.enqueue("a")
        proxy.cuts = [cut]
        second = client.enqueue("b")
        assert client.job(second)["kind"] == "b"
        proxy.cuts = [cut]
        many = client.enqueue_many([("c", 1), ("d", 2)])
        assert proxy.made == [cut, cut]
        assert proxy.commits == 4  # one of them ends the snapshot in which the job was read
        assert len({first, second, *many}) == 4
    assert (await server.engine.queue.counts()).enqueued_total == 4


def test_a_crashed_server_that_gives_a_transaction_id_again_can_not_tell() -> None:
    """What it says is of another transaction: the job is not there, and is not said to be."""
    with PostgresServer(wal_writer_delay="10s") as crashing:
        url = crashing.create_database("crashing")
        trio.run(migrated, url)

        def crash(_: Cut) -> None:
            crashing.stop_hard()
            with psycopg.connect(url, autocommit=True) as other:
                for number in range(20):
                    other.execute("select musterd.enqueue('another', to_jsonb(%s))", [number])

        with WireProxy(url) as proxy, Client(proxy.url) as client:
            proxy.cuts.append("request")
            proxy.on_cut = crash
            with pytest.raises(OutcomeUnknown, match="crashed"):
                client.enqueue("lost")
            assert client.job(client.enqueue("b"))["kind"] == "b"
            with psycopg.connect(url) as look:
                lost = look.execute("select from musterd.jobs where kind = 'lost'").fetchall()
            assert lost == []


def test_a_transaction_that_a_crashed_server_has_forgotten_is_made_again() -> None:
    """Its id is one that the server has yet to give to somebody."""
    with PostgresServer(wal_writer_delay="10s") as crashing:
        url = crashing.create_database("crashing")
        trio.run(migrated, url)
        with WireProxy(url) as proxy, Client(proxy.url) as client:
            proxy.cuts.append("request")
            proxy.on_cut = lambda _: crashing.stop_hard()
            assert client.job(client.enqueue("a"))["kind"] == "a"
        with psycopg.connect(url) as look:
            assert len(look.execute("select from musterd.jobs").fetchall()) == 1


async def migrated(url: str) -> None:
    async with opened(PostgresRig(url)):
        await trio.lowlevel.checkpoint()


async def test_an_answer_is_not_waited_for_for_ever(server: PostgresRig) -> None:
    """Nobody knows what will come of the request. Of what comes to nothing nothing is left."""
    with Client(server.url, answer_seconds=0.5) as client, psycopg.connect(server.url) as other:
        job = client.enqueue("a")
        other.execute("lock table musterd.job_rows in access exclusive mode")
        with pytest.raises(OutcomeUnknown, match="cancel a job"):
            client.cancel(job)
        with pytest.raises(OutcomeUnknown, match="enqueueing"):
            client.enqueue("b")
        other.rollback()
        assert client.job(job)["state"] in {"queued", "canceled"}
    assert (await server.engine.queue.counts()).enqueued_total == 1
