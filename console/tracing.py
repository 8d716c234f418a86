"""Getting the trace for `musterd simulate` and `musterd tune`: from the store's log, or a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

from musterd.console.exits import Complaint, Exit
from musterd.console.verbs.events import Since, read_since

if TYPE_CHECKING:
    from musterd.config.settings import Settings
    from musterd.console.given import Given
    from musterd.console.simulate.model import Rules
    from musterd.console.simulate.reading import TraceReader
    from musterd.console.simulate.trace import Trace
    from musterd.store.engine import Engine
    from musterd.store.events import Event

STRETCH = 5_000  # events taken at once from a file
Command = TypeVar("Command", bound=Callable[..., Any])


def trace_options(verb: Command) -> Command:
    """Gives a verb the options that say where its trace comes from."""
    file = click.option(
        "--trace",
        "source",
        type=click.File(encoding="utf-8", errors="replace"),
        metavar="FILE|-",
        help="A log as `musterd events --since 0 --json` writes it, in place of the store.",
    )
    since = click.option(
        "--since",
        callback=read_since,
        metavar="7d|POSITION|TIME",
        help="Only what is newer; default: all that is kept.",
    )
    return file(since(verb))


def rules_of(settings: Settings) -> Rules:
    """What the model knows of the settings, made by the daemon's own function."""
    from musterd.console.simulate.model import Rules
    from musterd.manager.scaling.supervisor import policy_of

    return Rules(policy_of(settings), settings.workers.scale_interval_ms / 1000)


def read_trace(
    given: Given, settings: Settings, source: TextIO | None, since: Since | None
) -> Trace:
    """Reads the trace; complains where there is none."""
    from musterd.console.simulate.reading import TraceReader

    reader = TraceReader()
    if source is None:
        _from_store(settings, reader, since)
    else:
        _from_file(source, reader, given.tenant, since)
    trace = reader.trace
    if trace is not None:
        return trace
    raise _nothing(source, since)


def _nothing(source: TextIO | None, since: Since | None) -> Complaint:
    where, advice = "the log of the store", "run some jobs first"
    if source is not None:
        where, advice = source.name, "write one with `musterd events --since 0 --json`"
    if since is not None:
        advice = "go further back with --since"
    what = "no job has both its start and its end there"
    return Complaint(Exit.UNKNOWN, f"{where} holds nothing to simulate: {what}", advice)


def _from_store(settings: Settings, reader: TraceReader, since: Since | None) -> None:
    from musterd.console.log_reading import ordered, pages_between
    from musterd.console.opening import in_store
    from musterd.console.verbs.events import position_since
    from musterd.store.events import EventFilter

    which = EventFilter(types=frozenset({"job", "worker"}))

    async def work(engine: Engine) -> None:
        newest = await ordered(engine.events)
        start = await position_since(engine, since, newest)
        async for page in pages_between(engine.events, which, start, newest):
            reader.take(page)
            if reader.is_full:
                return

    in_store(settings, work)


def _from_file(
    source: TextIO, reader: TraceReader, tenant: str | None, since: Since | None
) -> None:
    from itertools import islice

    from musterd.console.verify.lines import NoLog, events_of

    if isinstance(since, float):
        raise click.UsageError("of a file --since takes a position or a time only")
    events = (one for one in events_of(source, tenant) if _is_newer(one, since))
    try:
        while not reader.is_full and (stretch := list(islice(events, STRETCH))):
            reader.take(stretch)
    except NoLog as error:
        advice = "it must be as `musterd events --since 0 --json` writes it"
        raise Complaint(Exit.USAGE, f"{source.name}: {error}", advice) from None


def _is_newer(event: Event, since: Since | None) -> bool:
    if since is None:
        return True
    return event.id > since if isinstance(since, int | float) else event.at >= since
