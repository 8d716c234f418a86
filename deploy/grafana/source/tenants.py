"""The tenants beside each other: who waits, who works, whose jobs fail."""

from __future__ import annotations

import attrs

from deploy.grafana.source.asking import of_store, of_tenant, over_range, rate, total
from deploy.grafana.source.shape import Board, Limit, Panel, Query, Section, areas, lines

FINISHED = "musterd_jobs_finished_total"


def board() -> Board:
    return Board(
        "musterd-tenants",
        "musterd: tenants",
        "The tenants beside each other. Choose one above to see it alone.",
        (
            Section("Who waits", _waiting()),
            Section("Who works", _working()),
            Section("Whose jobs fail or stand", _failing()),
        ),
    )


def _waiting() -> tuple[Panel, ...]:
    due = lines(
        "Jobs due",
        "Jobs that could run now and wait for a worker of this tenant.",
        Query(of_store("musterd_queue_depth"), "{{tenant}}"),
    )
    oldest = lines(
        "Wait of the oldest due job",
        "Long for one tenant only: its queue is paused, its store is away, or its crew is too"
        " small (`workers.max_count` of the tenant).",
        Query(of_store("musterd_queue_oldest_age_seconds"), "{{tenant}}"),
    )
    enqueued = areas(
        "Jobs enqueued",
        "By anybody, a second. A tenant that floods its queue holds up no other.",
        Query(f"max by (tenant) ({rate(_ENQUEUED)})", "{{tenant}}"),
    )
    return (
        attrs.evolve(due, runbook="MusterdBacklogGrowing"),
        attrs.evolve(
            oldest,
            unit="s",
            runbook="MusterdQueueLatencyHigh",
            limits=(Limit(60, "yellow"), Limit(300, "red")),
        ),
        attrs.evolve(enqueued, unit="ops", page="tenants"),
    )


def _working() -> tuple[Panel, ...]:
    crew = areas(
        "Workers there",
        "Each tenant's crew, on all nodes chosen. Together they never exceed workers.max_count of"
        " each node.",
        Query(total(of_tenant("musterd_workers"), "tenant"), "{{tenant}}"),
    )
    busy = areas(
        "Workers at work",
        "Those of them that have a job. As many as are there, while jobs wait: the tenant's"
        " max_count, or the node's, is too small.",
        Query(total(of_tenant("musterd_workers", 'state="busy"'), "tenant"), "{{tenant}}"),
    )
    ended = areas(
        "Jobs ended",
        "In any way, a second.",
        Query(total(rate(of_tenant(FINISHED)), "tenant"), "{{tenant}}"),
    )
    return (
        attrs.evolve(crew, page="tenants"),
        attrs.evolve(busy, page="tenants"),
        attrs.evolve(ended, unit="ops", page="metrics"),
    )


def _failing() -> tuple[Panel, ...]:
    kinds = 'kind=~"$kind"'
    failed = lines(
        "Share that failed, by tenant",
        "Of the jobs that ended in the time shown. High for one tenant: its payloads, or what only"
        " it uses.",
        Query(
            f"{total(over_range(of_tenant(FINISHED, f'{_FAILED}, {kinds}')), 'tenant')}"
            f" / ({total(over_range(of_tenant(FINISHED, kinds)), 'tenant')} > 0)",
            "{{tenant}}",
        ),
    )
    standing = areas(
        "Jobs that have not ended, by state",
        "Of all tenants chosen. `paused` ones wait for a person; `pending` ones for their release.",
        Query(f"sum by (state) (max by (tenant, state) ({_OPEN_JOBS}))", "{{state}}"),
    )
    halted = lines(
        "Targets halted, by tenant",
        "Targets whose jobs wait behind a failed or paused one, until somebody resumes, cancels or"
        " clears it.",
        Query(of_store("musterd_targets_halted"), "{{tenant}}"),
    )
    return (
        attrs.evolve(failed, unit="percentunit", runbook="MusterdFailureRatio", whole=1),
        attrs.evolve(standing, page="states"),
        attrs.evolve(halted, runbook="MusterdTargetHalted"),
    )


_ENQUEUED = 'musterd_jobs_enqueued_total{job=~"$job", tenant=~"$tenant"}'
_FAILED = 'outcome="failed"'
_ENDED = "succeeded|failed|canceled"
_OPEN_JOBS = f'musterd_jobs{{job=~"$job", tenant=~"$tenant", state!~"{_ENDED}"}}'
