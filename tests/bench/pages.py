"""The live page: how large its first screen is, how soon it is there, and how late the loop of its
node is while 50 of them are open. On an embedded store with six hours of a shop's past.
"""

from __future__ import annotations

import re
import statistics
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

from tests.bench.readers import Lag, lag
from tests.support.chromium import ChromiumMissing, chromium
from tests.support.command import Home
from tests.support.past_of_a_shop import fill

PAGES = 50
LIVE = "/ui/live?view=overview"
VISITS = 20
ASSETS = re.compile(r'(?:href|src)="(/[^"]+\?v=[0-9a-f]+)"')
READY = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"


class Screen(NamedTuple):
    page_bytes: int
    asset_bytes: int  # that a browser keeps


@contextmanager
def shop() -> Generator[str]:
    """The URL of a store with a past."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        path = Path(folder) / "musterd.db"
        fill(path, time.time())
        yield str(path)


def late(path: str, pages: int) -> Lag:
    """The node's loop, with so many pages open."""
    return lag(f"sqlite:///{path}", pages, path=LIVE)


def screen(address: str) -> Screen:
    page = _read(f"{address}/")
    assets = set(ASSETS.findall(page.decode()))
    return Screen(len(page), sum(len(_read(f"{address}{one}")) for one in assets))


def ready_ms(address: str) -> Sequence[float]:
    """Until a Chromium has read the page and run its script, with an empty cache; sorted."""
    took: list[float] = []
    with chromium() as browser:
        for _ in range(VISITS):
            context = browser.new_context()
            page = context.new_page()
            page.goto(f"{address}/", wait_until="domcontentloaded")
            took.append(float(page.evaluate(READY)))
            context.close()
    return sorted(took)


def lines() -> Generator[tuple[str, str]]:
    with shop() as path:
        with Home(Path(path).parent).daemon() as daemon:
            daemon.wait_until_ready()
            time.sleep(2)
            found = screen(daemon.address)
            said = f"{found.page_bytes / 1000:.1f} kB, and {found.asset_bytes / 1000:.1f} kB kept"
            yield "first screen of the page", said
            try:
                took = ready_ms(daemon.address)
            except ChromiumMissing as missing:
                yield "page ready in Chromium, loopback", str(missing)
            else:
                half, most = statistics.median(took), took[-1]
                yield (
                    "page ready in Chromium, loopback",
                    f"p50 {half:.0f} ms, at most {most:.0f} ms",
                )
        for pages in (0, PAGES):
            one = late(path, pages)
            said = f"p50 {one.p50_ms:.2f} ms, p99 {one.p99_ms:.2f} ms, at most {one.most_ms:.1f} ms"
            yield f"loop late at 300 jobs/s, {pages} pages open", said


def _read(url: str) -> bytes:
    with urlopen(url, timeout=10) as answer:
        body: bytes = answer.read()
    return body
