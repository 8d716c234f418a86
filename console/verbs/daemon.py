"""`musterd reload` and `drain`: requests to the daemon on this machine."""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any, TypeVar

import click

from musterd.config.faults import ConfigError
from musterd.config.load import UnsoundSettings
from musterd.config.settings import Settings
from musterd.config.tenants import settings_of
from musterd.console.command import DAEMON_SECTIONS, CommandLine, Verb
from musterd.console.daemon_client import DaemonSilent, ask_daemon, request
from musterd.console.output import Complaint, Exit, LiveLine, live_line
from musterd.console.verbs.config import difference_lines
from musterd.store.event_pages import order_all, pages_between
from musterd.store.events import EventFilter, EventLog
from musterd.store.opening import engine_for, in_store
from musterd.store.words import plural

T = TypeVar("T")

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
    path, patience = ("/reload", RELOAD_SECONDS) if wait else ("/reload?wait=false", START_SECONDS)
    try:
        _check_daemon(settings)
        status, found = request(settings, path, "POST", patience)
    except DaemonSilent as silence:
        if own_faults is not None:  # which may be why no daemon was found
            raise own_faults from silence
        raise Complaint(
            Exit.UNAVAILABLE, f"no reload: {silence}", _advice(silence, NO_DAEMON_TO_RELOAD)
        ) from silence
    if status == HTTPStatus.ACCEPTED and wait:
        said = f"{found['node']} has not finished within {RELOAD_SECONDS:g} s"
        raise Complaint(Exit.UNAVAILABLE, said, "it continues; its log will have the result")
    if status not in (HTTPStatus.OK, HTTPStatus.ACCEPTED):
        detail = str(found.get("detail", f"HTTP {status}"))
        if status == HTTPStatus.UNPROCESSABLE_ENTITY and "faults" in found:
            raise Complaint(Exit.CONFIGURATION, f"{detail}:", "\n  ".join(found["faults"]))
        raise Complaint(Exit.UNAVAILABLE, f"no reload: {detail}", SIGNAL)
    if status == HTTPStatus.ACCEPTED:
        cli.answer(found, f"{found['node']} is reloading; its log will have the result")
    else:
        done = "nothing changed" if found["result"] == "unchanged" else "reloaded"
        said = f"{found['node']}: {done}; generation {found['generation']}"
        cli.answer(found, said, *difference_lines(found), CODE_IS_NEW)


SLOW = "look at its log, and ask again"


def _advice(silence: DaemonSilent, nobody: str) -> str:
    return SLOW if silence.is_slow else nobody


CODE_IS_NEW = (
    "code of Python kinds is read anew by the jobs that start now; task and thread: restart"
)


def _settings_to_ask(cli: CommandLine) -> tuple[Settings, ConfigError | None]:
    """The settings that lead to the daemon, and their faults: the daemon judges them itself."""
    try:
        return cli.of_node(cli.load().settings), None
    except UnsoundSettings as unsound:
        return cli.of_node(unsound.best), unsound


LOOK_SECONDS = 0.25
SILENT_SECONDS_MAX = 15.0  # for a daemon that is there but does not answer
NO_DAEMON_TO_DRAIN = "start one with `musterd run`, or say where it is with --set http.listen=…"


@click.command(cls=Verb)
@click.option("--wait", is_flag=True, help="Wait until it has ended, showing what it waits for.")
@click.pass_obj
def drain(cli: CommandLine, wait: bool) -> None:
    """Drain the daemon: it finishes its jobs and ends.

    It takes no new jobs. Jobs that still run after the grace period are queued again, or paused, as
    [shutdown] says. With --wait it exits 1 if there were any.
    """
    settings = cli.of_tenant(cli.settings_for(DAEMON_SECTIONS))
    before: dict[str, int] = {}
    try:
        _check_daemon(settings)
        if wait:
            before = {name: _of_store(settings, name, order_all) for name in settings.tenants}
        found = ask_daemon(settings, "/drain", "POST")
    except DaemonSilent as silence:
        raise Complaint(
            Exit.UNAVAILABLE, f"no drain: {silence}", _advice(silence, NO_DAEMON_TO_DRAIN)
        ) from silence
    node = found["node"]
    name, phase, said = node["node"], node["phase"], found["verdict"]
    jobs = node["busy"] + node["retiring"]
    if wait:
        with live_line(quiet=cli.json) as live:
            _wait_until_gone(settings, name, live)
        ends = [
            end
            for tenant, position in before.items()
            for end in _of_store(settings, tenant, partial(_ends, name, position))
        ]
        _answer_end(cli, name, ends)
        return
    cli.answer({"node": name, "phase": phase, "jobs": jobs}, said)


def _answer_end(cli: CommandLine, name: str, ends: Sequence[Mapping[str, Any]]) -> None:
    """Says which jobs did not end; exits 1 if there are any. `ends`: what `node.stopped` said, of
    each tenant.
    """
    counts = {how: sum(end.get(how, 0) for end in ends) for how in ("interrupted", "abandoned")}
    ids = {
        f"{how}_jobs": [job_id for end in ends for job_id in end.get(f"{how}_jobs", ())]
        for how in counts
    }
    lines = [f"{name} has ended" if ends else f"{name} has ended; its log says how"]
    for how, count in counts.items():
        if count:
            named = ", ".join(map(str, ids[f"{how}_jobs"]))
            lines.append(f"  {plural(count, 'job')} {how}: {named}")
    jobs = sum(counts.values())
    cli.answer({"node": name, "phase": "stopped", "jobs": jobs, **counts, **ids}, *lines)
    if jobs:
        sys.exit(Exit.UNSUCCESSFUL)


def _of_store(settings: Settings, tenant: str, work: Callable[[EventLog], Awaitable[T]]) -> T:
    return in_store(settings_of(settings, tenant), lambda engine: work(engine.events))


async def _ends(name: str, after: int, log: EventLog) -> list[Mapping[str, Any]]:
    """What was said of the stops of this node since that position."""
    which = EventFilter(types=frozenset({"node.stopped"}))
    newest = await order_all(log)
    return [
        one.data
        async for page in pages_between(log, which, after, newest)
        for one in page
        if one.data.get("node") == name
    ]


def _check_daemon(settings: Settings) -> None:
    """Raises `DaemonSilent` if there is no daemon of this store."""
    where = ask_daemon(settings, "/status")["node"]["store"]
    if where != engine_for(settings).where:
        raise DaemonSilent(f"the daemon that answers uses another store ({where})")


def _wait_until_gone(settings: Settings, name: str, live: LiveLine) -> None:
    """Returns when no daemon answers, or another one."""
    heard = time.monotonic()
    while True:
        try:
            seen = ask_daemon(settings, "/status")
        except DaemonSilent as silence:
            if silence.is_gone:
                return
        else:
            if seen["node"]["node"] != name:
                return
            heard = time.monotonic()
            live.show(seen["verdict"])
        if time.monotonic() - heard > SILENT_SECONDS_MAX:
            what = f"{name} has not answered for {SILENT_SECONDS_MAX:g} s"
            raise Complaint(Exit.UNAVAILABLE, what, "its log says what it is doing")
        time.sleep(LOOK_SECONDS)
