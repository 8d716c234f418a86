"""Schedules, failures and the configuration on the page."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from musterd.config.credentials import BearerToken
from musterd.store.events import Event
from musterd.store.jobs import JobFilter, NewJob
from musterd.store.lifecycle import Action, JobState
from musterd.store.nodes import Kinds, KnownKind, NodeRecord
from musterd.store.outbox import MessageRecord, WebhookState
from musterd.store.overview import OverviewJob
from musterd.store.schedules import ScheduleRecord
from musterd.web.pages.configuration import ConfigurationData, settings_of
from musterd.web.pages.events import EVENTS
from musterd.web.pages.failures import LOOKED, failures, groups_of
from musterd.web.pages.job import job
from musterd.web.pages.kinds import KindsData, kinds
from musterd.web.pages.layout import Frame, document
from musterd.web.pages.schedules import SchedulesData, schedules
from musterd.web.pages.webhooks import WEBHOOKS
from tests.support.browsing import Browser
from tests.support.page_scene import job_of
from tests.support.web_scene import CATALOG, SCHEDULES, serving

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
FRAME = Frame("n1", "1")
READER = Frame("n1", "1", may_act=False)


def failed(job_id: int, kind: str, error_type: str, message: str = "boom") -> OverviewJob:
    error = json.dumps({"type": error_type, "message": message})
    at = NOON - timedelta(minutes=100 - job_id)
    return OverviewJob(
        job_id, kind, JobState.FAILED, None, 0, 1, 1, 0, at, at, at, at, None, None, None, None,
        None, error, None, False, False,
    )  # fmt: skip


def record(
    name: str, paused_at: datetime | None = None, last_job_id: int | None = None
) -> ScheduleRecord:
    return ScheduleRecord(name, NOON, None, last_job_id, None, 0, 0, 0, paused_at, NOON)


def test_failures_are_grouped_by_kind_and_type_with_the_latest_as_example() -> None:
    jobs = [
        failed(9, "mail", "timeout", "latest"), failed(8, "mail", "timeout"),
        failed(7, "mail", "ValueError"), failed(6, "report", "timeout"),
        failed(5, "mail", "timeout"),
    ]  # fmt: skip
    first, *others = groups_of(jobs)
    assert (first.kind, first.error_type, first.count) == ("mail", "timeout", 3)
    assert first.example_id == 9
    assert first.first_at == jobs[4].finished_at
    assert first.last_at == jobs[0].finished_at
    assert "latest" in first.message
    assert [(one.kind, one.error_type, one.count) for one in others] == [
        ("mail", "ValueError", 1), ("report", "timeout", 1),
    ]  # fmt: skip


def test_what_others_wrote_is_text() -> None:
    evil = "<b>bold</b>"
    text = document(FRAME, failures(FRAME, [failed(1, evil, evil, evil)]))
    assert evil not in text
    assert "&lt;b&gt;bold" in text


def test_an_error_that_is_no_json_has_no_type() -> None:
    one = failed(1, "a", "b")._replace(error='{"type": "cut of')
    assert groups_of([one])[0].error_type == ""


def test_without_a_store_views_say_so() -> None:
    assert "the store does not answer" in document(FRAME, failures(FRAME, None))
    shown = schedules(FRAME, SchedulesData(SCHEDULES, None))
    assert "the store does not answer" in document(FRAME, shown)


def test_schedules_show_their_next_slots_unless_they_are_paused() -> None:
    records = [record("nightly"), record("pulse", paused_at=NOON, last_job_id=7)]
    text = document(FRAME, schedules(FRAME, SchedulesData(SCHEDULES, records)))
    assert [one in text for one in ("2026-07-02 02:30:00", "2026-07-04 02:30:00")] == [True, True]
    assert "2026-07-05" not in text
    assert text.count('value="run"') == 1  # a paused one is resumed first
    assert text.count('value="resume"') == 1
    assert "every 90" in text
    assert "7 deleted" in text


def test_a_reader_sees_no_buttons_and_no_configuration() -> None:
    text = document(READER, schedules(READER, SchedulesData(SCHEDULES, [record("pulse")])))
    assert "<button" not in text.partition("<main")[2]
    assert "/ui/configuration" not in text
    assert "/ui/configuration" in document(FRAME, schedules(FRAME, SchedulesData({}, [])))


def test_settings_say_whether_they_are_as_shipped_and_when_a_change_applies() -> None:
    data = ConfigurationData(
        {
            "workers": {"max_count": 12, "poll_interval_ms": 250},
            "tenants": {"acme": {"schema": "a", "workers": {"max_count": 3}}},
        },
        {"workers": {"max_count": 8, "poll_interval_ms": 250}},
        1,
    )
    found = {one.key: one for one in settings_of(data)}
    assert (found["workers.max_count"].value, found["workers.max_count"].shipped) == ("12", "8")
    assert found["workers.max_count"].applies == "at once"
    assert "hard limit" in found["workers.max_count"].what
    assert found["workers.poll_interval_ms"].value == found["workers.poll_interval_ms"].shipped
    assert found["tenants.acme.schema"].shipped is None
    assert found["tenants.acme.workers.max_count"].value == "3"


def node_of(named: dict[str, KnownKind], silent_seconds: float = 1.0) -> NodeRecord:
    return NodeRecord(
        UUID(int=1), "n1", "1", NOON, NOON, "running", 1, 1, 0, 2, 8, Kinds(named), silent_seconds
    )


def test_kinds_say_what_they_do_and_where_they_cannot_run() -> None:
    broken = {"report": KnownKind("no module named shop")}
    nodes = [node_of(broken), node_of({}), node_of(broken, silent_seconds=900.0)]
    text = document(FRAME, kinds(FRAME, KindsData(CATALOG, [], nodes)))
    assert "success after 200 ms" in text
    assert text.count(">broken</span>") == 1
    assert "n1: no module named shop" in text
    assert "the store does not answer" in document(
        FRAME, kinds(FRAME, KindsData(CATALOG, None, None))
    )


async def test_a_schedule_is_paused_resumed_and_run() -> None:
    async with serving() as web:
        browser = Browser(web.address)
        for act, paused in (("pause", True), ("resume", False)):
            answer = await browser.send("/ui/schedules/act", {"schedule": "pulse", "act": act})
            assert (answer.status, answer.headers["location"]) == (303, "/ui/schedules")
            (found,) = await web.engine.schedules.know(["pulse"])
            assert (found.paused_at is not None) is paused
        answer = await browser.send("/ui/schedules/act", {"schedule": "pulse", "act": "run"})
        (made,) = await web.engine.jobs.find(JobFilter())
        assert answer.headers["location"] == f"/ui/jobs/{made.id}"
        assert made.kind == SCHEDULES["pulse"].kind


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"schedule": "gone", "act": "run"}, 404),
        ({"schedule": "pulse", "act": "delete"}, 422),
        ({}, 404),
    ],
)
async def test_a_form_that_names_no_schedule_changes_nothing(
    fields: dict[str, str], status: int
) -> None:
    async with serving() as web:
        answer = await Browser(web.address).send("/ui/schedules/act", fields)
        assert answer.status == status
        assert await web.engine.jobs.find(JobFilter()) == []


async def test_another_sites_page_runs_no_schedule() -> None:
    async with serving() as web:
        sent = {"schedule": "pulse", "act": "run"}
        answer = await Browser(web.address).send(
            "/ui/schedules/act", sent, Origin="https://evil.example"
        )
        assert answer.status == 403
        assert await web.engine.jobs.find(JobFilter()) == []


async def test_the_configuration_is_for_those_who_may_act() -> None:
    tokens = [BearerToken("board", "token-of-board", ("read",))]
    async with serving(token="token-of-admin", tokens=tokens) as web:
        for token, status in (("token-of-board", 403), ("token-of-admin", 200)):
            answer = await web.get("/ui/configuration", {"Authorization": f"Bearer {token}"})
            assert answer.status == status
            live = await web.get(
                "/ui/live?view=configuration", {"Authorization": f"Bearer {token}"}
            )
            assert live.status == 422  # nobody follows it


async def test_each_view_answers() -> None:
    async with serving() as web:
        await web.engine.jobs.enqueue([NewJob("report")])
        for path in (*("kinds", "schedules", "failures", "configuration", "webhooks", "events"),):
            answer = await web.get(f"/ui/{path}", {"Accept": "text/html"})
            assert answer.status == 200
            assert f"<h1>{path.capitalize()}</h1>" in answer.text
    assert LOOKED <= 1_000


async def test_a_job_that_has_ended_well_is_run_again_as_a_new_one() -> None:
    async with serving() as web:
        hook = "https://shop.example/done"
        options: dict[str, Any] = {"payload": '{"month": 7}', "target": "a", "priority": 3}
        first = NewJob("report", **options, dedup_key="k", max_attempts=4, webhook=hook)
        await web.engine.jobs.enqueue([first, NewJob("urgent")])
        browser = Browser(web.address)
        assert "/ui/jobs/1/again" not in (await browser.get("/ui/jobs/1")).text
        for action in (Action.PAUSE, Action.RESUME, Action.CANCEL):
            await web.engine.control.apply(action, 1)
        await web.engine.control.apply(Action.CANCEL, 2)
        assert "Run again" in (await browser.get("/ui/jobs/1")).text
        answer = await browser.send("/ui/jobs/1/again", {})
        assert (answer.status, answer.headers["location"]) == (303, "/ui/jobs/3")
        await browser.send("/ui/jobs/2/again", {})
        plain, made = await web.engine.jobs.find(JobFilter(limit=2))
        assert (made.kind, json.loads(made.payload), made.target) == ("report", {"month": 7}, "a")
        assert (made.priority, made.max_attempts, made.dedup_key) == (3, 4, None)
        assert made.webhook is not None
        assert made.webhook.url == hook
        assert (plain.kind, plain.priority, plain.webhook) == ("urgent", 0, None)
        assert (await browser.send("/ui/jobs/9/again", {})).status == 404


async def test_a_job_is_enqueued_by_a_form() -> None:
    async with serving() as web:
        sent = {
            "kind": "report", "payload": '{"month": 7}', "target": "a", "priority": "3",
            "delay_seconds": "0.5", "dedup_key": "k", "hold": "true",
        }  # fmt: skip
        answer = await Browser(web.address).send("/ui/jobs/enqueue", sent)
        (made,) = await web.engine.jobs.find(JobFilter())
        assert (answer.status, answer.headers["location"]) == (303, f"/ui/jobs/{made.id}")
        assert (made.kind, json.loads(made.payload), made.target) == ("report", {"month": 7}, "a")
        assert (made.priority, made.dedup_key, made.state) == (3, "k", JobState.PENDING)
        again = await Browser(web.address).send("/ui/jobs/enqueue", sent)
        assert again.headers["location"] == f"/ui/jobs/{made.id}"  # it holds the key


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"kind": "reprot"}, "did you mean report"),
        ({"kind": "report", "payload": "{month: 7}"}, "payload"),
        ({"kind": "report", "priority": "high"}, "priority: found"),
        ({"kind": "report", "delay_seconds": "inf"}, "delay_seconds"),
        ({}, "kind: found nothing"),
    ],
)
async def test_a_form_with_a_fault_says_which_and_makes_no_job(
    fields: dict[str, str], said: str
) -> None:
    async with serving() as web:
        answer = await Browser(web.address).send("/ui/jobs/enqueue", fields)
        assert answer.status == 422
        assert said in answer.text
        assert await web.engine.jobs.find(JobFilter()) == []


async def test_a_job_is_found_by_its_number() -> None:
    async with serving() as web:
        browser = Browser(web.address)
        answer = await browser.get("/ui/find?id=7")
        assert (answer.status, answer.headers["location"]) == (303, "/ui/jobs/7")
        assert (await browser.get("/ui/find?id=seven")).status == 422
        assert (await browser.get("/ui/find")).status == 422


def test_the_log_of_a_failed_attempt_is_open() -> None:
    text = document(FRAME, job(FRAME, job_of("boom")))
    assert '<details data-key="log-1" open>' in text


def message(state: WebhookState, url: str = "https://x.example/hook") -> MessageRecord:
    ended = None if state == "waiting" else NOON
    return MessageRecord(
        3, "msg_3", 7, url, "job.failed", state, 2, NOON, NOON, ended, 500, "<b>no</b>"
    )


def test_webhooks_show_what_became_of_them_and_no_secrets() -> None:
    secret = message("waiting", "https://user:hunter2@x.example/hook")
    found = [message("failed"), message("delivered"), secret]
    text = document(FRAME, WEBHOOKS.view(FRAME, found))
    assert text.count("Send again") == 2  # not of one that is on its way
    assert "hunter2" not in text
    assert "<b>no</b>" not in text
    assert "Send again" not in document(READER, WEBHOOKS.view(READER, found))
    assert "the store does not answer" in document(FRAME, WEBHOOKS.view(FRAME, None))


def test_events_show_what_happened_as_text() -> None:
    found = [
        Event(9, NOON, "job.failed", 7, "<b>kind</b>", None, {"attempt": 2, "error": {"a": "<i>"}}),
        Event(8, NOON, "worker.hired", None, None, None, {"node": "n1", "worker": 3}),
    ]
    text = document(FRAME, EVENTS.view(FRAME, found))
    assert '<span class="badge ill">job.failed</span>' in text
    assert "<b>kind</b>" not in text
    assert "<i>" not in text
    assert "node n1, worker 3" in text
    assert "the store does not answer" in document(FRAME, EVENTS.view(FRAME, None))


async def test_the_latest_events_are_shown_the_newest_first() -> None:
    async with serving() as web:
        for _ in range(3):
            await web.engine.jobs.enqueue([NewJob("report")] * 60)
        await web.engine.events.order()
        answer = await web.get("/ui/events", {"Accept": "text/html"})
    shown = [int(one) for one in re.findall(r'data-label="position">([0-9]+)<', answer.text)]
    assert shown == list(range(180, 80, -1))


async def test_a_message_is_sent_again_and_one_that_is_not_there_is_said() -> None:
    async with serving() as web:
        browser = Browser(web.address)
        assert (await browser.send("/ui/webhooks/resend", {"id": "99"})).status == 404
        assert (await browser.send("/ui/webhooks/resend", {"id": "x"})).status == 422
