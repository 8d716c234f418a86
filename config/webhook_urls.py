"""What a URL must be like for the end of a job to be told there. Pure. The SQL function
check_webhook of PostgreSQL says the same in the same words.
"""

import re

from attrs import frozen

from musterd.config.addresses import address_in, reach_of
from musterd.config.faults import Unfit
from musterd.config.job_options import URL_LENGTH_MAX

_PORT_MAX = 65_535
_PORT_DIGITS_MAX = 5  # with zeros before it too: a database's own check takes no more
_SCHEME = re.compile(r"https?://")
_AUTHORITY = re.compile(r"https?://([^/?#]*)")
_HOST_AND_PORT = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]*))?")


@frozen
class UrlPolicy:
    """What the configuration allows beyond https:// to public addresses."""

    allow_http: bool = False
    allow_private: bool = False


STRICT = UrlPolicy()
ANY_URL = UrlPolicy(allow_http=True, allow_private=True)


def check_webhook_url(url: object) -> None:
    """Raises Unfit for what cannot be a webhook's URL, wherever it is asked for. The URL may hold a
    secret: it is not shown.
    """
    if not isinstance(url, str) or not 1 <= len(url) <= URL_LENGTH_MAX:
        raise Unfit(f"a URL of 1 to {URL_LENGTH_MAX} characters")
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        raise Unfit("a URL of printable ASCII", "write other characters as %XX")
    if not _SCHEME.match(url):
        raise Unfit("a URL that starts with https://")
    host, port = _host_and_port(url)
    if not host:
        raise Unfit("a URL with a host")
    if port is not None and not (
        1 <= len(port) <= _PORT_DIGITS_MAX and 1 <= int(port) <= _PORT_MAX
    ):
        raise Unfit(f"a port of 1 to {_PORT_MAX}")
    if "#" in url:
        raise Unfit("a URL without #", "what follows # is never sent")


def check_allowed(url: str, policy: UrlPolicy) -> None:
    """Raises Unfit for a webhook's URL that this configuration does not allow."""
    if url.startswith("http://") and not policy.allow_http:
        raise Unfit(
            "a URL that starts with https://", "[webhooks] allow_http = true allows http://"
        )
    address = address_in(_host_and_port(url)[0])
    if address is None:
        return
    reach = reach_of(address)
    if reach == "never":
        raise Unfit("the address of a public host", f"nothing is ever sent to {address}")
    if reach == "private" and not policy.allow_private:
        hint = f"[webhooks] allow_private = true allows {address}"
        raise Unfit("the address of a public host", hint)


def _host_and_port(url: str) -> tuple[str, str | None]:
    """The host is empty where there is none, or none that can be called."""
    found = _AUTHORITY.match(url)
    authority = found[1] if found else ""
    if "@" in authority:
        raise Unfit("a URL without user and password", "what is sent is signed")
    parts = _HOST_AND_PORT.fullmatch(authority)
    return (parts[1], parts[2]) if parts else ("", None)
