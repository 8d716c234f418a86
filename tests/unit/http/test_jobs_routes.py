"""Jobs over HTTP: what is made, shown and done, and what is refused with which words."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from musterd.store.leases import ClaimRequest, Ends
from musterd.web.api import jobs
from tests.support.http_client import Answer
from tests.support.web_scene import PAYLOAD_BYTES_MAX, Web, serving

FAR_SECONDS = 3600.0
TOO_DEEP = [[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]


async def made(web: Web, **body: Any) -> dict[str, Any]:
    answer = await web.post("/jobs", {"kind": "report", **body})
    assert answer.status == 201, answer.text
    found: dict[str, Any] = answer.json
    return found


async def take(web: Web) -> None:
    """Lets a worker hold the next job."""
    request = ClaimRequest(uuid4(), "n1", (1,), 0, FAR_SECONDS)
    assert (await web.engine.leases.exchange(Ends(), request)).claims


def detail(answer: Answer) -> str:
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json["status"] == answer.status
    said: str = answer.json["detail"]
    return said


async def test_a_job_is_made_and_found_where_the_answer_says() -> None:
    async with serving() as web:
        answer = await web.post("/jobs", {"kind": "report", "payload": {"month": 7}})
        again = await web.get(answer.headers["location"])
    assert (answer.status, answer.headers["location"]) == (201, "/jobs/1")
    assert (answer.json["state"], answer.json["payload"]) == ("queued", {"month": 7})
    assert again.json == answer.json


async def test_options_have_the_names_that_they_have_everywhere() -> None:
    async with serving() as web:
        held = await made(
            web, hold=True, priority=5, max_attempts=2, dedup_key="k", dedup_scope="forever",
            run_at="2099-12-31T23:00:00+01:00", tenant="default",
        )  # fmt: skip
        late = await made(web, delay_seconds=60)
        plain = await made(web, payload=None, priority=None)
        urgent = await made(web, kind="urgent")
    assert (held["state"], held["priority"], held["max_attempts"]) == ("pending", 5, 2)
    assert (held["run_at"], held["dedup_key"]) == ("2099-12-31T22:00:00.000000Z", "k")
    assert late["run_at"] > late["created_at"]
    assert (plain["payload"], plain["priority"]) == ({}, 0)
    assert urgent["priority"] == 100, "the kind's own"


async def test_a_held_key_means_the_job_that_holds_it() -> None:
    async with serving() as web:
        first = await made(web, dedup_key="k")
        answer = await web.post("/jobs", {"kind": "report", "dedup_key": "k"})
    assert (answer.status, answer.json["id"]) == (200, first["id"])
    assert "location" not in answer.headers


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"kind": "reprot"}, "there is no kind 'reprot': did you mean report?"),
        ({"kind": "x" * 90}, "`musterd kinds` lists them"),
        ({}, "kind: found nothing, wanted the name of a kind"),
        ({"kind": ["report"]}, "kind: found list"),
        ({"kind": "report", "prioritty": 1}, "unknown field 'prioritty': did you mean priority?"),
        ({"kind": "report", "\ud800": 1}, "body at"),
        ({"kind": "report", "priority": 1.5}, "priority: found 1.5, wanted a whole number"),
        ({"kind": "report", "priority": 40000}, "-32768 to 32767"),
        ({"kind": "report", "delay_seconds": -1}, "delay_seconds: found -1"),
        ({"kind": "report", "hold": "yes"}, "hold: found yes, wanted true or false"),
        ({"kind": "report", "run_at": "tomorrow"}, "run_at: 'tomorrow' is no RFC 3339 time"),
        ({"kind": "report", "run_at": "2030-01-01T00:00:00"}, "has no zone"),
        ({"kind": "report", "run_at": "0001-01-01T00:00:00+14:00"}, "beyond the years"),
        ({"kind": "report", "run_at": 5}, "run_at: wanted an RFC 3339 time"),
        (
            {"kind": "report", "run_at": "2030-01-01T00:00:00Z", "delay_seconds": 1},
            "exclude each other",
        ),
        ({"kind": "report", "dedup_scope": "forever"}, "found without dedup_key"),
        ({"kind": "report", "dedup_scope": [], "dedup_key": "k"}, "dedup_scope: found list"),
        ({"kind": "report", "tenant": 7}, "tenant: wanted a text"),
        ({"kind": "report", "payload": {"a": "\0"}}, "body at $.payload.a: found the"),
        ({"kind": "report", "payload": TOO_DEEP}, "deeper than 20"),
        ([{"kind": "report"}], "wanted one object"),
        (b"", "body: line 1 column 1: found no JSON"),
        (b"{", "found no JSON"),
        (b'{"kind": "report", "payload": NaN}', "found NaN"),
        (b'{"kind": "report", "payload": 1e999}', "found 1e999"),
        (b'{"kind": "report", "payload": ' + b"9" * 5000 + b"}", "a number of 5000 digits"),
        (b"[" * 50_000, "found nesting too deep"),
        (b"\xff", "not UTF-8 at byte 0"),
    ],
)  # fmt: skip
async def test_what_is_no_job_is_refused_by_its_place(body: Any, said: str) -> None:
    async with serving() as web:
        answer = await web.post("/jobs", body)
        assert answer.status == 422
        assert said in detail(answer)
        assert (await web.engine.queue.counts()).enqueued_total == 0


async def test_a_body_is_announced_as_json() -> None:
    async with serving() as web:
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        answer = await web.post("/jobs", b"kind=report", form)
        charset = {"Content-Type": "Application/JSON; charset=utf-8"}
        assert (await web.post("/jobs", {"kind": "report"}, charset)).status == 201
    assert (answer.status, detail(answer)) == (415, "send Content-Type: application/json")


async def test_what_is_too_large_is_413_whether_by_its_payload_or_as_a_whole() -> None:
    async with serving() as web:
        fits = "x" * (PAYLOAD_BYTES_MAX - 2)
        assert (await web.post("/jobs", {"kind": "report", "payload": fits})).status == 201
        over = await web.post("/jobs", {"kind": "report", "payload": fits + "x"})
        far_over = await web.post("/jobs", {"kind": "report", "payload": fits * 30})
    assert (over.status, far_over.status) == (413, 413)
    assert f"found {PAYLOAD_BYTES_MAX + 1} bytes" in detail(over)
    assert "a body may have at most" in detail(far_over)


async def test_pages_follow_each_other_to_the_end() -> None:
    async with serving() as web:
        for number in range(7):
            await made(web, payload=number)
        seen: list[int] = []
        path = "/jobs?limit=3"
        while path:
            page = (await web.get(path)).json
            seen.append(len(page["jobs"]))
            seen += [job["id"] for job in page["jobs"]]
            path = f"/jobs?limit=3&cursor={page['next']}" if page["next"] else ""
    assert seen == [3, 7, 6, 5, 3, 4, 3, 2, 1, 1]


async def test_a_page_that_is_full_and_the_last_has_no_next() -> None:
    async with serving() as web:
        assert (await web.get("/jobs")).json == {"jobs": [], "next": None}
        for _ in range(3):
            await made(web)
        assert (await web.get("/jobs?limit=3")).json["next"] is None
        assert len((await web.get("/jobs")).json["jobs"]) == 3


async def test_large_jobs_make_short_pages_and_none_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jobs, "PAGE_CHARACTERS", 50_000)
    monkeypatch.setattr(jobs, "READ_JOBS", 2)
    async with serving() as web:
        for _ in range(5):
            await made(web, payload="x" * 20_000)
        first = (await web.get("/jobs")).json
        second = (await web.get(f"/jobs?cursor={first['next']}")).json
        third = (await web.get(f"/jobs?cursor={second['next']}")).json
        alone = (await web.get("/jobs?limit=1")).json
    pages = [[job["id"] for job in page["jobs"]] for page in (first, second, third)]
    assert pages == [[5, 4], [3, 2], [1]]
    assert third["next"] is None
    assert [job["id"] for job in alone["jobs"]] == [5]


async def test_jobs_are_filtered_by_state_and_kind() -> None:
    async with serving() as web:
        await made(web, hold=True)
        await made(web, kind="noop")
        await made(web)

        async def ids(query: str) -> list[int]:
            return [job["id"] for job in (await web.get(f"/jobs?{query}")).json["jobs"]]

        assert await ids("state=pending") == [1]
        assert await ids("state=queued") == [3, 2]
        assert await ids("state=queued&state=pending&kind=report") == [3, 1]
        assert await ids("kind=nothing") == []


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("stat=failed", "unknown parameter 'stat': did you mean state?"),
        ("state=faild", "found 'faild', wanted pending,"),
        ("limit=0", "found '0', wanted a whole number, 1 to 1000"),
        ("limit=1001", "1 to 1000"),
        ("limit=%D9%A1", "wanted a whole number"),
        ("limit=1&limit=2", "limit: given twice"),
        ("cursor=abc", "cursor: wanted the `next` of an earlier answer"),
        ("cursor=", "cursor: wanted"),
        ("cursor=%F0%9F%98%80", "cursor: wanted"),
        ("kind=", "kind: wanted 1 to 200 characters"),
        ("kind=%00", "kind: wanted"),
        ("kind=%ff", "the query is not UTF-8"),
        ("&".join(["state=failed"] * 51), "more than 50 parameters"),
    ],
)
async def test_a_query_that_means_nothing_is_refused(query: str, said: str) -> None:
    async with serving() as web:
        answer = await web.get(f"/jobs?{query}")
    assert answer.status == 422
    assert said in detail(answer)


@pytest.mark.parametrize("name", ["7", "0", "-1", "x", "1e3", "9" * 40, "%31%00", "٣"])
async def test_no_such_job(name: str) -> None:
    async with serving() as web:
        path = f"/jobs/{name}" if name.isascii() else "/jobs/%D9%A3"
        for answer in (await web.get(path), await web.post(f"{path}/cancel")):
            assert answer.status == 404
            wanted = "there is no job 7" if name == "7" else "is not a job id"
            assert wanted in detail(answer)


@pytest.mark.parametrize(
    ("action", "state", "reason"),
    [
        ("cancel", "canceled", "canceled on request"),
        ("pause", "paused", "Job was interrupted by user"),
    ],
)
async def test_a_job_that_waits_is_acted_on_at_once(action: str, state: str, reason: str) -> None:
    async with serving() as web:
        await made(web)
        answer = await web.post(f"/jobs/1/{action}")
    assert (answer.status, answer.json["state"], answer.json["reason"]) == (200, state, reason)


async def test_the_whole_row_of_actions() -> None:
    async with serving() as web:
        await made(web, hold=True)
        states = [
            (await web.post(f"/jobs/1/{action}")).json["state"]
            for action in ("release", "pause", "resume", "pause", "clear")
        ]
    assert states == ["queued", "paused", "queued", "paused", "canceled"]


@pytest.mark.parametrize("action", ["cancel", "pause"])
async def test_the_holder_of_a_running_job_is_asked(action: str) -> None:
    async with serving() as web:
        await made(web)
        await take(web)
        answer = await web.post(f"/jobs/1/{action}/")
    assert (answer.status, answer.json["state"]) == (202, "running")
    asked = [name for name in ("cancel", "pause") if answer.json[f"{name}_requested"]]
    assert asked == [action]


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ("release", "job 1 is queued: release wants a job that is pending"),
        ("resume", "job 1 is queued: resume wants a job that is paused or failed"),
        ("clear", "job 1 is queued: clear wants a job that is paused or failed"),
    ],
)
async def test_what_the_state_does_not_allow_is_a_conflict(action: str, said: str) -> None:
    async with serving() as web:
        await made(web)
        answer = await web.post(f"/jobs/1/{action}")
    assert (answer.status, detail(answer)) == (409, said)


async def test_a_job_is_resumed_as_one_of_its_target() -> None:
    async with serving() as web:
        await made(web, target="a/b")
        await web.post("/jobs/1/pause")
        wrong = await web.post("/targets/other/jobs/1/resume/")
        missing = await web.post("/targets/a%2Fb/jobs/9/resume/")
        right = await web.post("/targets/a%2Fb/jobs/1/resume/")
        twice = await web.post("/targets/a%2Fb/jobs/1/resume")
    assert (wrong.status, detail(wrong)) == (404, "job 1 does not have the target 'other'")
    assert (missing.status, twice.status) == (404, 409)
    assert (right.status, right.json["state"]) == (200, "queued")
