"""Every setting: one class per table of `default.toml`, one declaration per key, which says when a
running node adopts a new value. Also the timing of a lease, which follows from them.

The defaults are in `default.toml`; its comments, the reference and the manual page are generated
from these declarations (`make reference`). Retention, HTTP and webhooks have modules of their own.
"""

from collections.abc import Callable, Mapping
from math import ceil
from pathlib import Path
from typing import Literal, cast

import attrs
from attrs import AttrsInstance, frozen

from musterd.config.outside import Http, Webhooks
from musterd.config.retention import Retention
from musterd.config.scaling import (
    HEADROOM,
    PAUSE_SECONDS,
    SHARE_PERCENT,
    STEP,
    WAIT_SECONDS,
    Candidate,
    Guard,
    Hours,
    Mode,
    PolicyName,
)
from musterd.config.schedules import Schedule
from musterd.config.secrets import mask_url
from musterd.config.validators import (
    POSTGRESQL_SCHEMES,
    STORE_SCHEMES,
    Between,
    at_once,
    at_restart,
    exporter_name,
    file_name,
    module_names,
    next_claim,
    next_job,
    program,
    rising,
    schema_name,
    store_url,
    user_name,
)

Backoff = Literal["exponential", "linear", "fixed"]
Jitter = Literal["full", "equal", "none"]
OnLeaseLost = Literal["requeue", "fail", "pause"]

_HOUR = 3_600
_DAY = 86_400
_MIB = 1_048_576
_URL_FILE = "a file that holds the URL; a bare name is a systemd credential"
_TIMEOUT = Between(0.1, _HOUR)
_PAUSE = Between(0.01, _HOUR)
_DERIVED = Between(0.01, _HOUR, special=0)
_DERIVED_LONG = Between(0.05, _HOUR, special=0)


@frozen
class Workers:
    """The crew: how many workers, how often they look for work, how long a lease lasts."""

    default_count: int = at_once("workers hired at start, and the floor", Between(0, 10_000))
    max_count: int = at_once("hard limit (protects the machine)", Between(1, 10_000))
    poll_interval_ms: int = at_once(
        "how often an idle worker looks at the queue", Between(1, 60_000)
    )
    lease_timeout_seconds: float = at_restart(
        "a lease not renewed for this long is lost", Between(1, _DAY)
    )
    scale_interval_ms: int = at_once("how often a scaling decision is made", Between(1, 3_600_000))


@frozen
class Store:
    """Where the queue lives, and how long the database may take."""

    url: str = at_restart(
        'sqlite:///path or postgresql://...; "" = SQLite in the state directory',
        store_url(STORE_SCHEMES),
        mask=mask_url,
    )
    url_file: str = at_restart(_URL_FILE, file_name)
    listen_url: str = at_restart(
        "direct connection for LISTEN, for when `url` goes through a pooler",
        store_url(POSTGRESQL_SCHEMES),
        mask=mask_url,
    )
    schema: str = at_restart("PostgreSQL schema that holds the queue", schema_name)
    migrate: bool = at_restart("whether `run` brings the schema up to date")
    pool_size: int = at_restart(
        "connections, not counting those for claims, renewals and hints", Between(1, 100)
    )
    connect_timeout_seconds: float = at_restart(
        "longest time to open a connection", Between(0.1, 600)
    )
    statement_timeout_seconds: float = at_restart(
        "the database cancels a statement that takes longer", _TIMEOUT
    )
    lock_timeout_seconds: float = at_restart("longest time a statement waits for a lock", _PAUSE)
    idle_transaction_timeout_seconds: float = at_restart(
        "the database ends a transaction left open this long", _TIMEOUT
    )
    reconnect_base_seconds: float = at_restart(
        "first pause before reconnecting; doubles each time", _PAUSE
    )
    reconnect_max_seconds: float = at_restart("longest pause before reconnecting", _PAUSE)
    check_hours: float = at_once(
        "SQLite: how often the whole file is checked for damage; 0 = never", Between(0, 8_760)
    )


@frozen
class Scaling:
    """When the crew grows and when it shrinks."""

    policy: PolicyName = at_once("demand: due + running jobs; depth: due; latency: by promise")
    max_wait_seconds: float = at_once(
        "promise of kinds that name none: jobs start within this; 0 = none", WAIT_SECONDS
    )
    headroom: float = at_once(
        "latency: how busy the crew may be with what arrives all the time", HEADROOM
    )
    up_cooldown_seconds: float = at_once("least time between two steps up", PAUSE_SECONDS)
    down_cooldown_seconds: float = at_once("least time between two steps down", PAUSE_SECONDS)
    stabilization_seconds: float = at_once(
        "keep the largest crew wanted in this window; latency: in a fifth of it",
        PAUSE_SECONDS,
    )
    up_step: int = at_once("most workers hired by one decision; 0 = any number", STEP)
    down_step: int = at_once("most workers retired by one decision; 0 = any number", STEP)
    tolerance_percent: float = at_once(
        "a crew above 10 is not changed by less than this share of it", SHARE_PERCENT
    )
    hours: tuple[Hours, ...] = at_once("[[scaling.hours]]: other bounds of the crew, by the clock")
    guard: Guard = at_once(
        "where hiring stops: memory, pressure, claims that take long", is_table=True
    )
    mode: Mode = at_once(
        "active; shadow: decide and tell, but do not act; hold: leave the crew as it is"
    )
    candidate: Candidate = at_once(
        "other keys, default_count, max_count: decided on, never acted on",
        is_table=True,
    )
    journal_days: float = at_once(
        "how long the store keeps the supervisor's decisions; 0 = it keeps none", Between(0, 3650)
    )


@frozen
class Leases:
    """How often leases are renewed and lost ones looked for; 0 = derived from the lease."""

    heartbeat_seconds: float = at_restart(
        "time between renewals; 0 = 2 s, or 1/6 of a short lease", _DERIVED_LONG
    )
    request_timeout_seconds: float = at_restart(
        "longest time for one renewal; 0 = 3/4 of the heartbeat", _DERIVED
    )
    margin_seconds: float = at_restart(
        "a worker stops this long before its lease ends; 0 = 1/10 of it, at most 2 s", _DERIVED
    )
    reap_interval_seconds: float = at_once(
        "time between checks for lost leases; 0 = 1/4 of the lease, at most 1.5 s", _DERIVED_LONG
    )
    reap_batch: int = at_once("most lost leases ended in one transaction", Between(1, 10_000))
    on_lease_lost: OnLeaseLost = at_once(
        "jobs of lost leases: requeue, fail or pause; a kind may have its own rule"
    )


@frozen
class Retry:
    """How failed jobs are retried; a kind may override each key in [kinds.NAME.retry]."""

    max_retries: int = next_job("retries after the first attempt", Between(0, 10_000))
    backoff: Backoff = next_job("how the delay grows: exponential, linear or fixed")
    base_seconds: float = next_job("delay before the first retry", Between(0, 30 * _DAY))
    factor: float = next_job(
        "exponential: each delay is this many times the one before", Between(1, 1_000)
    )
    max_seconds: float = next_job("longest delay", Between(0, 30 * _DAY))
    jitter: Jitter = next_job("full: 0 to all of the delay; equal: half to all; none")


@frozen
class Limits:
    """Bounds on jobs: their size, and how many are claimed or run at a time."""

    max_payload_bytes: int = at_once("largest payload, as JSON text", Between(2, 100 * _MIB))
    max_payload_depth: int = at_once("deepest nesting of a payload", Between(1, 500))
    max_result_bytes: int = next_job("largest result, as JSON text", Between(2, 100 * _MIB))
    max_error_bytes: int = next_job("longer error messages are cut", Between(64, _MIB))
    max_log_bytes: int = next_job(
        "most that is kept of what an attempt logs and prints: the end of it",
        Between(64, 16 * _MIB),
    )
    max_log_lines: int = next_job("the same, in lines", Between(1, 1_000_000))
    log_interval_ms: int = at_once(
        "the log of a job that runs is written at most this often; 0 = at its end alone",
        Between(0, 60_000),
    )
    max_running: int = next_claim(
        "jobs that run at once, on all nodes together; 0 = no bound", Between(0, 1_000_000)
    )
    claim_batch: int = next_claim("most jobs taken by one claim", Between(1, 10_000))
    claim_ahead_ms: int = next_claim(
        "jobs claimed early for busy workers, as worker time; 0 = only for idle ones",
        Between(0, 10_000),
    )


@frozen
class Executor:
    """The child processes that run Python kinds, and how work is stopped."""

    max_jobs_per_child: int = next_job(
        "then a fresh child takes over, which bounds leaks", Between(1, 10_000_000)
    )
    max_child_memory_mb: int = next_job(
        "a child that holds more after a job is replaced", Between(32, _MIB)
    )
    grace_seconds: float = next_job(
        "time from TERM to KILL; a kind may set its own", Between(0, _HOUR)
    )
    start_timeout_seconds: float = next_job(
        "longest time for a child to start, or to import a module", _TIMEOUT
    )
    user: str = next_job(
        'user whom child processes and programs run as; "" = the daemon\'s own', user_name
    )


@frozen
class Shutdown:
    """What happens to running jobs when the daemon stops."""

    grace_period_seconds: float = at_once(
        "time for running jobs to finish before they are dismissed", Between(0, _DAY)
    )
    interrupted: Literal["requeue", "pause"] = at_once(
        "a dismissed job is queued again (requeue) or paused (pause)"
    )
    dismiss_seconds: float = at_once("time to give dismissed jobs back", _TIMEOUT)
    abandon_seconds: float = at_once(
        "work that does not stop is waited for this long, then abandoned", Between(0, _HOUR)
    )
    interrupted_exit: int = at_once(
        "exit status after a shutdown that interrupted or abandoned jobs", Between(0, 255)
    )


@frozen
class Duties:
    """Background work that one node does for all of a store."""

    mode: Literal["leader", "everyone"] = at_restart(
        "leader: one node does each duty; everyone: all nodes do (for development)"
    )
    lease_seconds: float = at_once(
        "after this long without a sign of life, another node takes the duty", Between(1, _HOUR)
    )
    heartbeat_seconds: float = at_once("time between renewals", _TIMEOUT)
    run_limit_seconds: float = at_once(
        "a run that takes longer is given up, and the duty with it", Between(1, 24 * _HOUR)
    )
    rotate_seconds: float = at_once(
        "after this long the next node takes the duty; 0 = never", Between(0, 365 * 24 * _HOUR)
    )


@frozen
class Events:
    """The log of events."""

    keep_hours: float = at_once("events older than this are deleted", Between(0.01, 100_000))
    progress_interval_ms: int = at_once(
        "progress of one job is written and told at most this often", Between(10, 60_000)
    )


@frozen
class Metrics:
    """Bounds on what is measured."""

    wait_buckets_seconds: tuple[float, ...] = at_restart(
        "upper bounds of the histogram of how long jobs wait", rising
    )
    run_buckets_seconds: tuple[float, ...] = at_restart(
        "upper bounds of the histogram of how long attempts run", rising
    )
    kinds_max: int = at_restart(
        'kinds beyond this many share the label "other"', Between(1, 10_000)
    )
    history_hours: float = at_once(
        "how long the store keeps what the page's charts draw", Between(1, 2_160)
    )


@frozen
class Log:
    """What is logged, and in which format."""

    level: Literal["debug", "info", "warning", "error"] = at_once(
        "the least severe level that is logged"
    )
    format: Literal["auto", "text", "logfmt", "json"] = at_restart(
        "auto: text on a terminal, otherwise logfmt"
    )


@frozen
class Tracing:
    """OpenTelemetry: spans for what jobs go through. Needs `musterd[otel]`."""

    exporter: str = at_restart(
        'exporter of spans, as "otlp"; "none": pass traces on, without spans; "" = off',
        exporter_name,
    )


@frozen
class CatalogSettings:
    """Where your catalogs and modules are, and what runs the modules."""

    paths: tuple[Path, ...] = next_job(
        "your catalogs: files, or folders of *.toml; relative to this file"
    )
    modules: tuple[str, ...] = next_job(
        "your modules with functions of @task, as they are imported", module_names
    )
    shipped: bool = next_job("whether the shipped demonstration kinds are there too")
    python_path: tuple[Path, ...] = next_job(
        "folders of your modules; a catalog file's own folder comes first"
    )
    python: str = next_job(
        'interpreter of "process" kinds: a path or a name on PATH; "" = our own', program
    )


@frozen
class TenantPlace:
    """Where a tenant keeps its jobs; without a URL of its own, in the node's database."""

    url: str = at_once(
        'a database of its own; "" = the node\'s own database, or a file beside its file',
        store_url(STORE_SCHEMES),
        mask=mask_url,
    )
    url_file: str = at_once(_URL_FILE, file_name)
    schema: str = at_once("PostgreSQL schema that holds its queue", schema_name)


@frozen
class TenantWorkers:
    """The bounds of a tenant's crew."""

    default_count: int = at_once("workers that always belong to this tenant", Between(0, 10_000))
    max_count: int = at_once("hard limit; never more than workers.max_count", Between(1, 10_000))


@frozen
class Tenant:
    """One tenant; what it leaves open comes from the node's own tables."""

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
    tracing: Tracing
    catalog: CatalogSettings
    tenants: Mapping[str, Tenant]  # by name, the default one first
    schedules: Mapping[str, Schedule]
    tenant: str


def sections() -> Mapping[str, type[AttrsInstance]]:
    """The class of each table, by name, in the order of `default.toml`."""
    return {
        key.name: cast(type[AttrsInstance], key.type)
        for key in attrs.fields(Settings)
        if attrs.has(cast(type, key.type))
    }


def keys() -> Mapping[str, "attrs.Attribute[object]"]:
    """Each key's attribute, by its dotted name."""
    return {
        f"{section}.{name}": key
        for section, shape in sections().items()
        for name, key in attrs.fields_dict(shape).items()
    }


class LiveSettings:
    """One for the node and one for each tenant. A reload replaces them whole; code reads `now`
    where it acts and keeps no copy. Keys that need a restart keep their initial values: `changes`
    ensures that.
    """

    def __init__(self, settings: Settings) -> None:
        self.now = settings  # for reading, for every job: a property would cost a call
        self._subscribers: list[Callable[[], None]] = []

    def subscribe(self, on_change: Callable[[], None]) -> None:
        """Calls `on_change`, which must not fail, after each replacement."""
        self._subscribers.append(on_change)

    def replace(self, settings: Settings) -> None:
        """Synchronous: on return, the new settings are in effect everywhere."""
        self.now = settings
        for on_change in self._subscribers:
            on_change()


_HEARTBEAT_SECONDS_MAX = 2.0
_MARGIN_SECONDS_MAX = 2.0
_REAP_INTERVAL_SECONDS_MAX = 1.5


@frozen
class LeasePlan:
    """The timing of a lease, in seconds. None is zero."""

    lease_seconds: float
    heartbeat_seconds: float
    request_timeout_seconds: float
    margin_seconds: float
    reap_interval_seconds: float

    @property
    def lease_seconds_min(self) -> float:
        """The shortest lease that can be renewed in time."""
        return self.heartbeat_seconds + self.request_timeout_seconds + self.margin_seconds

    @property
    def renewals(self) -> int:
        """How many renewals are sent while a lease is trusted that none of them extends."""
        return ceil((self.lease_seconds - self.margin_seconds) / self.heartbeat_seconds) - 1


def lease_plan(settings: Settings) -> LeasePlan:
    """Derives the values that are 0 in `[leases]` from the length of the lease."""
    lease_seconds = settings.workers.lease_timeout_seconds
    chosen = settings.leases
    heartbeat_seconds = chosen.heartbeat_seconds or min(_HEARTBEAT_SECONDS_MAX, lease_seconds / 6)
    return LeasePlan(
        lease_seconds=lease_seconds,
        heartbeat_seconds=heartbeat_seconds,
        request_timeout_seconds=chosen.request_timeout_seconds or heartbeat_seconds * 3 / 4,
        margin_seconds=chosen.margin_seconds or min(_MARGIN_SECONDS_MAX, lease_seconds / 10),
        reap_interval_seconds=(
            chosen.reap_interval_seconds or min(_REAP_INTERVAL_SECONDS_MAX, lease_seconds / 4)
        ),
    )
