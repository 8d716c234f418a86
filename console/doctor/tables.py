"""Whether dead rows are removed: autovacuum, our tables, and who holds the horizon. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from musterd.console.doctor.finding import Finding, fail, ok, warn
from musterd.store.vitals import Holder, Server, Table
from musterd.store.words import count_text, cut, duration_text, one_line

HELD_SECONDS = 60.0
HELD_SECONDS_MAX = 3600.0
HELD_TRANSACTIONS = 100_000
HELD_TRANSACTIONS_MAX = 1_000_000
DEAD_ROWS = 100_000  # and more than are alive: then vacuum does not keep up
FROZEN_AGE = 1_000_000_000
FROZEN_AGE_MAX = 1_800_000_000  # the server stops at two thousand million
SHOWN = 5
WIDTH = 60

# As the schema sets them.
OPTIONS: Mapping[str, Mapping[str, str]] = {
    "job_rows": {
        "autovacuum_vacuum_scale_factor": "0.02",
        "autovacuum_vacuum_threshold": "5000",
        "autovacuum_vacuum_cost_delay": "0",
        "autovacuum_vacuum_insert_scale_factor": "0.2",
        "autovacuum_analyze_scale_factor": "0.05",
        "autovacuum_analyze_threshold": "5000",
        "fillfactor": "60",
    },
    "count_changes": {
        "autovacuum_vacuum_scale_factor": "0",
        "autovacuum_vacuum_threshold": "1000",
        "autovacuum_vacuum_cost_delay": "0",
    },
    "event_drafts": {
        "autovacuum_vacuum_scale_factor": "0",
        "autovacuum_vacuum_threshold": "2000",
        "autovacuum_vacuum_cost_delay": "0",
    },
    "target_holders": {"fillfactor": "50"},
    "nodes": {"fillfactor": "50"},
    "duties": {
        "fillfactor": "50",
        "autovacuum_vacuum_scale_factor": "0",
        "autovacuum_vacuum_threshold": "200",
    },
}


def judge_autovacuum(server: Server, tables: Sequence[Table], schema: str) -> list[Finding]:
    found = [*_server_faults(server), *_table_faults(tables, schema)]
    said = f"on; {server.settings.get('autovacuum_max_workers', '?')} workers"
    return found or [ok("autovacuum", said)]


def _server_faults(server: Server) -> Iterator[Finding]:
    for key in ("autovacuum", "track_counts"):
        if server.settings.get(key) == "off":
            said = f"{key} = off: dead rows are not removed, and claims get slower and slower"
            advice = f"alter system set {key} = on; select pg_reload_conf()"
            yield fail("autovacuum", said, f"{key} = on", advice)


def _table_faults(tables: Sequence[Table], schema: str) -> Iterator[Finding]:
    for table in tables:
        where = f'"{schema}".{table.name}'
        if table.options.get("autovacuum_enabled", "true") in ("false", "off", "no", "0"):
            advice = f"alter table {where} reset (autovacuum_enabled)"
            yield fail("autovacuum", f"switched off for {table.name}", "on", advice)
        wanted = OPTIONS.get(table.name, {})
        others = {key: value for key, value in wanted.items() if table.options.get(key) != value}
        if others:
            said = ", ".join(f"{key} = {table.options.get(key, 'unset')}" for key in others)
            asked = ", ".join(f"{key} = {value}" for key, value in others.items())
            advice = f"alter table {where} set ({asked})"
            yield warn("autovacuum", f"{table.name}: {said}", asked, advice)


def judge_tables(tables: Sequence[Table]) -> list[Finding]:
    name = "dead rows"
    found: list[Finding] = []
    for table in tables:
        if table.dead_rows > max(DEAD_ROWS, table.live_rows):
            since = "never vacuumed"
            if table.vacuumed_seconds_ago is not None:
                since = f"vacuumed {duration_text(table.vacuumed_seconds_ago)} ago"
            said = f"{table.name}: {count_text(table.dead_rows)} dead rows, {since}"
            advice = "see `horizon`: what is held cannot be removed; else vacuum the table"
            found.append(warn(name, said, "fewer dead rows than live ones", advice))
        if table.frozen_age > FROZEN_AGE:
            judged = fail if table.frozen_age > FROZEN_AGE_MAX else warn
            said = f"{table.name}: not frozen for {count_text(table.frozen_age)} transactions"
            advice = "vacuum (freeze) the table; see `horizon` for what stands in the way"
            found.append(judged(name, said, f"fewer than {count_text(FROZEN_AGE)}", advice))
    dead, size = sum(one.dead_rows for one in tables), sum(one.size_bytes for one in tables)
    rows = f"{count_text(dead)} dead rows in {len(tables)} tables"
    return found or [ok(name, f"{rows} of {count_text(size // 1024**2)} MiB")]


def judge_horizon(holders: Sequence[Holder]) -> list[Finding]:
    """The holders that reach back far, the oldest first."""
    name = "horizon"
    old = [one for one in holders if _reaches_back(one, HELD_SECONDS, HELD_TRANSACTIONS)]
    if not old:
        oldest = f"{_who(holders[0])}: {_since(holders[0])}" if holders else "nothing holds it"
        return [ok(name, oldest)]
    return [
        (fail if _reaches_back(one, HELD_SECONDS_MAX, HELD_TRANSACTIONS_MAX) else warn)(
            name,
            f"{_who(one)} keeps dead rows from being removed: {_since(one)}",
            f"none for longer than {duration_text(HELD_SECONDS)}",
            _what_to_do(one),
        )
        for one in old[:SHOWN]
    ]


def _reaches_back(one: Holder, seconds: float, transactions: int) -> bool:
    return (one.age_seconds or 0.0) >= seconds or one.age_transactions >= transactions


def _since(one: Holder) -> str:
    behind = f"{count_text(one.age_transactions)} transactions behind"
    return behind if one.age_seconds is None else f"{duration_text(one.age_seconds)}, {behind}"


def _who(one: Holder) -> str:
    id_ = cut(one_line(one.id), WIDTH)
    details = [f"role {one.role}" if one.role else "", one.application, one.state]
    shown = ", ".join(cut(one_line(each), WIDTH) for each in details if each)
    what = {
        "session": "the session with pid",
        "prepared": "the prepared transaction",
        "slot": "the replication slot",
        "standby": "the standby that is served by pid",
    }[one.sort]
    return f"{what} {id_}" + (f" ({shown})" if shown else "")


def _what_to_do(one: Holder) -> str:
    quoted = one_line(one.id).replace("'", "''")
    match one.sort:
        case "session":
            return f"end it, if it may be ended: select pg_terminate_backend({quoted})"
        case "prepared":
            return f"commit prepared '{quoted}' or rollback prepared '{quoted}', as its owner says"
        case "slot":
            return f"bring its standby back, or select pg_drop_replication_slot('{quoted}')"
        case "standby":
            return "end the long query on the standby, or set hot_standby_feedback = off there"
