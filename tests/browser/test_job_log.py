"""The log of a job on its page while the job runs: it follows, and stays where somebody reads."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path

import attrs
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Site
from tests.support.chromium import Complaints, faults_for_people, tab
from tests.support.command import Home, eventually
from tests.support.http_client import ask

SCRIPT = """
seq 1 200 | sed 's/^/begun /'; echo '<b>bold</b>'
until [ -e {gate} ]; do sleep 0.05; done
echo at the end; echo oh >&2
until [ -e {gate}.2 ]; do sleep 0.05; done
"""


@attrs.frozen
class Talking:
    """A job that says more once `gate` is there, and ends with `gate.2`."""

    site: Site
    job_id: int
    gate: Path

    @property
    def url(self) -> str:
        return f"{self.site.address}/ui/jobs/{self.job_id}"

    def end(self) -> None:
        self.gate.touch()
        self.gate.with_suffix(".2").touch()


@pytest.fixture
def talking(home: Home, tmp_path: Path) -> Generator[Talking]:
    gate = tmp_path / "gate"
    command = json.dumps(["/bin/sh", "-c", SCRIPT.format(gate=gate)])
    (tmp_path / "kinds.toml").write_text(f"[kinds.talks]\ncommand = {command}\n")
    options = ("--set", f'catalog.paths=["{tmp_path}/kinds.toml"]')
    with home.daemon(*options, "--set", "limits.log_interval_ms=200") as daemon:
        daemon.wait_until_ready()
        site = Site(daemon, daemon.address)
        job_id = site.enqueue("talks")
        eventually(lambda: bool(ask(site.address, f"/jobs/{job_id}/log").json["lines"]))
        found = Talking(site, job_id, gate)
        yield found
        found.end()


def test_the_log_of_a_job_that_runs_follows_and_shows_its_end(talking: Talking, page: Page) -> None:
    page.goto(talking.url)
    log = page.get_by_role("region", name="log of attempt 1")
    expect(log).to_be_visible()
    expect(log).to_contain_text("stdout info begun 200")
    expect(log).to_contain_text("<b>bold</b>")
    left = "each => each.scrollHeight - each.scrollTop - each.clientHeight"
    assert log.evaluate(left) < 8
    talking.gate.touch()
    expect(log).to_contain_text("stdout info at the end")
    expect(log).to_contain_text("stderr warning oh")
    assert log.evaluate(left) < 8
    assert log.evaluate("each => each.scrollTop") > 0
    log.evaluate("each => { each.scrollTop = 30; }")
    talking.end()
    expect(page.locator("#where")).to_contain_text("succeeded")
    expect(log).to_be_visible()
    assert log.evaluate("each => each.scrollTop") == 30
    assert faults_for_people(page) == []


def test_without_javascript_a_reload_shows_what_has_come(
    talking: Talking, browser: Browser, complaints: Complaints
) -> None:
    with tab(browser, complaints, java_script_enabled=False) as page:
        page.goto(talking.url)
        log = page.get_by_role("region", name="log of attempt 1")
        expect(log).to_contain_text("begun 200")
        talking.gate.touch()
        lines = f"/jobs/{talking.job_id}/log"
        eventually(lambda: "at the end" in ask(talking.site.address, lines).text)
        page.reload()
        expect(log).to_contain_text("at the end")
    assert complaints.said == []
