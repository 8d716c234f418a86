"""Why each node's crew is as large as it is, and whether it should be larger."""

from __future__ import annotations

import attrs

from deploy.grafana.source.asking import (
    of_kind,
    of_node,
    of_store,
    of_tenant,
    quantile,
    rate,
    total,
)
from deploy.grafana.source.shape import Board, Limit, Panel, Query, Section, areas, lines

DECISIONS = "musterd_scale_decisions_total"
LIMITED = "musterd_scale_limited_total"


def board() -> Board:
    return Board(
        "musterd-scaling",
        "musterd: scaling",
        "Why each node's crew is as large as it is. `musterd scaling` lists the single decisions.",
        (
            Section("Wished for, decided, there", _sizes()),
            Section("What held it back, and how often it changed", _reasons()),
            Section("Is the crew large enough?", _enough()),
        ),
    )


def _sizes() -> tuple[Panel, ...]:
    wished = lines(
        "Workers wished for, by node",
        "The size that the queue asks of each node, before all limits. Nodes share what is due, so"
        " beside others it is this node's share.",
        Query(of_node("musterd_workers_desired_raw"), "{{instance}}"),
    )
    decided = lines(
        "Workers decided on, by node",
        "What was left of the wish after all limits. The crew follows within a scale interval;"
        " when it shrinks, only idle workers leave.",
        Query(of_node("musterd_workers_desired"), "{{instance}}"),
    )
    there = lines(
        "Workers there, and their bounds",
        "All workers of the nodes chosen, between the sums of default_count and max_count. At the"
        " largest for long, while jobs wait: raise it or add a node.",
        Query(total(of_tenant("musterd_workers")), "there"),
        Query(total(of_node("musterd_workers_min")), "least"),
        Query(total(of_node("musterd_workers_max")), "largest"),
    )
    return (
        attrs.evolve(wished, page="scaling"),
        attrs.evolve(decided, page="scaling"),
        attrs.evolve(there, runbook="MusterdAtMaxWorkers"),
    )


def _reasons() -> tuple[Panel, ...]:
    limited = areas(
        "Decisions that were limited, by what",
        "Share of all decisions. `max`, `max_running`, `shared`: a ceiling. `stabilization`,"
        " `down_cooldown`, `busy`: it shrinks slowly on purpose. `min`: idle."
        " `no_observation`: the store did not answer in time.",
        Query(
            f"{total(rate(of_node(LIMITED)), 'reason')}"
            f" / on () group_left () {total(rate(of_node(DECISIONS)))}",
            "{{reason}}",
        ),
    )
    directions = areas(
        "Decisions that changed the crew",
        "Steps up and down, a minute. Many of both: the crew swings; make"
        " scaling.stabilization_seconds longer.",
        Query(f"{total(rate(of_node(DECISIONS, _CHANGES)), 'direction')} * 60", "{{direction}}"),
    )
    by_node = lines(
        "Decisions made, by node",
        "Each node decides once in workers.scale_interval_ms, for each tenant. 0: its supervisor"
        " stands still.",
        Query(total(rate(of_node(DECISIONS)), "instance"), "{{instance}}"),
    )
    return (
        attrs.evolve(limited, unit="percentunit", page="scaling", whole=1),
        attrs.evolve(directions, page="scaling"),
        attrs.evolve(by_node, unit="ops", page="scaling"),
    )


def _enough() -> tuple[Panel, ...]:
    used = lines(
        "Workers at work, of those there, by node",
        "1 means that each worker has a job. High on one node only: the others do not see the"
        " queue, or they have another kind of trouble; look at their store calls.",
        Query(
            f"{total(of_tenant('musterd_workers', _BUSY), 'instance')}"
            f" / ({total(of_tenant('musterd_workers'), 'instance')} > 0)",
            "{{instance}}",
        ),
    )
    due = lines(
        "Jobs due, by tenant",
        "What the crews are sized for.",
        Query(of_store("musterd_queue_depth"), "{{tenant}}"),
    )
    wait = lines(
        "From due to claimed, by kind",
        "95 of 100 jobs of a kind are claimed within. If it is good enough, so is the crew,"
        " whatever the other panels say.",
        Query(quantile(0.95, of_kind("musterd_job_wait_seconds_bucket"), "kind"), "{{kind}}"),
    )
    return (
        attrs.evolve(used, unit="percentunit", limits=(Limit(0.95, "orange"),), whole=1),
        due,
        attrs.evolve(wait, unit="s", runbook="MusterdQueueLatencyHigh"),
    )


_BUSY = 'state="busy"'
_CHANGES = 'direction!="hold"'
