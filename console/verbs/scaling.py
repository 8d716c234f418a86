"""`musterd scaling`: the journal of the supervisor."""

from __future__ import annotations

from typing import Any

import click

from musterd.console.ask import NodeSilent, ask_node
from musterd.console.exits import Complaint, Exit
from musterd.console.given import Given, Verb
from musterd.console.out import print_json, say

SHOWN = 20


@click.command(cls=Verb)
@click.option(
    "--limit", type=click.IntRange(min=1), default=SHOWN, show_default=True, help="The newest."
)
@click.pass_obj
def scaling(given: Given, limit: int) -> None:
    """Show why the crew has its size."""
    try:
        settings = given.settings()
        answer = ask_node(settings, f"/scaling?tenant={settings.tenant}")
    except NodeSilent as silence:
        raise Complaint(Exit.UNAVAILABLE, str(silence), "start one with `musterd run`") from silence
    decisions: list[dict[str, Any]] = answer["decisions"][-limit:]
    if given.json:
        for decision in decisions:
            print_json(decision)
        return
    if not decisions:
        say("no decision has been made yet")
    for line in _lines(decisions):
        say(line)


def _lines(decisions: list[dict[str, Any]]) -> list[str]:
    from musterd.store.words import table

    seen = ("at", "due", "others", "share", "busy", "crew")
    heads = (*seen, "wished", "limited by", "became", "done")
    rows = [
        (
            decision["at"][11:23] + "Z",
            _cell(decision["due"]),
            _cell(decision["others_free"]),
            _cell(decision["share"]),
            _cell(decision["busy"]),
            _cell(decision["size_before"]),
            _cell(decision["raw_wish"]),
            _cell(decision["limited_by"]),
            _cell(decision["desired"]),
            _done(decision),
        )
        for decision in decisions
    ]
    return table(heads, rows, right=frozenset({1, 2, 3, 4, 5, 6, 8}))


def _cell(value: object) -> str:
    return "-" if value is None else str(value)


def _done(decision: dict[str, Any]) -> str:
    acts = (("hired", "hired"), ("taken_back", "took back"), ("retired", "retired"))
    return ", ".join(f"{word} {decision[key]}" for key, word in acts if decision[key]) or "-"
