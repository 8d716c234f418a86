"""`musterd cancel|pause|resume|release|clear`: acting on jobs by id, or on all that match."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import click

from musterd.console.command import CommandLine, Verb, read_delay
from musterd.console.completers import complete_jobs
from musterd.console.opening import in_store
from musterd.console.output import Complaint, Exit, LiveLine, coloured, complain, print_json, say

if TYPE_CHECKING:
    from musterd.config.settings import Settings
    from musterd.store.bulk import Survey, Tally
    from musterd.store.control import ControlResult, Selection
    from musterd.store.engine import Engine
    from musterd.store.lifecycle import JobState


F = TypeVar("F", bound=Callable[..., Any])

HELP = {
    "cancel": "Cancel jobs: waiting ones at once, running ones as soon as their worker is told.",
    "pause": "Pause jobs until they are resumed.",
    "resume": "Queue paused or failed jobs again, with a fresh budget of attempts.",
    "release": "Queue jobs that were enqueued with --hold.",
    "clear": "Mark failed jobs as dealt with; paused ones are canceled.",
}
DONE = {
    "cancel": "canceled",
    "pause": "paused",
    "resume": "queued",
    "release": "queued",
    "clear": "cleared",
}


def _verb(action: str) -> click.Command:
    @click.command(action, cls=Verb, help=HELP[action])
    @click.argument(
        "job_ids",
        metavar="[ID]...",
        nargs=-1,
        type=click.IntRange(min=1),
        shell_complete=complete_jobs,
    )
    @_with_options(BULK_OPTIONS)
    @click.pass_context
    def verb(context: click.Context, /, job_ids: tuple[int, ...], **bulk: Any) -> None:
        cli: CommandLine = context.obj
        wish = BulkRequest(action=action, json=cli.json, **bulk)
        _check(job_ids, wish)
        if job_ids:
            context.exit(_act_on_each(cli, action, job_ids))
        context.exit(act_on_all(cli.settings(), wish))

    return verb


def _with_options(options: Sequence[Callable[[F], F]]) -> Callable[[F], F]:
    def add(verb: F) -> F:
        for option in reversed(options):
            verb = option(verb)
        return verb

    return add


BULK_OPTIONS = (
    click.option(
        "--where",
        multiple=True,
        metavar="KEY=VALUE[,…]",
        help="All jobs that match: state, kind, target, priority. A repeated key means either"
        " value.",
    ),
    click.option(
        "--older",
        "older_seconds",
        callback=read_delay,
        metavar="DURATION",
        help="Only jobs enqueued, or ended, longer ago than this: 10m, 2h, 1d.",
    ),
    click.option("--limit", type=click.IntRange(min=1), help="Act on at most this many."),
    click.option("--yes", is_flag=True, help="Do not ask for confirmation."),
    click.option("--dry-run", is_flag=True, help="Only report how many jobs match."),
)


def _check(job_ids: tuple[int, ...], wish: BulkRequest) -> None:
    if job_ids and (wish.is_there or wish.limit is not None or wish.dry_run):
        raise click.UsageError("give IDs, or a filter (--where, --older), not both")
    if not job_ids and not wish.is_there:
        example = f"musterd {wish.action} --where kind=report --older 1h"
        raise click.UsageError(f"give the ID of a job, or a filter: {example}")


def _act_on_each(cli: CommandLine, action: str, job_ids: tuple[int, ...]) -> Exit:
    """Does it to each, in their order, and says of each what came of it; the first fault is the
    exit code.
    """
    from musterd.store.lifecycle import Action

    async def work(engine: Engine) -> list[ControlResult]:
        return [await engine.control.apply(Action(action), job_id) for job_id in job_ids]

    codes: list[Exit] = []
    for job_id, done in zip(job_ids, in_store(cli.settings(), work), strict=True):
        codes.append(_code(done))
        if cli.json:
            print_json(_result_object(job_id, done))
        elif done.allowed:
            say(_success(job_id, action, done))
        if not done.allowed:
            complain(f"musterd: {_refusal(job_id, action, done)}")
    return next((code for code in codes if code is not Exit.DONE), Exit.DONE)


def _code(done: ControlResult) -> Exit:
    if not done.found:
        return Exit.UNKNOWN
    return Exit.DONE if done.allowed else Exit.WRONG_STATE


def _result_object(job_id: int, done: ControlResult) -> dict[str, object]:
    return {
        "id": job_id,
        "found": done.found,
        "allowed": done.allowed,
        "requested": done.requested,
        "state_before": done.state_before,
        "state": done.state_after,
    }


def _success(job_id: int, action: str, done: ControlResult) -> str:
    if done.requested:
        return f"job {job_id} is {done.state_after}: its worker has been asked to {action} it"
    return f"job {job_id} {DONE[action]} (it was {done.state_before})"


def _refusal(job_id: int, action: str, done: ControlResult) -> str:
    from musterd.store.report import control_refusal

    return control_refusal(job_id, action, done.state_before)


cancel, pause, resume, release, clear = (_verb(action) for action in HELP)


KEYS = ("state", "kind", "target", "priority")
PRIORITY_MIN, PRIORITY_MAX = -32768, 32767
_NEXT_KEY = re.compile(r",(?=[a-z_]+=)")


@attrs.frozen
class BulkRequest:
    """What was asked for on the command line."""

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


def act_on_all(settings: Settings, wish: BulkRequest) -> Exit:
    """First says what is meant, then does it, if it is wanted; gives the exit code."""
    from musterd.store import bulk

    which = read_selection(wish)

    async def look(engine: Engine) -> tuple[Selection, Survey]:
        pinned = await bulk.pin(engine, which)
        return pinned, await bulk.survey(engine, pinned, wish.limit)

    pinned, found = in_store(settings, look)
    if not wish.json:
        for line in _survey_lines(found):
            say(line)
    if not found.matched or wish.dry_run:
        return _report_bulk(wish, found, None)
    _confirm(wish, found)
    return _report_bulk(wish, found, _act_on_all(settings, wish, pinned, found))


def read_selection(wish: BulkRequest) -> Selection:
    """Reads `state=failed,kind=x`; values of one key are alternatives. Raises click.UsageError."""
    from musterd.store.control import Selection, states_for
    from musterd.store.lifecycle import Action, JobState

    given: dict[str, list[str]] = {key: [] for key in KEYS}
    for text in wish.where:
        for part in _NEXT_KEY.split(text):
            key, equals, value = part.partition("=")
            if key not in given or not equals or not value:
                raise click.UsageError(_bad_part(part, key, equals))
            given[key].append(value)
    allowed = states_for(Action(wish.action))
    states = tuple(JobState(_checked_state(wish.action, text, allowed)) for text in given["state"])
    return Selection(
        states=states or allowed,
        kinds=tuple(given["kind"]),
        targets=tuple(given["target"]),
        priorities=tuple(_priority(text) for text in given["priority"]),
        older_seconds=wish.older_seconds,
    )


def _bad_part(part: str, key: str, equals: str) -> str:
    if equals and key in KEYS:
        return f"--where {part}: found no value"
    return f"--where: found {part!r}, wanted {', '.join(f'{one}=…' for one in KEYS)}"


def _checked_state(action: str, text: str, allowed: tuple[JobState, ...]) -> str:
    if text not in allowed:
        wanted = ", ".join(allowed)
        raise click.UsageError(f"--where state={text}: {action} wants one of {wanted}")
    return text


def _priority(text: str) -> int:
    if re.fullmatch(r"-?[0-9]{1,5}", text) and PRIORITY_MIN <= int(text) <= PRIORITY_MAX:
        return int(text)
    wanted = f"a whole number, {PRIORITY_MIN} to {PRIORITY_MAX}"
    raise click.UsageError(f"--where priority={text}: wanted {wanted}")


def _confirm(wish: BulkRequest, found: Survey) -> None:
    """Goes on only if it is wanted."""
    if wish.yes:
        return
    if wish.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        what = f"this would {wish.action} {_matched(found)}; nothing was done"
        raise Complaint(Exit.USAGE, what, "add --yes to do it, or --dry-run to only count")
    if not click.confirm(f"{wish.action} {_matched(found)}?"):
        raise Complaint(Exit.UNSUCCESSFUL, "nothing was done")


def _act_on_all(settings: Settings, wish: BulkRequest, which: Selection, found: Survey) -> Tally:
    """Ctrl-C ends it after the batch that is under way, so that it can say how many are done."""
    import signal

    import trio

    from musterd.store import bulk
    from musterd.store.lifecycle import Action

    action = Action(wish.action)
    live = LiveLine() if sys.stdout.isatty() and not wish.json else None

    async def work(engine: Engine) -> Tally:
        stop = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_set_at, signal.SIGINT, stop)
            order = bulk.Order(action, which, wish.limit, _stepper(live, found, stop))
            tally = await bulk.act(engine, order)
            nursery.cancel_scope.cancel()
        return tally

    try:
        return in_store(settings, work)
    finally:
        if live is not None:
            live.done()


async def _set_at(number: int, stop: object) -> None:
    import signal

    import trio

    assert isinstance(stop, trio.Event)
    with trio.open_signal_receiver(signal.Signals(number)) as received:
        async for _ in received:
            stop.set()
            return


def _stepper(live: LiveLine | None, found: Survey, stop: object) -> Callable[[Tally], bool]:
    import trio

    assert isinstance(stop, trio.Event)

    def on_step(tally: Tally) -> bool:
        if live is not None:
            live.show(f"{tally.done + tally.skipped:,} of {_number(found)} …")
        return not stop.is_set()

    return on_step


def _report_bulk(wish: BulkRequest, found: Survey, tally: Tally | None) -> Exit:
    if wish.json:
        print_json(_bulk_object(wish, found, tally))
    elif tally is None:
        say("nothing to do" if not found.matched else "nothing was done: this was a dry run")
    else:
        for line in _tally_lines(wish.action, tally):
            say(line)
    if tally is not None and tally.stopped:
        complain(f"musterd: interrupted: {tally.done:,} of {_number(found)} are done")
        return Exit.UNSUCCESSFUL
    return Exit.DONE


def _bulk_object(wish: BulkRequest, found: Survey, tally: Tally | None) -> dict[str, object]:
    skipped = {"changed": 0, "not_allowed": 0, "busy": 0}
    if tally is not None:
        skipped = {"changed": tally.changed, "not_allowed": tally.refused, "busy": tally.busy}
    return {
        "action": wish.action,
        "dry_run": wish.dry_run,
        "matched": found.matched,
        "matched_exact": found.whole,
        "groups": [
            {"state": one.state, "kind": one.kind, "count": one.count, "first_ids": one.ids}
            for one in found.groups
        ],
        "done": 0 if tally is None else tally.done,
        "requested": 0 if tally is None else tally.requested,
        "skipped": skipped,
        "interrupted": tally is not None and tally.stopped,
    }


def _survey_lines(found: Survey) -> list[str]:
    from musterd.store.words import count_text, one_line, table

    if not found.matched:
        return ["no job matches"]
    counted = "" if found.whole else f" (the table counts the first {count_text(found.matched)})"
    heads = ("state", "kind", "jobs", "ids")
    shown = [
        (
            one.state.value,
            one_line(one.kind),
            count_text(one.count),
            ", ".join(map(str, one.ids)) + (", …" if one.count > len(one.ids) else ""),
        )
        for one in found.groups[:GROUPS_SHOWN]
    ]
    first, *rest = table(heads, shown, right=frozenset({2}))
    verb = "matches" if found.matched == 1 and found.whole else "match"
    lines = [coloured(row[0], line) for row, line in zip(shown, rest, strict=True)]
    more = len(found.groups) - len(shown)
    return [
        f"{_matched(found)} {verb}{counted}",
        first,
        *lines,
        *([f"… {more} more"] if more else []),
    ]


GROUPS_SHOWN = 20


def _tally_lines(action: str, tally: Tally) -> list[str]:
    from musterd.store.words import plural

    at_once = tally.done - tally.requested
    lines = [f"{plural(at_once, 'job')} {PAST[action]}"]
    if tally.requested:
        lines.append(f"{plural(tally.requested, 'job')} running: their workers have been asked")
    reasons = (
        (tally.changed, "changed meanwhile"),
        (tally.refused, "not allowed by its state"),
        (tally.busy, "busy: try again"),
    )
    said = ", ".join(f"{count:,} {why}" for count, why in reasons if count)
    return [*lines, f"{plural(tally.skipped, 'job')} left out: {said}"] if said else lines


PAST = {
    "cancel": "canceled",
    "pause": "paused",
    "resume": "resumed",
    "release": "released",
    "clear": "cleared",
}


def _number(found: Survey) -> str:
    return f"{found.matched:,}{'' if found.whole else '+'}"


def _matched(found: Survey) -> str:
    return f"{_number(found)} job{'' if found.matched == 1 and found.whole else 's'}"
