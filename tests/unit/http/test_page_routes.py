"""The routes of the live page: what they show, what their forms do, what they refuse."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import trio

from musterd.store import bulk
from musterd.store.jobs import NewJob
from musterd.store.lifecycle import Action, JobState
from musterd.web.api.routes import ALL_OPERATIONS, OPERATIONS, UI_OPERATIONS
from musterd.web.pages.layout import ASSETS, CONTENT_SECURITY_POLICY
from tests.support.browsing import FORM, Browser
from tests.support.silent_store import gone, hanging
from tests.support.web_scene import Web, serving

VIEWS = ("/", "/ui/jobs", "/ui/jobs/1", "/ui/nodes", "/ui/scaling")


async def three_jobs(web: Web) -> None:
    kinds = ("<b>bold</b>", "report", "report")
    await web.engine.jobs.enqueue([NewJob(kind, hold=kind == "report") for kind in kinds])


async def states(web: Web) -> list[JobState]:
    found = [await web.engine.jobs.get(number) for number in (1, 2, 3)]
    return [one.state for one in found if one is not None]


async def test_every_view_is_a_page_with_a_strict_policy() -> None:
    async with serving() as web:
        await three_jobs(web)
        for path in VIEWS:
            answer = await Browser(web.address).get(path)
            assert answer.status == 200, path
            assert answer.headers["content-type"] == "text/html; charset=utf-8"
            assert answer.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
            assert answer.headers["referrer-policy"] == "same-origin"
            assert answer.headers["cache-control"] == "no-store"
            assert "<b>bold" not in answer.text
            assert 'lang="en"' in answer.text


async def test_the_overview_says_how_it_stands() -> None:
    async with serving() as web:
        await three_jobs(web)
        text = (await Browser(web.address).get("/")).text
    for words in ("healthy: running for 1 m 1 s", ">7</a>", "hired 1", "queued", "Longest wait"):
        assert words in text, words
    assert len(text.encode()) <= 50_000


async def test_what_pages_load_is_kept_for_good_and_open_to_all() -> None:
    async with serving(token="s3cret") as web:
        for asset in ASSETS.values():
            kept = await web.get(asset.url)
            assert (kept.status, kept.body) == (200, asset.content)
            assert "immutable" in kept.headers["cache-control"]
            assert (await web.get(asset.path)).headers["cache-control"] == "no-cache"
            same = await web.get(asset.path, {"If-None-Match": f'"{asset.hash}"'})
            assert (same.status, same.body) == (304, b"")


def test_no_route_is_there_twice_and_the_api_does_not_know_those_of_the_page() -> None:
    places = [(one.method, one.path) for one in ALL_OPERATIONS]
    assert len(set(places)) == len(places)
    assert all(one.path.startswith("/ui/") for one in UI_OPERATIONS)
    assert not any(one.path.startswith("/ui") for one in OPERATIONS)
    open_ones = {one.path for one in UI_OPERATIONS if one.scope is None}
    assert open_ones == {*ASSETS, "/ui/sign-in", "/ui/sign-out"}
    assert {one.scope for one in UI_OPERATIONS if one.method == "POST"} == {"admin", None}


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/ui/jobs/9", 404, "there is no job 9"),
        ("/ui/jobs/99999999999999999999", 404, "is not a job id"),
        ("/ui/jobs/%3Cb%3E", 404, "is not a job id"),
        ("/ui/nowhere", 404, "There is nothing at /ui/nowhere"),
        ("/?tenant=nobody", 404, "there is no tenant"),
        ("/ui/jobs?state=strange", 422, "wanted"),
        ("/ui/jobs?cursor=zz", 422, "cursor"),
        ("/ui/live?view=job", 422, "id: wanted"),
        ("/ui/live?view=elsewhere", 422, "view"),
    ],
)
async def test_what_is_not_there_is_a_page_for_people_and_a_problem_for_programs(
    path: str, status: int, words: str
) -> None:
    async with serving() as web:
        page = await Browser(web.address).get(path)
        told = await web.get(path)
    assert (page.status, told.status) == (status, status)
    assert page.headers["content-type"].startswith("text/html")
    assert words in page.text
    assert "<b>" not in page.text
    assert told.headers["content-type"] == "application/problem+json"


async def test_empty_fields_of_the_filter_count_as_not_given() -> None:
    async with serving() as web:
        await three_jobs(web)
        browser = Browser(web.address)
        answer = await browser.get("/ui/jobs?kind=&target=&state=pending")
        assert re.findall(r'name="id" value="(\d+)"', answer.text) == ["3", "2"]
        assert (await browser.get("/ui/jobs?kind=report&tenant=")).status == 200


async def test_the_list_goes_on_page_by_page() -> None:
    async with serving() as web:
        await web.engine.jobs.enqueue([NewJob("report") for _ in range(120)])
        browser, path, seen = Browser(web.address), "/ui/jobs?kind=report", list[int]()
        while path:
            text = (await browser.get(path)).text
            seen += [int(found) for found in re.findall(r'name="id" value="(\d+)"', text)]
            older = re.search(r'href="([^"]*)">Older', text)
            path = older[1].replace("&amp;", "&") if older else ""
    assert seen == list(range(120, 0, -1))


async def test_acting_on_one_job_ends_at_its_page() -> None:
    async with serving() as web:
        await three_jobs(web)
        browser = Browser(web.address)
        done = await browser.send("/ui/jobs/2/release", {})
        assert (done.status, done.headers["location"]) == (303, "/ui/jobs/2?did=release.1.0.0")
        assert "1 job released" in (await browser.get(done.headers["location"])).text
        again = await browser.send("/ui/jobs/2/release", {})
        assert (again.status, "job 2 is queued" in again.text) == (409, True)
        assert (await browser.send("/ui/jobs/9/cancel", {})).status == 404
        assert (await browser.send("/ui/jobs/2/explode", {})).status == 404


async def test_chosen_jobs_are_asked_about_first() -> None:
    async with serving() as web:
        await three_jobs(web)
        browser = Browser(web.address)
        fields = {"action": "release", "which": "these", "id": ["2", "1"], "kind": "report"}
        asked = await browser.send("/ui/jobs/confirm", fields)
        assert (asked.status, "Release 2 jobs?" in asked.text) == (200, True)
        assert await states(web) == ["queued", "pending", "pending"]
        done = await browser.send("/ui/jobs/act", {**fields, "which": ""})
        assert done.headers["location"] == "/ui/jobs?kind=report&did=release.1.0.1"
        assert await states(web) == ["queued", "queued", "pending"]
        text = (await browser.get(done.headers["location"])).text
        assert "1 job released; 1 job left out" in text
        assert 'name="kind" value="report"' in text, "the filter is kept"


async def test_all_that_fit_are_counted_and_what_comes_later_is_not_meant() -> None:
    async with serving() as web:
        await three_jobs(web)
        browser = Browser(web.address)
        fields = {"action": "cancel", "which": "all", "kind": "report", "state": "pending"}
        asked = await browser.send("/ui/jobs/confirm", fields)
        assert "Cancel 2 jobs?" in asked.text
        until = re.search(r'name="until_id" value="(\d+)"', asked.text)
        assert until is not None
        await web.engine.jobs.enqueue([NewJob("report", hold=True)])
        done = await browser.send("/ui/jobs/act", {**fields, "until_id": until[1]})
        assert done.headers["location"] == ("/ui/jobs?state=pending&kind=report&did=cancel.2.0.0")
        assert await states(web) == ["queued", "canceled", "canceled"]
        later = await web.engine.jobs.get(4)
        assert later is not None
        assert later.state == "pending"


async def test_a_filter_that_leaves_nothing_to_do_it_to_says_so() -> None:
    async with serving() as web:
        await three_jobs(web)
        fields = {"action": "resume", "which": "all", "state": "pending"}
        asked = await Browser(web.address).send("/ui/jobs/confirm", fields)
        assert "Resume 0 jobs?" in asked.text
        assert "Yes" not in asked.text


async def test_more_than_can_be_done_in_one_go_is_done_in_several(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("musterd.web.ui.actions.ACT_SECONDS", 0.0)
    monkeypatch.setattr(bulk, "BATCH", 40)
    async with serving() as web:
        await web.engine.jobs.enqueue([NewJob("report") for _ in range(100)])
        browser, rounds = Browser(web.address), 0
        fields = {"action": "cancel", "which": "all", "until_id": "100"}
        answer = await browser.send("/ui/jobs/act", fields)
        while answer.status == 200:
            rounds += 1
            assert "Go on" in answer.text
            after = re.search(r'name="after" value="(\d+)"', answer.text)
            assert after is not None
            answer = await browser.send("/ui/jobs/act", {**fields, "after": after[1]})
        counts = await web.engine.queue.counts()
    assert (rounds, counts.by_state[JobState.CANCELED]) == (3, 100)


@pytest.mark.parametrize(
    "fields",
    [
        {"action": "explode", "id": "1"},
        {"id": "1"},
        {"action": "cancel", "id": "-1"},
        {"action": "cancel", "id": "99999999999999999999"},
        {"action": "cancel", "id": [str(n) for n in range(1, 280)]},
        {"action": "cancel", "id": "1", "state": "strange"},
        {"action": "cancel", "which": "all", "until_id": "x"},
        {"action": "cancel", "id": "1", "after": "x"},
        {"action": "cancel", "id": "1", "kind": "k" * 1000},
        {"action": ["cancel", "pause"], "id": "1"},
        {"action": "cancel", **{f"f{n}": "" for n in range(400)}},
    ],
)
async def test_a_form_that_nobody_has_filled_in_is_refused(fields: dict[str, str]) -> None:
    async with serving() as web:
        await three_jobs(web)
        for path in ("/ui/jobs/confirm", "/ui/jobs/act"):
            assert (await Browser(web.address).send(path, fields)).status == 422
        assert await states(web) == ["queued", "pending", "pending"]


async def test_a_form_has_its_type_and_its_bound() -> None:
    async with serving() as web:
        path = "/ui/jobs/act"
        assert (await web.post(path, {"action": "cancel"})).status == 415
        assert (await web.post(path, b"a=" + b"x" * 80_000, FORM)).status == 413


async def test_the_queue_is_paused_and_resumed() -> None:
    async with serving() as web:
        browser = Browser(web.address)
        done = await browser.send("/ui/queue/pause", {})
        assert (done.status, done.headers["location"]) == (303, "/")
        text = (await browser.get("/")).text
        assert "The queue is paused" in text
        assert "by HTTP" in text
        await browser.send("/ui/queue/resume", {})
        assert "The queue is paused" not in (await browser.get("/")).text


@pytest.mark.parametrize("how", [hanging, gone])
async def test_without_a_store_every_page_says_so_in_time(
    monkeypatch: pytest.MonkeyPatch, how: Callable[[], object]
) -> None:
    def absent(*_: object) -> object:
        return how()

    async with serving() as web:
        await three_jobs(web)
        engine = web.engine
        for part, name in (
            *((engine.jobs, "get"), (engine.jobs, "find"), (engine.jobs, "why_facts")),
            *((engine.queue, "counts"), (engine.nodes, "all")),
        ):
            monkeypatch.setattr(part, name, absent)
        browser = Browser(web.address)

        async def look(path: str, status: int) -> None:
            start = trio.current_time()
            answer = await browser.get(path)
            assert answer.status == status, path
            assert trio.current_time() - start < 1.9, path
            said = "the store does not answer"
            assert path == "/ui/scaling" or said in answer.text, path

        async with trio.open_nursery() as nursery:
            for path, status in zip(VIEWS, (200, 503, 503, 200, 200), strict=True):
                nursery.start_soon(look, path, status)


async def test_a_draining_node_says_so() -> None:
    async with serving() as web:
        web.node.drain()
        text = (await Browser(web.address).get("/")).text
    assert "not healthy: draining: it takes no new jobs" in text


def test_every_action_of_a_job_has_its_route() -> None:
    paths = {one.path for one in UI_OPERATIONS}
    assert {f"/ui/jobs/{{id}}/{one.value}" for one in Action} <= paths
