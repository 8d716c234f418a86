"""No password survives masking, however badly it was written into a URL."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from musterd.config.secrets import MASK, PART_LENGTH, mask_all, mask_headers, mask_parts, mask_url

# Upper case and signs only: nothing else in the URLs below is, so that what survives is seen.
PASSWORDS = st.text("@/#%:?&=ABCXYZ' \\", min_size=1).map(lambda text: f"Q{text}Q")
HOSTS = st.sampled_from(["db", "db:5432", "a:1,b:2", "[::1]:5432", ""])
TAILS = st.sampled_from(["", "/shop", "/shop?sslmode=require", "/shop?a=b&c=d#e"])


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("", ""),
        ("postgresql://u:p@h/d", "postgresql://u:***@h/d"),
        ("postgresql://:p@h/d", "postgresql://:***@h/d"),
        ("postgresql://u@h:5432/d", "postgresql://u@h:5432/d"),
        ("postgresql://h:5432/d?sslmode=require", "postgresql://h:5432/d?sslmode=require"),
        ("postgres://u@az:p@h1:1,h2:2/d", "postgres://u@az:***@h1:1,h2:2/d"),
        ("postgresql://u:p/a@b#c%d?e:f@h/d", "postgresql://u:***@h/d"),
        ("postgresql://h/d?user=u&password=a@b&x=y", "postgresql://h/d?user=u&password=***&x=y"),
        ("postgresql://h/d?PassWord=p", "postgresql://h/d?PassWord=***"),
        ("postgresql://h/d?p%61ssword=p", "postgresql://h/d?p%61ssword=***"),
        ("postgresql://h/d?sslpassword=p&q=r", "postgresql://h/d?sslpassword=***&q=r"),
        ("host=h password=p dbname=d", "host=h password=*** dbname=d"),
        ("password = 'it\\'s p' host=h", "password = *** host=h"),
        (r"password=a\ b host=h", "password=*** host=h"),
        ("password='never closed host=h", "password=***"),
        ("u:p@h/d", "u:***@h/d"),
        ("mysql://u:p@h", "mysql://u:***@h"),
        ("sqlite:////srv/a:b@c/musterd.db", "sqlite:////srv/a:b@c/musterd.db"),
    ],
)
def test_what_is_secret_is_masked_and_nothing_else(url: str, masked: str) -> None:
    assert mask_url(url) == masked
    assert mask_url(masked) == masked


@given(PASSWORDS, HOSTS, TAILS)
@example("Q@/#%:Q", "db", "/shop")
def test_a_password_before_the_host_never_shows(password: str, host: str, tail: str) -> None:
    masked = mask_url(f"postgresql://user:{password}@{host}{tail}")
    assert masked == f"postgresql://user:***@{host}{tail}"


@given(PASSWORDS.filter(lambda text: "&" not in text), HOSTS, st.sampled_from(["", "&a=b"]))
def test_a_password_among_the_parameters_never_shows(password: str, host: str, tail: str) -> None:
    masked = mask_url(f"postgresql://{host}/shop?password={password}{tail}")
    assert "Q" not in masked


@given(st.text("@/#%:?&=ABCXYZ", min_size=1).map(lambda text: f"Q{text}Q"))
def test_a_password_among_keywords_never_shows(password: str) -> None:
    assert "Q" not in mask_url(f"host=db password={password} user=u")
    assert "Q" not in mask_url(f"host=db password='{password} Q' user=u")


def test_a_token_is_masked_whole_and_none_stays_none() -> None:
    assert (mask_all("secret"), mask_all("")) == ("***", "")


def test_a_header_that_may_be_a_secret_is_masked_by_its_name() -> None:
    shown = mask_headers(
        {"Authorization": "Bearer x", "X-Api-Key": "x", "Set-Cookie": "x", "Accept": "text/plain"}
    )
    masked = {"Authorization": MASK, "X-Api-Key": MASK, "Set-Cookie": MASK}
    assert shown == {**masked, "Accept": "text/plain"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Bearer sk-0123456789abcdef", "***"),
        ("bad token sk-0123456789abcdef!", "bad token ***!"),
        ("sk-01234 is no key, nor is 89abcdef", "*** is no key, nor is ***"),
        ("Bearer realm", "Bearer realm"),
        ("sk-0123", "sk-0123"),
    ],
)
def test_parts_of_a_secret_are_masked_too(text: str, shown: str) -> None:
    assert mask_parts(["Bearer sk-0123456789abcdef"], text) == shown


@given(st.text("ABC", min_size=PART_LENGTH), st.text("abc A"), st.text("abc A"))
def test_no_part_of_a_secret_survives(secret: str, before: str, after: str) -> None:
    shown = mask_parts([secret], before + secret + after)
    parts = {secret[at : at + PART_LENGTH] for at in range(len(secret) - PART_LENGTH + 1)}
    assert not [part for part in parts if part in shown]
