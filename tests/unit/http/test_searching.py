"""Searching for jobs: by the list of the API, and by the page's."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import pytest

from musterd.store import searching
from musterd.store.jobs import NewJob
from musterd.store.lifecycle import JobState
from tests.contract.job_tools import ending, settle, take_one
from tests.support.browsing import Browser
from tests.support.web_scene import Web, serving

ERROR = '{"type": "ConnectionError", "message": "<b>10.0.0.7</b> is away"}'


async def fill(web: Web) -> None:
    """Job 1 has failed, job 2 waits and has a key, job 3 waits."""
    await web.engine.jobs.enqueue([NewJob("report")])
    failed = ending(await take_one(web.engine), JobState.FAILED, error=ERROR)
    await settle(web.engine, failed)
    await web.engine.jobs.enqueue([NewJob("report", dedup_key="invoice/7"), NewJob("noop")])


async def found(web: Web, **query: Any) -> list[int]:
    answer = await web.get(f"/jobs?{urlencode(query)}")
    assert answer.status == 200, answer.text
    assert answer.json.keys() == {"jobs", "next"}
    return [job["id"] for job in answer.json["jobs"]]


async def shown(web: Web, **query: Any) -> list[int]:
    """By the page, as its form sends it: with every field."""
    fields = dict.fromkeys(("kind", "target", "dedup_key", "error", "since", "until"), "")
    path = f"/ui/jobs?{urlencode({**fields, 'time': 'made', **query})}"
    answer = await Browser(web.address).get(path)
    assert answer.status == 200, answer.text
    assert "<b>10" not in answer.text
    return [int(one) for one in re.findall(r'name="id" value="(\d+)"', answer.text)]


@pytest.mark.parametrize("ask", [found, shown])
async def test_jobs_are_found_by_key_error_and_time(ask: Any) -> None:
    async with serving() as web:
        await fill(web)
        assert await ask(web, dedup_key="invoice/7") == [2]
        assert await ask(web, dedup_key="invoice") == []
        assert await ask(web, error="CONNECTIONERROR: <b>10.0.0.7") == [1]
        assert await ask(web, error="10_0") == []
        now = datetime.now(UTC).isoformat()
        assert await ask(web, until=now) == [3, 2, 1]
        assert await ask(web, since=now) == []
        assert await ask(web, until=now, time="ended") == [1]
        assert await ask(web, until=now, time="ended", error="away", state="failed") == [1]
        assert await ask(web, since=now, time="ended") == []


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"since": "soon"}, "since: 'soon' is no time"),
        ({"until": "2030-01-01"}, "until: "),
        ({"time": "started"}, "time: found 'started', wanted made or ended"),
        ({"error": "x" * 201}, "error: wanted 1 to 200 characters"),
        ({"dedup_key": "\0"}, "dedup_key: wanted 1 to 200 characters"),
    ],
)
async def test_what_cannot_be_searched_for_is_refused(query: dict[str, str], said: str) -> None:
    async with serving() as web:
        for path in ("/jobs", "/ui/jobs"):
            answer = await web.get(f"{path}?{urlencode(query)}")
            assert (answer.status, said in answer.json["detail"]) == (422, True), answer.text


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches that end soon."""
    monkeypatch.setattr(searching, "FIRST_SPAN", 100)
    monkeypatch.setattr(searching, "LOOKED_MAX", 100)


@pytest.mark.usefixtures("short")
async def test_a_search_that_ends_early_says_how_far_it_came_and_goes_on() -> None:
    async with serving() as web:
        await fill(web)
        await web.engine.jobs.enqueue([NewJob("noop")] * 150)
        first = (await web.get("/jobs?error=away")).json
        assert (first["jobs"], first["looked"]["jobs"]) == ([], 100)
        last = await web.engine.jobs.get(54)
        assert last is not None
        assert datetime.fromisoformat(first["looked"]["back_to"]) == last.created_at
        second = (await web.get(f"/jobs?error=away&cursor={first['next']}")).json
        assert [job["id"] for job in second["jobs"]] == [1]
        assert (second["next"], "looked" in second) == (None, False)
        browser = Browser(web.address)
        text = (await browser.get("/ui/jobs?error=away&kind=report")).text
        assert "100 jobs looked at, back to" in text
        assert "no job matches" not in text
        further = re.search(r'href="([^"]*)">look further', text)
        assert further is not None
        text = (await browser.get(further[1].replace("&amp;", "&"))).text
        assert re.findall(r'name="id" value="(\d+)"', text) == ["1"]
        assert "looked at" not in text


async def test_one_cannot_act_on_all_that_match_a_search_that_actions_do_not_know() -> None:
    """They would mean more jobs than are shown."""
    async with serving() as web:
        await fill(web)
        browser = Browser(web.address)
        assert "all jobs that match" in (await browser.get("/ui/jobs?kind=report")).text
        for query in ({"dedup_key": "invoice/7"}, {"error": "away"}, {"until": "-0s"}):
            text = (await browser.get(f"/ui/jobs?{urlencode(query)}")).text
            assert "all jobs that match" not in text
            fields = {"action": "cancel", "which": "all", "until_id": "9", **query}
            for path in ("/ui/jobs/confirm", "/ui/jobs/act"):
                answer = await browser.send(path, fields)
                assert (answer.status, "which: found all" in answer.text) == (422, True)
        assert (await web.engine.queue.counts()).by_state[JobState.CANCELED] == 0
        chosen = {"action": "cancel", "id": "2", "dedup_key": "invoice/7", "until": "-0s"}
        done = await browser.send("/ui/jobs/act", chosen)
        where = "/ui/jobs?dedup_key=invoice%2F7&until=-0s&did=cancel.1.0.0"
        assert done.headers["location"] == where
