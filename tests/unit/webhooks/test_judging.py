"""What comes of a try: told, told later, or never."""

from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from musterd.config.load import load
from musterd.config.outside import Webhooks
from musterd.manager.webhooks.courier import given_back, judge, try_again
from musterd.store.outbox import Delivery, Message
from musterd.workers.runners.http_messages import Answer

SETTINGS = load(None, {}, [], Path("/nonexistent/musterd.toml")).settings.webhooks
MESSAGE = Message(
    id=7,
    message_id="msg_7",
    job_id=1,
    url="https://example.com/",
    type="job.succeeded",
    attempt=1,
    tries=1,
    created_at=datetime(2030, 1, 1, tzinfo=UTC),
    age_seconds=0.0,
    body=None,
    token=UUID(int=7),
)
DAY_SECONDS = 86_400


def judged(status: int, webhooks: Webhooks = SETTINGS, **headers: str) -> Delivery:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return judge(MESSAGE, Answer(status, named, b"", overflowed=False), webhooks)


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_any_2xx_is_a_delivery(status: int) -> None:
    assert judged(status) == Delivery(7, MESSAGE.token, True, status, None, None)


@pytest.mark.parametrize(
    "status", [301, 302, 307, 308, 400, 401, 403, 404, 408, 422, 429, 500, 503]
)
def test_all_else_comes_again(status: int) -> None:
    said = judged(status)
    assert (said.delivered, said.status, said.gone) == (False, status, False)
    assert said.retry_seconds is not None
    assert said.error is not None
    assert said.error.startswith(f"answered with status {status}")
    assert ("redirects are not followed" in said.error) == (300 <= status < 400)


def test_410_is_the_end_for_this_receiver() -> None:
    said = judged(410)
    assert (said.gone, said.retry_seconds) == (True, None)
    assert said.error == "answered with status 410 Gone: it wants no more"


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_receiver_that_says_when_is_obeyed_within_bounds(status: int) -> None:
    assert judged(status, retry_after="120").retry_seconds == 120
    assert judged(status, retry_after="999999").retry_seconds == SETTINGS.retry_max_seconds
    assert judged(status, retry_after="0").retry_seconds == 1
    date = {"date": "Tue, 01 Jan 2030 00:00:00 GMT", "retry_after": "Tue, 01 Jan 2030 00:05:00 GMT"}
    assert judged(status, SETTINGS, **date).retry_seconds == 300
    longer = attrs.evolve(SETTINGS, retry_max_seconds=7200.0)
    assert judged(status, longer, retry_after="7000").retry_seconds == 7000


def test_from_others_no_such_wish_is_heard() -> None:
    seconds = judged(400, retry_after="120").retry_seconds
    assert seconds is not None
    assert seconds <= SETTINGS.retry_base_seconds


@given(st.integers(1, 400), st.integers(1, 10**9))
def test_pauses_grow_stay_within_bounds_and_are_the_same_each_time(tries: int, id_: int) -> None:
    message = attrs.evolve(MESSAGE, tries=tries, id=id_)
    said = try_again(message, "busy", SETTINGS)
    longest = min(SETTINGS.retry_max_seconds, SETTINGS.retry_base_seconds * 2.0 ** (tries - 1))
    assert said.retry_seconds is not None
    assert 0 <= said.retry_seconds <= longest
    assert said == try_again(message, "busy", SETTINGS)


def test_messages_that_failed_together_spread() -> None:
    pauses = {
        try_again(attrs.evolve(MESSAGE, tries=8, id=id_), "busy", SETTINGS).retry_seconds
        for id_ in range(100)
    }
    assert len(pauses) == 100


def test_after_three_days_there_is_no_further_try() -> None:
    late = attrs.evolve(MESSAGE, age_seconds=3 * DAY_SECONDS - 1.0, tries=100)
    said = try_again(late, "busy", SETTINGS, 503)
    assert (said.retry_seconds, said.status, said.error) == (None, 503, "busy")
    early = attrs.evolve(MESSAGE, age_seconds=2 * DAY_SECONDS, tries=100)
    assert try_again(early, "busy", SETTINGS).retry_seconds is not None


def test_what_a_node_gives_back_is_due_at_once() -> None:
    assert given_back(MESSAGE).retry_seconds == 0


def test_what_is_kept_of_an_error_is_short() -> None:
    error = try_again(MESSAGE, "x" * 10_000, SETTINGS).error
    assert error is not None
    assert len(error) == 500
