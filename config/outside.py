"""Settings of what the outside meets: the HTTP API, and webhooks."""

from typing import Literal

from attrs import frozen

from musterd.config.secrets import mask_all, mask_url, secret_texts
from musterd.config.validators import (
    Between,
    at_once,
    at_restart,
    file_name,
    listen_text,
    named_file,
    not_empty,
    receiver_url,
    signing_secrets,
    token_name,
    webhook_url,
)
from musterd.config.webhook_urls import UrlPolicy

HttpScope = Literal["read", "enqueue", "metrics", "admin"]  # what the holder of a token may do

_DAY = 86_400
_SECRETS_FILE = "a file with one secret a line; a bare name is a systemd credential"
_TOKEN_FILE = "a file that holds the token; a bare name is a systemd credential"


@frozen
class WebhookReceiver:
    """A server that webhooks go to, and the file of the secrets that sign what goes there."""

    url: str = at_once("the receiver, and whatever lies below", receiver_url, mask=mask_url)
    secret_file: str = at_once(_SECRETS_FILE, named_file)


@frozen
class Webhooks:
    """Signed requests that report the end of jobs."""

    url: str = at_once(
        "receives the end of every job; a URL of the kind or the job takes precedence",
        webhook_url,
        mask=mask_url,
    )
    secret: tuple[str, ...] = at_once(
        'signs requests: "whsec_..."; to rotate it, a list: all of them sign',
        signing_secrets,
        mask=mask_all,
        read=secret_texts,
    )
    secret_file: str = at_once(_SECRETS_FILE, file_name)
    receivers: tuple[WebhookReceiver, ...] = at_once(
        "[[webhooks.receivers]] with secrets of their own: url, secret_file"
    )
    timeout_seconds: float = at_once(
        "a receiver that takes longer has not received it", Between(0.1, 600)
    )
    retry_base_seconds: float = at_once(
        "longest pause before the first retry; doubles with each further one", Between(0.01, _DAY)
    )
    retry_max_seconds: float = at_once(
        "longest pause of all, whatever the receiver asks for", Between(0.01, 7 * _DAY)
    )
    give_up_after_hours: float = at_once(
        "after this the delivery has failed for good", Between(0, 10_000)
    )
    concurrency: int = at_once(
        "requests in flight at once, for each tenant on a node", Between(1, 1_000)
    )
    allow_private: bool = at_once("also call loopback and private addresses")
    allow_http: bool = at_once("also call http:// URLs, which anybody on the way can read")
    include_payload: bool = at_once("send the job's payload too")

    @property
    def policy(self) -> UrlPolicy:
        return UrlPolicy(self.allow_http, self.allow_private)


@frozen
class HttpToken:
    """A bearer token of its own: a name for the log, the file that holds it, what it allows."""

    name: str = at_once("whose token it is, for refusals and the log", token_name)
    token_file: str = at_once(_TOKEN_FILE, named_file)
    scopes: tuple[HttpScope, ...] = at_once(
        "what it allows: read, enqueue, metrics, admin", not_empty
    )


@frozen
class Http:
    """The HTTP API and page: where it listens, who may use it."""

    listen: str = at_restart('host:port; "unix:/path" = a socket; "" = off', listen_text)
    token: str = at_once(
        "bearer token that allows everything; required to listen beyond loopback", mask=mask_all
    )
    token_file: str = at_once(_TOKEN_FILE, file_name)
    tokens: tuple[HttpToken, ...] = at_once(
        "more, [[http.tokens]]: name, token_file, scopes (read, enqueue, metrics, admin)"
    )
    max_event_readers: int = at_restart(
        "most readers of GET /events, beside 100 other requests", Between(0, 100_000)
    )
