"""One Chromium for all tests, and daemons that several of them look at."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path

import attrs
import pytest
from playwright.sync_api import Browser, Page

from tests.support.chromium import Complaints, chromium, tab
from tests.support.command import Daemon, Home
from tests.support.http_client import Answer, ask

KINDS = 10_000
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u202e"
TOKENS = {"admin": "token-of-admin", "board": "token-of-board"}


@attrs.frozen
class Site:
    """A daemon and the address of its page."""

    daemon: Daemon
    address: str

    def post(self, path: str, value: object = None) -> Answer:
        body = None if value is None else json.dumps(value).encode()
        headers = {"Content-Type": "application/json"}
        return ask(self.address, path, headers, method="POST", body=body)

    def enqueue(self, kind: str = "noop", **options: object) -> int:
        made = self.post("/jobs", {"kind": kind, **options})
        assert made.status == 201, made.text
        found: int = made.json["id"]
        return found


@pytest.fixture(scope="module")
def browser() -> Generator[Browser, None, None]:
    with chromium() as found:
        yield found


@pytest.fixture
def complaints() -> Complaints:
    return Complaints()


@pytest.fixture
def page(browser: Browser, complaints: Complaints) -> Generator[Page, None, None]:
    """Fails the test if the browser complains of anything."""
    with tab(browser, complaints) as found:
        yield found
    assert complaints.said == []


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Generator[Site, None, None]:
    """A daemon with two tenants, ten thousand kinds, and some jobs, of which one is hostile."""
    folder = tmp_path_factory.mktemp("site")
    kinds = "".join(f"[kinds.kind{number:05}]\nduration_ms = 1\n" for number in range(KINDS))
    (folder / "kinds.toml").write_text(kinds)
    (folder / "musterd.toml").write_text(
        '[catalog]\npaths = ["kinds.toml"]\n[workers]\nmax_count = 4\n[tenants.acme]\n'
    )
    with Home(folder / "state").daemon("--config", str(folder / "musterd.toml")) as daemon:
        daemon.wait_until_ready()
        site = Site(daemon, daemon.address)
        fill(site)
        yield site


def fill(site: Site) -> None:
    site.enqueue("video")
    site.enqueue("broken")
    site.enqueue("flaky", payload={"month": 7})
    site.enqueue("report", payload={HOSTILE: HOSTILE}, target=HOSTILE, dedup_key=HOSTILE, hold=True)
    for _ in range(3):
        site.enqueue("noop", hold=True)
    site.enqueue("noop", delay_seconds=3600)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Generator[Site, None, None]:
    """A daemon that wants tokens."""
    folder = tmp_path_factory.mktemp("guarded")
    for name, token in TOKENS.items():
        (folder / name).write_text(token)
    (folder / "musterd.toml").write_text(
        '[http]\ntoken_file = "admin"\n'
        '[[http.tokens]]\nname = "board"\ntoken_file = "board"\nscopes = ["read"]\n'
    )
    with Home(folder / "state").daemon("--config", str(folder / "musterd.toml")) as daemon:
        daemon.wait_until_ready()
        site = Site(daemon, daemon.address)
        bearer = {"Authorization": f"Bearer {TOKENS['admin']}", "Content-Type": "application/json"}
        body = json.dumps({"kind": "noop", "hold": True}).encode()
        assert ask(site.address, "/jobs", bearer, method="POST", body=body).status == 201
        yield site


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "state")
