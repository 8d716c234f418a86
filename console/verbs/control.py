"""`musterd cancel|pause|resume|release|clear`: acting on jobs by id, or on all that fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from musterd.console.completers import complete_jobs
from musterd.console.exits import Exit
from musterd.console.given import Given, Verb
from musterd.console.opening import in_store
from musterd.console.out import complain, print_json, say
from musterd.console.times import read_delay
from musterd.console.verbs.bulk import Wish, act_on_all

if TYPE_CHECKING:
    from musterd.store.engine import Engine
    from musterd.store.job import ControlResult

F = TypeVar("F", bound=Callable[..., Any])

HELP = {
    "cancel": "End jobs: those that wait at once, those that run as soon as their worker hears.",
    "pause": "Halt jobs until they are resumed.",
    "resume": "Put paused or failed jobs back into the queue, with a fresh budget of attempts.",
    "release": "Let jobs go that were enqueued with --hold.",
    "clear": "Note that somebody has seen to failed jobs; paused ones are canceled.",
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
    @_options(BULK_OPTIONS)
    @click.pass_context
    def verb(context: click.Context, /, job_ids: tuple[int, ...], **bulk: Any) -> None:
        given: Given = context.obj
        wish = Wish(action=action, json=given.json, **bulk)
        _check(job_ids, wish)
        if job_ids:
            context.exit(_act(given, action, job_ids))
        context.exit(act_on_all(given.settings(), wish))

    return verb


def _options(options: Sequence[Callable[[F], F]]) -> Callable[[F], F]:
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
        help="All jobs that fit: state, kind, target, priority. A key that stands twice means"
        " either.",
    ),
    click.option(
        "--older",
        "older_seconds",
        callback=read_delay,
        metavar="DURATION",
        help="Only jobs made longer ago, or that ended longer ago: 10m, 2h, 1d.",
    ),
    click.option("--limit", type=click.IntRange(min=1), help="At most so many of them."),
    click.option("--yes", is_flag=True, help="Do it without asking."),
    click.option("--dry-run", is_flag=True, help="Only say how many jobs fit."),
)


def _check(job_ids: tuple[int, ...], wish: Wish) -> None:
    if job_ids and (wish.is_there or wish.limit is not None or wish.dry_run):
        raise click.UsageError("give IDs, or a filter (--where, --older), not both")
    if not job_ids and not wish.is_there:
        example = f"musterd {wish.action} --where kind=report --older 1h"
        raise click.UsageError(f"give the ID of a job, or a filter: {example}")


def _act(given: Given, action: str, job_ids: tuple[int, ...]) -> Exit:
    """Does it to each, in their order, and says of each what came of it; the first fault is the
    exit code.
    """
    from musterd.store.job import Action

    async def work(engine: Engine) -> list[ControlResult]:
        return [await engine.control(Action(action), job_id) for job_id in job_ids]

    codes: list[Exit] = []
    for job_id, done in zip(job_ids, in_store(given.settings(), work), strict=True):
        codes.append(_code(done))
        if given.json:
            print_json(_object(job_id, done))
        elif done.allowed:
            say(_success(job_id, action, done))
        if not done.allowed:
            complain(f"musterd: {_refusal(job_id, action, done)}")
    return next((code for code in codes if code is not Exit.DONE), Exit.DONE)


def _code(done: ControlResult) -> Exit:
    if not done.found:
        return Exit.UNKNOWN
    return Exit.DONE if done.allowed else Exit.WRONG_STATE


def _object(job_id: int, done: ControlResult) -> dict[str, object]:
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
