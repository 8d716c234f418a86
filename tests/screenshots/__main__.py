"""Pictures of every view of the page, to be looked at: light, dark and narrow.

`python -m tests.screenshots [FOLDER]` runs a daemon on a store with a past, and writes PNG files.
With `--docs` it writes instead, small, the few that the documentation shows.
"""

from __future__ import annotations

import argparse
import base64
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
    "webhooks": "/ui/webhooks",
    "events": "/ui/events",
    "configuration": "/ui/configuration",
}
LOOKS = {
    "light": ("light", (1280, 900)),
    "dark": ("dark", (1280, 900)),
    "narrow": ("light", NARROW),
}
PICTURES = Path("docs/pictures")
DOCS = {
    "overview": ("/?range=6h", "light", (1180, 800)),
    "scaling-dark": ("/ui/scaling", "dark", (1180, 800)),
    "narrow": ("/?range=1h", "light", (390, 800)),
}
# As a service has them, not as this machine does.
NAME_ANEW = """() => {
  window.dispatchEvent(new Event("pagehide"));  // no more updates
  document.querySelector(".brand span").textContent = "web-1";
  for (const each of document.querySelectorAll("#verdict .dim, .marks li")) {
    each.innerHTML = each.innerHTML
      .replace(/sqlite at .*/i, "SQLite at /var/lib/musterd/musterd.db")
      .replace(/(node started: )[^,]*/, "$1web-1");
  }
}"""
# A browser knows how to write a picture that is small.
SHRINK = """async (source) => {
  const picture = new Image();
  picture.src = source;
  await picture.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [picture.width, picture.height];
  canvas.getContext("2d").drawImage(picture, 0, 0);
  return canvas.toDataURL("image/webp", 0.7);
}"""
SETTLE_MS = 1_500  # the first live update has come
NOTHING: Mapping[str, object] = {}
JOBS: Sequence[tuple[str, Mapping[str, object]]] = (
    *((("report", {"payload": {"month": 7}}),) * 6),
    ("broken", {"target": "customer-17"}),
    ("flaky", {"payload": {"customer": 17}}),
    *((("video", NOTHING),) * 14),
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
    parser.add_argument("--docs", action="store_true", help="those of docs/pictures")
    asked = parser.parse_args()
    folder: Path = PICTURES if asked.docs else asked.folder
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
            if asked.docs:
                _shoot_docs(browser, daemon.address, folder)
                return
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


def _shoot_docs(browser: Browser, address: str, folder: Path) -> None:
    for name, (path, scheme, size) in DOCS.items():
        with tab(browser, Complaints(), size=size, color_scheme=scheme) as page:
            page.goto(address + path)
            page.wait_for_timeout(SETTLE_MS)
            page.evaluate(NAME_ANEW)
            shot = base64.b64encode(page.screenshot()).decode()
        with tab(browser, Complaints()) as page:
            small: str = page.evaluate(SHRINK, f"data:image/png;base64,{shot}")
        content = base64.b64decode(small.partition(",")[2])
        (folder / f"{name}.webp").write_bytes(content)
        sys.stdout.write(f"{name}.webp: {len(content):,} bytes\n")


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
