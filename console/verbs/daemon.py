"""`musterd reload`, `drain` and `scaling`: requests to the daemon on this machine."""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NoReturn

import click

from musterd.console.command import CommandLine, Verb
from musterd.console.daemon_client import DaemonSilent, ask_daemon, request
from musterd.console.opening import engine_for
from musterd.console.output import Complaint, Exit, LiveLine, live_line, print_json, say, say_lines
from musterd.store.words import table

if TYPE_CHECKING:
    from musterd.config.faults import ConfigError
    from musterd.config.settings import Settings


RELOAD_SECONDS = 65.0  # longer than the daemon lets anybody wait
START_SECONDS = 5.0
SIGNAL = "HUP reloads too, and needs neither address nor token: `systemctl reload musterd`"
NO_DAEMON_TO_RELOAD = (
    "start one with `musterd run`. If http.listen or a token has changed, the daemon still uses"
    f" the old one: give that with --set. {SIGNAL}"
)


@click.command(cls=Verb)
@click.option("--wait", is_flag=True, help="Wait for the result; exit 78 if the reload is refused.")
@click.pass_obj
def reload(cli: CommandLine, wait: bool) -> None:
    """Reload the daemon's configuration and catalog.

    The daemon applies the new ones whole, or keeps the old. It reads the files and options that it
    was started with, not those of this command.
    """
    settings, own_faults = _settings_to_ask(cli)
    try:
        status, found = _request_reload(settings, wait=wait)
    except DaemonSilent as silence:
        if own_faults is not None:  # which may be why no daemon was found
            raise own_faults from silence
        raise Complaint(Exit.UNAVAILABLE, f"no reload: {silence}", NO_DAEMON_TO_RELOAD) from silence
    if status == HTTPStatus.ACCEPTED and wait:
        said = f"{found['node']} has not finished within {RELOAD_SECONDS:g} s"
        raise Complaint(Exit.UNAVAILABLE, said, "it continues; its log will have the result")
    if status not in (HTTPStatus.OK, HTTPStatus.ACCEPTED):
        _refuse(status, found)
    if cli.json:
        print_json(found)
    elif status == HTTPStatus.ACCEPTED:
        say(f"{found['node']} is reloading; its log will have the result")
    else:
        _print_changes(found)


def _settings_to_ask(cli: CommandLine) -> tuple[Settings, ConfigError | None]:
    """The settings that lead to the daemon, and their faults: the daemon itself judges them."""
    from musterd.config.load import UnsoundSettings

    try:
        return cli.of_node(cli.load().settings), None
    except UnsoundSettings as unsound:
        return cli.of_node(unsound.best), unsound


def _request_reload(settings: Settings, *, wait: bool) -> tuple[int, dict[str, Any]]:
    """Raises `DaemonSilent` if there is no daemon of this store."""
    _check_daemon(settings)
    path = "/reload" if wait else "/reload?wait=false"
    return request(settings, path, "POST", RELOAD_SECONDS if wait else START_SECONDS)


def _refuse(status: int, found: dict[str, Any]) -> NoReturn:
    detail = str(found.get("detail", f"HTTP {status}"))
    if status == HTTPStatus.UNPROCESSABLE_ENTITY and "faults" in found:
        raise Complaint(Exit.CONFIGURATION, f"{detail}:", "\n  ".join(found["faults"]))
    raise Complaint(Exit.UNAVAILABLE, f"no reload: {detail}", SIGNAL)


def _print_changes(found: dict[str, Any]) -> None:
    from musterd.console.verbs.config import difference_lines

    lines = difference_lines(found)
    done = "nothing changed" if found["result"] == "unchanged" else "reloaded"
    say(f"{found['node']}: {done}; generation {found['generation']}")
    say_lines(lines)


LOOK_SECONDS = 0.25
SILENT_SECONDS_MAX = 15.0  # for a daemon that is there but does not answer
NO_DAEMON_TO_DRAIN = "start one with `musterd run`, or say where it is with --set http.listen=…"


@click.command(cls=Verb)
@click.option("--wait", is_flag=True, help="Wait until it has ended, showing what it waits for.")
@click.pass_obj
def drain(cli: CommandLine, wait: bool) -> None:
    """Drain the daemon: it finishes its jobs and ends.

    It takes no new jobs. Jobs that still run after the grace period are queued again, or paused, as
    [shutdown] says.
    """
    settings = cli.settings()
    try:
        found = _request_drain(settings)
    except DaemonSilent as silence:
        raise Complaint(Exit.UNAVAILABLE, f"no drain: {silence}", NO_DAEMON_TO_DRAIN) from silence
    node = found["node"]
    if wait:
        _watch_drain(settings, node["node"], quiet=cli.json)
    if cli.json:
        state = "stopped" if wait else node["phase"]
        print_json({"node": node["node"], "phase": state, "jobs": 0 if wait else _job_count(node)})
    else:
        say(f"{node['node']} has ended" if wait else found["verdict"])


def _request_drain(settings: Settings) -> dict[str, Any]:
    """Raises `DaemonSilent` if there is no daemon of this store."""
    _check_daemon(settings)
    return ask_daemon(settings, "/drain", "POST")


def _check_daemon(settings: Settings) -> None:
    where = ask_daemon(settings, "/status")["node"]["store"]
    if where != engine_for(settings).where:
        raise DaemonSilent(f"the daemon that answers uses another store ({where})")


def _watch_drain(settings: Settings, name: str, *, quiet: bool) -> None:
    """Returns when that node has gone."""
    with live_line(quiet=quiet) as live:
        _wait_until_gone(settings, name, live)


def _wait_until_gone(settings: Settings, name: str, live: LiveLine | None) -> None:
    heard = time.monotonic()
    while True:
        seen, is_gone = _ask_status(settings)
        if is_gone or (seen is not None and seen["node"]["node"] != name):
            return  # no daemon answers, or already the next one
        if seen is not None:
            heard = time.monotonic()
            if live is not None:
                live.show(seen["verdict"])
        elif time.monotonic() - heard > SILENT_SECONDS_MAX:
            what = f"{name} has not answered for {SILENT_SECONDS_MAX:g} s"
            raise Complaint(Exit.UNAVAILABLE, what, "its log says what it is doing")
        time.sleep(LOOK_SECONDS)


def _ask_status(settings: Settings) -> tuple[dict[str, Any] | None, bool]:
    """The status, None if there was no answer in time; and whether the daemon has gone."""
    try:
        return ask_daemon(settings, "/status"), False
    except DaemonSilent as silence:
        return None, silence.is_gone


def _job_count(node: dict[str, Any]) -> int:
    count: int = node["busy"] + node["retiring"]
    return count


DECISIONS_SHOWN = 20


@click.command(cls=Verb)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=DECISIONS_SHOWN,
    show_default=True,
    help="How many of the newest to show.",
)
@click.pass_obj
def scaling(cli: CommandLine, limit: int) -> None:
    """Show why the crew has its size."""
    try:
        settings = cli.settings()
        answer = ask_daemon(settings, f"/scaling?tenant={settings.tenant}")
    except DaemonSilent as silence:
        raise Complaint(Exit.UNAVAILABLE, str(silence), "start one with `musterd run`") from silence
    decisions: list[dict[str, Any]] = answer["decisions"][-limit:]
    cli.show(decisions, lambda: _decision_lines(decisions))


def _decision_lines(decisions: list[dict[str, Any]]) -> list[str]:
    if not decisions:
        return ["no decision has been made yet"]
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
