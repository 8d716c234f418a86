"""Secrets among the settings: how they are masked, and how signing secrets are written."""

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, cast

from musterd.config.faults import Unfit

MASK = "***"
PART_LENGTH = 8  # of a secret: what is shorter may be a word of anybody's

Span = tuple[int, int]


_USERINFO = re.compile(r"(?:[a-z][a-z0-9+.-]*://|//)?+[^:]*:(.*)@", re.IGNORECASE | re.DOTALL)
_PARAMETER = re.compile(r"[?&]([^=&?]*)=(.*?)(?=&[^=&]*=|\Z)", re.DOTALL)
_KEYWORD = re.compile(
    r"(?<![?&\w])(?:ssl)?password\s*=\s*('(?:\\.|[^'\\])*(?:'|\Z)|(?:\\.|\S)*)",
    re.IGNORECASE | re.DOTALL,
)
_PERCENT = re.compile("%([0-9a-f]{2})", re.IGNORECASE)
_SECRET_HEADER = re.compile(r"auth|cookie|key|pass|secret|sign|token", re.IGNORECASE)
_SECRET_PARAMETERS = ("password", "sslpassword")


def mask_url(url: str) -> str:
    """`url` with its passwords (`user:password@`, `?password=`, libpq's `password=`) as `***`. As
    people forget to encode passwords, all between the first colon and the last `@` counts as one:
    in doubt, more is masked. A SQLite URL holds no secret.
    """
    if url.startswith("sqlite:"):
        return url
    shown: list[str] = []
    shown_to = 0
    for start, end in sorted(_secret_spans(url)):
        if start >= shown_to:
            shown += [url[shown_to:start], MASK]
        shown_to = max(shown_to, end)
    return "".join([*shown, url[shown_to:]])


def mask_all(secret: str | Sequence[str]) -> str:
    """`***` for one secret or several, "" for none."""
    return MASK if secret else ""


def mask_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers; the value of one whose name suggests a secret is masked."""
    return {
        name: mask_all(value) if _SECRET_HEADER.search(name) else value
        for name, value in headers.items()
    }


def mask_parts(secrets: Iterable[str], text: str) -> str:
    """`text` with each part of a secret masked that is `PART_LENGTH` characters or longer, and a
    shorter secret as a whole: a server may repeat a token without its scheme, or half of it.
    """
    hidden = [False] * len(text)
    for secret in filter(None, secrets):
        size = min(PART_LENGTH, len(secret))
        found = (secret[at : at + size] for at in range(len(secret) - size + 1))
        parts = {part for part in found if part == part.strip()}
        for at in range(len(text) - size + 1):
            if text[at : at + size] in parts:
                hidden[at : at + size] = [True] * size
    runs = groupby(zip(text, hidden, strict=True), key=itemgetter(1))
    return "".join(MASK if is_hidden else "".join(c for c, _ in run) for is_hidden, run in runs)


def words_of(secrets: Iterable[str]) -> list[str]:
    """The secrets and the words in them, longest first, without those too short to be one."""
    words = {word for secret in secrets for word in (secret, *secret.split())}
    return sorted((word for word in words if len(word) >= PART_LENGTH), key=len, reverse=True)


# How what stands under these names is shown.
MASKS: dict[str, Callable[[Any], Any]] = {
    "headers": mask_headers,
    "url": mask_url,
    "webhook": lambda url: url and mask_url(url),
}


def _secret_spans(url: str) -> Iterator[Span]:
    """Where the secrets are; spans may overlap."""
    if userinfo := _USERINFO.match(url):
        yield userinfo.span(1)
    for keyword in _KEYWORD.finditer(url):
        yield keyword.span(1)
    for parameter in _PARAMETER.finditer(url):
        name = _PERCENT.sub(lambda code: chr(int(code[1], 16)), parameter[1])
        if name.strip().lower() in _SECRET_PARAMETERS:
            yield parameter.span(2)


def secret_texts(raw: object) -> tuple[str, ...]:
    """Reads one secret, or several of which any is valid during a rotation."""
    given = cast(list[object], raw) if isinstance(raw, list) else [raw] if raw != "" else []
    if all(isinstance(each, str) for each in given):
        return tuple(cast(list[str], given))
    raise Unfit("a string, or a list of strings")


PREFIX = "whsec_"
KEY_BYTES_MIN, KEY_BYTES_MAX = 24, 64

_HINT = "`echo whsec_$(openssl rand -base64 32)` makes one"


def signing_key(secret: str) -> bytes:
    """The key in a `whsec_…` secret. Raises Unfit; callers must not show the text itself."""
    wanted = f"{PREFIX} and {KEY_BYTES_MIN} to {KEY_BYTES_MAX} random bytes in base64"
    if not secret.startswith(PREFIX):
        raise Unfit(wanted, _HINT)
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise Unfit(wanted, _HINT) from None
    if not KEY_BYTES_MIN <= len(key) <= KEY_BYTES_MAX:
        raise Unfit(wanted, _HINT)
    return key
