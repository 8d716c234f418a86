"""Which URLs may be told of the end of a job."""

from pathlib import Path

import pytest

from musterd.catalog.kinds import KindDefaults
from musterd.catalog.load import load_catalog
from musterd.config.faults import ConfigError, Unfit
from musterd.config.load import load
from musterd.config.webhook_urls import ANY_URL, UrlPolicy, check_allowed, check_webhook_url
from musterd.store.errors import InputRefused
from musterd.store.input import new_job
from tests.support.webhook_urls import GOOD, REFUSED

ABSENT = Path("/nonexistent/musterd.toml")


@pytest.mark.parametrize("url", GOOD)
def test_a_good_one_is_taken(url: str) -> None:
    check_webhook_url(url)
    assert new_job("report", None, {"webhook": url}).webhook == url


@pytest.mark.parametrize("port", ["000443", "0000000", "000443111111111111", "00000065536"])
def test_zeros_before_a_port_hide_nothing(port: str) -> None:
    check_webhook_url("https://example.com:00443/")
    with pytest.raises(Unfit, match="a port of 1 to 65535"):
        check_webhook_url(f"https://example.com:{port}/")


@pytest.mark.parametrize(("url", "wanted"), REFUSED)
def test_others_are_refused_without_being_shown(url: object, wanted: str) -> None:
    with pytest.raises(InputRefused) as refused:
        new_job("report", None, {"webhook": url})
    assert str(refused.value).startswith(f"webhook: wanted {wanted}")
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "policy", "said"),
    [
        ("http://example.com/", UrlPolicy(), "allow_http = true"),
        ("https://127.0.0.1/", UrlPolicy(), "allow_private = true allows 127.0.0.1"),
        ("https://localhost:8000/", UrlPolicy(allow_http=True), "allow_private = true"),
        ("https://[fd00::1]/", UrlPolicy(allow_http=True), "allow_private = true"),
        ("https://169.254.169.254/", ANY_URL, "nothing is ever sent to 169.254.169.254"),
        ("https://2852039166/", ANY_URL, "nothing is ever sent to 169.254.169.254"),
    ],
)
def test_what_the_configuration_does_not_allow_is_refused(
    url: str, policy: UrlPolicy, said: str
) -> None:
    with pytest.raises(Unfit, match=said):
        check_allowed(url, policy)


@pytest.mark.parametrize("url", ["https://example.com", "http://127.0.0.1:8000/x"])
def test_what_it_allows_is_not(url: str) -> None:
    check_allowed(url, ANY_URL)


def test_the_configurations_own_is_held_to_it_too() -> None:
    with pytest.raises(ConfigError, match=r"webhooks\.url.*allow_http = true"):
        load(None, {}, ["webhooks.url=http://example.com/"], ABSENT)
    sets = ["webhooks.url=http://127.0.0.1/", "webhooks.allow_http=true"]
    with pytest.raises(ConfigError, match="allow_private = true allows"):
        load(None, {}, sets, ABSENT)
    load(None, {}, [*sets, "webhooks.allow_private=true"], ABSENT)


def test_a_kinds_is_held_to_it_too(tmp_path: Path) -> None:
    retry = load(None, {}, [], ABSENT).settings.retry
    file = tmp_path / "kinds.toml"
    file.write_text('[kinds.a]\nduration_ms = 1\nwebhook = "http://127.0.0.1/x"\n')
    kind = load_catalog([file], KindDefaults(retry, webhooks=ANY_URL))["a"]
    assert kind.webhook == "http://127.0.0.1/x"
    with pytest.raises(ConfigError, match=r"kinds\.toml:3: kinds\.a\.webhook: .*https://"):
        load_catalog([file], KindDefaults(retry, webhooks=UrlPolicy()))
    file.write_text('[kinds.a]\nduration_ms = 1\nwebhook = "example.com"\n')
    with pytest.raises(ConfigError, match=r"kinds\.a\.webhook: .*starts with https://"):
        load_catalog([file], KindDefaults(retry, webhooks=ANY_URL))
