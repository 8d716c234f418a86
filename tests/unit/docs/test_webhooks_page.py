"""The page on webhooks: its example checks what is really sent, and its names are the real ones."""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from musterd.catalog.kinds import KindDefaults
from musterd.catalog.load import load_catalog
from musterd.config.load import load
from musterd.config.secrets import signing_key
from musterd.config.settings import keys
from musterd.config.webhook_urls import STRICT, address_in, reach_of
from musterd.manager.webhooks.courier import ENDS, THROTTLING, signed_headers
from tests.support.pages import page, table

PAGE = page("webhooks.md")
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
Check = Callable[[str, dict[str, str], bytes], bool]


def block(language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def test_the_example_knows_what_is_sent_and_nothing_else() -> None:
    names: dict[str, Check] = {}
    exec(block("python"), names)  # the page's own words
    is_genuine, body, now = names["is_genuine"], b'{"type": "job.succeeded"}', int(time.time())
    other = "whsec_" + "A" * 32
    headers = signed_headers([signing_key(other), signing_key(SECRET)], "msg_1", now, body)
    assert is_genuine(SECRET, headers, body)
    assert is_genuine(other, headers, body)
    assert not is_genuine(SECRET, headers, body + b" ")
    old = signed_headers([signing_key(SECRET)], "msg_1", now - 301, body)
    assert not is_genuine(SECRET, old, body)


def test_the_configuration_of_the_page_loads(tmp_path: Path) -> None:
    settings, kind = block("toml").split("[kinds.")
    file = tmp_path / "musterd.toml"
    file.write_text(settings)
    loaded = load(file, {}, [], Path("/nonexistent")).settings
    assert loaded.webhooks.url == "https://shop.example/hooks/jobs"
    file.write_text(f"[kinds.{kind}")
    found = load_catalog([file], KindDefaults(loaded.retry, webhooks=STRICT))["report"]
    assert found.webhook == "https://reports.example/hooks"


def test_every_setting_that_is_named_is_there() -> None:
    named = set(re.findall(r"`(webhooks\.[a-z_]+)`", PAGE))
    ours = {key for key in keys() if key.startswith("webhooks.")}
    assert named <= ours
    assert ours - named <= {"webhooks.url"}


def test_types_headers_and_statuses_are_the_real_ones() -> None:
    assert set(ENDS) <= set(re.findall(r"`(job\.[a-z]+)`", PAGE))
    headers = [bare.strip("`") for bare, _ in table(PAGE, "header", "what it holds")]
    sent = signed_headers([b"k"], "msg_1", 1, b"")
    assert headers == [name for name in sent if name.startswith("webhook-")]
    answers = [row[0] for row in table(PAGE, "answer", "what follows")]
    assert [int(text) for text in re.findall(r"\d{3}", answers[2])] == sorted(THROTTLING)
    body = json.loads(block("json"))
    assert list(body) == ["type", "timestamp", "data"]


@pytest.mark.parametrize("text", ["10.0.0.0", "172.16.0.0", "192.168.0.0", "fc00::"])
def test_what_the_page_calls_private_is_private(text: str) -> None:
    assert f"`{text}/" in PAGE
    address = address_in(text)
    assert address is not None
    assert reach_of(address) == "private"
