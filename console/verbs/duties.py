"""`musterd duties`: which node does the background work of all, and how it gets on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from musterd.console.given import Given, Verb
from musterd.console.opening import in_store
from musterd.console.out import print_json, say

if TYPE_CHECKING:
    from datetime import datetime

    from musterd.store.duties import DutyRecord
    from musterd.store.engine import Engine


@click.command(cls=Verb)
@click.pass_obj
def duties(given: Given) -> None:
    """Show who does which duty, since when, and what came of it."""
    from musterd.store.duties import duty_object

    async def work(engine: Engine) -> list[DutyRecord]:
        return await engine.duties.duties()

    settings = given.settings()
    found = in_store(settings, work)
    if given.json:
        for one in found:
            print_json(duty_object(one, settings.tenant))
        return
    for line in _lines(found):
        say(line)


def _lines(found: list[DutyRecord]) -> list[str]:
    from musterd.store.words import count_text, cut, duration_text, one_line, table

    if not found:
        return ["no node has taken a duty: start one with `musterd run`, duties.mode = leader"]
    heads = (
        *("duty", "node", "held for", "last seen", "last run", "runs", "items", "errors"),
        *("hand-overs", "last error"),
    )
    rows = [
        (
            one.duty,
            one_line(one.node or "nobody"),
            "-" if one.held_seconds is None else duration_text(one.held_seconds),
            _ago(one.heartbeat_at, one.now),
            _ago(one.last_run_at, one.now),
            count_text(one.runs),
            count_text(one.items),
            count_text(one.errors),
            count_text(one.hand_overs),
            cut(one_line(one.last_error or ""), 60) or "-",
        )
        for one in found
    ]
    return table(heads, rows, right=frozenset({2, 3, 4, 5, 6, 7, 8}))


def _ago(at: datetime | None, now: datetime) -> str:
    from musterd.store.words import duration_text

    return "-" if at is None else f"{duration_text((now - at).total_seconds())} ago"
