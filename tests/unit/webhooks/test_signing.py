"""Signatures as Standard Webhooks has them."""

import base64
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musterd.config.credentials import SigningKeys, resolve_signing_keys
from musterd.config.faults import ConfigError, Unfit
from musterd.config.load import load
from musterd.config.secrets import signing_key
from musterd.config.settings import Settings
from musterd.manager.webhooks.courier import signed_headers
from tests.support.receiver_checks import is_genuine

ABSENT = Path("/nonexistent/musterd.toml")
PUBLISHED = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_" + base64.b64encode(bytes(range(32))).decode()


def told(*sets: str) -> Settings:
    return load(None, {}, sets, ABSENT).settings


def test_the_published_example_gets_its_published_signature() -> None:
    headers = signed_headers(
        [signing_key(PUBLISHED)],
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330,
        b'{"test": 2432232314}',
    )
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert headers["webhook-id"] == "msg_p5jXN8AQM9LWM0D4loKWxJek"
    assert headers["webhook-timestamp"] == "1614265330"


@given(st.binary(min_size=24, max_size=64), st.binary(max_size=200))
def test_a_receiver_knows_what_was_signed_and_nothing_else(key: bytes, body: bytes) -> None:
    headers = signed_headers([key], "msg_1", 1_800_000_000, body)
    secret = "whsec_" + base64.b64encode(key).decode()
    assert is_genuine(secret, headers, body, now=1_800_000_060)
    assert not is_genuine(secret, headers, body + b"!", now=1_800_000_060)
    assert not is_genuine(secret, {**headers, "webhook-id": "msg_2"}, body)
    assert not is_genuine(secret, headers, body, now=1_800_000_301)


def test_of_two_secrets_each_signs() -> None:
    keys = [signing_key(PUBLISHED), signing_key(OTHER)]
    headers = signed_headers(keys, "msg_1", 1, b"{}")
    assert is_genuine(PUBLISHED, headers, b"{}")
    assert is_genuine(OTHER, headers, b"{}")


def test_without_a_secret_nothing_is_signed() -> None:
    assert "webhook-signature" not in signed_headers([], "msg_1", 1, b"{}")


@pytest.mark.parametrize(
    "secret",
    [
        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsec_",
        "whsec_c2hvcnQ=",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS",
        "whsec_ MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsec_" + base64.b64encode(bytes(65)).decode(),
    ],
)
def test_a_secret_that_cannot_sign_is_refused_and_not_shown(secret: str) -> None:
    with pytest.raises(Unfit) as refused:
        signing_key(secret)
    assert "24 to 64 random bytes" in str(refused.value)
    with pytest.raises(ConfigError) as at_fault:
        told(f'webhooks.secret="{secret}"')
    assert 'webhooks.secret: found "***", wanted' in str(at_fault.value)


def test_one_secret_and_a_list_of_them_are_read() -> None:
    keys = (signing_key(PUBLISHED), signing_key(OTHER))
    assert resolve_signing_keys(told(), {}) == SigningKeys()
    assert resolve_signing_keys(told(f"webhooks.secret={PUBLISHED}"), {}) == SigningKeys(keys[:1])
    both = told(f'webhooks.secret=["{PUBLISHED}", "{OTHER}"]')
    assert resolve_signing_keys(both, {}) == SigningKeys(keys)
    assert PUBLISHED not in repr(both)


def test_a_file_holds_one_a_line(tmp_path: Path) -> None:
    (tmp_path / "secrets").write_text(f"{PUBLISHED}\n\n{OTHER}\n")
    from_file = told(f"webhooks.secret_file={tmp_path / 'secrets'}")
    found = resolve_signing_keys(from_file, {})
    assert found == SigningKeys((signing_key(PUBLISHED), signing_key(OTHER)))
    environ = {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    from_systemd = load(None, environ, ["webhooks.secret_file=secrets"], ABSENT).settings
    assert len(resolve_signing_keys(from_systemd, environ)) == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ": webhooks.secret_file: found nothing, wanted a secret a line"),
        (f"{PUBLISHED}\nhunter2\n", ":2: webhooks.secret_file: found another text, wanted whsec_"),
    ],
)
def test_a_file_of_something_else_is_a_fault(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "secrets"
    file.write_text(text)
    with pytest.raises(ConfigError) as refused:
        resolve_signing_keys(told(f"webhooks.secret_file={file}"), {})
    assert f"{file}{said}" in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_a_file_that_is_missing_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        resolve_signing_keys(told(f"webhooks.secret_file={tmp_path / 'secrets'}"), {})


def test_only_one_of_the_two_is_given() -> None:
    with pytest.raises(ConfigError, match="secret or secret_file, not both"):
        told(f"webhooks.secret={PUBLISHED}", "webhooks.secret_file=/x")


def test_a_receiver_has_keys_of_its_own_and_nobody_else_has_them(tmp_path: Path) -> None:
    (tmp_path / "shop").write_text(PUBLISHED)
    (tmp_path / "hooks").write_text(OTHER)
    tables = (
        f'{{url = "https://shop.example", secret_file = "{tmp_path / "shop"}"}}',
        f'{{url = "https://shop.example/hooks", secret_file = "{tmp_path / "hooks"}"}}',
    )
    others = "whsec_" + base64.b64encode(b"o" * 24).decode()
    wanted = told(f"webhooks.receivers=[{', '.join(tables)}]", f"webhooks.secret={others}")
    found = resolve_signing_keys(wanted, {})
    for url, secret in (
        ("https://shop.example", PUBLISHED),
        ("https://SHOP.example:443/hook?a=1", PUBLISHED),
        ("https://shop.example/hooks", OTHER),
        ("https://shop.example/hooks/a/b", OTHER),
        ("https://shop.example/hooks?x", OTHER),
        ("https://shop.example.evil.example/hooks", others),
        ("https://shop.example:8443/hooks", others),
        ("http://shop.example/hooks", others),
        ("https://evil.example/https://shop.example/hooks", others),
        ("https://shop.example/hooks/../x", others),
        ("https://shop.example/hooks/%2e%2E/x", others),
        ("https://shop.example/hooks%2f..%2fx", others),
    ):
        assert found.of(url) == (signing_key(secret),), url


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ('url = "", secret_file = "x"', "a URL of 1 to"),
        ('url = "https://a.example/?a", secret_file = "x"', "a URL without ?"),
        ('url = "https://a.example"', "found no secret_file, wanted one"),
    ],
)
def test_what_is_no_receiver_is_refused(table: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(complaint)):
        told(f"webhooks.receivers=[{{{table}}}]")


def test_a_receiver_given_twice_is_refused() -> None:
    table = '{url = "https://a.example", secret_file = "x"}'
    with pytest.raises(ConfigError, match="a URL of its own for each receiver"):
        told(f"webhooks.receivers=[{table}, {table}]")
