"""`musterd scaling`: the journal of decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any
from urllib.parse import urlencode

import click

from musterd.config.settings import Settings
from musterd.console.command import DAEMON_SECTIONS, CommandLine, Verb, moment_option
from musterd.console.daemon_client import DaemonSilent, ask_daemon, other_store
from musterd.console.output import Columns, complain, or_dash, table_of
from musterd.store.event_types import acts_text
from musterd.store.opening import engine_for, in_store
from musterd.store.scaling_journal import JournalRun, run_from, run_object
from musterd.store.words import one_line, time_text

SHOWN = 20
PAGE_MAX = 1_000  # rows that the daemon gives at once
SHOWN_MAX = 10_000
OWN_ONLY = (
    "these are the daemon's own latest decisions: its store does not answer, or keeps none"
    " (scaling.journal_days = 0)"
)
Row = Mapping[str, Any]


@click.command(cls=Verb)
@moment_option("--since", "Only what was decided since then: 03:12 (UTC), -2h or RFC 3339.")
@moment_option("--until", "Only what was decided by then.")
@click.option(
    "--limit",
    type=click.IntRange(1, SHOWN_MAX),
    default=SHOWN,
    show_default=True,
    help="How many rows of the newest to show.",
)
@click.pass_obj
def scaling(cli: CommandLine, since: datetime | None, until: datetime | None, limit: int) -> None:
    """Show why the crew has its size.

    Lists the decisions of all nodes, as the store keeps them; a row with more than one tick has
    like decisions in a row.
    """
    settings = cli.of_tenant(cli.settings_for(DAEMON_SECTIONS))
    found = [run_object(run) for run in read_journal(settings, since, until, limit)]
    nodes = {one["node"] for one in found}
    columns = dict(COLUMNS)
    if any(one["candidate"] is not None for one in found):
        columns[">candidate"] = _candidate_text
    if len(nodes) > 1:
        columns["node"] = lambda one: one_line(one["node"])
    cli.show(found, lambda: table_of(found, columns, "no decision has been made then"))


def read_journal(
    settings: Settings, since: datetime | None, until: datetime | None, limit: int
) -> Sequence[JournalRun]:
    """The newest rows, the oldest first: from the daemon, which knows what is not yet in the store;
    else from the store.
    """
    if not other_store(settings, engine_for(settings).where):
        try:
            return _from_daemon(settings, since, until, limit)
        except (DaemonSilent, KeyError):
            pass
    return in_store(settings, lambda engine: engine.journal.read(since, until, limit))


def _from_daemon(
    settings: Settings, since: datetime | None, until: datetime | None, limit: int
) -> Sequence[JournalRun]:
    found: list[JournalRun] = []
    end = time_text(until)
    while len(found) < limit:
        asked = {"since": time_text(since), "until": end, "tenant": settings.tenant}
        asked["limit"] = str(min(PAGE_MAX, limit - len(found)))
        query = urlencode({name: value for name, value in asked.items() if value is not None})
        page = ask_daemon(settings, f"/scaling?{query}")
        found[:0] = map(run_from, page["decisions"])
        end = page["next"]
        if not page["whole"]:
            _warn_of_own_only()
        if end is None:
            break
    return found


def _candidate_text(one: Row) -> str:
    """The crew that the candidate would have."""
    return or_dash(one["candidate"] and one["candidate"]["desired"])


@cache
def _warn_of_own_only() -> None:
    """Once."""
    complain(f"musterd: {OWN_ONLY}")


COLUMNS: Columns[Row] = {
    "at": lambda one: f"{one['at'][:10]} {one['at'][11:23]}Z",
    ">ticks": lambda one: str(one["ticks"]),
    ">due": lambda one: or_dash(one["due"]) + ("" if one["due_exact"] else "+"),
    ">others": lambda one: or_dash(one["others_free"]),
    ">share": lambda one: or_dash(one["share"]),
    ">busy": lambda one: or_dash(one["busy"]),
    ">crew": lambda one: or_dash(one["size_before"]),
    ">wished": lambda one: or_dash(one["raw_wish"]),
    "because": lambda one: or_dash(one["because"]),
    "limited by": lambda one: or_dash(one["limited_by"]),
    ">became": lambda one: or_dash(one["desired"]),
    "done": lambda one: acts_text(one) or "-",
}
