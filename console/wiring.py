"""Wires a node and its web side: the only place where a daemon is put together."""

from __future__ import annotations

import contextlib
import logging
import os
import random
import secrets
import signal
import socket
import time
from collections.abc import Callable, Collection, Generator
from functools import partial
from types import FrameType

import attrs
import trio

from musterd import __version__
from musterd.catalog.kinds import Catalog
from musterd.config.changes import Changes
from musterd.config.credentials import resolve_http_tokens, resolve_signing_keys
from musterd.config.listen import OwnPort
from musterd.config.load import resolve_store_url
from musterd.config.schedules import of_tenant
from musterd.config.settings import Settings
from musterd.config.tenant_names import DEFAULT_TENANT
from musterd.config.tenants import settings_of
from musterd.manager.duties.retention import delete_request
from musterd.manager.metrics.metrics import InstrumentedEngine, Metrics
from musterd.manager.node.daemon import Daemon
from musterd.manager.node.process import boottime
from musterd.manager.node.systemd import ServiceManager
from musterd.manager.reload.reloader import publish_bounds
from musterd.manager.tenancy.deps import DaemonDeps
from musterd.manager.tracing.carrying import Tracing, make_tracing
from musterd.store.input import PayloadLimits
from musterd.store.opening import Stores
from musterd.web.deps import ENVELOPE_BYTES, HttpDeps, Keys, TenantAccess
from musterd.workers.idleness import IdleState


@attrs.frozen
class Node:
    """A wired daemon that does not run yet, and what others need of it."""

    daemon: Daemon
    engine: InstrumentedEngine
    metrics: Metrics
    keys: Keys  # of its web side, once there is one
    own_port: OwnPort
    tracing: Tracing | None


def make_node(
    settings: Settings,
    catalog: Catalog,
    log: logging.Logger,
    metrics: Metrics | None = None,
    reread: Callable[[], tuple[Settings, Catalog]] | None = None,
    service_manager: ServiceManager | None = None,
) -> Node:
    """Opens nothing. Call it inside Trio. Raises ConfigError if a secret cannot be read."""
    resolve_signing_keys(settings, os.environ)  # what cannot be signed is not started
    metrics = Metrics(settings.metrics, __version__) if metrics is None else metrics
    publish_bounds(metrics, settings)
    metrics.config(generation=1, success=True, timestamp=time.time())

    stores = Stores(time.time, random.Random(), boottime)
    metrics.watch_connections(stores.use_now)

    def engine_of(settings: Settings) -> InstrumentedEngine:
        named = "" if settings.tenant == DEFAULT_TENANT else settings.tenant
        engine = stores.engine(resolve_store_url(settings, os.environ), settings)
        return InstrumentedEngine(engine, metrics, log, trio.current_time, named)

    keys, own_port = Keys(), OwnPort()
    engine = engine_of(settings_of(settings, DEFAULT_TENANT))
    name = node_name()
    tracing = make_tracing(settings.tracing.exporter, name)
    plan = DaemonDeps(
        settings=settings,
        catalog=catalog,
        engine=engine,
        node=name,
        rng=random.Random(),
        metrics=metrics,
        log=log,
        engine_of=engine_of,
        scans=lambda: stores.scans,
        reread=reread,
        read_secrets=lambda found: _read_secrets(found, keys),
        forget=stores.forget,
        service_manager=service_manager,
        own_port=lambda: own_port.number,
        tracing=tracing,
    )
    return Node(Daemon(plan), engine, metrics, keys, own_port, tracing)


def _read_secrets(found: Changes, keys: Keys) -> Callable[[], Collection[str]]:
    """What a reload needs from files. Webhook secrets are read for each message."""
    settings = found.settings
    for name in found.moved:  # its engine is made only when the tenant has left its old place
        resolve_store_url(settings_of(settings, name), os.environ)
    tokens = resolve_http_tokens(settings, os.environ) if settings.http.listen else ()
    said = any(one.key.startswith("http.token") for one in found.keys)

    def use() -> Collection[str]:
        changed, keys.tokens = tokens != keys.tokens, tokens
        named = "http.token_file" if settings.http.token_file else "http.tokens"
        return (named,) if changed and not said else ()

    return use


@contextlib.contextmanager
def early_and_late_signals(on_signal: Callable[[], None]) -> Generator[None, None, None]:
    """Makes TERM and INT call `on_signal`, also before and after a daemon listens to them: while it
    runs, it has its own handlers. After the block both are ignored until the process ends, so that
    a second TERM cannot turn a clean end into a death. (Handlers would not do: the interpreter
    removes them before its end.)
    """
    token = trio.lowlevel.current_trio_token()

    def stop(_number: int, _frame: FrameType | None) -> None:
        token.run_sync_soon(on_signal)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)


def node_name() -> str:
    """A unique name: a reused one would keep a dead node's leases in doubt."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"


def http_deps(settings: Settings, node: Node, log: logging.Logger) -> HttpDeps:
    return HttpDeps(
        keys=node.keys,
        node=node.daemon,
        tenant=partial(_door, node.daemon),
        refresh=node.daemon.refresh_metrics,
        body_bytes_max=partial(_body_bytes_max, node.daemon),
        event_readers_max=settings.http.max_event_readers,
        metrics=node.metrics,
        log=log,
    )


def _body_bytes_max(daemon: Daemon) -> int:
    of_all = (one.settings.now.limits.max_payload_bytes for one in daemon.tenancies.values())
    return max(of_all) + ENVELOPE_BYTES


def _door(daemon: Daemon, name: str) -> TenantAccess | None:
    tenancy = daemon.tenancies.get(name)
    if tenancy is None:
        return None
    settings = tenancy.settings
    limits = settings.now.limits
    return TenantAccess(
        name=name,
        engine=tenancy.engine,
        limits=PayloadLimits(limits.max_payload_bytes, limits.max_payload_depth),
        catalog=lambda: daemon.catalog,
        snapshot=tenancy.duties.counts.get,
        remarks=tenancy.remarks,
        workers=tenancy.workers,
        decisions=tenancy.decisions,
        journal=tenancy.read_journal,
        wall_clock=tenancy.wall_clock,
        feed=tenancy.node_events.feed,
        at_rest=lambda: tenancy.idleness.state is IdleState.LISTENING,
        webhooks=settings.now.webhooks.policy,
        schedules=lambda: of_tenant(settings.now.schedules, name),
        delete_request=lambda by: delete_request(
            settings.now.retention, name, lambda: daemon.catalog, by
        ),
    )
