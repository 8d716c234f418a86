"""`musterd run`: the daemon, in the foreground."""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import os
import shlex
import shutil
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TextIO, cast

import click
import trio
from attrs import evolve, frozen

from musterd.catalog.kinds import Catalog
from musterd.config.credentials import resolve_http_tokens, resolve_signing_keys
from musterd.config.listen import listen_address
from musterd.config.secrets import mask_url
from musterd.config.settings import Settings
from musterd.console.command import CommandLine, Verb
from musterd.console.output import LiveLine, say
from musterd.console.verbs.kinds import check_kinds, check_kinds_at_start, log_broken_hooks
from musterd.console.wiring import Node, early_and_late_signals, http_deps, make_node
from musterd.manager.log import event, set_up_log
from musterd.manager.node.process import collect_seldom, keep_capabilities, keep_memory_private
from musterd.manager.node.systemd import ServiceManager, take_service_manager
from musterd.web.samples import Samples
from musterd.web.server.listening import address_text, listener_at, port_of
from musterd.workers.runners.orphans import adopt, end_orphans

REDRAW_SECONDS = 0.25
ANSWER_SECONDS = 0.1
ORPHANS_SECONDS = 5.0  # between two looks
LAST_SPANS_SECONDS = 5.0  # for those that are not yet sent


@click.command(cls=Verb)
@click.option("--watch", is_flag=True, help="Reload when files of kinds or configuration change.")
@click.pass_obj
def run(cli: CommandLine, watch: bool) -> None:
    """Run the daemon, in the foreground.

    TERM or INT (Ctrl-C) drains it: running jobs finish, no further one is taken. A second signal
    gives the running jobs back at once. HUP reloads configuration and catalog.
    """
    if cli.tenant is not None:
        raise click.UsageError("a daemon serves all tenants: omit --tenant")
    keep_memory_private()
    keep_capabilities()
    service_manager = take_service_manager(os.environ, os.getpid())  # before there are children
    if service_manager is not None and service_manager.watchdog_seconds is not None:
        faulthandler.enable()  # the watchdog's ABRT then logs where the loop hangs
    loaded, catalog = cli.load_all()
    settings = loaded.settings
    is_for_people = sys.stderr.isatty() and settings.log.format in ("auto", "text")
    live = LiveLine(sys.stderr, quiet=not is_for_people)
    # A live line takes the log's lines too, so that they pass above it.
    stream = cast(TextIO, live) if is_for_people else sys.stderr
    log = set_up_log(settings.log.level, settings.log.format, time.monotonic, stream)
    adopt()
    catalog = check_kinds_at_start(catalog, settings, log)
    if status := trio.run(_run, cli, (settings, catalog), (log, live), service_manager, watch):
        sys.exit(status)


def _reread(cli: CommandLine, log: logging.Logger) -> tuple[Settings, Catalog]:
    """Reads everything again, as at the start. Blocks; raises ConfigError."""
    loaded, catalog = cli.load_all()
    resolve_signing_keys(loaded.settings, os.environ)
    log_broken_hooks(loaded.settings, log)
    return loaded.settings, check_kinds(catalog, loaded.settings)


async def _run(
    cli: CommandLine,
    start: tuple[Settings, Catalog],
    outputs: tuple[logging.Logger, LiveLine],
    service_manager: ServiceManager | None,
    watches: bool,
) -> int:
    """Gives the exit status."""
    (settings, catalog), (log, live) = start, outputs
    node = make_node(settings, catalog, log, None, lambda: _reread(cli, log), service_manager)
    with early_and_late_signals(node.daemon.stop), _listening(settings, node) as listener:
        address = ""
        async with trio.open_nursery() as nursery:
            if listener is not None:
                address = address_text(listener)
                nursery.start_soon(_serve, settings, node, log, listener)
            named = reach_of(cli.config_file, cli.sets, os.environ)
            _greet(address, node, log, named.at(settings.http.listen, address))
            if not live.is_quiet:
                from musterd.console.verbs.status import live_status

                nursery.start_soon(
                    live.keep_showing, lambda: live_status(node.daemon.status()), REDRAW_SECONDS
                )
            collect_seldom()
            nursery.start_soon(_end_orphans, log)
            if watches:
                nursery.start_soon(_watch, cli, node, log)
            await node.daemon.run()
            if address:  # the request to drain is still being answered
                await trio.sleep(ANSWER_SECONDS)
            nursery.cancel_scope.cancel()
        if node.tracing is not None:
            with trio.move_on_after(LAST_SPANS_SECONDS):
                await trio.to_thread.run_sync(node.tracing.close, abandon_on_cancel=True)
    return node.daemon.exit_status


async def _end_orphans(log: logging.Logger) -> None:
    """Those that the ends of their attempts have missed, and reaps the others once they end."""
    while True:
        await trio.sleep(ORPHANS_SECONDS)
        if left := await end_orphans():
            event(log, logging.WARNING, "processes outlive their jobs", count=left)


async def _watch(cli: CommandLine, node: Node, log: logging.Logger) -> None:
    from musterd.config.load import SYSTEM_FILE
    from musterd.console.watching import Watcher

    await Watcher(node.daemon, log, cli.config_file or SYSTEM_FILE).run()


@contextlib.contextmanager
def _listening(settings: Settings, node: Node) -> Generator[trio.SocketListener | None]:
    """The listener of the web side, whose callers wait until it serves; None = it is off."""
    address = listen_address(settings.http.listen)
    if address is None:
        yield None  # and its libraries are never loaded
        return
    node.keys.tokens = resolve_http_tokens(settings, os.environ)
    with listener_at(address) as listener:
        node.own_port.number = port_of(listener)
        yield listener


async def _serve(
    settings: Settings, node: Node, log: logging.Logger, listener: trio.SocketListener
) -> None:
    """The first connection loads the libraries: a daemon that nobody calls never has them."""
    deps, address = http_deps(settings, node, log), listen_address(settings.http.listen)
    assert address is not None, "somebody listens"
    samples = Samples(deps)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(samples.run)
        await trio.lowlevel.wait_readable(listener.socket)
        # Where no thread can be started now, the next line loads them, and holds up the loop.
        with contextlib.suppress(RuntimeError):
            await trio.to_thread.run_sync(import_module, "musterd.web.server.serving")
        from musterd.web.server.serving import serve_at

        await serve_at(deps, address, listener, samples)


def _greet(address: str, node: Node, log: logging.Logger, reach: Reach) -> None:
    """Shows addresses, and what to type next."""
    pages = {"page": f"{address}/", "metrics": f"{address}/metrics"} if address else {}
    event(log, logging.INFO, "starting", store=node.engine.where, **pages)
    if not sys.stdout.isatty():
        return
    lines = [("store", node.engine.where), *pages.items()]
    name, there = (
        _own_name(),
        "in another terminal, in this folder" if reach.here else "in another terminal",
    )
    if reach.exports:
        lines.append(("first", f"export {reach.exports}    ({there})"))
    kind = next(iter(node.daemon.catalog), "KIND")
    kind = "report" if "report" in node.daemon.catalog else kind
    lines.append(("try", f"{name} enqueue {kind} --wait{reach.options}    ({there})"))
    also = (f"{name} {verb}{reach.options}" for verb in ("status", "jobs", "kinds"))
    lines.append(("also", " · ".join(also)))
    lines.append(("stop", "Ctrl-C waits for running jobs; a second one does not"))
    for name, text in lines:
        say(f"  {name:<8}{text}")


REACHING = ("store", "tenants", "http", "catalog")  # what other verbs must be given too
STATE_VARIABLES = ("STATE_DIRECTORY", "XDG_STATE_HOME")


@frozen
class Reach:
    """What other verbs need to reach the same store: options behind them, variables before them.
    `here`: paths are relative to this folder.
    """

    options: str
    exports: str
    here: bool

    def at(self, wanted: str, address: str) -> Reach:
        """If any port would do, the one that it has become comes last, where it wins."""
        if not wanted.endswith(":0"):
            return self
        return evolve(
            self, options=f"{self.options} --set http.listen={address.removeprefix('http://')}"
        )


def reach_of(file: Path | None, sets: Sequence[str], environ: Mapping[str, str]) -> Reach:
    """What may be a secret is left out: `…` stands for it."""
    settings = [text for text in sets if text.partition(".")[0].strip() in REACHING]
    options = [f" --config {shlex.quote(str(file))}"] if file is not None else []
    options += [f" --set {_assignment(*text.partition('='))}" for text in settings]
    named = [
        name
        for name in sorted(environ)
        if name in STATE_VARIABLES
        or name.removeprefix("MUSTERD_").partition("__")[0].lower() in REACHING
    ]
    exports = [_assignment(name, "=", environ[name]) for name in named if environ[name]]
    is_here = any(map(_is_of_folder, settings)) or (file is not None and not file.is_absolute())
    return Reach("".join(options), " ".join(exports), is_here)


def _is_of_folder(text: str) -> bool:
    """Whether this setting leads elsewhere from another folder."""
    key, _, value = text.partition("=")
    bare = value.strip().strip("[]\"' ")
    scheme, separator, path = bare.partition(":///")
    if separator:
        return scheme == "sqlite" and not path.startswith("/")
    if bare.startswith("unix:"):
        return not bare.startswith("unix:/")
    is_path = key.strip().endswith(("_file", "paths", "python_path"))
    return is_path and bare != "" and not bare.startswith("/")


def _assignment(name: str, _equals: str, value: str) -> str:
    is_secret = "token" in name.lower() or mask_url(value) != value
    return f"{name}=…" if is_secret else shlex.quote(f"{name}={value}")


def _own_name() -> str:
    """How to call this program from the current folder: it may not be on PATH."""
    if shutil.which("musterd"):
        return "musterd"
    program = Path(sys.argv[0]).absolute()
    if program.name == "__main__.py":
        return f"{_from_here(Path(sys.executable))} -m musterd"
    return _from_here(program)


def _from_here(program: Path) -> str:
    here = Path.cwd()
    found = program.relative_to(here) if program.is_relative_to(here) else program
    return shlex.quote(str(found))
