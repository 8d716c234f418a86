"""`musterd drain`: the daemon of this machine takes no further job, lets those that run finish, and
ends; as TERM does it, from outside.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import click

from musterd.console.ask import NodeSilent, ask_node
from musterd.console.exits import Complaint, Exit
from musterd.console.given import Given, Verb
from musterd.console.opening import engine_for
from musterd.console.out import LiveLine, print_json, say

if TYPE_CHECKING:
    from musterd.config.settings import Settings

LOOK_SECONDS = 0.25
SILENT_SECONDS_MAX = 15.0  # a daemon that answers nothing for so long, and yet has not gone
NOBODY = "start one with `musterd run`, or say where it is with --set http.listen=…"


@click.command(cls=Verb)
@click.option("--wait", is_flag=True, help="Wait until it has ended, and show what it waits for.")
@click.pass_obj
def drain(given: Given, wait: bool) -> None:
    """Let the daemon finish its jobs and end.

    It takes no new jobs from now on. Jobs that still run when the grace period is over are given
    back, or paused, as [shutdown] says.
    """
    settings = given.settings()
    try:
        found = _begin(settings)
    except NodeSilent as silence:
        raise Complaint(Exit.UNAVAILABLE, f"nothing drains: {silence}", NOBODY) from silence
    node = found["node"]
    if wait:
        _watch(settings, node["node"], quiet=given.json)
    if given.json:
        state = "stopped" if wait else node["phase"]
        print_json({"node": node["node"], "phase": state, "jobs": 0 if wait else _jobs(node)})
    else:
        say(f"{node['node']} has ended" if wait else found["verdict"])


def _begin(settings: Settings) -> dict[str, Any]:
    """Raises `NodeSilent` where there is no daemon, or one of another store."""
    where = engine_for(settings).where
    place = ask_node(settings, "/status")["node"]["store"]
    if place != where:
        raise NodeSilent(f"the daemon that answers works on another store ({place})")
    return ask_node(settings, "/drain", "POST")


def _watch(settings: Settings, name: str, *, quiet: bool) -> None:
    """Returns when that node has gone."""
    live = LiveLine() if sys.stdout.isatty() and not quiet else None
    try:
        _wait_until_gone(settings, name, live)
    finally:
        if live is not None:
            live.done()


def _wait_until_gone(settings: Settings, name: str, live: LiveLine | None) -> None:
    heard = time.monotonic()
    while True:
        seen, is_gone = _look(settings)
        if is_gone or (seen is not None and seen["node"]["node"] != name):
            return  # nobody is there, or already the next one
        if seen is not None:
            heard = time.monotonic()
            if live is not None:
                live.show(seen["verdict"])
        elif time.monotonic() - heard > SILENT_SECONDS_MAX:
            what = f"{name} has not answered for {SILENT_SECONDS_MAX:g} s"
            raise Complaint(Exit.UNAVAILABLE, what, "its log says what it is doing")
        time.sleep(LOOK_SECONDS)


def _look(settings: Settings) -> tuple[dict[str, Any] | None, bool]:
    """What it says, and whether it has gone; None = it has not answered in time."""
    try:
        return ask_node(settings, "/status"), False
    except NodeSilent as silence:
        return None, silence.is_gone


def _jobs(node: dict[str, Any]) -> int:
    count: int = node["busy"] + node["retiring"]
    return count
