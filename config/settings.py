"""The settings: frozen values, one class a table of `default.toml`, where every default stands."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, cast

import attrs
from attrs import AttrsInstance, field, frozen

from musterd.config.retention import Retention
from musterd.config.schedules import Schedule
from musterd.config.secrets import SecretTexts, mask_all, mask_url
from musterd.config.validators import (
    POSTGRESQL_SCHEMES,
    STORE_SCHEMES,
    Between,
    UrlOf,
    file_name,
    listen_text,
    named_file,
    not_empty,
    rising,
    schema_name,
    signing_secrets,
    token_name,
    webhook_url,
)
from musterd.config.webhook_urls import UrlPolicy

Backoff = Literal["exponential", "linear", "fixed"]
Jitter = Literal["full", "equal", "none"]
HttpScope = Literal["read", "enqueue", "admin"]  # what the holder of a token may do

_HOUR = 3_600
_DAY = 86_400
_MIB = 1_048_576
_SECRET_URL = {"mask": mask_url}
_SECRET = {"mask": mask_all}


@frozen
class Workers:
    """The crew: how many, how often it looks, how long a lease lasts."""

    default_count: int = field(validator=Between(0, 10_000))
    max_count: int = field(validator=Between(1, 10_000))
    poll_interval_ms: int = field(validator=Between(1, 60_000))
    lease_timeout_seconds: float = field(validator=Between(1, _DAY))
    scale_interval_ms: int = field(validator=Between(1, 3_600_000))


@frozen
class Store:
    """Where the queue lives and how long the database may take."""

    url: str = field(validator=UrlOf(STORE_SCHEMES), metadata=_SECRET_URL, repr=mask_url)
    url_file: str = field(validator=file_name)
    listen_url: str = field(
        validator=UrlOf(POSTGRESQL_SCHEMES), metadata=_SECRET_URL, repr=mask_url
    )
    schema: str = field(validator=schema_name)
    migrate: bool
    pool_size: int = field(validator=Between(1, 100))
    connect_timeout_seconds: float = field(validator=Between(0.1, 600))
    statement_timeout_seconds: float = field(validator=Between(0.1, _HOUR))
    lock_timeout_seconds: float = field(validator=Between(0.01, _HOUR))
    idle_transaction_timeout_seconds: float = field(validator=Between(0.1, _HOUR))
    reconnect_base_seconds: float = field(validator=Between(0.01, _HOUR))
    reconnect_max_seconds: float = field(validator=Between(0.01, _HOUR))


@frozen
class Scaling:
    """When the crew grows and when it shrinks."""

    policy: Literal["demand", "depth"]
    up_cooldown_seconds: float = field(validator=Between(0, _DAY))
    down_cooldown_seconds: float = field(validator=Between(0, _DAY))
    stabilization_seconds: float = field(validator=Between(0, _DAY))


@frozen
class Leases:
    """The pace of renewals and of the search for lost leases; 0 = derived (see `lease_plan`)."""

    heartbeat_seconds: float = field(validator=Between(0.05, _HOUR, special=0))
    request_timeout_seconds: float = field(validator=Between(0.01, _HOUR, special=0))
    margin_seconds: float = field(validator=Between(0.01, _HOUR, special=0))
    reap_interval_seconds: float = field(validator=Between(0.05, _HOUR, special=0))


@frozen
class Retry:
    """How often and after what delay a failed job is tried again."""

    max_retries: int = field(validator=Between(0, 10_000))
    backoff: Backoff
    base_seconds: float = field(validator=Between(0, 30 * _DAY))
    factor: float = field(validator=Between(1, 1_000))
    max_seconds: float = field(validator=Between(0, 30 * _DAY))
    jitter: Jitter


@frozen
class Limits:
    """How large things may be."""

    max_payload_bytes: int = field(validator=Between(2, 100 * _MIB))
    max_payload_depth: int = field(validator=Between(1, 500))
    max_result_bytes: int = field(validator=Between(2, 100 * _MIB))
    max_error_bytes: int = field(validator=Between(64, _MIB))
    max_log_bytes: int = field(validator=Between(64, 16 * _MIB))
    max_running: int = field(validator=Between(0, 1_000_000))
    claim_batch: int = field(validator=Between(1, 10_000))
    claim_ahead_ms: int = field(validator=Between(0, 10_000))


@frozen
class Executor:
    """The child processes that run Python kinds, and how any work is told to stop."""

    max_jobs_per_child: int = field(validator=Between(1, 10_000_000))
    max_child_memory_mb: int = field(validator=Between(32, _MIB))
    grace_seconds: float = field(validator=Between(0, _HOUR))
    start_timeout_seconds: float = field(validator=Between(0.1, _HOUR))


@frozen
class Shutdown:
    """What becomes of running jobs when the daemon is told to stop."""

    grace_period_seconds: float = field(validator=Between(0, _DAY))
    interrupted: Literal["requeue", "pause"]
    dismiss_seconds: float = field(validator=Between(0.1, _HOUR))
    abandon_seconds: float = field(validator=Between(0, _HOUR))


@frozen
class Duties:
    """Who does the background work of all, and for how long a node that died keeps it."""

    mode: Literal["leader", "everyone"]
    lease_seconds: float = field(validator=Between(1, _HOUR))
    heartbeat_seconds: float = field(validator=Between(0.1, _HOUR))


@frozen
class Events:
    """How long it is remembered what happened."""

    keep_hours: float = field(validator=Between(0.01, 100_000))


@frozen
class Webhooks:
    """Who is told of the end of jobs, how patiently, and where nothing is ever sent."""

    url: str = field(validator=webhook_url, metadata=_SECRET_URL, repr=mask_url)
    secret: SecretTexts = field(validator=signing_secrets, metadata=_SECRET, repr=mask_all)
    secret_file: str = field(validator=file_name)
    timeout_seconds: float = field(validator=Between(0.1, 600))
    retry_base_seconds: float = field(validator=Between(0.01, _DAY))
    retry_max_seconds: float = field(validator=Between(0.01, 7 * _DAY))
    give_up_after_hours: float = field(validator=Between(0, 10_000))
    concurrency: int = field(validator=Between(1, 1_000))
    allow_private: bool
    allow_http: bool
    include_payload: bool

    @property
    def policy(self) -> UrlPolicy:
        return UrlPolicy(self.allow_http, self.allow_private)


@frozen
class HttpToken:
    """A bearer token of its own: whose it is, where it stands, what it allows."""

    name: str = field(validator=token_name)
    token_file: str = field(validator=named_file)
    scopes: tuple[HttpScope, ...] = field(validator=not_empty)


@frozen
class Http:
    """Where the HTTP side listens (see `listen_address`) and who may use it."""

    listen: str = field(validator=listen_text)
    token: str = field(metadata=_SECRET, repr=mask_all)
    token_file: str = field(validator=file_name)
    tokens: tuple[HttpToken, ...]
    max_event_readers: int = field(validator=Between(0, 100_000))


@frozen
class Metrics:
    """The bounds of what is measured."""

    wait_buckets_seconds: tuple[float, ...] = field(validator=rising)
    run_buckets_seconds: tuple[float, ...] = field(validator=rising)
    kinds_max: int = field(validator=Between(1, 10_000))


@frozen
class Log:
    """What is logged, and how it looks."""

    level: Literal["debug", "info", "warning", "error"]
    format: Literal["auto", "text", "logfmt", "json"]


@frozen
class CatalogSettings:
    """Where the user's catalogs and modules are, all absolute; `python` is what runs the modules.

    `python` is a path, a name to be looked up on PATH, or empty: the interpreter of the daemon.
    """

    paths: tuple[Path, ...]
    python_path: tuple[Path, ...]
    python: str = field(validator=file_name)


@frozen
class TenantPlace:
    """Where a tenant keeps its jobs. No URL of its own: beside those of `[store]`."""

    url: str = field(validator=UrlOf(STORE_SCHEMES), metadata=_SECRET_URL, repr=mask_url)
    url_file: str = field(validator=file_name)
    schema: str = field(validator=schema_name)


@frozen
class TenantWorkers:
    """The bounds of a tenant's crew."""

    default_count: int = field(validator=Between(0, 10_000))
    max_count: int = field(validator=Between(1, 10_000))


@frozen
class Tenant:
    """One tenant, with what it leaves open filled in from the node's own tables."""

    name: str
    place: TenantPlace
    workers: TenantWorkers
    limits: Limits


@frozen
class Settings:
    """All settings of a node; or, from `tenants.settings_of`, those of one `tenant` on it."""

    workers: Workers
    store: Store
    scaling: Scaling
    leases: Leases
    retry: Retry
    limits: Limits
    executor: Executor
    shutdown: Shutdown
    duties: Duties
    retention: Retention
    events: Events
    webhooks: Webhooks
    http: Http
    metrics: Metrics
    log: Log
    catalog: CatalogSettings
    tenants: Mapping[str, Tenant]  # by name, the default one first
    schedules: Mapping[str, Schedule]
    tenant: str


def sections() -> Mapping[str, type[AttrsInstance]]:
    """Gives the class of each table, by the table's name, in the order of `default.toml`."""
    return {
        key.name: cast(type[AttrsInstance], key.type)
        for key in attrs.fields(Settings)
        if attrs.has(cast(type, key.type))
    }


def keys() -> Mapping[str, "attrs.Attribute[object]"]:
    """Gives each key's attribute, by its dotted name."""
    return {
        f"{section}.{name}": key
        for section, shape in sections().items()
        for name, key in attrs.fields_dict(shape).items()
    }
