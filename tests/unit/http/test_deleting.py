"""Deleting a job: by the API, and by the page's button."""

from __future__ import annotations

import pytest

from musterd.config.credentials import BearerToken
from musterd.store.jobs import NewJob
from musterd.store.lifecycle import Action, JobState
from tests.contract.event_tools import told
from tests.contract.job_tools import ending, settle, take_one
from tests.support.browsing import Browser
from tests.support.web_scene import Web, serving

AUDIT = "musterd.audit"


async def fill(web: Web) -> None:
    """Job 1 has failed, job 2 has failed and halts its target, job 3 waits."""
    for target in (None, "shop"):
        await web.engine.jobs.enqueue([NewJob("report", target=target)])
        await settle(web.engine, ending(await take_one(web.engine), JobState.FAILED))
    await web.engine.jobs.enqueue([NewJob("report")])


async def delete(web: Web, job_id: int, **headers: str) -> tuple[int, str]:
    answer = await web.get(f"/jobs/{job_id}", headers, method="DELETE")
    return answer.status, answer.text


async def test_a_job_that_has_ended_is_deleted(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(token="s3cret") as web:
        await fill(web)
        assert await delete(web, 1, Authorization="Bearer s3cret") == (204, "")
        assert await web.engine.jobs.get(1) is None
        last = (await told(web.engine, 1))[-1]
        assert last == ("deleted", {"state": "failed", "by": "admin over HTTP"})
        again, said = await delete(web, 1, Authorization="Bearer s3cret")
        assert (again, "there is no job 1" in said) == (404, True)
    (line,) = [one for one in caplog.records if one.name == AUDIT]
    fields = vars(line)["fields"]
    assert (fields["who"], fields["method"], fields["path"]) == ("admin", "DELETE", "/jobs/1")


async def test_what_keeps_a_job_is_said_with_what_to_do_first() -> None:
    async with serving() as web:
        await fill(web)
        status, said = await delete(web, 3)
        assert (status, "job 3 is queued: delete wants a job that is" in said) == (409, True)
        assert "cancel it first" in said
        status, said = await delete(web, 2)
        assert (status, "it halts its target 'shop'; resume or clear it first" in said) == (
            409,
            True,
        )
        await web.engine.control.apply(Action.CLEAR, 2)
        assert (await delete(web, 2))[0] == 204


async def test_only_admin_may_delete_and_no_page_of_another_site() -> None:
    tokens = [
        BearerToken("boss", "b0ss-secret", ("admin",)),
        BearerToken("board", "board-secret", ("read", "enqueue")),
    ]
    async with serving(tokens=tokens) as web:
        await fill(web)
        assert (await delete(web, 1))[0] == 401
        assert (await delete(web, 1, Authorization="Bearer board-secret"))[0] == 403
        elsewhere = {"Authorization": "Bearer b0ss-secret", "Origin": "https://evil.example"}
        assert (await delete(web, 1, **elsewhere))[0] == 403
        read = {"Authorization": "Bearer board-secret"}
        assert (await web.get("/ui/jobs/1/delete", read)).status == 403
        assert await web.engine.jobs.get(1) is not None


async def test_the_page_asks_first() -> None:
    async with serving() as web:
        await fill(web)
        browser = Browser(web.address)
        assert 'href="/ui/jobs/1/delete"' in (await browser.get("/ui/jobs/1")).text
        assert "/ui/jobs/3/delete" not in (await browser.get("/ui/jobs/3")).text
        asked = await browser.get("/ui/jobs/1/delete")
        assert (asked.status, "Yes, delete job 1" in asked.text) == (200, True)
        assert await web.engine.jobs.get(1) is not None
        done = await browser.send("/ui/jobs/1/delete", {})
        assert (done.status, done.headers["location"]) == (303, "/ui/jobs?did=deleted.1")
        assert "Job 1 deleted." in (await browser.get(done.headers["location"])).text
        assert await web.engine.jobs.get(1) is None
        refused = await browser.send("/ui/jobs/2/delete", {})
        assert (refused.status, "halts its target" in refused.text) == (409, True)
        for gone in ("/ui/jobs/1", "/ui/jobs/1/delete"):
            assert (await browser.get(gone)).status == 404
