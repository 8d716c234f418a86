"""What the store costs the nodes, and what the database itself is short of."""

from __future__ import annotations

import attrs

from deploy.grafana.source.asking import of_node, of_store, quantile, rate, total
from deploy.grafana.source.shape import Board, Limit, Panel, Query, Section, areas, lines

BUCKETS = "musterd_store_operation_seconds_bucket"
COUNT = "musterd_store_operation_seconds_count"


def board() -> Board:
    return Board(
        "musterd-store",
        "musterd: store and node",
        "What the store costs the nodes, what the database is short of, and what the processes"
        " themselves use.",
        (
            Section("Calls", _calls()),
            Section("Connections", _connections()),
            Section("The database", _database()),
            Section("The processes", _processes()),
        ),
    )


def _calls() -> tuple[Panel, ...]:
    half = lines(
        "Median time of the store's calls",
        "Half of the calls of each sort are answered within.",
        Query(quantile(0.5, of_node(BUCKETS), "operation"), "{{operation}}"),
    )
    slow = lines(
        "Slowest hundredth of the store's calls",
        "99 of 100 calls of each sort are answered within. claim and settle slow: disk or locks;"
        " all slow: network, processor, or too few connections.",
        Query(quantile(0.99, of_node(BUCKETS), "operation"), "{{operation}}"),
    )
    calls = areas(
        "Calls that went well",
        "By sort, a second.",
        Query(total(rate(of_node(COUNT)), "operation"), "{{operation}}"),
    )
    errors = areas(
        "Calls that failed",
        "By sort, a second. Any rise: `musterd status` names the trouble and what to do.",
        Query(total(rate(of_node("musterd_store_errors_total")), "operation"), "{{operation}}"),
    )
    return (
        attrs.evolve(half, unit="s", width=6, page="metrics"),
        attrs.evolve(slow, unit="s", width=6, page="running"),
        attrs.evolve(calls, unit="ops", width=6, page="metrics"),
        attrs.evolve(errors, unit="ops", width=6, page="running"),
    )


def _connections() -> tuple[Panel, ...]:
    state = areas(
        "Connections by what they do",
        "Open connections of the nodes to the database: in a call, or idle.",
        Query(total(of_node("musterd_store_connections"), "state"), "{{state}}"),
    )
    share = lines(
        "Connections in a call, of those allowed, by node",
        "1 means that calls wait for a connection. For long: raise store.pool_size, after a look"
        " at which calls are slow.",
        Query(
            f"{total(of_node('musterd_store_connections', _BUSY), 'instance')}"
            f" / ({total(of_node('musterd_store_connections_max'), 'instance')} > 0)",
            "{{instance}}",
        ),
    )
    waiting = lines(
        "Calls that wait for a connection, by node",
        "Above 0 for longer than a moment: store.pool_size is too small, or the database slow.",
        Query(of_node("musterd_store_connections_waiting"), "{{instance}}"),
    )
    return (
        attrs.evolve(state, page="running"),
        attrs.evolve(
            share,
            unit="percentunit",
            runbook="MusterdPoolExhausted",
            limits=(Limit(0.9, "orange"),),
            whole=1,
        ),
        attrs.evolve(waiting, runbook="MusterdPoolExhausted"),
    )


def _database() -> tuple[Panel, ...]:
    horizon = lines(
        "Age of the oldest transaction, by tenant",
        "How long the oldest open transaction of the server has kept dead rows from being removed."
        " Minutes are normal during a backup; `musterd doctor` names the session.",
        Query(of_store("musterd_store_horizon_age_seconds"), "{{tenant}}"),
    )
    dead = lines(
        "Dead rows, by tenant",
        "Rows that nobody sees any more and vacuum has not removed. They grow with the age of the"
        " oldest transaction, and claims become slower.",
        Query(of_store("musterd_store_dead_rows"), "{{tenant}}"),
    )
    size = areas(
        "Size of the queue's tables, by tenant",
        "With their indexes. Grows without end: [retention] keeps ended jobs for too long.",
        Query(of_store("musterd_store_size_bytes"), "{{tenant}}"),
    )
    return (
        attrs.evolve(
            horizon, unit="s", runbook="MusterdBloatHorizon", limits=(Limit(1800, "orange"),)
        ),
        attrs.evolve(dead, runbook="MusterdBloatHorizon"),
        attrs.evolve(size, unit="bytes", page="retention"),
    )


def _processes() -> tuple[Panel, ...]:
    lag = lines(
        "Loop lag, by node",
        "How late a node woke at most in the last 15 seconds. Above 0.1 s: the machine is short of"
        " processor time, or a handler with isolation = task blocks the loop.",
        Query(of_node("musterd_loop_lag_seconds"), "{{instance}}"),
    )
    processor = lines(
        "Processor time, by node",
        "Of the daemon itself, without the children that run handlers. Near 1 core: one node is"
        " full; add another.",
        Query(rate(of_node("process_cpu_seconds_total")), "{{instance}}"),
    )
    memory = lines(
        "Memory, by node",
        "Resident, of the daemon itself, without the children that run handlers.",
        Query(of_node("process_resident_memory_bytes"), "{{instance}}"),
    )
    files = lines(
        "Open files, of those allowed, by node",
        "At 1 nothing new can be opened, neither connections nor children: raise LimitNOFILE.",
        Query(
            f"{of_node('process_open_fds')} / {of_node('process_max_fds')}",
            "{{instance}}",
        ),
    )
    return (
        attrs.evolve(lag, unit="s", width=6, runbook="MusterdLoopLag", limits=(Limit(0.1, "red"),)),
        attrs.evolve(processor, unit="percentunit", width=6, page="scale"),
        attrs.evolve(memory, unit="bytes", width=6, page="running"),
        attrs.evolve(files, unit="percentunit", width=6, limits=(Limit(0.8, "red"),)),
    )


_BUSY = 'state="busy"'
