"""Who may see the page and who may act: tokens, sessions, and where a form comes from."""

from __future__ import annotations

import pytest
from starlette.datastructures import Headers

from musterd.config.credentials import BearerToken
from musterd.store.jobs import NewJob
from musterd.web.deps import Keys
from musterd.web.ui.sessions import SESSION_SECONDS, SESSIONS_MAX, Sessions, cookie
from tests.support.browsing import Browser
from tests.support.web_scene import Web, serving

ADMIN = BearerToken("admin", "s3cret", ("admin",))
BOARD = BearerToken("board", "löök", ("read",))
SHOP = BearerToken("shop", "sell", ("enqueue",))
TOKENS = (ADMIN, BOARD, SHOP)


async def signed_in(web: Web, token: BearerToken) -> Browser:
    browser = Browser(web.address)
    done = await browser.send("/ui/sign-in", {"token": token.secret, "next": "/ui/jobs?kind=a"})
    assert (done.status, done.headers["location"]) == (303, "/ui/jobs?kind=a")
    return browser


async def test_a_browser_without_a_session_gets_the_page_to_sign_in() -> None:
    async with serving(tokens=TOKENS) as web:
        for path in ("/", "/ui/jobs?kind=a", "/metrics", "/nowhere"):
            page = await Browser(web.address).get(path)
            assert (page.status, 'action="/ui/sign-in"' in page.text) == (401, True), path
            assert f'name="next" value="{path}"' in page.text
            told = await web.get(path)
            assert told.status == 401
            assert told.headers["content-type"] == "application/problem+json"
        odd = await Browser(web.address).get("//evil.example/%3Cb%3E?%3Cb")
        assert "evil" not in odd.text


async def test_a_token_becomes_a_session_and_is_not_in_it() -> None:
    async with serving(tokens=TOKENS) as web:
        browser = Browser(web.address)
        done = await browser.send("/ui/sign-in", {"token": ADMIN.secret, "next": "/"})
        given = done.headers["set-cookie"]
        port = web.address.rpartition(":")[2]
        assert given.startswith(f"musterd-{port}=")
        for part in ("Path=/", "HttpOnly", "SameSite=Strict", "Max-Age=43200"):
            assert part in given
        assert "Secure" not in given
        assert ADMIN.secret not in given
        page = await browser.get("/")
        assert (page.status, "Sign out" in page.text, ADMIN.secret in page.text) == (
            200,
            True,
            False,
        )
        assert (await browser.get("/metrics")).status == 200
        behind = await browser.send(
            "/ui/sign-in", {"token": ADMIN.secret}, **{"X-Forwarded-Proto": "https"}
        )
        assert behind.headers["set-cookie"].endswith("; Secure")


@pytest.mark.parametrize("token", ["", "wrong", "s3cret2", "\U0001f600", "s3cret\nx"])
async def test_what_is_no_token_opens_nothing(token: str) -> None:
    async with serving(tokens=TOKENS) as web:
        browser = Browser(web.address)
        done = await browser.send("/ui/sign-in", {"token": token, "next": "/ui/nodes"})
        assert (done.status, "set-cookie" in done.headers) == (401, False)
        assert "Unknown token" in done.text
        assert 'value="/ui/nodes"' in done.text
        assert (await browser.get("/")).status == 401


async def test_signing_out_ends_the_session_also_for_who_kept_the_cookie() -> None:
    async with serving(tokens=TOKENS) as web:
        browser = await signed_in(web, ADMIN)
        kept = browser.cookie
        done = await browser.send("/ui/sign-out", {})
        assert (done.status, browser.cookie) == (303, "")
        assert (await Browser(web.address, kept).get("/")).status == 401


async def test_scopes_hold_for_sessions_too() -> None:
    async with serving(tokens=TOKENS) as web:
        await web.engine.jobs.enqueue([NewJob("report")])
        board, shop = await signed_in(web, BOARD), await signed_in(web, SHOP)
        page = await board.get("/ui/jobs/1")
        assert (page.status, "Cancel" in page.text, "read-only" in page.text) == (
            200,
            False,
            True,
        )
        for path in ("/ui/jobs/1/cancel", "/ui/queue/pause", "/ui/jobs/act", "/ui/jobs/confirm"):
            refused = await board.send(path, {"action": "cancel", "id": "1"})
            assert (refused.status, "scope admin" in refused.text) == (403, True), path
        assert (await shop.get("/")).status == 403
        job = await web.engine.jobs.get(1)
        assert job is not None
        assert job.state == "queued"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 303),
        ({"Sec-Fetch-Site": "same-origin"}, 303),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": ""}, 403),
        ({"Origin": "null", "Sec-Fetch-Site": "same-origin"}, 403),
    ],
)
async def test_a_form_of_another_site_changes_nothing(headers: dict[str, str], status: int) -> None:
    async with serving(tokens=TOKENS) as web:
        browser = await signed_in(web, ADMIN)
        assert (await browser.send("/ui/queue/pause", {}, **headers)).status == status
    async with serving() as web:
        sent = await Browser(web.address).send("/ui/queue/pause", {}, **headers)
        assert sent.status == status


async def test_where_a_cookie_says_who_it_is_something_must_say_where_from() -> None:
    async with serving(tokens=TOKENS) as web:
        browser = await signed_in(web, ADMIN)
        cookie_only = {"Cookie": browser.cookie}
        assert (await web.get("/queue/pause", cookie_only, method="POST")).status == 403
        from_here = {**cookie_only, "Sec-Fetch-Site": "same-origin"}
        assert (await web.get("/queue/pause", from_here, method="POST")).status == 200
        bearer = {"Authorization": f"Bearer {ADMIN.secret}"}
        assert (await web.get("/queue/resume", bearer, method="POST")).status == 200


async def test_a_header_goes_before_a_cookie() -> None:
    async with serving(tokens=TOKENS) as web:
        browser = await signed_in(web, ADMIN)
        wrong = {"Cookie": browser.cookie, "Authorization": "Bearer wrong"}
        assert (await web.get("/status", wrong)).status == 401


async def test_without_tokens_everybody_is_in() -> None:
    async with serving() as web:
        browser = Browser(web.address)
        page = await browser.get("/")
        assert (page.status, "Sign out" in page.text) == (200, False)
        done = await browser.send("/ui/sign-in", {"token": "x", "next": "/ui/jobs"})
        assert (done.status, "set-cookie" in done.headers) == (303, False)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_session_ends_with_its_time_and_with_its_token() -> None:
    clock = Clock()
    sessions, keys = Sessions(clock), Keys(TOKENS)
    one = sessions.begin(ADMIN)
    assert sessions.holder(one, keys) == ADMIN
    changed = BearerToken("admin", "other", ("admin",))
    assert sessions.holder(one, Keys((changed, BOARD))) is None
    less = BearerToken("admin", ADMIN.secret, ("read",))
    assert sessions.holder(one, Keys((less,))) == less, "what it may is looked up each time"
    assert sessions.holder("guess", keys) is None
    clock.now = SESSION_SECONDS
    assert sessions.holder(one, keys) is None
    sessions.begin(BOARD)
    assert len(sessions) == 1, "what has ended is forgotten"


def test_sessions_are_bounded_for_each_token() -> None:
    sessions, keys = Sessions(Clock()), Keys(TOKENS)
    other = sessions.begin(BOARD)
    first, *_, last = [sessions.begin(ADMIN) for _ in range(SESSIONS_MAX + 1)]
    assert (sessions.holder(first, keys), sessions.holder(last, keys)) == (None, ADMIN)
    assert sessions.holder(other, keys) == BOARD
    assert len(sessions) == SESSIONS_MAX + 1


def test_session_ids_are_long_and_never_the_same() -> None:
    sessions = Sessions(Clock())
    ids = {sessions.begin(ADMIN) for _ in range(50)}
    assert len(ids) == 50
    assert min(map(len, ids)) >= 22
    assert ADMIN.secret not in repr(sessions)


def test_a_cookie_has_a_name_of_its_daemon() -> None:
    assert cookie(Headers({"host": "a:1"}), "x").startswith("musterd-1=x;")
    assert cookie(Headers({"host": "a"}), "").startswith("musterd=; Path=/; Max-Age=0;")
