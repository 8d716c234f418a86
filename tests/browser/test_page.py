"""The live page in a real browser: every view by clicking, what is live, what forms do, and that
nobody is kept out.
"""

from __future__ import annotations

import json
import re
import signal
import time
from datetime import datetime
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import TOKENS, Site
from tests.support.chromium import NARROW, Complaints, faults_for_people, tab
from tests.support.command import Home, eventually
from tests.support.http_client import ask
from tests.support.past_of_a_shop import fill

VIEWS = (
    *("/", "/ui/jobs", "/ui/jobs/1", "/ui/jobs/4", "/ui/nodes", "/ui/scaling", "/ui/jobs/999"),
    *("/ui/kinds", "/ui/schedules", "/ui/failures", "/ui/configuration"),
    *("/ui/webhooks", "/ui/events"),
)
LIVE_SECONDS = 1.0


def pending(page: Page) -> int:
    """How many jobs the overview says are pending."""
    row = page.locator("#states tr", has=page.locator("a[data-key=pending]"))
    return int(row.locator(".count").inner_text())


def test_every_view_is_reached_by_clicking(page: Page, site: Site) -> None:
    page.goto(site.address)
    expect(page.locator("h1")).to_have_text("Overview")
    expect(page.locator("#live")).to_have_text("live")
    expect(page.locator("#verdict")).to_contain_text("healthy: running")
    for name, title in (("Nodes", "Nodes and duties"), ("Scaling", "Scaling"), ("Jobs", "Jobs")):
        page.get_by_role("navigation", name="Views").get_by_role("link", name=name).click()
        expect(page.locator("h1")).to_have_text(title)
    page.locator("form.filter").get_by_label("Kind").fill("video")
    page.get_by_role("button", name="Filter").click()
    page.get_by_role("link", name="1", exact=True).click()
    expect(page.locator("h1")).to_contain_text("Job 1")
    expect(page.get_by_role("heading", name="Phases")).to_be_visible()
    expect(page.locator("#way")).to_contain_text("attempt 1 started")
    page.get_by_role("link", name="musterd").click()
    page.locator("#states").get_by_role("link", name="pending").click()
    expect(page).to_have_url(re.compile(r"/ui/jobs\?state=pending$"))
    page.get_by_label("Tenant").fill("acme")
    page.get_by_role("button", name="Go").click()
    expect(page.locator("main")).to_contain_text("no job matches")


def test_an_open_overview_shows_within_a_second_what_happens(page: Page, site: Site) -> None:
    page.goto(site.address)
    expect(page.locator("#live")).to_have_text("live")
    link = page.locator("#states a[data-key=pending]")
    link.focus()
    # The machine that runs this has others to serve: the best of some tries is the page's own time.
    assert min(seconds_until_shown(page, site) for _ in range(5)) < LIVE_SECONDS
    expect(link).to_be_focused()


def seconds_until_shown(page: Page, site: Site) -> float:
    wanted = pending(page) + 1
    start = time.monotonic()
    site.enqueue("noop", hold=True)
    count = "document.querySelector('tr:has([data-key=pending]) .count').textContent"
    page.wait_for_function(f"wanted => {count} == wanted", arg=str(wanted))
    return time.monotonic() - start


def test_an_open_job_shows_its_states(page: Page, site: Site) -> None:
    job_id = site.enqueue("noop", hold=True)
    page.goto(f"{site.address}/ui/jobs/{job_id}")
    expect(page.locator("#live")).to_have_text("live")
    expect(page.locator("#where")).to_contain_text("pending")
    expect(page.locator("#why")).to_contain_text("release")
    site.post(f"/jobs/{job_id}/release")
    expect(page.locator("#where")).to_contain_text("succeeded")
    expect(page.locator("#where button")).to_have_text("Run again")


def test_a_hidden_tab_rests_and_then_catches_up(page: Page, site: Site) -> None:
    page.goto(site.address)
    expect(page.locator("#live")).to_have_text("live")
    hide = "Object.defineProperty(document, 'hidden', {value: %s, configurable: true});"
    tell = "document.dispatchEvent(new Event('visibilitychange'))"
    page.evaluate(f"() => {{ {hide % 'true'} {tell} }}")
    expect(page.locator("#live")).to_have_text("paused")
    wanted = pending(page) + 1
    site.enqueue("noop", hold=True)
    page.evaluate(f"() => {{ {hide % 'false'} {tell} }}")
    row = page.locator("#states tr", has=page.locator("a[data-key=pending]"))
    expect(row.locator(".count")).to_have_text(str(wanted))


def test_many_jobs_are_canceled_after_a_question(page: Page, site: Site) -> None:
    ids = [site.enqueue("noop", hold=True, target="bulk") for _ in range(3)]
    page.goto(f"{site.address}/ui/jobs?state=pending&target=bulk")
    page.get_by_label("all jobs of this page").check()
    page.get_by_label(f"job {ids[0]}", exact=True).uncheck()
    expect(page.get_by_label("all jobs of this page")).not_to_be_checked()
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("h1")).to_have_text("Cancel 2 jobs?")
    page.get_by_role("button", name="Yes, cancel 2 jobs").click()
    expect(page.locator(".notice")).to_have_text("2 jobs canceled.")
    expect(page.get_by_role("textbox", name="Target")).to_have_value("bulk")
    expect(page.get_by_role("checkbox", name="pending")).to_be_checked()
    page.get_by_label("all jobs that match").check()
    page.get_by_role("button", name="Release").click()
    expect(page.locator("h1")).to_have_text("Release 1 job?")
    page.get_by_role("link", name="No, go back").click()
    expect(page.get_by_label(f"job {ids[0]}", exact=True)).to_be_visible()


def test_without_javascript_all_is_there_and_every_form_works(
    browser: Browser, complaints: Complaints, site: Site
) -> None:
    job_id = site.enqueue("noop", hold=True)
    with tab(browser, complaints, java_script_enabled=False) as page:
        for path in VIEWS:
            page.goto(site.address + path)
            expect(page.locator("h1")).to_be_visible()
            expect(page.locator("#live")).not_to_be_visible()
        page.goto(f"{site.address}/ui/jobs/{job_id}")
        page.get_by_role("button", name="Release").click()
        expect(page.locator(".notice")).to_have_text("1 job released.")
        page.goto(site.address)
        page.get_by_role("button", name="Pause the queue").click()
        expect(page.locator("#queue")).to_contain_text("The queue is paused")
        page.get_by_role("button", name="Resume the queue").click()
        expect(page.locator("#queue")).not_to_contain_text("The queue is paused")
        page.goto(f"{site.address}/ui/jobs?state=pending")
        page.locator("form[data-choose] input[name=id]").first.check()
        page.get_by_role("button", name="Cancel").click()
        page.get_by_role("button", name="Yes, cancel 1 job").click()
        expect(page.locator(".notice")).to_have_text("1 job canceled.")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nobody_is_kept_out(
    browser: Browser, complaints: Complaints, site: Site, guarded: Site, scheme: str
) -> None:
    # What a page is made of is the same in both.
    rules = () if scheme == "light" else ("color-contrast",)
    with tab(browser, complaints, color_scheme=scheme) as page:
        for path in VIEWS:
            page.goto(site.address + path)
            expect(page.locator("h1")).to_be_visible()
            assert faults_for_people(page, *rules) == [], path
        page.goto(f"{site.address}/ui/jobs?state=pending")
        page.get_by_label("all jobs that match").check()
        page.get_by_role("button", name="Cancel").click()
        assert faults_for_people(page, *rules) == [], "the question"
        page.goto(guarded.address)
        assert faults_for_people(page, *rules) == [], "signing in"


def test_a_narrow_screen_needs_no_scrolling_sideways(
    browser: Browser, complaints: Complaints, site: Site, guarded: Site
) -> None:
    with tab(browser, complaints, size=NARROW) as page:
        for path in (*(site.address + path for path in VIEWS), guarded.address):
            page.goto(path)
            assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0], path


def test_all_can_be_done_with_a_keyboard(page: Page, site: Site) -> None:
    page.goto(site.address)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Pause the queue")).to_be_focused()
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_ten_thousand_kinds_and_hostile_texts_do_no_harm(page: Page, site: Site) -> None:
    assert len(ask(site.address, "/").body) <= 50_000
    page.goto(f"{site.address}/ui/jobs/4")
    expect(page.locator("#values")).to_contain_text("<script>alert(1)</script>")
    page.get_by_role("link", name="<script>").first.click()
    expect(page.locator("caption")).to_contain_text("target <script>alert(1)</script>")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.locator("form.filter").get_by_label("Kind").fill("kind09999")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator("main")).to_contain_text("no job matches")


def test_signing_in_and_out(page: Page, guarded: Site, complaints: Complaints) -> None:
    page.goto(f"{guarded.address}/ui/jobs/1")
    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_have_text("Unknown token.")
    page.get_by_label("Token").fill(TOKENS["admin"])
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("h1")).to_contain_text("Job 1")
    expect(page.locator("#live")).to_have_text("live")
    assert "musterd_build_info" in page.request.get(f"{guarded.address}/metrics").text()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    page.goto(f"{guarded.address}/ui/nodes")
    page.get_by_label("Token").fill(TOKENS["board"])
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("h1")).to_have_text("Nodes and duties")
    page.goto(f"{guarded.address}/ui/jobs/1")
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0)
    expect(page.locator("header")).to_contain_text("board (read-only)")
    # A browser notes every page that came with 401 in its console; nothing else stands there.
    assert [one for one in complaints.said if "401" not in one] == []
    complaints.said.clear()


def test_a_page_says_when_its_daemon_is_away_and_comes_back_by_itself(
    browser: Browser, complaints: Complaints, home: Home
) -> None:
    with tab(browser, complaints) as page:
        with home.daemon() as daemon:
            daemon.wait_until_ready()
            address = daemon.address
            page.goto(address)
            expect(page.locator("#live")).to_have_text("live")
            daemon.send(signal.SIGKILL)
            expect(page.locator("#live")).to_contain_text("not live")
        with home.daemon("--set", f"http.listen={address.removeprefix('http://')}") as daemon:
            daemon.wait_until_ready()
            eventually(lambda: ask(address, "/readyz").status == 200)
            expect(page.locator("#live")).to_have_text("live")


def test_charts_are_drawn_from_what_the_store_has_kept(
    page: Page, tmp_path_factory: pytest.TempPathFactory
) -> None:
    state = tmp_path_factory.mktemp("past")
    fill(state / "musterd.db", time.time())
    with Home(state).daemon() as daemon:
        daemon.wait_until_ready()
        for chosen, ago in (("15m", "-15m"), ("48h", "-48h")):
            page.goto(f"{daemon.address}/?range={chosen}")
            plots = page.locator("#queue-chart .plots")
            facts: dict[str, Any] = json.loads(plots.get_attribute("data-chart") or "")
            asked = f"/history?since={ago}&step={facts['step']}"
            kept = {
                datetime.fromisoformat(one["at"]).timestamp(): one
                for one in ask(daemon.address, asked).json["points"]
            }
            by_name: dict[str, list[str]] = {
                name: values.split("|") for name, values in facts["lines"]
            }
            # Those under way change while we look.
            for place, shown in list(enumerate(by_name["waiting"]))[1:-3]:
                point = kept[facts["first"] + place * facts["step"]]
                words = [by_name[name][place] for name in ("waiting", "crew", "wish", "at most")]
                known = [point[name] for name in ("depth", "crew", "wish", "max_count")]
                assert words == ["" if one is None else f"{one:,}" for one in known], shown
            highest = max(int(one) for one in by_name["waiting"] if one)
            top = float(page.locator("#queue-chart .axis span").first.inner_text())
            line = page.locator("#queue-chart [data-line=waiting]").get_attribute("d") or ""
            heights = [float(one) for one in re.findall(r"[ML]\d+ ([\d.]+)", line)]
            assert min(heights) == pytest.approx(100 - highest / top * 100, abs=0.1)
        page.goto("about:blank")  # before its daemon goes


def test_a_chart_is_read_by_pointer_and_by_keys(page: Page, site: Site) -> None:
    page.goto(site.address)
    expect(page.locator("#live")).to_have_text("live")
    plots = page.locator("#queue-chart .plots")
    facts = json.loads(plots.get_attribute("data-chart") or "")
    steps = len(facts["lines"][0][1].split("|"))
    readout = page.locator("#queue-chart output")
    plots.focus()
    page.keyboard.press("Home")
    first = readout.inner_text()
    assert "waiting" in first
    assert page.locator("#queue-chart .cross").first.get_attribute("d") == "M0 0V100"
    page.keyboard.press("End")
    assert readout.inner_text() != first
    assert page.locator("#queue-chart .cross").first.get_attribute("d") == "M1000 0V100"
    page.keyboard.press("ArrowLeft")
    wanted = round((steps - 2) / (steps - 1) * 1000)
    expect(page.locator("#queue-chart .cross").first).to_have_attribute("d", f"M{wanted} 0V100")
    page.keyboard.press("Escape")
    box = page.locator("#queue-chart svg").first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 1, box["y"] + 20)
    assert readout.inner_text() == first
    page.mouse.move(5, 5)
    expect(page.locator("#queue-chart .cross").first).to_have_attribute("d", "")


def test_the_range_is_chosen_by_a_link_and_stays_live(page: Page, site: Site) -> None:
    page.goto(site.address)
    page.get_by_role("link", name="6 h").click()
    expect(page.locator("#queue-chart figcaption")).to_contain_text("last 6 hours")
    expect(page.locator("#live")).to_have_text("live")
    expect(page.get_by_role("link", name="6 h")).to_have_attribute("aria-current", "true")


def test_times_are_local_and_say_utc(browser: Browser, complaints: Complaints, site: Site) -> None:
    with tab(browser, complaints, timezone_id="Asia/Tokyo") as page:
        page.goto(f"{site.address}/ui/jobs/1")
        moment = page.locator("main time[title$=UTC]").first
        utc = datetime.fromisoformat(moment.get_attribute("datetime") or "")
        shown = moment.inner_text()
        assert f"{(utc.hour + 9) % 24:02}:{utc.minute:02}:{utc.second:02}" in shown
        assert moment.get_attribute("title") == f"{utc:%Y-%m-%d %H:%M:%S} UTC"
    assert complaints.said == []


def test_a_job_is_enqueued_and_found_by_its_number(page: Page, site: Site) -> None:
    page.goto(f"{site.address}/ui/jobs")
    page.get_by_text("Enqueue a job").click()
    form = page.locator("#enqueue")
    form.get_by_label("Kind").fill("noop")
    form.get_by_label("Payload, as JSON").fill('{"month": 7}')
    form.get_by_label("Hold it").check()
    form.get_by_role("button", name="Enqueue").click()
    expect(page.locator("h1")).to_contain_text("Job ")
    expect(page.locator("#where")).to_contain_text("pending")
    number = page.url.rpartition("/")[2]
    page.goto(f"{site.address}/ui/jobs")
    page.get_by_label("Job number").fill(number)
    page.get_by_role("button", name="Show").click()
    expect(page).to_have_url(re.compile(rf"/ui/jobs/{number}$"))
    expect(page.locator("main")).to_contain_text('"month": 7')
