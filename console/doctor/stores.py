"""The checks of the stores: each is opened once, and what can be asked of it is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from random import Random

import attrs
import trio

from musterd.config.settings import Settings
from musterd.config.store_url import resolve_store_url, sqlite_path
from musterd.config.tenants import settings_of
from musterd.console.doctor import embedded, nodes, server, tables
from musterd.console.doctor.finding import Check, Finding, fail, ok, warn
from musterd.console.doctor.patient import Patient
from musterd.store.engine import Engine, SchemaState
from musterd.store.errors import StoreMisconfigured, StoreUnavailable
from musterd.store.opening import Stores

GROUP = "store"
FILE_SECONDS = 5.0  # for the check of an embedded file

Look = Callable[[], Awaitable[Iterable[Finding]]]


@attrs.define(eq=False)
class Store:
    """A tenant's. `leads`: of those that share a database it is the one that is asked about it.
    `sharing`: how many there are of these on each node.
    """

    tenant: str
    settings: Settings
    url: str = attrs.field(repr=False)
    engine: Engine
    leads: bool = True
    sharing: int = 1
    is_open: bool = False
    has_schema: bool = False


def stores_of(patient: Patient) -> list[Store]:
    """Opens nothing. Raises ConfigError where a URL cannot be read."""
    made = Stores(patient.wall_clock, Random(0))  # pauses after failures: nobody waits for them
    all_urls = Counter(
        resolve_store_url(settings_of(patient.settings, name), patient.environ)
        for name in patient.settings.tenants
    )
    found: list[Store] = []
    for name in patient.tenants:
        own = settings_of(patient.settings, name)
        url = resolve_store_url(own, patient.environ)
        leads = url not in {one.url for one in found}
        found.append(Store(name, own, url, made.engine(url, own), leads, all_urls[url]))
    return found


async def close_all(stores: Sequence[Store]) -> None:
    for one in stores:
        await one.engine.close()


def opening_checks(stores: Sequence[Store]) -> list[Check]:
    return [_check(one, "store", partial(_open, one)) for one in stores]


def open_checks(stores: Sequence[Store], patient: Patient) -> list[Check]:
    """Of those that could be opened."""
    found: list[Check] = []
    for one in stores:
        if one.is_open:
            found += (
                _of_file(one, patient) if one.engine.name == "sqlite" else _of_server(one, patient)
            )
    return found


def _check(one: Store, name: str, look: Look) -> Check:
    return Check(name, GROUP, look, one.tenant)


async def _open(one: Store) -> list[Finding]:
    if one.url.startswith("sqlite:") and not sqlite_path(one.url).exists():
        await trio.lowlevel.checkpoint()
        return [ok("store", f"{one.engine.where}: there is no file yet; the daemon makes it")]
    try:
        await one.engine.open()
        state = await one.engine.schema()
    except StoreUnavailable as error:
        advice = "is it up? `musterd config show --origin` says which store is used, and why"
        found = fail("store", str(error), "a store that answers", advice)
        return [attrs.evolve(found, stop="unavailable")]
    except StoreMisconfigured as error:
        advice = "`musterd config show --origin` says which store is used, and why"
        found = fail("store", str(error), "a store that takes us in", advice)
        return [attrs.evolve(found, stop="misconfigured")]
    one.is_open, one.has_schema = True, state.found > 0
    return [ok("store", f"{one.engine.where} answers"), judge_schema(state, one.settings)]


def judge_schema(state: SchemaState, settings: Settings) -> Finding:
    name, wanted = "schema", f"version {state.wanted}"
    if state.found == state.wanted:
        return ok(name, f"version {state.found}, the one that this musterd needs")
    said = f"version {state.found}" if state.found else "there is none yet"
    if state.found > state.wanted:
        return fail(name, f"{said}: newer than this musterd", wanted, "upgrade this musterd")
    if settings.store.migrate:
        return warn(name, said, wanted, "start the daemon, or run `musterd db migrate`")
    return fail(name, said, wanted, "run `musterd db migrate`: store.migrate is off")


def _of_file(one: Store, patient: Patient) -> list[Check]:
    path = str(sqlite_path(one.url).resolve())

    async def file() -> Iterable[Finding]:
        found = await one.engine.vitals.file(patient.monotonic, FILE_SECONDS)
        return [] if found is None else embedded.judge_file(found)

    async def file_system() -> Iterable[Finding]:
        lines = (await trio.Path(patient.mounts).read_text("utf-8")).splitlines()
        return embedded.judge_file_system(path, embedded.file_system_of(path, lines))

    looks: dict[str, Look] = {"file": file, "file system": file_system}
    if one.has_schema:
        looks["nodes"] = partial(_nodes, one)
    return [_check(one, name, look) for name, look in looks.items()]


def _of_server(one: Store, patient: Patient) -> list[Check]:
    looks: dict[str, Look] = {}
    if one.leads:
        looks |= {
            "server": lambda: _server(one),
            "session": lambda: _session(one),
            "clock": lambda: _clock(one, patient),
            "horizon": lambda: _horizon(one),
            "replication": lambda: _replication(one),
            "connections": lambda: _connections(one),
        }
    if one.has_schema:
        looks |= {
            "rights": lambda: _rights(one),
            "autovacuum": lambda: _tables(one),
            "nodes": lambda: _nodes(one),
        }
    return [_check(one, name, look) for name, look in looks.items()]


async def _server(one: Store) -> Iterable[Finding]:
    found = await one.engine.vitals.server()
    if found is None:
        return []
    return [*server.judge_server(found), *server.judge_durability(found)]


async def _session(one: Store) -> Iterable[Finding]:
    vitals = one.engine.vitals
    mode, found = await vitals.pool_mode(), await vitals.server()
    told = server.judge_pooler(mode, one.settings)
    return told if found is None else [*told, *server.judge_session(found, mode, one.settings)]


async def _clock(one: Store, patient: Patient) -> Iterable[Finding]:
    await one.engine.vitals.now()  # the connection is made, so that the next question is quick
    before = patient.wall_clock()
    theirs = await one.engine.vitals.now()
    after = patient.wall_clock()
    return server.judge_clock((before + after) / 2 - theirs, (after - before) / 2)


async def _horizon(one: Store) -> Iterable[Finding]:
    return tables.judge_horizon(await one.engine.vitals.holders())


async def _replication(one: Store) -> Iterable[Finding]:
    found = await one.engine.vitals.replication()
    return [] if found is None else server.judge_replication(found)


async def _connections(one: Store) -> Iterable[Finding]:
    found = await one.engine.vitals.connections()
    if found is None:
        return []
    live = 0
    if one.has_schema:
        live = sum(node.is_live for node in await one.engine.nodes())
    return nodes.judge_connections(found, live, one.sharing, one.settings)


async def _rights(one: Store) -> Iterable[Finding]:
    vitals = one.engine.vitals
    found, missing = await vitals.server(), await vitals.missing_rights()
    return [] if found is None else server.judge_rights(missing, found)


async def _tables(one: Store) -> Iterable[Finding]:
    vitals = one.engine.vitals
    found, ours = await vitals.server(), await vitals.tables()
    if found is None:
        return []
    schema = one.settings.store.schema
    return [*tables.judge_autovacuum(found, ours, schema), *tables.judge_tables(ours)]


async def _nodes(one: Store) -> Iterable[Finding]:
    return nodes.judge_nodes(await one.engine.nodes())
