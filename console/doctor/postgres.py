"""Whether a PostgreSQL server, our role and our tables suit a queue. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from musterd.config.settings import Settings
from musterd.console.doctor.judges import Finding, fail, ok, warn
from musterd.store.events import Fault
from musterd.store.health import Holder, Missing, PoolMode, Replication, Server, Table
from musterd.store.words import count_text, cut, duration_text, one_line

OLDEST = 140000
NEWEST_MAJOR = 18  # that this version is tested with
SKEW_SECONDS = 2.0
SKEW_SECONDS_MAX = 300.0  # receivers of webhooks refuse what is signed further away
KEPT_BYTES = 5 * 1024**3
SHOWN = 5


def judge_server(server: Server) -> list[Finding]:
    name, major = "server", server.version // 10000
    said = f"PostgreSQL {server.version_text}"
    if server.in_recovery:
        said += ", a standby, which takes no writes"
        return [fail(name, said, "the primary", "change store.url")]
    if server.version < OLDEST:
        return [fail(name, said, "PostgreSQL 14 or newer", "upgrade the server")]
    if major > NEWEST_MAJOR:
        wanted = f"at most {NEWEST_MAJOR}"
        return [warn(name, said, wanted, "newer than this musterd was tested with: read CHANGELOG")]
    return [ok(name, said)]


def judge_durability(server: Server) -> list[Finding]:
    name, settings = "durability", server.settings
    found: list[Finding] = []
    for key in ("fsync", "full_page_writes"):
        if settings.get(key) == "off":
            said = f"{key} = off: a crash of the machine may lose the database"
            advice = f"alter system set {key} = on; select pg_reload_conf()"
            found.append(fail(name, said, f"{key} = on", advice))
    if settings.get("synchronous_commit") == "off":
        said = "synchronous_commit = off: a crash may lose the latest results; their jobs run again"
        advice = f'alter role "{server.role}" reset synchronous_commit, or set it to on'
        found.append(warn(name, said, "on, local, remote_write or remote_apply", advice))
    return found or [ok(name, f"synchronous_commit = {settings.get('synchronous_commit', '?')}")]


def judge_session(server: Server, mode: PoolMode, settings: Settings) -> list[Finding]:
    """A new session of the role. Direct connections set their own limits."""
    found = [*_session_faults(server, mode, settings)]
    said = f"role {server.role}" + (", a superuser" if server.is_superuser else "")
    return found or [ok("session", said)]


def _session_faults(server: Server, mode: PoolMode, settings: Settings) -> Iterator[Finding]:
    name, own, role = "session", server.settings, server.role
    if own.get("default_transaction_read_only") == "on":
        advice = f'alter role "{role}" reset default_transaction_read_only'
        yield fail(name, "default_transaction_read_only = on", "off", advice)
    isolation = own.get("default_transaction_isolation", "read committed")
    if isolation != "read committed" and mode != "none":
        advice = f"alter role \"{role}\" set default_transaction_isolation = 'read committed'"
        said = f"default_transaction_isolation = {isolation}, and a pooler keeps us from setting it"
        yield fail(name, said, "read committed", advice)
    limit_ms = int(own.get("statement_timeout", "0"))
    if mode != "none" and 0 < limit_ms < settings.store.statement_timeout_seconds * 1000:
        said = f"statement_timeout = {limit_ms} ms for role {role}"
        wanted = f"0, or {settings.store.statement_timeout_seconds:g} s and more"
        yield warn(name, said, wanted, f'alter role "{role}" reset statement_timeout')
    for key in ("idle_session_timeout", "transaction_timeout"):
        if int(own.get(key, "0")) > 0:
            said = f"{key} = {own[key]} ms: the server closes connections that we keep open"
            yield warn(name, said, "0", f'alter role "{role}" set {key} = 0')


def judge_pooler(mode: PoolMode, settings: Settings) -> list[Finding]:
    name = "pooler"
    if mode == "none":
        return [ok(name, "none: connections go straight to the server")]
    if mode == "statement":
        wanted = "pool_mode = transaction"
        return [fail(name, "a pooler in statement mode", wanted, "change its pool_mode")]
    if not settings.store.listen_url:
        said = f"a pooler in {mode} mode, and no store.listen_url: the queue is polled"
        advice = "set store.listen_url to a URL that goes straight to the server"
        return [warn(name, said, "a direct connection for LISTEN", advice)]
    if mode == "session":
        advice = "pool_mode = transaction shares its connections; session mode does not"
        return [warn(name, "a pooler in session mode", "transaction mode", advice)]
    return [ok(name, f"a pooler in {mode} mode; LISTEN goes to store.listen_url")]


def judge_rights(missing: Sequence[Missing], server: Server) -> list[Finding]:
    name = "rights"
    found: list[Finding] = []
    if missing:
        shown = ", ".join(f"{one.right} on {one.thing}" for one in missing[:SHOWN])
        more = f" and {count_text(len(missing) - SHOWN)} more" if len(missing) > SHOWN else ""
        advice = "`musterd db roles --apply` makes a role that has them: grant it to this one"
        said = f"role {server.role} lacks {shown}{more}"
        found.append(fail(name, said, "all rights that a daemon needs in the schema", advice))
    if not server.sees_statistics:
        said = f"role {server.role} cannot see the sessions of other roles"
        advice = f'grant pg_read_all_stats to "{server.role}"'
        found.append(warn(name, said, "a full picture, for doctor and metrics", advice))
    return found or [ok(name, f"role {server.role} has all rights that a daemon needs")]


def judge_clock(skew_seconds: float, doubt_seconds: float) -> list[Finding]:
    """`skew_seconds`: this machine's clock minus the store's, uncertain by `doubt_seconds`."""
    name, way = "clock", "ahead of" if skew_seconds > 0 else "behind"
    size = abs(skew_seconds)
    if size - doubt_seconds <= SKEW_SECONDS:
        return [ok(name, f"within {duration_text(max(size, doubt_seconds, 0.001))} of the store's")]
    said = f"this machine's clock is {duration_text(size)} {way} the store's"
    wanted, advice = f"at most {SKEW_SECONDS:g} s", "run a time service (chrony, systemd-timesyncd)"
    if size >= SKEW_SECONDS_MAX:
        why = "receivers refuse webhooks signed that far off"
        return [fail(name, said, wanted, f"{advice}: {why}")]
    why = "logs mislead; the queue uses the store's clock"
    return [warn(name, said, wanted, f"{advice}: {why}")]


def judge_replication(found: Replication) -> list[Finding]:
    name = "replication"
    faults: list[Finding] = []
    if found.wanted_standbys and found.in_sync == 0:
        said = f"commits wait for a standby ({found.wanted_standbys}), and none is in sync"
        advice = "bring a standby back, or empty synchronous_standby_names"
        faults.append(fail(name, said, "a standby in sync", advice))
    for slot in found.slots:
        kept = slot.kept_bytes or 0
        advice = f"select pg_drop_replication_slot('{slot.name}'), unless its reader will return"
        if not slot.is_active:
            said = f"slot {slot.name} is inactive and keeps {_mib(kept)} of the write-ahead log"
            faults.append(warn(name, said, "a reader for each slot", advice))
        elif kept > KEPT_BYTES or slot.wal_status in ("unreserved", "lost"):
            said = f"slot {slot.name} lags: {_mib(kept)} of the write-ahead log are kept for it"
            faults.append(warn(name, said, "a reader that keeps up", "look at its reader"))
    standbys = f", {found.in_sync} in sync" if found.in_sync else ""
    return faults or [ok(name, f"{len(found.slots)} slots{standbys}")]


def _mib(count: int) -> str:
    return f"{count_text(count // 1024**2)} MiB"


HELD_SECONDS = 60.0
HELD_SECONDS_MAX = 3600.0
HELD_TRANSACTIONS = 100_000
HELD_TRANSACTIONS_MAX = 1_000_000
DEAD_ROWS = 100_000  # and more than are alive: then vacuum does not keep up
FROZEN_AGE = 1_000_000_000
FROZEN_AGE_MAX = 1_800_000_000  # the server stops at two thousand million
HOLDERS_SHOWN = 5
WIDTH = 60


def _vacuumed(threshold: int, scale: float = 0) -> dict[str, str]:
    return {
        "autovacuum_vacuum_scale_factor": f"{scale:g}",
        "autovacuum_vacuum_threshold": str(threshold),
        "autovacuum_vacuum_cost_delay": "0",
    }


_LARGE = _vacuumed(5000, 0.02) | {
    "autovacuum_analyze_scale_factor": "0.05",
    "autovacuum_analyze_threshold": "5000",
}
_GROWING = _LARGE | {"autovacuum_vacuum_insert_scale_factor": "0.2"}
_HALF_FULL = {"fillfactor": "50"}
# As the schema sets them.
TABLE_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "job_rows": _GROWING | {"fillfactor": "36"},
    "ready": _GROWING,
    "waiting": _LARGE,
    "leases": _HALF_FULL | _vacuumed(1000),
    "count_changes": _vacuumed(1000),
    "event_drafts": _vacuumed(2000),
    "target_holders": _HALF_FULL,
    "nodes": _HALF_FULL,
    "duties": _HALF_FULL
    | {"autovacuum_vacuum_scale_factor": "0", "autovacuum_vacuum_threshold": "200"},
}


def judge_autovacuum(server: Server, tables: Sequence[Table], schema: str) -> list[Finding]:
    found = [*_server_faults(server), *_table_faults(tables, schema)]
    said = f"on; {server.settings.get('autovacuum_max_workers', '?')} workers"
    return found or [ok("autovacuum", said)]


def _server_faults(server: Server) -> Iterator[Finding]:
    for key in ("autovacuum", "track_counts"):
        if server.settings.get(key) == "off":
            said = f"{key} = off: dead rows are not removed, and claims get ever slower"
            advice = f"alter system set {key} = on; select pg_reload_conf()"
            yield fail("autovacuum", said, f"{key} = on", advice)


def _table_faults(tables: Sequence[Table], schema: str) -> Iterator[Finding]:
    for table in tables:
        where = f'"{schema}".{table.name}'
        if table.options.get("autovacuum_enabled", "true") in ("false", "off", "no", "0"):
            advice = f"alter table {where} reset (autovacuum_enabled)"
            yield fail("autovacuum", f"switched off for {table.name}", "on", advice)
        wanted = TABLE_OPTIONS.get(table.name, {})
        others = {key: value for key, value in wanted.items() if table.options.get(key) != value}
        if others:
            said = ", ".join(f"{key} = {table.options.get(key, 'unset')}" for key in others)
            wanted_values = ", ".join(f"{key} = {value}" for key, value in others.items())
            advice = f"alter table {where} set ({wanted_values})"
            yield warn("autovacuum", f"{table.name}: {said}", wanted_values, advice)


def judge_places(faults: Sequence[Fault]) -> list[Finding]:
    name = "places"
    if not faults:
        return [ok(name, "each job stands where it should")]
    shown = "; ".join(f"job {one.job_id} {one.story}" for one in faults[:SHOWN])
    more = f"; and {count_text(len(faults) - SHOWN)} more" if len(faults) > SHOWN else ""
    advice = (
        "were rows changed by hand? `musterd verify` tells all; a job that stands nowhere waits"
    )
    return [fail(name, f"{shown}{more}", "one place for each job", advice)]


def judge_tables(tables: Sequence[Table]) -> list[Finding]:
    name = "dead rows"
    found: list[Finding] = []
    for table in tables:
        if table.dead_rows > max(DEAD_ROWS, table.live_rows):
            since = "never vacuumed"
            if table.vacuumed_seconds_ago is not None:
                since = f"vacuumed {duration_text(table.vacuumed_seconds_ago)} ago"
            said = f"{table.name}: {count_text(table.dead_rows)} dead rows, {since}"
            advice = "see `horizon`: held rows cannot be removed; otherwise vacuum the table"
            found.append(warn(name, said, "fewer dead rows than live ones", advice))
        if table.frozen_age > FROZEN_AGE:
            judged = fail if table.frozen_age > FROZEN_AGE_MAX else warn
            said = f"{table.name}: not frozen for {count_text(table.frozen_age)} transactions"
            advice = "vacuum (freeze) the table; see `horizon` for what prevents it"
            found.append(judged(name, said, f"fewer than {count_text(FROZEN_AGE)}", advice))
    dead, size = sum(one.dead_rows for one in tables), sum(one.size_bytes for one in tables)
    rows = f"{count_text(dead)} dead rows in {len(tables)} tables"
    return found or [ok(name, f"{rows} of {count_text(size // 1024**2)} MiB")]


def judge_horizon(holders: Sequence[Holder]) -> list[Finding]:
    """The holders of old snapshots, the oldest first."""
    name = "horizon"
    old = [one for one in holders if _reaches_back(one, HELD_SECONDS, HELD_TRANSACTIONS)]
    if not holders:
        return [ok(name, "nothing holds it")]
    if not old:
        return [ok(name, f"{_holder_name(holders[0])}: {_holder_age(holders[0])}")]
    return [
        (fail if _reaches_back(one, HELD_SECONDS_MAX, HELD_TRANSACTIONS_MAX) else warn)(
            name,
            f"{_holder_name(one)} keeps dead rows from being removed: {_holder_age(one)}",
            f"none for longer than {duration_text(HELD_SECONDS)}",
            _holder_advice(one),
        )
        for one in old[:HOLDERS_SHOWN]
    ]


def _reaches_back(one: Holder, seconds: float, transactions: int) -> bool:
    return (one.age_seconds or 0.0) >= seconds or one.age_transactions >= transactions


def _holder_age(one: Holder) -> str:
    behind = f"{count_text(one.age_transactions)} transactions behind"
    return behind if one.age_seconds is None else f"{duration_text(one.age_seconds)}, {behind}"


def _holder_name(one: Holder) -> str:
    id_ = cut(one_line(one.id), WIDTH)
    details = [f"role {one.role}" if one.role else "", one.application, one.state]
    shown = ", ".join(cut(one_line(each), WIDTH) for each in details if each)
    what = {
        "session": "the session with pid",
        "prepared": "the prepared transaction",
        "slot": "the replication slot",
        "standby": "the standby served by pid",
    }[one.sort]
    return f"{what} {id_}" + (f" ({shown})" if shown else "")


def _holder_advice(one: Holder) -> str:
    quoted = one_line(one.id).replace("'", "''")
    match one.sort:
        case "session":
            return f"end it if you can: select pg_terminate_backend({quoted})"
        case "prepared":
            end = f"commit prepared '{quoted}' or rollback prepared '{quoted}'"
            return f"{end}, as its owner decides"
        case "slot":
            return f"bring its standby back, or select pg_drop_replication_slot('{quoted}')"
        case "standby":
            return "end the long query on the standby, or set hot_standby_feedback = off there"
