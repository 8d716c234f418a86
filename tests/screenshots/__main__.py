"""Pictures of every view of the page, to be looked at: light, dark and narrow.

`python -m tests.screenshots [FOLDER]` runs a daemon on a store with a past, and writes PNG files.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from playwright.sync_api import Browser, Page

from tests.support.chromium import NARROW, Complaints, chromium, tab
from tests.support.command import Home
from tests.support.http_client import ask
from tests.support.past_of_a_shop import fill

VIEWS = {
    "overview": "/",
    "overview-15m": "/?range=15m",
    "overview-48h": "/?range=48h",
    "jobs": "/ui/jobs",
    "job": "/ui/jobs/3",
    "nodes": "/ui/nodes",
    "scaling": "/ui/scaling",
    "kinds": "/ui/kinds",
    "schedules": "/ui/schedules",
    "failures": "/ui/failures",
    "configuration": "/ui/configuration",
}
LOOKS = {
    "light": ("light", (1280, 900)),
    "dark": ("dark", (1280, 900)),
    "narrow": ("light", NARROW),
}
SETTLE_MS = 1_500  # the first live update has come
JOBS: Sequence[tuple[str, Mapping[str, object]]] = (
    *[("report", {"payload": {"month": 7}})] * 6,
    ("broken", {"target": "customer-17"}),
    ("flaky", {"payload": {"customer": 17}}),
    *[("video", {})] * 14,
    ("noop", {"hold": True}),
    ("noop", {"delay_seconds": 3600}),
)
CONFIG = """
[workers]
max_count = 8
[scaling]
max_wait_seconds = 5
[schedules.nightly]
kind = "report"
cron = "30 2 * * *"
timezone = "Europe/Berlin"
[schedules.pulse]
kind = "noop"
every_seconds = 90
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("screenshots"))
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        state = Path(scratch) / "state"
        state.mkdir()
        fill(state / "musterd.db", time.time())
        config = Path(scratch) / "musterd.toml"
        config.write_text(CONFIG)
        with Home(state).daemon("--config", str(config)) as daemon, chromium() as browser:
            daemon.wait_until_ready()
            _enqueue(daemon.address)
            time.sleep(4)  # some jobs have ended, some run
            for look in LOOKS:
                _shoot(browser, daemon.address, look, folder)


def _enqueue(address: str) -> None:
    for kind, options in JOBS:
        body = json.dumps({"kind": kind, **options}).encode()
        headers = {"Content-Type": "application/json"}
        made = ask(address, "/jobs", headers, method="POST", body=body)
        if made.status not in (200, 201):
            raise SystemExit(f"{kind}: {made.text}")


def _shoot(browser: Browser, address: str, look: str, folder: Path) -> None:
    scheme, size = LOOKS[look]
    complaints = Complaints()
    with tab(browser, complaints, size=size, color_scheme=scheme) as page:
        for name, path in VIEWS.items():
            page.goto(address + path)
            page.wait_for_timeout(SETTLE_MS)
            clipped = _clipped(page)
            page.screenshot(path=folder / f"{name}-{look}.png", full_page=True)
            sys.stdout.write(f"{name}-{look}.png{clipped and f': wider than it: {clipped}'}\n")
    if complaints.said:
        raise SystemExit("\n".join(complaints.said))


def _clipped(page: Page) -> str:
    """What makes the whole page wider than the screen; empty if nothing does."""
    found: str = page.evaluate(
        """() => {
          const wide = document.documentElement.clientWidth;
          if (document.documentElement.scrollWidth <= wide) return "";
          return [...document.querySelectorAll("main *")]
            .filter((each) => each.getBoundingClientRect().right > wide + 1)
            .slice(0, 3).map((each) => each.tagName + "." + each.className).join(" ");
        }"""
    )
    return found


if __name__ == "__main__":
    main()
