"""The first page to open: is it healthy, and if not, where is it stuck?"""

from __future__ import annotations

import attrs

from deploy.grafana.source.asking import (
    of_kind,
    of_node,
    of_store,
    of_tenant,
    or_none,
    over_range,
    quantile,
    rate,
    total,
)
from deploy.grafana.source.shape import Board, Limit, Panel, Query, Section, areas, lines, number

FINISHED = "musterd_jobs_finished_total"
FAILED = 'outcome="failed"'


def board() -> Board:
    return Board(
        "musterd-overview",
        "musterd: overview",
        "Is it healthy, and if not, where is it stuck? Read from the top: the line of numbers, then"
        " the queue, the crew, the jobs, the store.",
        (
            Section("Is it healthy?", (*_node_numbers(), *_job_numbers())),
            Section("The queue", _queue()),
            Section("The crew, and why it is so large", _crew()),
            Section("The jobs", _jobs()),
            Section("The store and the nodes", _store()),
        ),
    )


def _node_numbers() -> tuple[Panel, ...]:
    nodes = number(
        "Nodes that answer",
        "Daemons that Prometheus can scrape. Fewer than you run: one has died, hangs or cannot be"
        " reached. Look at its log.",
        or_none('sum(up{job=~"$job"})'),
    )
    busy = number(
        "Crew at work",
        "Busy workers, of all that the nodes may hire. At 100 % jobs wait for each other: raise"
        " workers.max_count or add a node if they wait too long.",
        f"{total(of_tenant('musterd_workers', _BUSY))} / {total(of_node('musterd_workers_max'))}",
    )
    errors = number(
        "Store errors",
        "Calls to the store that failed, a second. Above 0 for long: `musterd status` names the"
        " trouble and since when.",
        or_none(total(rate(of_node("musterd_store_errors_total")))),
    )
    paused = number(
        "Queues paused",
        "Tenants whose queue somebody has paused: nothing of them is claimed. `musterd queue"
        " resume` lets them go on.",
        f"sum({of_store('musterd_queue_paused')})",
    )
    return (
        attrs.evolve(nodes, runbook="MusterdNoDaemon", base="red", limits=(Limit(1, "green"),)),
        attrs.evolve(
            busy, unit="percentunit", runbook="MusterdAtMaxWorkers", limits=(Limit(0.95, "yellow"),)
        ),
        attrs.evolve(errors, unit="ops", page="running", limits=(Limit(0.01, "red"),)),
        attrs.evolve(paused, runbook="MusterdQueuePaused", limits=(Limit(1, "yellow"),)),
    )


def _job_numbers() -> tuple[Panel, ...]:
    oldest = number(
        "Longest wait",
        "How long the longest-waiting due job has waited. The best single sign of trouble: above"
        " what your users accept, look at the crew and at the store below.",
        f"max({of_store('musterd_queue_oldest_age_seconds')})",
    )
    due = number(
        "Jobs due",
        "Jobs that could run now and wait for a worker. Many are no fault as long as they do not"
        " wait long.",
        f"sum({of_store('musterd_queue_depth')})",
    )
    failed = number(
        "Share that failed",
        "Of the jobs that ended in the time shown, those that ended as failed. See Failures by"
        " kind, then `musterd jobs --state failed`.",
        or_none(
            f"{total(over_range(of_kind(FINISHED, FAILED)))}"
            f" / ({total(over_range(of_kind(FINISHED)))} > 0)"
        ),
    )
    halted = number(
        "Targets halted",
        "Targets whose jobs wait behind a failed or paused one. `musterd why ID` of a waiting job"
        " names it; resume, cancel or clear it.",
        f"sum({of_store('musterd_targets_halted')})",
    )
    return (
        attrs.evolve(oldest, unit="s", runbook="MusterdQueueLatencyHigh", limits=_LONG_WAIT),
        attrs.evolve(due, runbook="MusterdBacklogGrowing"),
        attrs.evolve(failed, unit="percentunit", runbook="MusterdFailureRatio", limits=_SHARES),
        attrs.evolve(halted, runbook="MusterdTargetHalted", limits=(Limit(1, "yellow"),)),
    )


def _queue() -> tuple[Panel, ...]:
    due = lines(
        "Jobs due, by tenant",
        "Jobs that could run now and wait for a worker. It falls when out is above in.",
        Query(of_store("musterd_queue_depth"), "{{tenant}}"),
    )
    oldest = lines(
        "Wait of the oldest due job, by tenant",
        "How long the longest-waiting due job has waited. Rises in a straight line: nothing is"
        " claimed. Is the queue paused, the store away, is each worker busy with long jobs?",
        Query(of_store("musterd_queue_oldest_age_seconds"), "{{tenant}}"),
    )
    flow = lines(
        "Jobs in and out",
        "Enqueued by anybody, and ended in any way, a second. In above out for long: the backlog"
        " grows.",
        Query(f"sum(max by (tenant) ({rate(_ENQUEUED)}))", "in"),
        Query(total(rate(of_tenant(FINISHED))), "out"),
    )
    return (
        attrs.evolve(due, runbook="MusterdBacklogGrowing"),
        attrs.evolve(oldest, unit="s", runbook="MusterdQueueStalled", limits=_LONG_WAIT),
        attrs.evolve(flow, unit="ops", page="metrics"),
    )


def _crew() -> tuple[Panel, ...]:
    crew = lines(
        "Workers wished for, decided on, there",
        "Wished is what the queue asks for, decided what is left of it after all limits, there is"
        " who works. Wished far above largest for long: add workers or nodes.",
        Query(total(of_node("musterd_workers_desired_raw")), "wished"),
        Query(total(of_node("musterd_workers_desired")), "decided"),
        Query(total(of_tenant("musterd_workers")), "there"),
        Query(total(of_node("musterd_workers_max")), "largest"),
    )
    why = areas(
        "What held the crew back",
        "Share of the scaling decisions that something limited, by what. `max`: the ceiling."
        " `no_observation`: the store did not answer. `min` is normal when idle. The page on"
        " scaling explains each.",
        Query(
            f"{total(rate(of_node('musterd_scale_limited_total')), 'reason')}"
            f" / on () group_left () {total(rate(of_node('musterd_scale_decisions_total')))}",
            "{{reason}}",
        ),
    )
    work = areas(
        "What the workers do",
        "Idle ones wait for jobs, busy ones have one, retiring ones leave after theirs.",
        Query(total(of_tenant("musterd_workers"), "state"), "{{state}}"),
    )
    return (
        attrs.evolve(crew, runbook="MusterdAtMaxWorkers"),
        attrs.evolve(why, unit="percentunit", page="scaling"),
        work,
    )


def _jobs() -> tuple[Panel, ...]:
    wait = lines(
        "From due to claimed",
        "How long jobs wait for a worker: half of them, 95 and 99 of 100 are claimed within. High"
        " with an idle crew: hints do not arrive, see the page on running it behind a pooler.",
        *(
            Query(quantile(share, of_kind("musterd_job_wait_seconds_bucket")), f"{share:.0%}")
            for share in _SHARES_ASKED
        ),
    )
    run = lines(
        "Time that attempts run",
        "How long the work itself takes, by quantile, however it ends. Longer than usual: what the"
        " jobs use is slow, not the queue.",
        *(
            Query(quantile(share, of_kind("musterd_job_run_seconds_bucket")), f"{share:.0%}")
            for share in _SHARES_ASKED
        ),
    )
    failures = areas(
        "Failures by kind",
        "Jobs that ended as failed, a second. One kind: its work or what it needs. All kinds at"
        " once: something that they share.",
        Query(total(rate(of_kind(FINISHED, FAILED)), "kind"), "{{kind}}"),
    )
    return (
        attrs.evolve(wait, unit="s", runbook="MusterdQueueLatencyHigh"),
        attrs.evolve(run, unit="s", page="metrics"),
        attrs.evolve(failures, unit="ops", runbook="MusterdFailureRatio"),
    )


def _store() -> tuple[Panel, ...]:
    slow = lines(
        "Slowest twentieth of the store's calls",
        "95 of 100 calls of each sort are answered within. claim and settle slow: disk or locks of"
        " the database.",
        Query(
            quantile(0.95, of_node("musterd_store_operation_seconds_bucket"), "operation"),
            "{{operation}}",
        ),
    )
    errors = areas(
        "Store calls that failed",
        "By sort of call, a second. Any rise: `musterd status` names the trouble.",
        Query(total(rate(of_node("musterd_store_errors_total")), "operation"), "{{operation}}"),
    )
    lag = lines(
        "How late the nodes wake",
        "The largest delay of the last 15 seconds. Above 0.1 s: the machine is short of processor"
        " time, or a handler with isolation = task blocks the loop.",
        Query(of_node("musterd_loop_lag_seconds"), "{{instance}}"),
    )
    return (
        attrs.evolve(slow, unit="s", page="running"),
        attrs.evolve(errors, unit="ops", page="running"),
        attrs.evolve(lag, unit="s", runbook="MusterdLoopLag", limits=(Limit(0.1, "red"),)),
    )


_BUSY = 'state="busy"'
_ENQUEUED = 'musterd_jobs_enqueued_total{job=~"$job", tenant=~"$tenant"}'
_LONG_WAIT = (Limit(60, "yellow"), Limit(300, "red"))
_SHARES = (Limit(0.05, "yellow"), Limit(0.2, "red"))
_SHARES_ASKED = (0.5, 0.95, 0.99)
