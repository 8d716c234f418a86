"""What open pages hear: what is new, soon, and made once for all of them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import attrs
import pytest
import trio
from trio.testing import MockClock

from musterd.config.credentials import BearerToken
from musterd.store.jobs import NewJob
from musterd.store.lifecycle import Action
from musterd.store.queue import Counts
from musterd.store.retention import DeleteRequest
from musterd.web.pages.layout import Html
from musterd.web.samples import REST_SECONDS, SAMPLE_SECONDS, SAMPLES_MAX, Sample, Samples, trend_of
from musterd.web.ui import views
from musterd.web.ui.live import LOOK_SECONDS, Gone, Key, LiveView, LiveViews, Parts
from tests.support.browsing import Browser
from tests.support.command import eventually
from tests.support.sse_client import Refused, opened, stream
from tests.support.web_scene import (
    COUNTS,
    EVENT_READERS_MAX,
    STATUS,
    TENANT,
    StillNode,
    http_deps,
    serving,
    store_in_memory,
)

KEY = Key("overview", "default", may_act=True)


@attrs.define
class View:
    """A view that shows what a test puts in."""

    parts: Mapping[str, str] | None = attrs.field(factory=lambda: {"a": "1", "b": "1"})
    looks: int = 0

    async def make(self) -> Parts | None:
        await trio.sleep(0.01)
        self.looks += 1
        if self.parts == {}:
            raise Gone
        if self.parts is None:
            return None
        return {name: Html(text) for name, text in self.parts.items()}


def told(shown: LiveView, since: int) -> tuple[str, object]:
    name, data = shown.changes_since(since).decode().rstrip("\n").split("\n")
    return name.removeprefix("event: "), json.loads(data.removeprefix("data: "))


async def test_a_reader_gets_all_first_and_then_what_is_new(autojump_clock: MockClock) -> None:
    view, live = View(), LiveViews()
    shown = live.enter(KEY, view.make)
    await shown.look()
    assert told(shown, 0) == ("parts", {"a": "1", "b": "1"})
    first = shown.version
    await trio.sleep(LOOK_SECONDS)
    await shown.look()
    assert shown.version == first, "nothing is new"
    view.parts = {"a": "1", "b": "2"}
    await trio.sleep(LOOK_SECONDS)
    await shown.look()
    assert told(shown, first) == ("parts", {"b": "2"})
    assert told(shown, 0) == ("parts", {"a": "1", "b": "2"})


async def test_a_hundred_readers_look_once(autojump_clock: MockClock) -> None:
    view, live = View(), LiveViews()

    async def read() -> None:
        shown = live.enter(KEY, view.make)
        for _ in range(10):
            await shown.look()
            await trio.sleep_until(shown.next_local)
        live.leave(KEY)

    async with trio.open_nursery() as nursery:
        for _ in range(100):
            nursery.start_soon(read)
    assert view.looks <= 11
    assert live.views == {}


async def test_a_store_that_goes_away_is_said_once_and_again_when_it_is_back(
    autojump_clock: MockClock,
) -> None:
    view, live = View(), LiveViews()
    shown = live.enter(KEY, view.make)
    states = list[tuple[str, object]]()
    for parts in ({"a": "1"}, None, None, {"a": "1"}, {"a": "2"}, {}):
        before, view.parts = shown.version, parts
        await trio.sleep(LOOK_SECONDS)
        await shown.look()
        if shown.version != before:
            states.append(told(shown, before))
    away = ("away", "the store does not answer")
    assert states == [
        ("parts", {"a": "1"}), away, ("parts", {}), ("parts", {"a": "2"}), ("gone", ""),
    ]  # fmt: skip


async def test_many_views_are_looked_at_less_often(autojump_clock: MockClock) -> None:
    live = LiveViews()
    views = [View() for _ in range(200)]
    for number, view in enumerate(views):
        live.enter(Key("job", "default", may_act=True, job_id=number), view.make)
    with trio.move_on_after(20):
        async with trio.open_nursery() as nursery:
            for shown in live.views.values():
                nursery.start_soon(forever, shown)
    assert sum(view.looks for view in views) <= 20 * 20 + 200


async def forever(shown: LiveView) -> None:
    while True:
        await shown.look()
        await trio.sleep_until(shown.next_local)


async def test_an_open_page_hears_of_a_job_within_a_second() -> None:
    async with serving() as web:

        def follow() -> None:
            with stream(web.address, path="/ui/live?view=overview") as heard:
                (first,) = heard.take(1, "parts")
                assert {"verdict", "depth-now", "states", "decisions"} <= set(first.data)
                trio.from_thread.run(web.engine.jobs.enqueue, [NewJob("report")])
                start = trio.from_thread.run_sync(trio.current_time)
                found = heard.until(lambda one: "depth-now" in one.data)
                assert ">1</p>" in found.data["depth-now"]
                assert trio.from_thread.run_sync(trio.current_time) - start < 1.0

        await trio.to_thread.run_sync(follow)


async def test_a_page_of_a_job_hears_its_states_and_its_end() -> None:
    async with serving() as web:
        await web.engine.jobs.enqueue([NewJob("report", hold=True)])

        def follow() -> None:
            with stream(web.address, path="/ui/live?view=job&id=1") as heard:
                (first,) = heard.take(1, "parts")
                assert "pending" in first.data["where"]
                done = trio.from_thread.run(web.post, "/jobs/1/release")
                assert done.status == 200
                heard.until(lambda one: "queued" in one.data.get("where", ""))

            with stream(web.address, path="/ui/live?view=job&id=9") as heard:
                assert [one.name for one in heard.events()] == ["gone"]
                assert heard.is_whole

        await trio.to_thread.run_sync(follow)


async def test_a_list_of_jobs_hears_how_its_rows_change_and_of_newer_ones() -> None:
    async with serving() as web:
        await web.engine.jobs.enqueue([NewJob("report", hold=True), NewJob("<b>noop</b>")])
        page = (await Browser(web.address).get("/ui/jobs?kind=report")).text
        where = re.search(r'data-live="([^"]*)"', page)
        assert where is not None
        path = where[1].replace("&amp;", "&")
        assert path == "/ui/live?view=jobs&ids=1&newer=true&kind=report"
        row = re.search(r'<tr id="job-1" data-region>(.*?)</tr>', page)
        assert row is not None

        def follow() -> None:
            with stream(web.address, path=path) as heard:
                (first,) = heard.take(1, "parts")
                assert first.data == {"newer": "", "job-1": row[1]}, "as the page has it"
                trio.from_thread.run(web.post, "/jobs/1/release")
                found = heard.until(lambda one: "queued" in one.data.get("job-1", ""))
                assert set(found.data) == {"job-1"}
                trio.from_thread.run(web.engine.jobs.enqueue, [NewJob("noop"), NewJob("report")])
                found = heard.until(lambda one: "newer" in one.data)
                assert '1 newer job: <a href="/ui/jobs?kind=report">show' in found.data["newer"]
                trio.from_thread.run(web.engine.jobs.enqueue, [NewJob("report")] * 20)
                heard.until(lambda one: "10+ newer jobs" in one.data.get("newer", ""))
                trio.from_thread.run(web.engine.control.apply, Action.CANCEL, 1)
                trio.from_thread.run(web.engine.retention.delete_one, 1, DeleteRequest("ops"))
                heard.until(lambda one: ">deleted<" in one.data.get("job-1", ""))

        await trio.to_thread.run_sync(follow)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("view=jobs&ids=x", "ids: 'x' is not a job id"),
        (f"view=jobs&ids={','.join(['7'] * 51)}", "ids: found 51 ids, wanted at most 50"),
        ("view=jobs&newer=1", "newer: found '1', wanted true or false"),
        ("view=jobs&since=soon&newer=true", "since: 'soon' is no time"),
        ("view=jobs&id=1", "id: wanted with view=job"),
    ],
)
async def test_rows_that_cannot_be_are_refused(query: str, said: str) -> None:
    async with serving() as web:
        answer = await web.get(f"/ui/live?{query}")
    assert (answer.status, said in answer.json["detail"]) == (422, True), answer.text


async def test_open_pages_count_as_readers_and_leave_no_place_taken() -> None:
    async with serving() as web:

        def fill() -> None:
            path = "/ui/live?view=overview"
            pages = [opened(web.address, path=path) for _ in range(EVENT_READERS_MAX)]
            with pytest.raises(Refused) as refused:
                opened(web.address, path="/ui/live?view=nodes")
            assert refused.value.status == 503
            for page in pages:
                page.close()
            eventually(lambda: opens(web.address), 5)

        await trio.to_thread.run_sync(fill)


def opens(address: str) -> bool:
    try:
        with stream(address, path="/ui/live?view=scaling"):
            return True
    except Refused:
        return False


async def test_a_stream_wants_the_right_to_read() -> None:
    async with serving(tokens=(BearerToken("shop", "x", ("enqueue",)),)) as web:
        bearer = {"Authorization": "Bearer x"}
        assert (await web.get("/ui/live?view=overview", bearer)).status == 403
        assert (await web.get("/ui/live?view=overview", bearer, method="HEAD")).status == 403
        assert (await web.get("/ui/live?view=overview", method="HEAD")).status == 401


async def test_an_answer_that_does_not_come_is_not_waited_for(autojump_clock: MockClock) -> None:
    start = trio.current_time()
    with pytest.raises(views.NoAnswer):
        await views.in_time(trio.sleep_forever)
    assert trio.current_time() - start == views.STORE_SECONDS < 1.0


def test_rates_are_those_of_the_last_half_minute_and_deleting_is_no_leaving() -> None:
    samples = [Sample(SAMPLE_SECONDS * n, 2, 1, 2, 0, 0.0, 50 * n, 10 + (n % 2)) for n in range(20)]
    come, gone = trend_of(samples).rates
    assert come == pytest.approx(10.0)
    assert gone == pytest.approx(10.0, abs=0.5)
    unknown = Sample(100.0, 2, 1, None)
    assert trend_of([*samples, unknown]).rates == (None, None)
    assert trend_of([]).rates == (None, None)


async def test_samples_are_bounded_and_an_idle_store_is_left_alone(
    autojump_clock: MockClock,
) -> None:
    asked = 0

    async def counts() -> Counts:
        nonlocal asked
        await trio.lowlevel.checkpoint()
        asked += 1
        return COUNTS

    node = StillNode()
    samples = Samples(http_deps(node, store_in_memory(), counts))
    node.seen = attrs.evolve(STATUS, tenants=(attrs.evolve(TENANT, busy=0, depth=0),))
    for _ in range(SAMPLES_MAX + 10):
        await samples.take()
        seen = samples.trend("default")
        await trio.sleep(SAMPLE_SECONDS)
        assert samples.trend("default") is seen, "it is worked out once for all looks"
    trend = samples.trend("default")
    await samples.take()
    assert samples.trend("default") is not trend
    assert len(trend.depth) == SAMPLES_MAX
    assert asked <= (SAMPLES_MAX + 10) * SAMPLE_SECONDS / REST_SECONDS + 2
    node.seen = attrs.evolve(STATUS, tenants=(attrs.evolve(TENANT, busy=1),))
    before = asked
    await samples.take()
    assert asked == before + 1
    node.seen = attrs.evolve(STATUS, tenants=(attrs.evolve(TENANT, store_trouble="unreachable"),))
    await samples.take()
    assert (asked, samples.trend("default").depth[-1]) == (before + 1, None)
