"""`musterd reload`: the daemon of this machine reads its configuration and catalog anew."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NoReturn

import click

from musterd.console.ask import NodeSilent, ask_for_any, ask_node
from musterd.console.exits import Complaint, Exit
from musterd.console.given import Given, Verb
from musterd.console.out import print_json, say

if TYPE_CHECKING:
    from musterd.config.faults import ConfigError
    from musterd.config.settings import Settings

WAIT_SECONDS = 65.0  # longer than the daemon lets anybody wait
TELL_SECONDS = 5.0
SIGNAL = "HUP reloads too, and needs neither address nor token: `systemctl reload musterd`"
NOBODY = (
    "start one with `musterd run`. If http.listen or a token is another by now, the daemon goes by"
    f" the old one: give that with --set. {SIGNAL}"
)


@click.command(cls=Verb)
@click.option("--wait", is_flag=True, help="Wait for what comes of it; exit 78 if it is refused.")
@click.pass_obj
def reload(given: Given, wait: bool) -> None:
    """Let the daemon read its configuration and catalog anew.

    It takes the new ones over whole, or keeps the old. It reads the files and options that it was
    started with, not those of this command.
    """
    settings, own_faults = _settings(given)
    try:
        status, found = _ask(settings, wait=wait)
    except NodeSilent as silence:
        if own_faults is not None:  # which may be why nobody was found
            raise own_faults from silence
        raise Complaint(Exit.UNAVAILABLE, f"nothing reloads: {silence}", NOBODY) from silence
    if status == HTTPStatus.ACCEPTED and wait:
        said = f"{found['node']} has not finished within {WAIT_SECONDS:g} s"
        raise Complaint(Exit.UNAVAILABLE, said, "it goes on; its log tells what comes of it")
    if status not in (HTTPStatus.OK, HTTPStatus.ACCEPTED):
        _refuse(status, found)
    if given.json:
        print_json(found)
    elif status == HTTPStatus.ACCEPTED:
        say(f"{found['node']} reloads; its log tells what comes of it")
    else:
        _tell(found)


def _settings(given: Given) -> tuple[Settings, ConfigError | None]:
    """The daemon judges the new configuration. Where it has faults, what is sound of it leads to
    the daemon.
    """
    from musterd.config.load import UnsoundSettings

    try:
        return given.of_node(given.load().settings), None
    except UnsoundSettings as unsound:
        return given.of_node(unsound.best), unsound


def _ask(settings: Settings, *, wait: bool) -> tuple[int, dict[str, Any]]:
    """Raises `NodeSilent` where there is no daemon, or one of another store."""
    from musterd.console.opening import engine_for

    where, place = engine_for(settings).where, ask_node(settings, "/status")["node"]["store"]
    if place != where:
        raise NodeSilent(f"the daemon that answers works on another store ({place})")
    path = "/reload" if wait else "/reload?wait=false"
    return ask_for_any(settings, path, "POST", WAIT_SECONDS if wait else TELL_SECONDS)


def _refuse(status: int, found: dict[str, Any]) -> NoReturn:
    detail = str(found.get("detail", f"HTTP {status}"))
    if status == HTTPStatus.UNPROCESSABLE_ENTITY and "faults" in found:
        raise Complaint(Exit.CONFIGURATION, f"{detail}:", "\n  ".join(found["faults"]))
    raise Complaint(Exit.UNAVAILABLE, f"nothing reloads: {detail}", SIGNAL)


def _tell(found: dict[str, Any]) -> None:
    from musterd.console.differences import lines_of

    lines = lines_of(found)
    done = "nothing is different" if found["result"] == "unchanged" else "reloaded"
    say(f"{found['node']}: {done}; generation {found['generation']}")
    for line in lines:
        say(line)
