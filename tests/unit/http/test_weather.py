"""What is answered while the store is away, hangs, or goes away half-way."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
import trio

from musterd.store.sqlite.engine import SqliteEngine
from musterd.web.api.routes import OPERATIONS
from musterd.web.server import requests
from tests.support.faulty_engine import Fault, FaultyEngine
from tests.support.web_scene import Web, serving

STORELESS = {
    *("config", "status", "workers", "scaling", "openapi", "front", "metrics", "livez", "readyz"),
}


@asynccontextmanager
async def faulty() -> AsyncGenerator[tuple[Web, FaultyEngine], None]:
    store = SqliteEngine(":memory:", time.time, busy_timeout_seconds=1.0)
    async with trio.open_nursery() as nursery:
        engine = FaultyEngine(store, nursery)
        await engine.open()
        await engine.migrate()
        async with serving(engine=engine) as web:
            yield web, engine
        await store.close()


async def test_every_route_that_needs_the_store_says_when_to_come_again() -> None:
    async with faulty() as (web, engine):
        engine.away = True
        for one in OPERATIONS:
            if one.name in ("drain", "reload"):
                continue  # the node, not the store
            path = one.path.replace("{id}", "1").replace("{target}", "t")
            if one.method != "POST":
                answer = await web.get(path, method=one.method)
            else:
                answer = await web.post(path, {"kind": "report"} if one.body else None)
            assert (answer.status == 503) == (one.name not in STORELESS), one.name
            if answer.status == 503:
                assert answer.headers["retry-after"] == "1"
                assert answer.headers["content-type"] == "application/problem+json"
                assert answer.json["detail"].startswith("the store is not available: ")
                assert answer.json["detail"].endswith("nothing was done")


async def test_a_store_that_refuses_the_node_is_503_too() -> None:
    async with faulty() as (web, engine):
        engine.faults["job"].append(Fault("misconfigured"))
        answer = await web.get("/jobs/1")
    assert answer.status == 503
    assert answer.json["detail"].startswith("the store refuses this node: ")


async def test_a_lost_reply_is_not_said_to_be_nothing() -> None:
    async with faulty() as (web, engine):
        engine.faults["enqueue"].append(Fault("reply_lost"))
        answer = await web.post("/jobs", {"kind": "report"})
        made = (await engine.queue.counts()).enqueued_total
    assert (answer.status, made) == (503, 1)
    assert "it may or may not have been done" in answer.json["detail"]
    assert "nothing was done" not in answer.json["detail"]


async def test_what_was_done_stays_done_where_the_store_goes_away_after_it() -> None:
    """A 503 would make the caller do it twice."""
    async with faulty() as (web, engine):
        engine.broken.add("job")
        made = await web.post("/jobs", {"kind": "report"})
        paused = await web.post("/jobs/1/pause")
    assert (made.status, made.headers["location"]) == (201, "/jobs/1")
    assert made.json == paused.json == {"id": 1, "tenant": "default"}
    assert paused.status == 200


async def test_a_store_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "ANSWER_SECONDS", 0.05)
    async with faulty() as (web, engine):
        engine.faults["job"].append(Fault("slow_reply", 60.0))
        with trio.fail_after(5):
            answer = await web.get("/jobs/1")
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert "no answer within" in answer.json["detail"]
