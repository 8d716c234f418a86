"""`musterd cancel|pause|resume|release|clear`: acts on jobs by id, or on all that match."""

from __future__ import annotations

import re
import signal
import sys
from typing import Any

import attrs
import click
import trio

from musterd.config.settings import Settings
from musterd.console.command import VERBS, CommandLine, Verb, read_delay
from musterd.console.completers import complete_jobs
from musterd.console.daemon_client import other_store
from musterd.console.output import (
    Columns,
    Complaint,
    Exit,
    LiveLine,
    complain,
    live_line,
    print_json,
    say,
    say_lines,
    table_of,
)
from musterd.store import bulk
from musterd.store.bulk import Group, Survey, Tally
from musterd.store.control import ControlResult, Selection, states_for
from musterd.store.engine import Engine
from musterd.store.lifecycle import Action, JobState
from musterd.store.opening import engine_for, in_store
from musterd.store.report import control_refusal
from musterd.store.words import count_text, one_line, plural


def _verb(action: str) -> click.Command:
    @click.command(action, cls=Verb, help=VERBS[action][1])
    @click.argument(
        "job_ids",
        metavar="[ID]...",
        nargs=-1,
        type=click.IntRange(min=1),
        shell_complete=complete_jobs,
    )
    @click.option(
        "--where",
        multiple=True,
        metavar="KEY=VALUE[,…]",
        help="All jobs that match: state, kind, target, priority. A repeated key means either"
        " value.",
    )
    @click.option(
        "--older",
        "older_seconds",
        callback=read_delay,
        metavar="DURATION",
        help="Only jobs enqueued, or ended, longer ago than this: 10m, 2h, 1d.",
    )
    @click.option("--limit", type=click.IntRange(min=1), help="Act on at most this many.")
    @click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
    @click.option("--dry-run", is_flag=True, help="Only report how many jobs match.")
    @click.pass_context
    def verb(context: click.Context, /, job_ids: tuple[int, ...], **bulk: Any) -> None:
        cli: CommandLine = context.obj
        request = BulkRequest(action=action, json=cli.json, **bulk)
        _check(job_ids, request)
        if job_ids:
            context.exit(_act_on_each(cli, action, job_ids))
        context.exit(act_on_all(cli.settings(), request))

    return verb


def _check(job_ids: tuple[int, ...], request: BulkRequest) -> None:
    if job_ids and (request.is_there or request.limit is not None or request.dry_run):
        raise click.UsageError("give IDs, or a filter (--where, --older), not both")
    if not job_ids and not request.is_there:
        example = f"musterd {request.action} --where kind=report --older 1h"
        raise click.UsageError(f"give the ID of a job, or a filter: {example}")


def _act_on_each(cli: CommandLine, action: str, job_ids: tuple[int, ...]) -> Exit:
    """Acts on each and reports it; the first failure is the exit code."""

    async def work(engine: Engine) -> list[ControlResult]:
        return [await engine.control.apply(Action(action), job_id) for job_id in job_ids]

    codes: list[Exit] = []
    settings = cli.settings()
    for job_id, done in zip(job_ids, in_store(settings, work), strict=True):
        became = "queued" if done.state_after is JobState.QUEUED else Action(action).past
        became += f" (it was {done.state_before})"
        if done.requested:
            became = f"is {done.state_after}: its worker has been asked to {action} it"
        if cli.json:
            shown = attrs.asdict(done)
            print_json({"id": job_id, "state": shown.pop("state_after"), **shown})
        elif done.allowed:
            say(f"job {job_id} {became}")
        if not done.allowed:
            complain(f"musterd: {control_refusal(job_id, action, done.state_before)}")
            if not done.found and (other := other_store(settings, engine_for(settings).where)):
                complain(f"  {other}")
            codes.append(Exit.WRONG_STATE if done.found else Exit.UNKNOWN)
    return codes[0] if codes else Exit.DONE


cancel, pause, resume, release, clear = (_verb(action.value) for action in Action)


KEYS = ("state", "kind", "target", "priority")
PRIORITY_MIN, PRIORITY_MAX = -32768, 32767
_NEXT_KEY = re.compile(r",(?=[a-z_]+=)")


@attrs.frozen
class BulkRequest:
    action: str
    where: tuple[str, ...]
    older_seconds: float | None
    limit: int | None
    yes: bool
    dry_run: bool
    json: bool

    @property
    def is_there(self) -> bool:
        return bool(self.where) or self.older_seconds is not None


def act_on_all(settings: Settings, request: BulkRequest) -> Exit:
    """Shows what matches, asks, then acts."""
    which = read_selection(request)

    async def look(engine: Engine) -> tuple[Selection, Survey]:
        pinned = await bulk.pin(engine, which)
        return pinned, await bulk.survey(engine, pinned, request.limit)

    pinned, found = in_store(settings, look)
    if not request.json:
        say_lines(_survey_lines(found))
    if not found.matched or request.dry_run:
        return _report_bulk(request, found, None)
    _confirm(request, found)
    return _report_bulk(request, found, _act_on_all(settings, request, pinned, found))


def read_selection(request: BulkRequest) -> Selection:
    """Reads `state=failed,kind=x`; values of one key are alternatives. Raises click.UsageError."""
    values: dict[str, list[str]] = {key: [] for key in KEYS}
    for text in request.where:
        for part in _NEXT_KEY.split(text):
            key, equals, value = part.partition("=")
            if key not in values or not equals or not value:
                wanted = f"found {part!r}, wanted {', '.join(f'{one}=…' for one in KEYS)}"
                no_value = f"--where {part}: found no value"
                is_known = equals and key in KEYS
                raise click.UsageError(no_value if is_known else f"--where: {wanted}")
            values[key].append(value)
    allowed = states_for(Action(request.action))
    for text in values["state"]:
        if text not in allowed:
            wanted = f"{request.action} wants one of {', '.join(allowed)}"
            raise click.UsageError(f"--where state={text}: {wanted}")
    return Selection(
        states=tuple(JobState(text) for text in values["state"]) or allowed,
        kinds=tuple(values["kind"]),
        targets=tuple(values["target"]),
        priorities=tuple(_priority(text) for text in values["priority"]),
        older_seconds=request.older_seconds,
    )


def _priority(text: str) -> int:
    if re.fullmatch(r"-?[0-9]{1,5}", text) and PRIORITY_MIN <= int(text) <= PRIORITY_MAX:
        return int(text)
    wanted = f"a whole number, {PRIORITY_MIN} to {PRIORITY_MAX}"
    raise click.UsageError(f"--where priority={text}: wanted {wanted}")


def _confirm(request: BulkRequest, found: Survey) -> None:
    """Returns only if the user agrees."""
    if request.yes:
        return
    if request.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        what = f"this would {request.action} {_matched(found)}; nothing was done"
        raise Complaint(Exit.USAGE, what, "add --yes to do it, or --dry-run to only count")
    if not click.confirm(f"{request.action} {_matched(found)}?"):
        raise Complaint(Exit.UNSUCCESSFUL, "nothing was done")


def _act_on_all(settings: Settings, request: BulkRequest, which: Selection, found: Survey) -> Tally:
    """Ctrl-C ends it after the current batch, so that it can report the count."""

    async def work(engine: Engine, live: LiveLine) -> Tally:
        stop = trio.Event()

        def on_step(tally: Tally) -> bool:
            live.show(f"{tally.done + tally.skipped:,} of {_number(found)} …")
            return not stop.is_set()

        async def stop_at_signal() -> None:
            with trio.open_signal_receiver(signal.SIGINT) as received:
                async for _ in received:
                    stop.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(stop_at_signal)
            order = bulk.Order(Action(request.action), which, request.limit, on_step)
            tally = await bulk.act(engine, order)
            nursery.cancel_scope.cancel()
        return tally

    with live_line(quiet=request.json) as live:
        return in_store(settings, lambda engine: work(engine, live))


def _report_bulk(request: BulkRequest, found: Survey, tally: Tally | None) -> Exit:
    if request.json:
        print_json(_bulk_object(request, found, tally))
    elif tally is None:
        say("nothing to do" if not found.matched else "nothing was done: this was a dry run")
    else:
        say_lines(_tally_lines(request.action, tally))
    if tally is not None and tally.stopped:
        complain(f"musterd: interrupted: {tally.done:,} of {_number(found)} are done")
        return Exit.UNSUCCESSFUL
    return Exit.DONE


def _bulk_object(request: BulkRequest, found: Survey, tally: Tally | None) -> dict[str, object]:
    tally = tally or Tally()
    return {
        "action": request.action,
        "dry_run": request.dry_run,
        "matched": found.matched,
        "matched_exact": found.whole,
        "groups": [
            {"state": one.state, "kind": one.kind, "count": one.count, "first_ids": one.ids}
            for one in found.groups
        ],
        "done": tally.done,
        "requested": tally.requested,
        "skipped": {"changed": tally.changed, "not_allowed": tally.refused, "busy": tally.busy},
        "interrupted": tally.stopped,
    }


def _survey_lines(found: Survey) -> list[str]:
    if not found.matched:
        return ["no job matches"]
    counted = "" if found.whole else f" (the table counts the first {count_text(found.matched)})"
    shown = found.groups[:GROUPS_SHOWN]
    verb = "matches" if found.matched == 1 and found.whole else "match"
    more = len(found.groups) - len(shown)
    return [
        f"{_matched(found)} {verb}{counted}",
        *table_of(shown, GROUPS, state=lambda one: one.state.value),
        *([f"… {more} more"] if more else []),
    ]


GROUPS_SHOWN = 20
GROUPS: Columns[Group] = {
    "state": lambda one: one.state.value,
    "kind": lambda one: one_line(one.kind),
    ">jobs": lambda one: count_text(one.count),
    "ids": lambda one: ", ".join(map(str, one.ids)) + (", …" if one.count > len(one.ids) else ""),
}


def _tally_lines(action: str, tally: Tally) -> list[str]:
    lines = [f"{plural(tally.done - tally.requested, 'job')} {Action(action).past}"]
    if tally.requested:
        lines.append(f"{plural(tally.requested, 'job')} running: their workers have been asked")
    reasons = (
        (tally.changed, "changed meanwhile"),
        (tally.refused, "not allowed by its state"),
        (tally.busy, "busy: try again"),
    )
    said = ", ".join(f"{count:,} {why}" for count, why in reasons if count)
    return [*lines, f"{plural(tally.skipped, 'job')} left out: {said}"] if said else lines


def _number(found: Survey) -> str:
    return f"{found.matched:,}{'' if found.whole else '+'}"


def _matched(found: Survey) -> str:
    return f"{_number(found)} job{'' if found.matched == 1 and found.whole else 's'}"
