"""Tokens: who may do what, and whom a browser's page may not borrow."""

from __future__ import annotations

import pytest

from musterd.config.credentials import BearerToken
from musterd.web.api.operation import Operation
from musterd.web.api.routes import OPERATIONS
from musterd.web.deps import NOBODY, Keys
from musterd.web.server import refusals
from tests.support.web_scene import Web, serving

TOKENS = (
    BearerToken("ops", "token-a", ("admin",)),
    BearerToken("shop", "token-e", ("enqueue",)),
    BearerToken("board", "token-r", ("read",)),
    BearerToken("both", "token-b", ("enqueue", "read")),
    BearerToken("scraper", "token-m", ("metrics",)),
)
MAY = {
    "token-a": {"read", "enqueue", "metrics", "admin"},
    "token-e": {"enqueue"},
    "token-r": {"read", "metrics"},
    "token-b": {"read", "enqueue", "metrics"},
    "token-m": {"metrics"},
}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def asked(web: Web, operation: Operation, token: str) -> int:
    path = operation.path.replace("{id}", "7").replace("{target}", "t")
    method = "HEAD" if operation.path == "/events" else operation.method  # a stream has no end
    answer = await web.get(path, bearer(token), method=method)
    if answer.status >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
    return answer.status


@pytest.mark.parametrize("token", MAY)
async def test_a_token_opens_what_its_scopes_say_and_nothing_else(token: str) -> None:
    async with serving(tokens=TOKENS) as web:
        for operation in OPERATIONS:
            status = await asked(web, operation, token)
            allowed = operation.scope is None or operation.scope in MAY[token]
            assert (status != 403) == allowed, (operation.name, status)
            assert status != 401


async def test_what_is_refused_names_token_and_scope() -> None:
    async with serving(tokens=TOKENS) as web:
        answer = await web.post("/drain", headers=bearer("token-e"))
        assert web.node.drained == 0
    assert answer.json["detail"] == "the token shop lacks the scope admin"


async def test_no_token_and_a_wrong_one_are_401_everywhere_but_for_probes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(refusals, "PAUSE_SECONDS", 0.0)
    async with serving(tokens=TOKENS) as web:
        for operation in OPERATIONS:
            for token in ("", "token", "token-a2", "TOKEN-A"):
                status = await asked(web, operation, token)
                assert (status == 401) == (operation.scope is not None), operation.name
        assert (await web.get("/livez/")).status == 200
        assert (await web.get("//livez")).status == 401


def test_without_tokens_everybody_may_do_everything() -> None:
    assert Keys().holder("") is NOBODY
    assert Keys(TOKENS).holder("") is None


@pytest.mark.parametrize(
    "header", ["bearer token-r", "BEARER token-r", "Bearer  token-r ", "Bearer token-r"]
)
def test_the_scheme_is_read_as_the_standard_says(header: str) -> None:
    assert Keys(TOKENS).holder(header) is TOKENS[2]


@pytest.mark.parametrize("header", ["token-r", "Basic token-r", "Bearer token-r token-r", "Bearer"])
def test_anything_else_is_nobody(header: str) -> None:
    assert Keys(TOKENS).holder(header) is None


def test_a_token_beyond_ascii_is_compared_byte_by_byte() -> None:
    token = BearerToken("x", "schlüssel", ("read",))
    sent = "Bearer schlüssel".encode().decode("latin-1")  # as the server gives it
    assert Keys([token]).holder(sent) is token


def test_a_token_is_never_shown() -> None:
    assert "token-a" not in repr(Keys(TOKENS))


@pytest.mark.parametrize(
    ("origin", "status"),
    [("http://evil.example", 403), ("null", 403), ("http://localhost:1", 403), (None, 200)],
)
async def test_a_page_of_another_site_changes_nothing(origin: str | None, status: int) -> None:
    async with serving() as web:
        headers = {} if origin is None else {"Origin": origin}
        answer = await web.post("/queue/pause", headers=headers)
        paused = (await web.engine.queue.counts()).paused_at is not None
        assert (await web.get("/status", headers)).status == 200
    assert (answer.status, paused) == (status, status == 200)


async def test_its_own_page_may() -> None:
    async with serving() as web:
        own = {"Origin": web.address, "Host": web.address.removeprefix("http://")}
        assert (await web.post("/queue/pause", headers=own)).status == 200
