"""The checks: of configuration, files and machine, and of the stores, each opened once."""

from __future__ import annotations

import os
import re
import resource
import shutil
import stat
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import TypeVar, cast
from zoneinfo import available_timezones

import attrs
import trio

from musterd.config.credentials import find_credential, resolve_http_tokens, resolve_signing_keys
from musterd.config.load import resolve_store_url
from musterd.config.settings import Settings, keys
from musterd.config.tenants import settings_of
from musterd.console.doctor import judges, postgres
from musterd.console.doctor.judges import Check, Finding, Setup, fail, ok, warn
from musterd.console.output import WHICH_STORE
from musterd.manager.node.machine import read_machine
from musterd.store.embedded import sqlite_path
from musterd.store.engine import Engine, SchemaState
from musterd.store.errors import StoreMisconfigured, StoreUnavailable
from musterd.store.health import Connections, Server
from musterd.store.leases import EXCHANGES_AT_ONCE
from musterd.store.nodes import NodeRecord, warnings
from musterd.store.opening import Stores
from musterd.store.words import cut, duration_text, one_line, plural

T = TypeVar("T")
GROUP = "store"
FILE_SECONDS = 5.0  # for the check of an embedded file
PLACES_SECONDS = 5.0  # for that of where all jobs stand

Look = Callable[[], Awaitable[Iterable[Finding]]]


@attrs.define(eq=False)
class Store:
    """`leads`: its checks cover the database for the other tenants in it, `sharing` in all."""

    tenant: str
    settings: Settings
    url: str = attrs.field(repr=False)
    engine: Engine
    leads: bool = True
    sharing: int = 1
    is_open: bool = False
    has_schema: bool = False


def stores_of(setup: Setup) -> list[Store]:
    """Opens nothing. Raises ConfigError for an unreadable URL."""
    rng = Random(0)  # for pauses after failures, which nothing here waits for
    made = Stores(setup.wall_clock, rng)
    all_urls = Counter(
        resolve_store_url(settings_of(setup.settings, name), setup.environ)
        for name in setup.settings.tenants
    )
    found: list[Store] = []
    for name in setup.tenants:
        own = settings_of(setup.settings, name)
        url = resolve_store_url(own, setup.environ)
        leads = url not in {one.url for one in found}
        found.append(Store(name, own, url, made.engine(url, own), leads, all_urls[url]))
    return found


def open_checks(stores: Sequence[Store], setup: Setup) -> list[Check]:
    found: list[Check] = []
    for one in stores:
        if one.is_open:
            checks = _file_checks if one.engine.name == "sqlite" else _server_checks
            looks = checks(one, setup).items()
            found += [Check(name, GROUP, look, one.tenant) for name, look in looks]
    return found


async def _check_open(one: Store) -> list[Finding]:
    if one.url.startswith("sqlite:") and not sqlite_path(one.url).exists():
        await trio.lowlevel.checkpoint()
        return [ok("store", f"{one.engine.where}: there is no file yet; the daemon creates it")]
    try:
        await one.engine.open()
        state = await one.engine.schema()
    except StoreUnavailable as error:
        found = fail("store", str(error), "a store that answers", f"is it up? {WHICH_STORE}")
        return [attrs.evolve(found, stop="unavailable")]
    except StoreMisconfigured as error:
        found = fail("store", str(error), "a store that accepts us", WHICH_STORE)
        return [attrs.evolve(found, stop="misconfigured")]
    one.is_open, one.has_schema = True, state.found > 0
    return [ok("store", f"{one.engine.where} answers"), judge_schema(state, one.settings)]


def judge_schema(state: SchemaState, settings: Settings) -> Finding:
    name, wanted = "schema", f"version {state.wanted}"
    if state.found == state.wanted:
        return ok(name, f"version {state.found}, which this musterd needs")
    said = f"version {state.found}" if state.found else "there is none yet"
    if settings.store.migrate:
        return warn(name, said, wanted, "start the daemon, or run `musterd db migrate`")
    return fail(name, said, wanted, "run `musterd db migrate`: store.migrate is off")


def _file_checks(one: Store, setup: Setup) -> dict[str, Look]:
    path = str(sqlite_path(one.url).resolve())

    ask = partial(one.engine.health.file, setup.monotonic, FILE_SECONDS)

    async def file_system() -> Iterable[Finding]:
        lines = (await trio.Path(setup.mounts).read_text("utf-8")).splitlines()
        return judges.judge_file_system(path, judges.file_system_of(path, lines))

    looks: dict[str, Look] = {
        "file": lambda: _judged(ask, judges.judge_file),
        "file system": file_system,
    }
    if one.has_schema:
        looks["nodes"] = lambda: _judged(one.engine.nodes.all, judge_nodes)
    return looks


def _server_checks(one: Store, setup: Setup) -> dict[str, Look]:
    looks: dict[str, Look] = {}
    health = one.engine.health
    if one.leads:
        looks |= {
            "server": lambda: _check_server(one),
            "session": lambda: _check_session(one),
            "clock": lambda: _check_clock(one, setup),
            "horizon": lambda: _judged(health.holders, postgres.judge_horizon),
            "replication": lambda: _judged(health.replication, postgres.judge_replication),
            "connections": lambda: _check_connections(one),
        }
    if one.has_schema:
        looks |= {
            "rights": lambda: _check_rights(one),
            "autovacuum": lambda: _check_tables(one),
            "places": lambda: _check_places(one),
            "nodes": lambda: _judged(one.engine.nodes.all, judge_nodes),
        }
    return looks


async def _server(one: Store) -> Server:
    found = await one.engine.health.server()
    assert found is not None, "only files have none"
    return found


async def _check_server(one: Store) -> Iterable[Finding]:
    found = await _server(one)
    return [*postgres.judge_server(found), *postgres.judge_durability(found)]


async def _check_session(one: Store) -> Iterable[Finding]:
    mode, settings = await one.engine.health.pool_mode(), one.settings
    judged = postgres.judge_session(await _server(one), mode, settings)
    return [*postgres.judge_pooler(mode, settings), *judged]


async def _check_clock(one: Store, setup: Setup) -> Iterable[Finding]:
    await one.engine.health.now()  # the connection is made, so that the next question is quick
    before = setup.wall_clock()
    theirs = await one.engine.health.now()
    after = setup.wall_clock()
    return postgres.judge_clock((before + after) / 2 - theirs, (after - before) / 2)


async def _judged(
    ask: Callable[[], Awaitable[T | None]], judge: Callable[[T], Iterable[Finding]]
) -> Iterable[Finding]:
    found = await ask()
    return [] if found is None else judge(found)


async def _check_connections(one: Store) -> Iterable[Finding]:
    found = await one.engine.health.connections()
    if found is None:
        return []
    live = 0
    if one.has_schema:
        live = sum(node.is_live for node in await one.engine.nodes.all())
    return judge_connections(found, live, one.sharing, one.settings)


async def _check_rights(one: Store) -> Iterable[Finding]:
    return postgres.judge_rights(await one.engine.health.missing_rights(), await _server(one))


async def _check_tables(one: Store) -> Iterable[Finding]:
    server, ours = await _server(one), await one.engine.health.tables()
    judged = postgres.judge_autovacuum(server, ours, one.settings.store.schema)
    return [*judged, *postgres.judge_tables(ours)]


async def _check_places(one: Store) -> Iterable[Finding]:
    try:
        found = await one.engine.audit.faults(PLACES_SECONDS)
    except StoreUnavailable as error:
        if error.trouble != "timeout":
            raise
        said = f"more jobs than can be looked at in {PLACES_SECONDS:g} s: `musterd verify` does"
        return [ok("places", said)]
    return postgres.judge_places(found or ())


WIDTH = 200
LEASE_CONNECTIONS_MAX = 2
LISTENING = 1


def judge_nodes(nodes: Sequence[NodeRecord]) -> list[Finding]:
    name = "nodes"
    live = [node for node in nodes if node.is_live]
    dead = [node for node in nodes if not node.is_live]
    found = [
        warn(name, said, "the same on all nodes", "finish the deployment, or reload the others")
        for said in warnings(nodes)
    ]
    if not live:
        advice = "start one: `musterd run`, or systemctl start musterd"
        found.append(warn(name, "no node is alive: nothing runs", "at least one", advice))
    for node in dead:
        said = f"{cut(one_line(node.name), WIDTH)} died {duration_text(node.silent_seconds)} ago"
        found.append(warn(name, said, "a clean stop", "look at its log"))
    return found or [ok(name, f"{plural(len(live), 'node')}, all of one version and configuration")]


def judge_connections(
    found: Connections, live_nodes: int, tenants: int, settings: Settings
) -> list[Finding]:
    """`tenants`: how many of each node share these connections. At least one node is assumed."""
    nodes, room = max(1, live_nodes), found.most - found.reserved
    wanted = nodes * node_connections(tenants, settings)
    limits = (
        ("max_connections", room, found.used),
        ("the role's limit", found.role_limit, found.role_used),
        ("the database's limit", found.database_limit, found.database_used),
    )
    faults = [
        fault
        for what, most, used in limits
        for fault in _limit_faults(what, most, used, max(0, used - found.ours), wanted)
    ]
    said = f"{found.used} of {room} in use; {plural(nodes, 'node')} may open {wanted}"
    return faults or [ok("connections", said)]


def node_connections(tenants: int, settings: Settings) -> int:
    """The most connections of a node to one database: see `store.postgres.hub`."""
    pool = settings.store.pool_size
    exchanges = max(EXCHANGES_AT_ONCE, min(tenants + 1, pool))
    return pool + exchanges + min(tenants, LEASE_CONNECTIONS_MAX) + LISTENING


def _limit_faults(what: str, most: int, used: int, others: int, wanted: int) -> list[Finding]:
    """-1 = no limit. Others may again have as many connections as now."""
    if most < 0:
        return []
    advice = "raise it, lower store.pool_size, or put a pooler in between"
    if used >= most:
        return [fail("connections", f"{used} of {most} ({what}) are in use", "room", advice)]
    if others + wanted <= most:
        return []
    said = f"the nodes may open {wanted}, others have {others}, {what} leaves {most}"
    return [warn("connections", said, f"room for {others + wanted}", advice)]


_LINE = re.compile(r":\d+$")
CONFIGURATION, MACHINE = "configuration", "machine"


def first_checks(setup: Setup, stores: Sequence[Store]) -> list[Check]:
    """The checks of configuration and machine; then the stores are opened."""
    settings = setup.settings

    async def running() -> Iterable[Finding]:
        await trio.lowlevel.checkpoint()
        return setup.running

    return [
        Check("configuration", CONFIGURATION, running),
        Check("leases", CONFIGURATION, _in_thread(lambda: judges.judge_leases(settings))),
        Check("secrets", CONFIGURATION, _in_thread(lambda: _secrets(setup))),
        Check(
            "permissions",
            CONFIGURATION,
            _in_thread(lambda: judges.judge_permissions([*_given_files(setup)])),
        ),
        Check("kinds", CONFIGURATION, _in_thread(lambda: judges.judge_kinds(setup.kinds()))),
        Check("hooks", CONFIGURATION, _in_thread(lambda: judges.judge_hooks(setup.hooks()))),
        Check("schedules", CONFIGURATION, _in_thread(lambda: _schedules(setup))),
        Check("systemd", MACHINE, lambda: _systemd(setup)),
        Check("open files", MACHINE, _in_thread(lambda: _open_files(setup))),
        Check("disk", MACHINE, _in_thread(lambda: _disks(setup))),
        Check("guard", MACHINE, _in_thread(lambda: judges.judge_guard(settings, read_machine()))),
        *(Check("store", GROUP, partial(_check_open, one), one.tenant) for one in stores),
    ]


def _in_thread(look: Callable[[], T]) -> Callable[[], Awaitable[T]]:
    """Checks may wait for disks or programs; cancelling abandons the thread."""
    return partial(trio.to_thread.run_sync, look, abandon_on_cancel=True)


def _secrets(setup: Setup) -> list[Finding]:
    """Raises ConfigError if one cannot be read."""
    settings, environ = setup.settings, setup.environ
    for name in setup.tenants:
        resolve_store_url(settings_of(settings, name), environ)
    tokens = resolve_http_tokens(settings, environ)
    signing = resolve_signing_keys(settings, environ)
    said = f"readable: {len(tokens)} tokens, {len(signing)} keys that sign webhooks"
    return [*judges.judge_signing(settings, bool(signing))] or [ok("secrets", said)]


def _schedules(setup: Setup) -> list[Finding]:
    found = judges.judge_schedules(setup.settings.schedules, setup.wall_clock())
    return [*judges.judge_zones(len(available_timezones())), *found]


def _given_files(setup: Setup) -> Iterator[judges.GivenFile]:
    for key, path in _secret_paths(setup):
        yield from _given(path, key, True)
    secret = set(_files_with_secrets(setup))
    named = {_LINE.sub("", origin) for origin in setup.origins.values()}
    for text in sorted(named):
        if text.startswith("/") or Path(text).is_file():
            yield from _given(Path(text), "configuration", text in secret)
    for path in (*setup.settings.catalog.paths, *setup.settings.catalog.python_path):
        yield from _given(path, "catalog", False)


def _given(path: Path, key: str, is_secret: bool) -> Iterator[judges.GivenFile]:
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return  # reported by another check
    yield judges.GivenFile(str(path), key, mode, is_secret)


def _secret_paths(setup: Setup) -> Iterator[tuple[str, Path]]:
    settings = setup.settings
    named = {
        "store.url_file": settings.store.url_file,
        "http.token_file": settings.http.token_file,
        "webhooks.secret_file": settings.webhooks.secret_file,
    }
    named |= {f"http.tokens.{one.name}": one.token_file for one in settings.http.tokens}
    named |= {
        f"webhooks.receivers.{place}": one.secret_file
        for place, one in enumerate(settings.webhooks.receivers)
    }
    named |= {f"tenants.{one.name}": one.place.url_file for one in settings.tenants.values()}
    for key, name in named.items():
        if name:
            yield key, find_credential(name, setup.environ) or Path(name)


def _files_with_secrets(setup: Setup) -> Iterator[str]:
    for key, origin in setup.origins.items():
        mask, value = _masked(setup, key)
        if mask is not None and value and mask(value) != value:
            yield _LINE.sub("", origin)


def _masked(setup: Setup, key: str) -> tuple[Callable[[str], str] | None, str]:
    """A setting's mask, and its value."""
    section, _, name = key.partition(".")
    attribute = keys().get(key)
    if attribute is not None:
        found = cast(str, getattr(getattr(setup.settings, section), name))
        return attribute.metadata.get("mask"), found
    if section == "tenants" and name.endswith(".url"):
        tenant = setup.settings.tenants[name.removesuffix(".url")]
        return keys()["store.url"].metadata["mask"], tenant.place.url
    return None, ""


async def _systemd(setup: Setup) -> Iterable[Finding]:
    if not setup.has_systemd:
        await trio.lowlevel.checkpoint()
        return [ok("systemd", "does not run here")]
    names = ",".join(judges.PROPERTIES)
    done = await setup.run(["systemctl", "show", setup.unit, f"--property={names}"])
    if done.code != 0:
        said, advice = f"systemctl show ended with {done.code}", "check that you may query systemd"
        return [warn("systemd", said, "the unit's properties", advice)]
    shown = judges.properties(done.out)
    return judges.judge_unit(setup.unit, shown, setup.settings) + _units_files(setup, shown)


def _units_files(setup: Setup, shown: Mapping[str, str]) -> list[Finding]:
    limit = shown.get("LimitNOFILESoft", "")
    if shown.get("LoadState") != "loaded" or not limit.isdigit():
        return []
    judged = judges.judge_open_files(int(limit), setup.settings, setup.unit)
    return [attrs.evolve(one, name="systemd") for one in judged if one.level != "ok"]


def _open_files(setup: Setup) -> list[Finding]:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = soft if soft != resource.RLIM_INFINITY else 2**31
    return judges.judge_open_files(limit, setup.settings, "a process started from here")


def _disks(setup: Setup) -> list[Finding]:
    places = dict(_places(setup))
    if not places:
        return [ok("disk", "no part of the queue is on this machine")]
    return [one for path, what in places.items() for one in _disk(path, what)]


def _disk(path: Path, what: str) -> list[Finding]:
    there = next((one for one in (path, *path.parents) if one.is_dir()), None)
    if there is None:
        return [fail("disk", f"{path} ({what}) does not exist", "a folder", "create it")]
    usage, files = shutil.disk_usage(there), os.statvfs(there)
    disk = judges.Disk(str(there), what, usage.free, usage.total, files.f_favail, files.f_files)
    return judges.judge_disk(disk)


def _places(setup: Setup) -> Iterator[tuple[Path, str]]:
    """Folders that can fill up."""
    archive = setup.settings.retention.archive
    if archive.startswith("/"):
        yield Path(archive).parent, "the archive"
    for name in setup.tenants:
        url = resolve_store_url(settings_of(setup.settings, name), setup.environ)
        if url.startswith("sqlite:"):
            yield sqlite_path(url).absolute().parent, "the embedded store"
