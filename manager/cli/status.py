"""`musterd status`: is it healthy? One line that answers, then what the answer stands on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import click

from musterd.config.tenant_names import DEFAULT_TENANT
from musterd.manager.cli.ask import NodeSilent, ask_node
from musterd.manager.cli.exits import Complaint, Exit
from musterd.manager.cli.given import Given, Verb
from musterd.manager.cli.opening import engine_for, visit
from musterd.manager.cli.out import print_json, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from musterd.config.settings import Settings
    from musterd.store.engine import Engine
    from musterd.store.job import Counts
    from musterd.store.nodes import NodeRecord

ASKED_AT_ONCE = 8
ERROR_WIDTH = 80


@attrs.frozen
class Asked:
    """What a tenant's store has answered."""

    settings: Settings
    where: str
    counts: Counts | None
    error: str | None
    warnings: Sequence[str] = ()  # what its nodes do not agree on


class Seen:
    """What was found out: about the stores, about the node, and what follows from both."""

    def __init__(self, settings: Settings, tenants: Sequence[Settings]) -> None:
        self.asked = _ask_stores(tenants)
        self.first = self.asked[0]
        self.node, self.silence = _ask_node(settings)
        self.code, self.verdict = self._judge(settings)

    @property
    def warnings(self) -> list[str]:
        """What nodes do not agree on; those that serve several tenants say so in each store."""
        return list(dict.fromkeys(said for asked in self.asked for said in asked.warnings))

    def on_node(self, asked: Asked) -> dict[str, Any] | None:
        """What the node says of a tenant; None = it does not serve it, or works elsewhere."""
        found = {} if self.node is None else _by_name(self.node["node"])
        seen = found.get(asked.settings.tenant)
        return seen if seen is not None and seen["store"] == asked.where else None

    def _judge(self, settings: Settings) -> tuple[Exit, str]:
        if self.first.error is not None:
            return Exit.UNAVAILABLE, f"the store is not available: {self.first.error}"
        if self.node is not None:
            return self._judge_node(self.node)
        if settings.http.listen:
            return Exit.UNSUCCESSFUL, f"{self.silence}; start one with `musterd run`"
        return Exit.DONE, f"the store answers; {self.silence}"

    def _judge_node(self, node: dict[str, Any]) -> tuple[Exit, str]:
        tenant = self.first.settings.tenant
        found = _by_name(node["node"]).get(tenant)
        if found is None:
            return Exit.UNSUCCESSFUL, f"the daemon that answers does not serve tenant {tenant}"
        if found["store"] != self.first.where:
            other = f"the daemon that answers works on another store ({found['store']})"
            return Exit.UNSUCCESSFUL, f"no daemon works here: {other}"
        if not node["healthy"]:
            return Exit.UNSUCCESSFUL, node["verdict"]
        ill = [asked.settings.tenant for asked in self.asked if not self._is_well(asked)]
        if ill:
            return Exit.UNSUCCESSFUL, f"{node['verdict']}, but not for {', '.join(ill)}"
        return Exit.DONE, node["verdict"]

    def _is_well(self, asked: Asked) -> bool:
        found = self.on_node(asked)
        if found is None or asked.error is not None:
            return False
        return found["phase"] == "running" and not found["store_trouble"]


@click.command(cls=Verb)
@click.pass_context
def status(context: click.Context) -> None:
    """Say whether all is well.

    Shows queue, crew and store, of all tenants unless one is named; exits 0 if all is well.
    """
    from musterd.config.tenants import settings_of

    given: Given = context.obj
    settings = given.load().settings
    own = given.seen_by(settings)
    others = [settings_of(settings, name) for name in settings.tenants if given.tenant is None]
    seen = Seen(settings, others or [own])
    if given.json:
        print_json(_object(seen))
    else:
        for line in _lines(seen):
            say(line)
    context.exit(seen.code)


def _ask_stores(tenants: Sequence[Settings]) -> list[Asked]:
    import trio

    found: list[Asked | None] = [None] * len(tenants)

    async def ask(place: int, limit: trio.CapacityLimiter) -> None:
        async with limit:
            found[place] = await _ask_store(tenants[place], alone=len(tenants) == 1)

    async def ask_all() -> None:
        limit = trio.CapacityLimiter(ASKED_AT_ONCE)
        async with trio.open_nursery() as nursery:
            for place in range(len(tenants)):
                nursery.start_soon(ask, place, limit)

    trio.run(ask_all)
    return [asked for asked in found if asked is not None]


async def _ask_store(settings: Settings, *, alone: bool) -> Asked:
    """What makes the only store useless ends the verb; of several it is said of that one."""
    from musterd.store.disagreement import warnings
    from musterd.store.errors import StoreMisconfigured, StoreUnavailable

    async def work(engine: Engine) -> tuple[Counts, list[NodeRecord]]:
        return await engine.counts(), await engine.nodes()

    where = engine_for(settings).where
    try:
        counts, nodes = await visit(settings, work)
        return Asked(settings, where, counts, None, warnings(nodes))
    except StoreUnavailable as error:
        return Asked(settings, where, None, str(error))
    except (StoreMisconfigured, Complaint) as error:
        if alone or settings.tenant == DEFAULT_TENANT:
            raise
        return Asked(settings, where, None, str(error))


def _by_name(node: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {tenant["name"]: tenant for tenant in node["tenants"]}


def _ask_node(settings: Settings) -> tuple[dict[str, Any] | None, str]:
    try:
        return ask_node(settings, "/status"), ""
    except NodeSilent as silence:
        return None, str(silence)


def _object(seen: Seen) -> dict[str, object]:
    first = seen.first
    whole: dict[str, object] = {
        "healthy": seen.code is Exit.DONE,
        "verdict": seen.verdict,
        "tenant": first.settings.tenant,
        "store": {"where": first.where, "error": first.error},
        "counts": _counts(first),
        "node": None if seen.node is None else seen.node["node"],
        "warnings": seen.warnings,
    }
    if len(seen.asked) > 1:
        whole["tenants"] = [_tenant_object(seen, asked) for asked in seen.asked]
    return whole


def _tenant_object(seen: Seen, asked: Asked) -> dict[str, object]:
    return {
        "name": asked.settings.tenant,
        "store": {"where": asked.where, "error": asked.error},
        "counts": _counts(asked),
        "on_node": seen.on_node(asked),
    }


def _counts(asked: Asked) -> dict[str, object] | None:
    from musterd.manager.objects import counts_object

    return None if asked.counts is None else counts_object(asked.counts)


def _lines(seen: Seen) -> list[str]:
    healthy = seen.code is Exit.DONE
    mood = click.style("healthy" if healthy else "NOT healthy", fg="green" if healthy else "red")
    lines = [f"{mood}: {seen.verdict}", f"  store   {seen.first.where}"]
    first = seen.first
    if len(seen.asked) == 1 and first.counts is not None:
        lines += _queue_lines(first.counts)
    if seen.node is not None:
        named = first.settings.tenant != DEFAULT_TENANT
        crew = seen.on_node(first) if named else seen.node["node"]
        lines += _node_lines(seen.node["node"], crew or seen.node["node"])
    lines += [f"  WARNING {said}" for said in seen.warnings]
    if len(seen.asked) > 1:
        lines += ["", *(f"  {line}" for line in _table(seen))]
    return lines


def _table(seen: Seen) -> list[str]:
    """One line a tenant."""
    from musterd.store.words import table

    heads = ("tenant", "due", "oldest", "queued", "running", "failed", "crew", "")
    rows = [_row(asked, seen.on_node(asked)) for asked in seen.asked]
    return table(heads, rows, right=frozenset({1, 2, 3, 4, 5, 6}))


def _row(asked: Asked, on_node: dict[str, Any] | None) -> tuple[str, ...]:
    from musterd.store.job import JobState
    from musterd.store.words import count_text, cut, duration_text, one_line

    name, counts = asked.settings.tenant, asked.counts
    crew, remark = "-", "not served"
    if on_node is not None:
        size = on_node["idle"] + on_node["busy"] + on_node["retiring"]
        crew = f"{on_node['busy']}/{size}"
        remark = on_node["store_trouble"] or ("" if on_node["phase"] == "running" else "waits")
    if counts is None:
        return (name, *("-",) * 5, crew, cut(one_line(asked.error or ""), ERROR_WIDTH))
    if counts.paused_at is not None:
        remark = f"PAUSED by {one_line(counts.paused_by or 'somebody')}"
    states = (JobState.QUEUED, JobState.RUNNING, JobState.FAILED)
    numbers = [count_text(counts.by_state.get(state, 0)) for state in states]
    oldest = duration_text(counts.oldest_due_seconds) if counts.due else "-"
    return (name, count_text(counts.due), oldest, *numbers, crew, remark)


def _queue_lines(counts: Counts) -> list[str]:
    from musterd.store.job import JobState
    from musterd.store.words import count_text, duration_text

    states = [(state.value, counts.by_state.get(state, 0)) for state in JobState]
    shown = ", ".join(f"{count_text(count)} {state}" for state, count in states if count)
    lines = [f"  jobs    {shown or 'none'}"]
    waits = f", the oldest for {duration_text(counts.oldest_due_seconds)}" if counts.due else ""
    lines.append(f"  due     {count_text(counts.due)}{waits}")
    if counts.paused_at is not None:
        lines.append(f"  PAUSED  by {counts.paused_by or 'somebody'}: `musterd queue resume`")
    return lines


def _node_lines(node: dict[str, Any], crew_of: dict[str, Any]) -> list[str]:
    from musterd.store.words import count_text, duration_text, one_line

    size = crew_of["idle"] + crew_of["busy"] + crew_of["retiring"]
    up = duration_text(node["up_seconds"])
    crew = ", ".join(f"{crew_of[state]} {state}" for state in ("busy", "idle", "retiring"))
    lines = [
        f"  node    {one_line(node['node'])}, {node['phase']}, up {up}",
        f"  crew    {size} of at most {crew_of['max_count']}: {crew}",
        f"  settled {count_text(crew_of['settled_total'])} since it started",
    ]
    if crew_of["store_trouble"] is not None:
        since = duration_text(crew_of["store_trouble_seconds"])
        said = one_line(crew_of["store_message"] or "")
        lines.append(f"  TROUBLE {crew_of['store_trouble']} for {since}: {said}")
    lines += [
        f"  TROUBLE no job of {one['name']} is deleted: archive {one_line(said)}"
        for one in node.get("tenants", ())
        if (said := one.get("retention_trouble"))
    ]
    for one in node.get("ignored", ()):
        since = duration_text(one["seconds"])
        what = f"job {one['job_id']} ({one_line(one['kind'])}) goes on"
        lines.append(f"  IGNORED {one['request']}: {what}, told to stop {since} ago")
    return lines
