"""How a key is declared, and checks of single values, in files and in code."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Literal

from attrs import Attribute, field, frozen

from musterd.config.faults import Unfit, either
from musterd.config.listen import listen_address
from musterd.config.secrets import signing_key
from musterd.config.toml_text import plain_number
from musterd.config.webhook_urls import check_webhook_url

POSTGRESQL_SCHEMES = ("postgresql", "postgres")
STORE_SCHEMES = ("sqlite", *POSTGRESQL_SCHEMES)

_SHAPES = {"sqlite": "sqlite:///path", "postgresql": "postgresql://user@host/database"}
_SESSION = re.compile(r"[?&]target_session_attrs=([^&]*)")
_STANDBYS = ("standby", "read-only", "prefer-standby")

# When a running node uses a new value: for what it does from now on, with its next claim, for
# jobs that start from now on, or only after a restart.
When = Literal["at once", "next claim", "next job", "restart"]


def setting(
    applies: When,
    what: str,
    check: "Check | Between | None" = None,
    *,
    mask: Callable[[Any], str] | None = None,
    is_table: bool = False,
    read: Callable[[Any], object] | None = None,
) -> Any:
    """Declares a key of a settings class. `what` is its line in default.toml, the reference and the
    manual page; `mask` hides a secret; `read` reads a value that the key's type alone cannot. The
    name contains the unit; the default is in default.toml.
    """
    metadata = {"applies": applies, "what": what, "mask": mask, "is_table": is_table, "read": read}
    return field(validator=check, metadata=metadata, repr=True if mask is None else mask)


at_once = partial(setting, "at once")
next_claim = partial(setting, "next claim")
next_job = partial(setting, "next job")
at_restart = partial(setting, "restart")


@frozen
class Between:
    """A number between two bounds, inclusive, or `special`."""

    low: float
    high: float
    special: float | None = None

    def __call__(self, _owner: object, _key: "Attribute[Any]", value: float) -> None:
        if value != self.special and not self.low <= value <= self.high:
            raise Unfit(self._said(str))

    @property
    def allowed(self) -> str:
        return self._said("{:,}".format)

    def _said(self, text: Callable[[float], str]) -> str:
        also = "" if self.special is None else f"{text(plain_number(self.special))}, or "
        return f"{also}{text(plain_number(self.low))} to {text(plain_number(self.high))}"


@frozen
class Check:
    """Checks one value and raises Unfit; `allowed` describes valid values in the reference."""

    allowed: str
    run: Callable[[Any], None]

    def __call__(self, _owner: object, _key: "Attribute[Any]", value: Any) -> None:
        self.run(value)


def store_url(schemes: tuple[str, ...]) -> Check:
    """Accepts "" or a URL of one of these schemes."""
    allowed = "URL" if "sqlite" in schemes else "PostgreSQL URL"
    return Check(allowed, lambda url: check_url(url, schemes))


def check_url(url: str, schemes: Sequence[str]) -> None:
    if not url:
        return
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in schemes:
        raise Unfit(either(_SHAPES[known] for known in schemes if known in _SHAPES))
    if scheme == "sqlite" and (not rest.startswith("/") or rest == "/"):
        raise Unfit("sqlite:///relative/path or sqlite:////absolute/path")
    if scheme in POSTGRESQL_SCHEMES:
        _check_session(rest)


def _check_session(rest: str) -> None:
    """Raises Unfit if the URL asks for a server that cannot keep the queue."""
    wanted = _SESSION.search(rest)
    place = rest.partition("?")[0].rpartition("@")[2].partition("/")[0]
    # Of several hosts, the one that can is looked for without being asked.
    unfit = _STANDBYS if "," not in place else (*_STANDBYS, "any")
    if wanted and wanted[1] in unfit:
        hint = "a standby takes no writes, and the queue needs them"
        raise Unfit("target_session_attrs=read-write", hint)


def text_like(pattern: str, allowed: str, wanted: str) -> Check:
    def run(text: str) -> None:
        if not re.fullmatch(pattern, text):
            raise Unfit(wanted)

    return Check(allowed, run)


@partial(Check, "`a-z`, `0-9`, `_`; a letter first")
def schema_name(text: str) -> None:
    """What can be a PostgreSQL schema without quotes, and is nobody else's."""
    if not re.fullmatch("[a-z][a-z0-9_]{0,62}", text):
        raise Unfit("a lower-case letter, then up to 62 of a-z, 0-9 and _")
    if text.startswith("pg_") or text in ("information_schema", "public"):
        raise Unfit(
            "a schema of musterd's own",
            "PostgreSQL's are closed to others, and `public` may be open to everybody",
        )


# What identifies a token in refusals and in the log.
token_name = text_like(
    "[A-Za-z0-9_.-]{1,50}",
    "1 to 50 letters, digits, `_`, `.`, `-`",
    "1 to 50 letters, digits, _, . and -",
)


user_name = text_like(
    r"([A-Za-z_][A-Za-z0-9_.-]{0,31})?",
    "name of a user",
    "the name of a user of this machine, 1 to 32 letters, digits, _, . and -",
)


@partial(Check, "path or credential")
def file_name(name: str) -> None:
    if "://" in name:
        raise Unfit("a path", "write the URL into `url`, or into the file")
    if not name.isprintable():
        raise Unfit("a path without control characters")


program = Check("path or name", file_name.run)


@partial(Check, "path or credential")
def named_file(name: str) -> None:
    if not name:
        raise Unfit("a path")
    file_name.run(name)


@partial(Check, "URL")
def webhook_url(url: str) -> None:
    if url:
        check_webhook_url(url)


@partial(Check, "URL")
def receiver_url(url: str) -> None:
    check_webhook_url(url)
    if "?" in url:
        raise Unfit("a URL without ?", "a receiver is a host, a port and the beginning of a path")


@partial(Check, "`whsec_` and base64, or a list")
def signing_secrets(secrets: Sequence[str]) -> None:
    for secret in secrets:
        signing_key(secret)


@partial(Check, "names of modules")
def module_names(names: Sequence[str]) -> None:
    for name in names:
        if not all(part.isidentifier() for part in name.split(".")):
            raise Unfit("names of modules, as in import", 'shop/tasks.py is "shop.tasks"')


@partial(Check, "the name of an exporter")
def exporter_name(name: str) -> None:
    if name and not name.replace("_", "").isalnum():
        raise Unfit("the name of an exporter", '"otlp" sends to OTEL_EXPORTER_OTLP_ENDPOINT')


@partial(Check, "at least one")
def not_empty(values: Sequence[object]) -> None:
    if not values:
        raise Unfit("at least one")


@partial(Check, '`host:port`, `unix:/path`, `""`')
def listen_text(text: str) -> None:
    listen_address(text)


@partial(Check, "rising numbers above 0")
def rising(bounds: Sequence[float]) -> None:
    """Accepts bounds of a histogram."""
    if not bounds or bounds[0] <= 0 or any(low >= high for low, high in pairwise(bounds)):
        raise Unfit("rising numbers above 0")
