"""`musterd status`: a one-line answer, and what it is based on; `musterd top` gives the same."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import attrs
import click
import trio

from musterd.config.load import resolve_store_url
from musterd.config.settings import Settings
from musterd.config.tenant_names import DEFAULT_TENANT
from musterd.config.tenants import settings_of
from musterd.console.command import CommandLine, Verb
from musterd.console.daemon_client import NOBODY, DaemonSilent, ask_daemon
from musterd.console.output import Complaint, Exit
from musterd.manager.node.status import Decision, NodeStatus, counts_object, decision_text
from musterd.store.errors import StoreMisconfigured, StoreUnavailable
from musterd.store.lifecycle import JobState
from musterd.store.nodes import NodeRecord, warnings
from musterd.store.opening import Stores, reached
from musterd.store.queue import Counts
from musterd.store.remarks import Situation, behind, look_at
from musterd.store.remarks import remarks as store_remarks
from musterd.store.waiting import each_in_order
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
    settings = cli.settings_for()
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
    first, all_remarks = report.first, _remarks(report)
    remarked = f", with {plural(len(all_remarks), 'remark')}" if healthy and all_remarks else ""
    found = [f"{mood}{remarked}: {words}", f"  store   {first.where}"]
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
        found.append(f"  why     {decision_text(decision, paused=_is_paused(report.first))}")
    settled = count_text(crew_of["settled_total"])
    found.append(f"  settled {settled} since it started, {rate:.1f}/s on average")
    return found


def _is_paused(store: StoreAnswers) -> bool:
    return store.counts is not None and store.counts.paused_at is not None


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


BAR_CELLS_MAX = 40
STORES_AT_ONCE = 8
TENANTS_NAMED = 5  # tenants that are not well


@attrs.frozen
class StoreAnswers:
    """The answers of a tenant's store; with `error`, there are none."""

    settings: Settings
    where: str
    error: str | None = None
    situation: Situation | None = None

    @property
    def counts(self) -> Counts | None:
        return None if self.situation is None else self.situation.counts

    @property
    def nodes(self) -> Sequence[NodeRecord]:
        return () if self.situation is None else self.situation.nodes


@attrs.frozen
class HealthReport:
    """The first store is the one in question. `listens`: a daemon should answer."""

    stores: Sequence[StoreAnswers]
    node: dict[str, Any] | None
    silence: str
    listens: bool

    @property
    def first(self) -> StoreAnswers:
        return self.stores[0]

    @property
    def warnings(self) -> list[str]:
        """Where nodes disagree, each once: nodes with several tenants say so in each store."""
        return list(dict.fromkeys(said for store in self.stores for said in warnings(store.nodes)))

    def on_node(self, store: StoreAnswers) -> dict[str, Any] | None:
        """See `tenant_on_node`."""
        return tenant_on_node(self.node, store.settings.tenant, store.where)

    def is_well(self, store: StoreAnswers) -> bool:
        """Whether its store answers and the node serves it."""
        found = self.on_node(store)
        if found is None or store.error is not None:
            return False
        return found["phase"] == "running" and not found["store_trouble"]

    def verdict(self) -> tuple[Exit, str]:
        """Whether all is well, and one line that says why."""
        first = self.first
        tenant, where = first.settings.tenant, first.where
        code, words = judge(tenant, where, first.error, self.node, self.silence, self.listens)
        if code is not Exit.DONE or self.node is None:
            return code, words
        ill = [store.settings.tenant for store in self.stores if not self.is_well(store)]
        if not ill:
            return code, words
        more = f" and {len(ill) - TENANTS_NAMED} more" if len(ill) > TENANTS_NAMED else ""
        return Exit.UNSUCCESSFUL, f"{words}, but not for {', '.join(ill[:TENANTS_NAMED])}{more}"


def gather(settings: Settings, tenants: Sequence[Settings]) -> HealthReport:
    """Asks these tenants' stores and the daemon. Raises if the first store is unusable."""
    stores, alone = Stores(time.time, random.Random()), len(tenants) == 1
    asks = [partial(_ask_store, stores, one, alone=alone) for one in tenants]
    answers = trio.run(each_in_order, asks, STORES_AT_ONCE)
    node, silence = None, ""
    try:
        node = ask_daemon(settings, "/status")
    except DaemonSilent as silent:
        silence = str(silent)
    return HealthReport(answers, node, silence, bool(settings.http.listen))


async def _ask_store(stores: Stores, settings: Settings, *, alone: bool) -> StoreAnswers:
    """Its error ends the verb only if it is the only store."""
    engine = stores.engine(resolve_store_url(settings, os.environ), settings)
    try:
        async with reached(engine):
            return StoreAnswers(settings, engine.where, situation=await look_at(engine))
    except StoreUnavailable as error:
        return StoreAnswers(settings, engine.where, str(error))
    except (StoreMisconfigured, Complaint) as error:
        if alone or settings.tenant == DEFAULT_TENANT:
            raise
        return StoreAnswers(settings, engine.where, str(error))


def judge(
    tenant: str,
    where: str,
    error: str | None,
    node: Mapping[str, Any] | None,
    silence: str,
    listens: bool,
) -> tuple[Exit, str]:
    """A tenant's exit code and the reason. `error`: why its store did not answer. `node`: the
    daemon's answer; None = it is silent, and `silence` says where it was asked. `listens`: a daemon
    should answer.
    """
    if error is not None:
        return Exit.UNAVAILABLE, f"the store is not available: {error}"
    if node is None and listens:
        advice = "; start one with `musterd run`" if silence.startswith(NOBODY) else ""
        return Exit.UNSUCCESSFUL, f"{silence}{advice}"
    if node is None:
        return Exit.DONE, f"the store answers; {silence}"
    found = _tenant_named(node, tenant)
    if found is None:
        return Exit.UNSUCCESSFUL, f"the daemon that answers does not serve tenant {tenant}"
    if found["store"] != where:
        other = f"the daemon that answers uses another store ({found['store']})"
        return Exit.UNSUCCESSFUL, f"no daemon serves this store: {other}"
    return Exit.DONE if node["healthy"] else Exit.UNSUCCESSFUL, node["verdict"]


def tenant_on_node(
    node: Mapping[str, Any] | None, tenant: str, where: str
) -> dict[str, Any] | None:
    """A tenant's status on the daemon; None = it does not serve it, or uses another store."""
    seen = None if node is None else _tenant_named(node, tenant)
    return seen if seen is not None and seen["store"] == where else None


def decision_of(value: Mapping[str, Any] | None) -> Decision | None:
    """Reads a decision of a daemon of any version; None if it cannot be read."""
    if value is None:
        return None
    at: dict[str, Any] = {"at": 0.0}  # a text there
    known = {name: value[name] for name in attrs.fields_dict(Decision) if name in value}
    try:
        return Decision(**known | at)
    except TypeError:
        return None


def _tenant_named(whole: Mapping[str, Any], tenant: str) -> dict[str, Any] | None:
    return next((one for one in whole["node"]["tenants"] if one["name"] == tenant), None)


LATE_SECONDS = 60.0  # a job that waits for longer than this lacks a worker
FAULT_WIDTH = 120


def remarks(
    store: StoreAnswers, node: Mapping[str, Any] | None, crew: Mapping[str, Any] | None
) -> list[str]:
    """Remarks about one tenant; `node` and `crew` are the daemon's status and the tenant's."""
    found = [one_line(each) for each in (*_node_remarks(node, crew), *_full_remark(store, crew))]
    if store.situation is not None:
        found += store_remarks(store.situation, store.settings)
    return found


def _node_remarks(node: Mapping[str, Any] | None, crew: Mapping[str, Any] | None) -> Iterator[str]:
    if crew is not None and crew["store_trouble"] is not None:
        since = duration_text(crew["store_trouble_seconds"])
        yield f"TROUBLE {crew['store_trouble']} for {since}: {crew['store_message'] or ''}"
    if node is None:
        return
    if faults := node.get("reload_faults"):
        more = f" and {len(faults) - 1} more" if len(faults) > 1 else ""
        first = cut(one_line(faults[0]), FAULT_WIDTH)
        yield f"REFUSED the new configuration: {first}{more}; fix it, then `musterd reload --wait`"
    decision = node.get("last_decision")
    yield from behind(None if decision is None else decision.get("slack_seconds"))
    for one in node.get("tenants", ()):
        if said := one.get("retention_trouble"):
            yield f"TROUBLE no job of {one['name']} is deleted: archive {said}"
    for one in node.get("ignored", ()):
        since = duration_text(one["seconds"])
        what = f"job {one['job_id']} ({one['kind']}) still runs"
        yield f"IGNORED {one['request']}: {what}, asked to stop {since} ago"


def _full_remark(store: StoreAnswers, crew: Mapping[str, Any] | None) -> Iterator[str]:
    counts = store.counts
    if counts is None or crew is None or counts.paused_at is not None:
        return
    is_late = counts.due and counts.oldest_due_seconds >= LATE_SECONDS
    if is_late and crew["idle"] + crew["busy"] >= crew["max_count"]:
        yield "FULL    the crew is at its maximum: raise workers.max_count, or add a node"


def status_line(node: NodeStatus) -> str:
    size = node.idle + node.busy + node.retiring
    parts = [f"{size}/{node.max_count} workers", f"{node.busy} busy"]
    depth = "?" if node.depth is None else count_text(node.depth, exact=node.depth_exact)
    parts.append(f"{depth} due")
    parts.append(f"{count_text(node.settled_total)} done")
    if node.store_trouble is not None:
        since = duration_text(node.store_trouble_seconds)
        parts.append(f"store {node.store_trouble.replace('_', ' ')} for {since}")
    if node.phase != "running":
        left = node.drain_seconds_left if node.phase == "draining" else None
        rest = "" if left is None else f", {duration_text(max(0.0, left))} left"
        parts.insert(0, node.phase + rest)
    return " · ".join(parts)


def crew_bar(busy: int, idle: int, most: int) -> str:
    """A full cell for each busy worker, a hollow one for an idle one, a dot for one not hired."""
    unhired = max(0, most - busy - idle)
    return "■" * busy + "□" * idle + "·" * unhired if most <= BAR_CELLS_MAX else ""


def live_status(node: NodeStatus) -> str:
    bar = crew_bar(node.busy + node.retiring, node.idle, node.max_count)
    return f"{bar} {status_line(node)}".strip()


def states_text(counts: Counts, states: Iterable[JobState] = JobState) -> str:
    """The number of jobs in each state that has any."""
    shown = ((state, counts.by_state.get(state, 0)) for state in states)
    return ", ".join(f"{count_text(count)} {state.value}" for state, count in shown if count)


def due_text(counts: Counts, word: str = "") -> str:
    waits = f", the oldest for {duration_text(counts.oldest_due_seconds)}" if counts.due else ""
    return f"{count_text(counts.due)}{word}{waits}"
