"""The list of jobs in a real browser: searches, rows that change as jobs do, and a job deleted."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Site
from tests.support.chromium import NARROW, Complaints, tab


def test_rows_change_as_their_jobs_do(page: Page, site: Site) -> None:
    first = site.enqueue("noop", hold=True, target="rows")
    second = site.enqueue("noop", hold=True, target="rows")
    page.goto(f"{site.address}/ui/jobs?target=rows")
    expect(page.locator("#live")).to_have_text("live")
    row = page.locator(f"#job-{first}")
    expect(row).to_contain_text("pending")
    box = page.get_by_label(f"job {first}", exact=True)
    box.check()
    site.post(f"/jobs/{first}/release")
    expect(row).to_contain_text("succeeded")
    expect(page.locator(f"#job-{second}")).to_contain_text("pending")
    expect(box).to_be_checked()
    expect(box).to_be_focused()
    page.get_by_label("all jobs of this page").check()
    expect(page.get_by_label(f"job {second}", exact=True)).to_be_checked()
    box.uncheck()
    expect(page.get_by_label("all jobs of this page")).not_to_be_checked()
    expect(page.locator("#newer")).to_be_empty()
    third = site.enqueue("noop", hold=True, target="rows")
    site.enqueue("noop", hold=True, target="others")
    expect(page.locator("#newer")).to_have_text("1 newer job: show")
    page.locator("#newer").get_by_role("link", name="show").click()
    expect(page.locator(f"#job-{third}")).to_be_visible()


def test_a_job_is_found_by_its_key_its_error_and_its_time(page: Page, site: Site) -> None:
    keyed = site.enqueue("noop", hold=True, dedup_key="invoice/2041")
    page.goto(f"{site.address}/ui/jobs")
    search = page.locator("form.filter")
    search.get_by_label("Key").fill("invoice/2041")
    search.get_by_label("since (UTC)").fill("-1h")
    search.get_by_role("button", name="Filter").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator(f"#job-{keyed}")).to_be_visible()
    expect(page.locator("caption")).to_contain_text("key invoice/2041, made since -1h")
    expect(search.get_by_label("Key")).to_have_value("invoice/2041")
    expect(page.get_by_label("all jobs that match")).to_have_count(0)
    page.get_by_role("link", name="Clear filter").click()
    search.get_by_label("Error with").fill("PLANNED_FAILURE: kind")
    search.get_by_label("Were").select_option("ended")
    search.get_by_label("before (UTC)").fill("-0s")
    search.get_by_role("button", name="Filter").click()
    expect(page.locator("tbody tr").first).to_contain_text("failed")


def test_an_ended_job_is_deleted_after_a_question(page: Page, site: Site) -> None:
    job_id = site.enqueue("noop")
    page.goto(f"{site.address}/ui/jobs/{job_id}")
    page.get_by_role("link", name="Delete …").click()
    expect(page.locator("h1")).to_have_text(f"Delete job {job_id}?")
    page.get_by_role("link", name="No, go back").click()
    page.get_by_role("link", name="Delete …").click()
    page.get_by_role("button", name=f"Yes, delete job {job_id}").click()
    expect(page.locator(".notice")).to_have_text(f"Job {job_id} deleted.")
    expect(page).to_have_url(re.compile(r"/ui/jobs\?did=deleted\.\d+$"))


def test_without_javascript_the_list_is_plain_and_a_job_can_be_deleted(
    browser: Browser, complaints: Complaints, site: Site
) -> None:
    job_id = site.enqueue("noop", target="plain")
    with tab(browser, complaints, java_script_enabled=False) as page:
        page.goto(f"{site.address}/ui/jobs?target=plain")
        expect(page.locator(f"#job-{job_id}")).to_contain_text("noop")
        page.goto(f"{site.address}/ui/jobs/{job_id}/delete")
        page.get_by_role("button", name="Yes").click()
        expect(page.locator(".notice")).to_have_text(f"Job {job_id} deleted.")


def test_a_list_that_is_open_says_of_a_row_that_its_job_is_gone(
    browser: Browser, complaints: Complaints, site: Site
) -> None:
    job_id = site.enqueue("noop", target="gone")
    with tab(browser, complaints, size=NARROW) as page:
        page.goto(f"{site.address}/ui/jobs?target=gone")
        row = page.locator(f"#job-{job_id}")
        expect(row).to_contain_text("succeeded")
        with tab(browser, complaints) as other:
            other.goto(f"{site.address}/ui/jobs/{job_id}/delete")
            other.get_by_role("button", name="Yes").click()
        expect(row).to_contain_text("deleted")
        expect(row.get_by_role("checkbox")).to_have_count(0)
    assert complaints.said == []
