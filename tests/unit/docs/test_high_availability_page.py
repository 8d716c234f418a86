"""The page on standbys and poolers says what the code does, and what the tests were run with."""

import re
from pathlib import Path

from musterd.config.load import load
from musterd.config.validators import STORE_SCHEMES, check_url
from musterd.store.postgres.addresses import connection_params
from musterd.store.postgres.connection import CANCEL_SECONDS, SOON_SECONDS
from musterd.store.postgres.setup import HEAD_START_SECONDS
from musterd.store.postgres.time_limit import REPLY_SECONDS
from tests.support.pages import page
from tests.support.pgbouncer import SHIPPED

ABSENT = Path("/nonexistent/musterd.toml")
PAGE = page("high-availability.md")
TEXT = " ".join(PAGE.split())
# Of the place where it runs, not of how it has to be set.
OWN_PLACE = ("listen_", "unix_socket_dir", "auth_file")


def test_the_url_is_one() -> None:
    (url,) = re.findall(r'^url = "(.*)"$', PAGE, re.MULTILINE)
    check_url(url, STORE_SCHEMES)
    assert connection_params(url)["host"] == "db1.internal,db2.internal"


def test_the_pooler_is_set_as_shipped() -> None:
    told = ini_of(PAGE.partition("```ini")[2].partition("```")[0])
    tried = ini_of(SHIPPED.read_text("utf-8"))
    assert told == [line for line in tried if not line.startswith(OWN_PLACE)]


def ini_of(text: str) -> list[str]:
    lines = text.partition("[pgbouncer]")[2].splitlines()
    return [line for line in lines if line]


def test_the_times_are_those_of_the_code() -> None:
    assert HEAD_START_SECONDS == 0.5
    assert "has half a second before the next is asked" in TEXT
    assert SOON_SECONDS == 1
    assert "asked again after one second at most" in TEXT
    given_up = load(None, {}, (), ABSENT).settings.store.statement_timeout_seconds
    assert (REPLY_SECONDS, CANCEL_SECONDS) == (2, 2)
    assert f"shipped {given_up:g} seconds that makes {given_up + 4:g}" in TEXT
    assert f"tcp_user_timeout={connection_params('postgresql://h/d')['tcp_user_timeout']}" in PAGE
