"""What each route answers."""

import attrs
import pytest
import trio
from prometheus_client.parser import text_string_to_metric_families

from musterd.manager.node.status import NodeStatus
from musterd.store.errors import StoreUnavailable
from musterd.store.queue import Counts
from tests.support.web_scene import COUNTS, STATUS, serving


async def away() -> Counts:
    await trio.lowlevel.checkpoint()
    raise StoreUnavailable("connection refused", "unreachable")


async def stuck() -> Counts:
    await trio.sleep_forever()
    raise AssertionError


async def test_alive_is_alive_whatever_the_store_does() -> None:
    async with serving(counts=away) as web:
        answer = await web.get("/livez")
    assert (answer.status, answer.text) == (200, "ok\n")


async def test_ready_while_running() -> None:
    async with serving() as web:
        assert (await web.get("/readyz")).status == 200


@pytest.mark.parametrize(
    ("seen", "detail"),
    [
        (attrs.evolve(STATUS, phase="starting"), "starting"),
        (
            attrs.evolve(STATUS, phase="draining", drain_seconds_left=12.0),
            "draining: it takes no new jobs, and waits up to 12.0 s for 1 job to end",
        ),
        (
            attrs.evolve(STATUS, store_trouble="disk_full", store_trouble_seconds=3.0),
            "the store has no disk space left, for 3.0 s now",
        ),
    ],
)
async def test_not_ready_says_why_and_when_to_come_again(seen: NodeStatus, detail: str) -> None:
    async with serving() as web:
        web.node.seen = seen
        answer = await web.get("/readyz")
    assert answer.status == 503
    assert answer.headers["retry-after"] == "1"
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json == {
        "type": "about:blank",
        "title": "Service Unavailable",
        "status": 503,
        "detail": detail,
    }


async def test_metrics_are_the_text_format_with_the_queue_counted() -> None:
    async with serving() as web:
        answer = await web.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    families = {family.name: family for family in text_string_to_metric_families(answer.text)}
    assert families["musterd_queue_depth"].samples[0].value == 2


async def test_metrics_are_served_when_the_store_is_away() -> None:
    async with serving(counts=away) as web:
        answer = await web.get("/metrics")
    assert answer.status == 200
    assert "musterd_build_info{" in answer.text
    assert "musterd_queue_depth{" not in answer.text


async def test_status_is_node_and_counts() -> None:
    async with serving() as web:
        found = (await web.get("/status")).json
    assert (found["healthy"], found["verdict"]) == (True, "running for 1 m 1 s")
    assert (found["node"]["node"], found["node"]["busy"]) == ("n1", 1)
    assert (found["counts"]["jobs"]["queued"], found["counts"]["due"]) == (3, 2)


async def test_status_without_a_store_has_no_counts() -> None:
    async with serving(counts=away) as web:
        found = (await web.get("/status")).json
    assert found["counts"] is None


async def test_a_store_that_hangs_holds_up_a_reader_for_a_bounded_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("musterd.manager.tenancy.tenant_duties.LIMIT_SECONDS", 0.05)
    async with serving(counts=stuck) as web:
        with trio.fail_after(5):
            assert (await web.get("/status")).json["counts"] is None


async def test_many_readers_ask_the_store_once_a_second() -> None:
    asked = 0

    async def counting() -> Counts:
        nonlocal asked
        await trio.sleep(0.01)
        asked += 1
        return COUNTS

    async with serving(counts=counting) as web, trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(web.get, "/status")
    assert asked == 1


async def test_the_crew_and_the_journal() -> None:
    async with serving() as web:
        workers = (await web.get("/workers")).json["workers"]
        decisions = (await web.get("/scaling")).json["decisions"]
    assert [worker["worker"] for worker in workers] == [1, 2]
    assert [decision["at"] for decision in decisions] == [
        "1970-01-01T00:00:01.000000Z",
        "1970-01-01T00:00:02.000000Z",
    ]
    assert decisions[1]["due"] is None
    assert [(one["until"], one["ticks"], one["node"]) for one in decisions] == [
        (one["at"], 1, "n1") for one in decisions
    ]


async def test_a_stretch_of_the_journal() -> None:
    async with serving() as web:
        newest = (await web.get("/scaling?limit=1")).json
        before = (await web.get(f"/scaling?until={newest['next']}")).json
        late = (await web.get("/scaling?since=-8.5s")).json
        refused = await web.get("/scaling?since=yesterday")
    assert [one["at"][17:19] for one in newest["decisions"]] == ["02"]
    assert [one["at"][17:19] for one in before["decisions"]] == ["01"]
    assert (before["next"], before["whole"]) == (None, True)
    assert [one["at"][17:19] for one in late["decisions"]] == ["02"]
    assert (refused.status, "since: 'yesterday' is no time" in refused.text) == (422, True)


async def test_nothing_there_and_wrong_method_are_problems() -> None:
    async with serving() as web:
        missing = await web.get("/nowhere")
        wrong = await web.get("/status", method="POST")
    assert (missing.status, missing.json["detail"]) == (404, "there is nothing at /nowhere")
    assert (wrong.status, wrong.json["title"]) == (405, "Method Not Allowed")
    assert set(wrong.headers["allow"].split(", ")) == {"GET", "HEAD"}
    assert wrong.headers["content-type"] == "application/problem+json"


async def test_a_drain_is_begun_once_and_told() -> None:
    async with serving() as web:
        for _ in range(2):
            answer = await web.get("/drain", method="POST")
            assert (answer.status, answer.json["node"]["phase"]) == (202, "draining")
        assert (await web.get("/drain")).status == 405


async def test_head_has_no_body() -> None:
    async with serving() as web:
        answer = await web.get("/status", method="HEAD")
    assert (answer.status, answer.body) == (200, b"")


async def test_a_fault_of_ours_is_a_problem_without_its_insides(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def faulty() -> Counts:
        await trio.lowlevel.checkpoint()
        raise ZeroDivisionError("secret inside")

    async with serving(counts=faulty) as web:
        answer = await web.get("/status")
        assert (await web.get("/livez")).status == 200
    assert (answer.status, "secret" in answer.text) == (500, False)
    assert "ZeroDivisionError" in caplog.text
