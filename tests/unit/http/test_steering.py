"""The queue, the drain and the tenant of a request."""

from __future__ import annotations

from uuid import uuid4

from musterd.config.credentials import BearerToken
from musterd.store.jobs import NewJob
from musterd.store.leases import ClaimRequest, Ends
from musterd.web.api.routes import OPERATIONS
from tests.support.web_scene import serving


async def test_the_queue_is_halted_and_goes_on() -> None:
    ops = BearerToken("ops", "t", ("admin",))
    async with serving(tokens=[ops]) as web:
        headers = {"Authorization": "Bearer t"}
        found = [
            (await web.post(f"/queue/{verb}", headers=headers)).json
            for verb in ("pause", "pause", "resume", "resume")
        ]
    assert [one["paused"] for one in found] == [True, True, False, False]
    assert [one["changed"] for one in found] == [True, False, True, False]
    assert [one["paused_by"] for one in found] == ["ops over HTTP"] * 2 + [None] * 2


async def test_a_drain_is_accepted_and_seen() -> None:
    async with serving() as web:
        answer = await web.post("/drain")
        assert web.node.drained == 1
    assert (answer.status, answer.json["node"]["phase"]) == (202, "draining")
    assert answer.json["healthy"] is False


async def test_a_target_is_shown_as_it_stands() -> None:
    async with serving() as web:
        await web.engine.jobs.enqueue([NewJob("report", target="a/b")] * 3)
        await web.post("/jobs/1/pause")
        for _ in range(2):  # the claims meet the jobs behind it
            request = ClaimRequest(uuid4(), "n1", (1,), 0, 30.0)
            await web.engine.leases.exchange(Ends(), request)
        halted = (await web.get("/targets/a%2Fb")).json
        free = (await web.get("/targets/x")).json
        assert (await web.get("/targets/%FF")).status == 404
        assert (await web.get("/targets/a/b")).status == 404
    assert halted == {
        "target": "a/b",
        "halted": True,
        "job_id": 1,
        "job_state": "paused",
        "reserved": True,
        "waiting": 2,
        "next_ids": [2, 3],
    }
    assert (free["halted"], free["job_id"], free["waiting"]) == (False, None, 0)


async def test_every_route_takes_a_tenant_and_knows_which_there_are() -> None:
    async with serving() as web:
        for one in OPERATIONS:
            if not one.minds_query:
                continue
            path = one.path.replace("{id}", "1").replace("{target}", "t")
            answer = await web.get(f"{path}?tenant=nowhere", method=one.method)
            assert answer.status == 404, one.name
            assert answer.json["detail"] == "there is no tenant 'nowhere'"
        assert (await web.get("/status?tenant=default")).status == 200


async def test_a_body_may_name_the_tenant_and_must_not_contradict_the_address() -> None:
    async with serving() as web:
        body = {"kind": "report", "tenant": "nowhere"}
        assert (await web.post("/jobs", body)).status == 404
        assert (await web.post("/jobs?tenant=nowhere", body)).status == 404
        answer = await web.post("/jobs?tenant=default", body)
    assert answer.status == 422
    assert answer.json["detail"] == "tenant: found 'nowhere', and another one in the URL"
