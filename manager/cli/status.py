"""`musterd status`: is it healthy? One line that answers, then what the answer stands on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from musterd.manager.cli.ask import NodeSilent, ask_node
from musterd.manager.cli.exits import Exit
from musterd.manager.cli.given import Given, Verb
from musterd.manager.cli.opening import engine_for, in_store
from musterd.manager.cli.out import print_json, say

if TYPE_CHECKING:
    from musterd.config.settings import Settings
    from musterd.store.engine import Engine
    from musterd.store.job import Counts


class Seen:
    """What was found out: about the store, about the node, and what follows from both."""

    def __init__(self, settings: Settings) -> None:
        self.where = engine_for(settings).where
        self.counts, self.store_error = _ask_store(settings)
        self.node, self.silence = _ask_node(settings)
        self.code, self.verdict = self._judge(settings)

    def _judge(self, settings: Settings) -> tuple[Exit, str]:
        if self.store_error is not None:
            return Exit.UNAVAILABLE, f"the store is not available: {self.store_error}"
        if self.node is not None:
            return self._judge_node(self.node)
        if settings.http.listen:
            return Exit.UNSUCCESSFUL, f"{self.silence}; start one with `musterd run`"
        return Exit.DONE, f"the store answers; {self.silence}"

    def _judge_node(self, node: dict[str, Any]) -> tuple[Exit, str]:
        place = node["node"]["store"]
        if place != self.where:
            other = f"the daemon that answers works on another store ({place})"
            return Exit.UNSUCCESSFUL, f"no daemon works here: {other}"
        return (Exit.DONE if node["healthy"] else Exit.UNSUCCESSFUL), node["verdict"]


@click.command(cls=Verb)
@click.pass_context
def status(context: click.Context) -> None:
    """Say whether all is well.

    Shows queue, crew and store, and exits 0 if all is well.
    """
    given: Given = context.obj
    seen = Seen(given.settings())
    if given.json:
        print_json(_object(seen))
    else:
        for line in _lines(seen):
            say(line)
    context.exit(seen.code)


def _ask_store(settings: Settings) -> tuple[Counts | None, str | None]:
    from musterd.store.errors import StoreUnavailable

    async def work(engine: Engine) -> Counts:
        return await engine.counts()

    try:
        return in_store(settings, work), None
    except StoreUnavailable as error:
        return None, str(error)


def _ask_node(settings: Settings) -> tuple[dict[str, Any] | None, str]:
    try:
        return ask_node(settings, "/status"), ""
    except NodeSilent as silence:
        return None, str(silence)


def _object(seen: Seen) -> dict[str, object]:
    from musterd.manager.objects import counts_object

    return {
        "healthy": seen.code is Exit.DONE,
        "verdict": seen.verdict,
        "store": {"where": seen.where, "error": seen.store_error},
        "counts": None if seen.counts is None else counts_object(seen.counts),
        "node": None if seen.node is None else seen.node["node"],
    }


def _lines(seen: Seen) -> list[str]:
    healthy = seen.code is Exit.DONE
    mood = click.style("healthy" if healthy else "NOT healthy", fg="green" if healthy else "red")
    lines = [f"{mood}: {seen.verdict}", f"  store   {seen.where}"]
    if seen.counts is not None:
        lines += _queue_lines(seen.counts)
    if seen.node is not None:
        lines += _node_lines(seen.node["node"])
    return lines


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


def _node_lines(node: dict[str, Any]) -> list[str]:
    from musterd.store.words import count_text, duration_text, one_line

    size = node["idle"] + node["busy"] + node["retiring"]
    up = duration_text(node["up_seconds"])
    crew = ", ".join(f"{node[state]} {state}" for state in ("busy", "idle", "retiring"))
    lines = [
        f"  node    {one_line(node['node'])}, {node['phase']}, up {up}",
        f"  crew    {size} of at most {node['max_count']}: {crew}",
        f"  settled {count_text(node['settled_total'])} since it started",
    ]
    if node["store_trouble"] is not None:
        since = duration_text(node["store_trouble_seconds"])
        said = one_line(node["store_message"] or "")
        lines.append(f"  TROUBLE {node['store_trouble']} for {since}: {said}")
    return lines
