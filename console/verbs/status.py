"""`musterd status`: a one-line answer, then what it is based on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from musterd.config.tenant_names import DEFAULT_TENANT
from musterd.config.tenants import settings_of
from musterd.console.command import CommandLine, Verb
from musterd.console.health import (
    HealthReport,
    StoreAnswers,
    decision_of,
    due_text,
    gather,
    remarks,
    states_text,
)
from musterd.console.output import Exit
from musterd.manager.node.status import counts_object, decision_text
from musterd.store.lifecycle import JobState
from musterd.store.words import count_text, cut, duration_text, one_line, plural, table

LINES_MAX = 23  # and the prompt: one screen
REMARKS_MAX = 8
ERROR_WIDTH = 80


@click.command(cls=Verb)
@click.pass_context
def status(context: click.Context) -> None:
    """Report whether all is well.

    Shows queue, crew and store, for all tenants unless one is named; exits 0 if all is well.
    """
    cli: CommandLine = context.obj
    settings = cli.load().settings
    own = cli.of_tenant(settings)
    others = [settings_of(settings, name) for name in settings.tenants if cli.tenant is None]
    report = gather(settings, others or [own])
    cli.show([_object(report)], lambda: lines(report))
    context.exit(report.verdict()[0])


def lines(report: HealthReport) -> list[str]:
    """At most `LINES_MAX`."""
    code, words = report.verdict()
    healthy = code is Exit.DONE
    mood = click.style("healthy" if healthy else "NOT healthy", fg="green" if healthy else "red")
    first = report.first
    found = [f"{mood}: {words}", f"  store   {first.where}"]
    if len(report.stores) == 1 and first.counts is not None:
        found.append(f"  jobs    {states_text(first.counts) or 'none'}")
        found.append(f"  due     {due_text(first.counts)}")
    if report.node is not None:
        named = first.settings.tenant != DEFAULT_TENANT
        crew = report.on_node(first) if named else report.node["node"]
        found += _node_lines(report, crew or report.node["node"])
    live = [node for node in first.nodes if node.is_live]
    if len(live) > 1:
        leaving = sum(node.phase == "draining" for node in live)
        workers, busy = plural(sum(node.crew for node in live), "worker"), sum(n.busy for n in live)
        said = f", {leaving} draining" if leaving else ""
        found.append(f"  nodes   {len(live)}{said}: {workers}, {busy} busy")
    all_remarks = _remarks(report)
    if len(all_remarks) > REMARKS_MAX:
        left = len(all_remarks) - REMARKS_MAX + 1
        all_remarks[REMARKS_MAX - 1 :] = [f"and {left} more: --json has all of them"]
    found += [f"  {remark}" for remark in all_remarks]
    if len(report.stores) > 1:
        found += ["", *(f"  {line}" for line in _table(report, LINES_MAX - len(found) - 1))]
    return found


def _remarks(report: HealthReport) -> list[str]:
    alone = len(report.stores) == 1
    node = None if report.node is None else report.node["node"]
    found: list[str] = []
    for store in report.stores:
        crew = report.on_node(store)
        if crew is None and store is report.first:
            crew = node
        said = remarks(store, node if store is report.first else None, crew)
        name = "" if alone or store is report.first else f" [{store.settings.tenant}]"
        found += [f"{each}{name}" for each in said]
    return [*found, *(f"WARNING {said}" for said in report.warnings)]


def _table(report: HealthReport, rows_max: int) -> list[str]:
    """One line per tenant; if they do not fit, first those in trouble, then the fullest."""
    heads = ("tenant", "due", "oldest", "queued", "running", "failed", "crew", "")
    shown = list(report.stores)
    left: list[str] = []
    if len(shown) + 1 > rows_max:
        shown.sort(key=lambda one: (report.is_well(one), -(one.counts.due if one.counts else 0)))
        kept = max(1, rows_max - 2)
        more = plural(len(shown) - kept, "more tenant")
        left = [f"and {more}: `musterd status --tenant NAME`, or --json for all"]
        shown = shown[:kept]
    rows = [_row(store, report.on_node(store)) for store in shown]
    return [*table(heads, rows, right=frozenset({1, 2, 3, 4, 5, 6})), *left]


def _row(store: StoreAnswers, on_node: Mapping[str, Any] | None) -> tuple[str, ...]:
    name, counts = store.settings.tenant, store.counts
    crew, remark = "-", "not served"
    if on_node is not None:
        size = on_node["idle"] + on_node["busy"] + on_node["retiring"]
        crew = f"{on_node['busy']}/{size}"
        remark = on_node["store_trouble"] or ("" if on_node["phase"] == "running" else "waits")
    if counts is None:
        return (name, *("-",) * 5, crew, cut(one_line(store.error or ""), ERROR_WIDTH))
    if counts.paused_at is not None:
        remark = f"PAUSED by {one_line(counts.paused_by or 'somebody')}"
    states = (JobState.QUEUED, JobState.RUNNING, JobState.FAILED)
    numbers = [count_text(counts.by_state.get(state, 0)) for state in states]
    oldest = duration_text(counts.oldest_due_seconds) if counts.due else "-"
    return (name, count_text(counts.due), oldest, *numbers, crew, remark)


def _node_lines(report: HealthReport, crew_of: Mapping[str, Any]) -> list[str]:
    assert report.node is not None
    node = report.node["node"]
    size = crew_of["idle"] + crew_of["busy"] + crew_of["retiring"]
    up = duration_text(node["up_seconds"])
    crew = ", ".join(f"{crew_of[state]} {state}" for state in ("busy", "idle", "retiring"))
    rate = crew_of["settled_total"] / max(1.0, node["up_seconds"])
    found = [
        f"  node    {one_line(node['node'])}, {node['phase']}, up {up}{_generation(report)}",
        f"  crew    {size} of at most {crew_of['max_count']}: {crew}",
    ]
    decision = decision_of(node["last_decision"])
    if decision is not None and report.first.settings.tenant == DEFAULT_TENANT:
        found.append(f"  why     {decision_text(decision)}")
    settled = count_text(crew_of["settled_total"])
    found.append(f"  settled {settled} since it started, {rate:.1f}/s on average")
    return found


def _generation(report: HealthReport) -> str:
    """The node's configuration, once it has been reloaded."""
    assert report.node is not None
    name = report.node["node"]["node"]
    (generation,) = [one.config_generation for one in report.first.nodes if one.name == name] or [0]
    return f", configuration {generation}" if generation and generation > 1 else ""


def _object(report: HealthReport) -> dict[str, object]:
    first = report.first
    code, words = report.verdict()
    whole: dict[str, object] = {
        "healthy": code is Exit.DONE,
        "verdict": words,
        "tenant": first.settings.tenant,
        **_store_object(first),
        "node": None if report.node is None else report.node["node"],
        "warnings": report.warnings,
        "remarks": _remarks(report),
    }
    if len(report.stores) > 1:
        whole["tenants"] = [
            {"name": one.settings.tenant, **_store_object(one), "on_node": report.on_node(one)}
            for one in report.stores
        ]
    return whole


def _store_object(store: StoreAnswers) -> dict[str, object]:
    counts = None if store.counts is None else counts_object(store.counts)
    return {"store": {"where": store.where, "error": store.error}, "counts": counts}
