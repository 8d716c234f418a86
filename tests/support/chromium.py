"""A headless Chromium, and a page in it that forgives nothing: whatever a browser would complain of
in its console fails the test.
"""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import attrs
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

from tests.support.missing import ToolMissing

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
NARROW = (390, 844)
WIDE = (1280, 900)
PATIENCE_MS = 10_000


class ChromiumMissing(ToolMissing):
    """No Chromium was found; the text says what to install."""


@contextmanager
def chromium() -> Generator[Browser, None, None]:
    """Runs while the block lasts."""
    found = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if found is None:
        raise ChromiumMissing(
            "these tests need a Chromium on PATH (Debian: apt-get install chromium)"
        )
    with sync_playwright() as driver:
        # Root has no sandbox of its own to make; what is loaded is ours.
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@attrs.define
class Complaints:
    """What the browser said in its console, or what a script of ours did not catch."""

    said: list[str] = attrs.field(factory=list[str])

    def listen_to(self, page: Page) -> None:
        page.on("console", lambda one: self._hear(one))  # noqa: PLW0108 - it marks what it calls
        page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        page.on("dialog", lambda one: self.said.append(f"dialog: {one.message}"))

    def _hear(self, one: ConsoleMessage) -> None:
        if one.type in ("error", "warning"):
            self.said.append(f"{one.type}: {one.text}")


@contextmanager
def tab(
    browser: Browser, complaints: Complaints, *, size: tuple[int, int] = WIDE, **options: Any
) -> Generator[Page, None, None]:
    """A page with cookies of its own. `options` are those of Playwright's `new_context`."""
    width, height = size
    context = browser.new_context(viewport={"width": width, "height": height}, **options)
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    complaints.listen_to(page)
    yield page
    context.close()


def faults_for_people(page: Page, *rules: str) -> list[str]:
    """What axe-core finds that keeps people out, by all of its rules unless some are named. It is
    put in from outside: the page's own policy would not let it be loaded.
    """
    page.evaluate(_axe())
    found = page.evaluate("rules => axe.run(rules.length ? {runOnly: rules} : {})", list(rules))
    return [
        f"{one['id']} ({one['impact']}): {node['target']} {node['html'][:160]}"
        for one in found["violations"]
        for node in one["nodes"]
    ]


def _axe() -> str:
    spec = find_spec("axe_playwright_python")
    assert spec is not None
    assert spec.origin is not None
    return (Path(spec.origin).parent / "axe.min.js").read_text("utf-8")
