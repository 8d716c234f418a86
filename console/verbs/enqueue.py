"""`musterd enqueue KIND`: makes jobs, and waits for them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import trio

from musterd.catalog.kinds import Catalog, Pipeline, UnknownKind, WorkKind
from musterd.config.faults import Unfit
from musterd.config.job_options import (
    BY_NAME,
    FLAG,
    MOMENT,
    OPTIONS,
    SECONDS,
    TRACEPARENT,
    JobOption,
)
from musterd.config.settings import Settings
from musterd.config.webhook_urls import check_allowed
from musterd.console.command import CommandLine, Verb, read_delay, read_moment, read_target
from musterd.console.completers import complete_kinds, complete_targets
from musterd.console.daemon_client import other_store
from musterd.console.output import (
    Complaint,
    Exit,
    LiveLine,
    StoreAwayNotice,
    coloured,
    complain,
    print_json,
    say,
)
from musterd.console.verbs.jobs import progress_words, running_line
from musterd.manager.tenancy.starting import kind_rules
from musterd.store.engine import Engine
from musterd.store.errors import StoreUnavailable
from musterd.store.input import PayloadLimits, check_payload, new_job
from musterd.store.jobs import JobRecord, NewJob
from musterd.store.lifecycle import ENDED, JobState
from musterd.store.nodes import NodeRecord
from musterd.store.opening import in_store
from musterd.store.report import error_line, job_object, overall
from musterd.store.words import count_text, duration_text, one_line, plural

BATCH = 1000
COUNT_MAX = 10_000_000


def _job_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed([one for one in OPTIONS if one.flags]):
        command = _click_option(option)(command)
    return command


def _click_option(option: JobOption) -> Callable[[Callable[..., None]], Callable[..., None]]:
    how: dict[str, Any] = {"help": option.help, "metavar": option.metavar}
    if option.type is FLAG:
        how["is_flag"] = True
    elif option.type is SECONDS:
        how["callback"] = read_delay
    elif option.type is MOMENT:
        how["callback"] = read_moment
    elif option.type.bounds is not None:
        how["type"] = click.IntRange(*option.type.bounds)
    if option.name == "target":
        how |= {"callback": read_target, "shell_complete": complete_targets}
    return click.option(*option.flags, option.name, **how)


@click.command(cls=Verb)
@click.argument("kind", shell_complete=complete_kinds)
@_job_options
@click.option("--count", type=click.IntRange(1, COUNT_MAX), help="Enqueue this many.")
@click.option("--wait", is_flag=True, help="Wait for the result; exit 1 unless it succeeds.")
@click.pass_context
def enqueue(
    context: click.Context,
    /,
    kind: str,
    payload: str | None,
    count: int | None,
    wait: bool,
    **options: object,
) -> None:
    """Enqueue a job of KIND."""
    cli: CommandLine = context.obj
    _check_together(options, count)
    settings = cli.of_tenant(cli.load().settings)
    catalog = cli.catalog(settings)
    wanted = kind_named(catalog, kind)
    if options["traceparent"] is None:
        options["traceparent"] = _trace_around()
    chosen = {name: value for name, value in options.items() if value is not None}
    job = new_job(wanted.name, None, {"priority": wanted.priority, **chosen})
    job = job._replace(payload=_checked_payload(payload or "{}", settings))
    _check_webhook(job.webhook, settings)

    async def work(engine: Engine) -> Waited:
        await _store_phases(engine, wanted, catalog, settings)
        if job.dedup_key is None:
            ids, is_new = await _enqueue_all(engine, job, count or 1), True
        else:
            ((made, is_new),) = await engine.jobs.enqueue_keyed([job])
            ids = [made]
        if not cli.json:
            known = f"job {ids[0]} already has this key: none was enqueued"
            say(_receipt(ids, job) if is_new else known)
        waited = Waited(ids, quiet=cli.json)
        nodes = await engine.nodes.all()
        if said := nobody_runs(kind, nodes) or _by_another_store(settings, engine, nodes):
            complain(f"musterd: warning: {said}")
        if wait:
            await wait_for(engine, waited)
        waited.last = await engine.jobs.get(ids[-1])
        return waited

    waited = in_store(settings, work, creates=True)
    if cli.json:
        print_json(_object(waited, count, catalog, settings.tenant))
    context.exit(Exit.DONE if waited.succeeded else Exit.UNSUCCESSFUL)


def _check_together(options: Mapping[str, object], count: int | None) -> None:
    for option in OPTIONS:
        if option.excludes and None not in (options[option.name], options[option.excludes]):
            flags = f"{BY_NAME[option.excludes].flags[0]} and {option.flags[0]}"
            raise click.UsageError(f"{flags} exclude each other")
    if count is not None and options["dedup_key"] is not None:
        raise click.UsageError("--count and --dedup exclude each other")


def _trace_around() -> str | None:
    """What whoever called this verb is in."""
    around = os.environ.get("TRACEPARENT")
    return around if TRACEPARENT.fits(around) else None


def nobody_runs(kind: str, nodes: Sequence[NodeRecord]) -> str:
    """If no live node can run a kind, why; nodes that do not know it may have another catalog."""
    claiming = [node for node in nodes if node.claims]
    if not claiming:
        return ""
    if all(node.lacks(kind) for node in claiming):
        do = "it waits until one does: add the kind to a node's [catalog] paths, then reload"
        return f"no live node knows kind {kind} - {do}"
    broken = [known.broken for node in claiming if (known := node.named.get(kind)) is not None]
    if len(broken) == len(claiming) and all(broken):
        return f"kind {kind} can run on no live node: {one_line(str(broken[0]))}"
    return ""


def _by_another_store(settings: Settings, engine: Engine, nodes: Sequence[NodeRecord]) -> str:
    """If no node works on this store, whether the daemon that one would expect does on another."""
    return "" if any(node.is_live for node in nodes) else other_store(settings, engine.where)


def kind_named(catalog: Catalog, name: str) -> WorkKind:
    """Complains if there is no such kind."""
    try:
        return catalog.known(name)
    except UnknownKind as error:
        advice = f"did you mean {error.guess}? " if error.guess else ""
        advice += "`musterd kinds` lists them"
        raise Complaint(Exit.UNKNOWN, str(error), advice) from None


def _checked_payload(source: str, settings: Settings) -> str:
    """Raises `InputRefused` if no job could read it."""
    limits = settings.limits
    text = _payload_text(source, limits.max_payload_bytes)
    check_payload(text, PayloadLimits(limits.max_payload_bytes, limits.max_payload_depth))
    return text


def _check_webhook(url: str | None, settings: Settings) -> None:
    if url is not None:
        try:
            check_allowed(url, settings.webhooks.policy)
        except Unfit as unfit:
            raise click.UsageError(f"--webhook: {unfit}") from None


def _payload_text(source: str, max_bytes: int) -> str:
    if source != "-" and not source.startswith("@"):
        return source
    try:
        # One byte more than allowed is enough to be refused.
        if source == "-":
            raw = sys.stdin.buffer.read(max_bytes + 1)
        else:
            with Path(source[1:]).open("rb") as file:
                raw = file.read(max_bytes + 1)
        return raw.decode("utf-8")
    except OSError as error:
        raise click.UsageError(f"--payload: {source[1:]}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise click.UsageError(f"--payload: not UTF-8 at byte {error.start}") from error


async def _store_phases(
    engine: Engine, kind: WorkKind, catalog: Catalog, settings: Settings
) -> None:
    """Stores the kind's phases, so that a job shows them before any node knows its kind."""
    if isinstance(kind.behaviour, Pipeline):
        await engine.nodes.declare_kinds({kind.name: kind_rules(catalog, settings)[kind.name]})


async def _enqueue_all(engine: Engine, job: NewJob, count: int) -> list[int]:
    """In batches, each whole or not at all; a failure says how many were enqueued."""
    ids: list[int] = []
    hidden = count <= BATCH or not sys.stderr.isatty()
    label = f"enqueueing {job.kind}"
    with click.progressbar(length=count, label=label, file=sys.stderr, hidden=hidden) as bar:
        try:
            while len(ids) < count:
                made = await engine.jobs.enqueue([job] * min(BATCH, count - len(ids)))
                ids += made
                bar.update(len(made))
        except BaseException:
            if ids:
                complain(f"{len(ids)} jobs were enqueued before this:")
            raise
    return ids


def _receipt(ids: list[int], job: NewJob) -> str:
    due = ""
    if job.delay_seconds:
        due = f", due in {duration_text(job.delay_seconds)}"
    elif job.run_at is not None:
        due = f", due at {job.run_at.isoformat()}"
    state = "held" if job.hold else "queued"
    if len(ids) == 1:
        return f"job {ids[0]} {state}{due}"
    return f"{plural(len(ids), 'job')} {state}{due}: {ids[0]} to {ids[-1]}"


def _object(waited: Waited, count: int | None, catalog: Catalog, tenant: str) -> dict[str, object]:
    if count is not None or waited.last is None:
        first, last = waited.ids[0], waited.ids[-1]
        return {"count": len(waited.ids), "first_id": first, "last_id": last}
    return job_object(waited.last, tenant, catalog.budget_of(waited.last.kind))


LOOK_SECONDS_MIN = 0.02
LOOK_SECONDS_MAX = 0.5
STORE_PAUSE_SECONDS = 1.0
HINT_SECONDS = 5.0


class Waited:
    """The enqueued jobs and how they ended. Shows progress on a terminal; a file gets little."""

    def __init__(self, ids: list[int], *, quiet: bool) -> None:
        self.ids = ids
        self.last: JobRecord | None = None
        self.ended: dict[str, int] = {}
        self.away = StoreAwayNotice()
        self._quiet, self._line = quiet, LiveLine(quiet=quiet or not sys.stdout.isatty())
        self._said_hint = False
        self._first_look: float | None = None
        self._said_progress = ""

    @property
    def succeeded(self) -> bool:
        return all(state == "succeeded" for state in self.ended)

    def looked(self, record: JobRecord) -> None:
        now, ended, count = trio.current_time(), sum(self.ended.values()), len(self.ids)
        self._first_look = now if self._first_look is None else self._first_look
        self._line.show(f"{ended}/{count} ended" if count > 1 else running_line(record))
        if self._line.is_quiet and count == 1 and not self._quiet:
            self._say_progress(record)
        is_stuck = record.state is JobState.QUEUED and record.attempt == 0 and not ended
        if is_stuck and not self._said_hint and now - self._first_look > HINT_SECONDS:
            self._said_hint = True
            complain("still queued: is a daemon running? See `musterd status`")

    def end(self, record: JobRecord | None) -> None:
        state = "gone" if record is None else record.state.value
        self.ended[state] = self.ended.get(state, 0) + 1
        if len(self.ids) == 1 and record is not None and not self._quiet:
            self._line.done()
            say(coloured(state, _ending(record)))

    def close(self) -> None:
        if len(self.ids) > 1 and not self._quiet:
            self._line.done()
            say(", ".join(f"{count_text(n)} {state}" for state, n in sorted(self.ended.items())))

    def _say_progress(self, record: JobRecord) -> None:
        if not record.phases and record.progress is None:
            return
        words = progress_words(record)
        line = f"job {record.id} {overall(record)} %{', ' if words else ''}{words}"
        if line != self._said_progress and record.state is JobState.RUNNING:
            self._said_progress = line
            say(line)


async def wait_for(engine: Engine, waited: Waited) -> None:
    """Waits until all jobs have ended or are paused, also while the store is away."""
    for job_id in waited.ids:
        waited.end(await _end_of(engine, job_id, waited))
    waited.close()


async def _end_of(engine: Engine, job_id: int, waited: Waited) -> JobRecord | None:
    pause_seconds = LOOK_SECONDS_MIN
    while True:
        try:
            record = await engine.jobs.get(job_id)
        except StoreUnavailable as error:
            waited.away.say(str(error))
            await trio.sleep(STORE_PAUSE_SECONDS)
            continue
        if record is None or record.state in ENDED or record.state is JobState.PAUSED:
            return record
        waited.looked(record)
        await trio.sleep(pause_seconds)
        pause_seconds = min(LOOK_SECONDS_MAX, pause_seconds * 1.5)


def _ending(record: JobRecord) -> str:
    words = f"job {record.id} {record.state.value}"
    if record.started_at is not None and record.finished_at is not None:
        words += f" after {duration_text((record.finished_at - record.started_at).total_seconds())}"
    if record.attempt > 1:
        words += f", at attempt {record.attempt}"
    said = error_line(record.error)
    return f"{words}: {said}" if said and record.state.value != "succeeded" else words
