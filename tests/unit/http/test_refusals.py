"""Whoever has no valid token is told so more and more slowly, and what is refused or done is
written down.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path

import pytest

from musterd.config.credentials import BearerToken
from musterd.web.server.refusals import AT_ONCE_MAX, AUDIT, PAUSE_SECONDS, PEERS_MAX, Refusals
from tests.support.browsing import Browser
from tests.support.web_scene import Web, serving

TOKENS = (
    BearerToken("ops", "token-a", ("admin",)),
    BearerToken("scraper", "token-m", ("metrics",)),
)
OPS = {"Authorization": "Bearer token-a"}
WRONG = {"Authorization": "Bearer nearly-token-a"}


def test_a_peer_is_slowed_down_and_forgiven_with_time() -> None:
    seen = Refusals()
    assert [seen.pause_seconds("a", 0.0) for _ in range(AT_ONCE_MAX)] == [0.0] * AT_ONCE_MAX
    assert seen.pause_seconds("a", 0.0) == PAUSE_SECONDS
    assert seen.pause_seconds("b", 0.0) == 0.0, "another pays for it"
    for _ in range(1_000):
        assert seen.pause_seconds("a", 0.0) == PAUSE_SECONDS
    assert seen.pause_seconds("a", 3.0) == 0.0, "what was refused long ago counts for ever"


def test_only_so_many_peers_are_remembered() -> None:
    seen = Refusals()
    for _ in range(AT_ONCE_MAX + 1):
        seen.pause_seconds("first", 0.0)
    for number in range(PEERS_MAX):
        seen.pause_seconds(str(number), 0.0)
    assert seen.pause_seconds("first", 0.0) == 0.0


async def test_wrong_tokens_wait_and_right_ones_do_not() -> None:
    async with serving(tokens=TOKENS) as web:
        for _ in range(AT_ONCE_MAX):
            assert (await web.get("/status", WRONG)).status == 401
        began = time.monotonic()
        assert (await web.get("/status", OPS)).status == 200
        assert time.monotonic() - began < PAUSE_SECONDS / 2
        began = time.monotonic()
        assert (await web.get("/status", WRONG)).status == 401
        assert time.monotonic() - began >= PAUSE_SECONDS


def written(caplog: pytest.LogCaptureFixture) -> list[tuple[str, dict[str, object]]]:
    lines = [record for record in caplog.records if record.name == AUDIT]
    return [(record.message, record.__dict__["fields"]) for record in lines]


async def test_actions_and_refusals_are_written_down_and_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    async with serving(tokens=TOKENS) as web:
        await quiet_requests(web)
        assert written(caplog) == []
        await web.post("/queue/pause", headers=OPS)
        await web.post("/drain?tenant=default", headers={"Authorization": "Bearer token-m"})
        await web.get("/status?token=token-a", WRONG)
    both = {"peer": "127.0.0.1"}
    paused = {"who": "ops", "method": "POST", "path": "/queue/pause", "tenant": "default"}
    drained = {"who": "scraper", "method": "POST", "path": "/drain"}
    looked = {"who": "", "method": "GET", "path": "/status"}
    assert written(caplog) == [
        ("action", {**both, **paused, "status": 200}),
        ("refused", {**both, **drained, "status": 403}),
        ("refused", {**both, **looked, "status": 401}),
    ]


async def quiet_requests(web: Web) -> None:
    for path in ("/livez", "/status", "/metrics", "/jobs"):
        await web.get(path, OPS)
    await web.post("/jobs", {"kind": "noop"}, OPS)
    await web.post("/jobs/9/pause", headers=OPS)  # there is no such job


async def test_the_page_says_who_signs_in_and_which_jobs_were_meant(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    async with serving(tokens=TOKENS) as web:
        browser = Browser(web.address)
        await browser.send("/ui/sign-in", {"token": "wrong", "next": "/"})
        await browser.send("/ui/sign-in", {"token": "token-a", "next": "/"})
        await browser.send("/ui/jobs/act", {"action": "cancel", "id": "7"})
    lines = written(caplog)
    assert [(phrase, fields["who"], fields["path"]) for phrase, fields in lines] == [
        ("refused", "", "/ui/sign-in"),
        ("action", "ops", "/ui/sign-in"),
        ("action", "ops", "/ui/jobs/act"),
    ]
    assert (lines[2][1]["action"], lines[2][1]["jobs"]) == ("cancel", [7])
    assert "token-a" not in str(lines)


async def test_at_a_socket_the_user_is_the_peer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with serving(listen=f"unix:{tmp_path / 'm.sock'}", tokens=TOKENS) as web:
        await web.post("/queue/pause", headers=OPS)
    assert str(written(caplog)[0][1]["peer"]).startswith("uid ")
