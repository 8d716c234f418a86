"""What went wrong and was mended: leases, retries, duties, webhooks, configurations."""

from __future__ import annotations

import attrs

from deploy.grafana.source.asking import of_kind, of_node, of_store, over_range, rate, total
from deploy.grafana.source.shape import Board, Limit, Panel, Query, Section, areas, lines, number

RUNS = "musterd_duty_runs_total"


def board() -> Board:
    return Board(
        "musterd-faults",
        "musterd: leases and faults",
        "What went wrong and was mended, and what could not be: leases, failures and retries,"
        " duties, webhooks, configurations.",
        (
            Section("In the time shown", _numbers()),
            Section("Leases and attempts", _attempts()),
            Section("Duties", _duties()),
            Section("Webhooks, targets, configurations", _others()),
        ),
    )


def _numbers() -> tuple[Panel, ...]:
    lost = number(
        "Leases lost",
        "Leases that ran out in the time shown. A node died, hung or was cut off; steadily: a job"
        " kills its node, or the lease is too short.",
        total(over_range(of_node("musterd_leases_lost_total"))),
    )
    requeued = number(
        "Jobs given back",
        "Jobs that were queued again since their lease ran out. Fewer than the leases lost: the"
        " others have failed or are paused, as on_lease_lost says.",
        total(over_range(of_node("musterd_leases_requeued_total"))),
    )
    stale = number(
        "Late writes refused",
        "Ends of attempts that came after the lease was lost. Nothing was damaged, but that work"
        " was done twice: a node was frozen or cut off.",
        total(over_range(of_node("musterd_stale_writes_rejected_total"))),
    )
    draining = number(
        "Nodes that drain",
        "Nodes that claim nothing any more and finish what they have. `musterd status` counts"
        " down what they wait for.",
        total(of_node("musterd_node_draining")),
    )
    untaken = number(
        "Configurations refused",
        "Nodes whose last reload was refused: they go on with the old one. Their log has every"
        " fault; `musterd config check` lists them, too.",
        f"count({of_node('musterd_config_reload_success')}) - "
        f"{total(of_node('musterd_config_reload_success'))}",
    )
    versions = number(
        "Versions at work",
        "More than one for long: a deploy has stopped half-way.",
        f"count(count by (version) ({of_node('musterd_build_info')}))",
    )
    return (
        attrs.evolve(lost, width=4, runbook="MusterdLeasesExpiring", limits=(Limit(1, "yellow"),)),
        attrs.evolve(requeued, width=4, page="states"),
        attrs.evolve(stale, width=4, page="states", limits=(Limit(1, "yellow"),)),
        attrs.evolve(draining, width=4, page="running"),
        attrs.evolve(untaken, width=4, runbook="MusterdReloadFailed", limits=(Limit(1, "red"),)),
        attrs.evolve(versions, width=4, runbook="MusterdVersionSkew", limits=(Limit(2, "yellow"),)),
    )


def _attempts() -> tuple[Panel, ...]:
    leases = lines(
        "Leases lost and given back",
        "A second. A single bump is a node that died; a steady line is a job that kills its node,"
        " or leases too short for how long the nodes are held up.",
        Query(total(rate(of_node("musterd_leases_lost_total"))), "lost"),
        Query(total(rate(of_node("musterd_leases_requeued_total"))), "given back"),
    )
    outcomes = areas(
        "Attempts by their outcome",
        "How attempts end, a second. A growing share of `retrying`: something that the kinds need"
        " fails; of `failed`: it fails for good.",
        Query(total(rate(of_kind("musterd_job_run_seconds_count")), "outcome"), "{{outcome}}"),
    )
    retries = areas(
        "Retries by kind",
        "Attempts that ended in another try, a second. As many as there are jobs: a storm; what"
        " the kind needs is down.",
        Query(total(rate(of_kind("musterd_job_retries_total")), "kind"), "{{kind}}"),
    )
    return (
        attrs.evolve(leases, unit="ops", runbook="MusterdLeasesExpiring"),
        attrs.evolve(outcomes, unit="ops", page="states"),
        attrs.evolve(retries, unit="ops", runbook="MusterdRetryStorm"),
    )


def _duties() -> tuple[Panel, ...]:
    leaders = lines(
        "Tenants whose duty somebody has",
        "By duty; as many as there are tenants, if all is well (schedules: only where there are"
        " some). 0: no node reaches the store, or none can do it.",
        Query(total(of_node("musterd_duty_leader"), "duty"), "{{duty}}"),
    )
    failures = areas(
        "Runs of duties that failed",
        "By duty, a second. `musterd duties` has the last error of each.",
        Query(total(rate(of_node(RUNS, 'result="error"')), "duty"), "{{duty}}"),
    )
    since = lines(
        "Since a duty last went well",
        "By duty, on whichever node did it last. A line that climbs while somebody has the duty:"
        " it fails or hangs. Some run once a minute or less often.",
        Query(
            f"time() - max by (duty) ({of_node('musterd_duty_last_success_timestamp_seconds')})",
            "{{duty}}",
        ),
    )
    return (
        attrs.evolve(leaders, runbook="MusterdNoLeader"),
        attrs.evolve(failures, unit="ops", runbook="MusterdDutyFailing"),
        attrs.evolve(since, unit="s", page="duties"),
    )


def _others() -> tuple[Panel, ...]:
    webhooks = areas(
        "Webhooks by result",
        "Tries to tell of a job's end, a second. `retried`: the receiver is down or slow;"
        " `failed`: it was given up, see `musterd webhooks --state failed`.",
        Query(total(rate(of_node("musterd_webhooks_total")), "result"), "{{result}}"),
    )
    halted = lines(
        "Targets halted, by tenant",
        "Targets whose jobs wait behind a failed or paused one, until somebody resumes, cancels"
        " or clears it. `musterd why ID` names it.",
        Query(of_store("musterd_targets_halted"), "{{tenant}}"),
    )
    generations = lines(
        "Configuration in use, by node",
        "Counts the configurations that a node has taken since its start. Nodes that were reloaded"
        " together should rise together.",
        Query(of_node("musterd_config_generation"), "{{instance}}"),
    )
    return (
        attrs.evolve(webhooks, unit="ops", runbook="MusterdWebhookFailing"),
        attrs.evolve(halted, runbook="MusterdTargetHalted"),
        attrs.evolve(generations, page="configuration"),
    )
