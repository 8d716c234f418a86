"""`musterd webhooks`: lists messages, and sends them again."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import attrs
import click

from musterd.console.command import CommandLine, Verbs
from musterd.console.output import Columns, Exit, complain, table_of
from musterd.store.engine import Engine
from musterd.store.opening import in_store
from musterd.store.outbox import MessageFilter, MessageRecord, WebhookState
from musterd.store.words import duration_text, one_line, plural, time_text

STATES = ("waiting", "delivered", "failed")
LIMIT_MAX = 100_000
PAGE = 1_000  # messages sent again in one step


@click.group(cls=Verbs, invoke_without_command=True)
@click.option("--state", type=click.Choice(STATES), help="Only messages in this state.")
@click.option("--job", "job_id", type=click.IntRange(min=1), help="Only messages about this job.")
@click.option("--url", help="Only messages to this URL.")
@click.option("--limit", type=click.IntRange(1, LIMIT_MAX), default=50, show_default=True)
@click.pass_context
def webhooks(
    context: click.Context,
    state: WebhookState | None,
    job_id: int | None,
    url: str | None,
    limit: int,
) -> None:
    """List webhook messages, newest first; or send some again."""
    if context.invoked_subcommand is not None:
        return
    cli: CommandLine = context.obj
    which = MessageFilter(state, job_id, url, limit)
    found = in_store(cli.settings(), lambda engine: engine.outbox.messages(which))
    now = datetime.now(UTC)
    cli.show(map(_object, found), lambda: table_of(found, _columns(now), "no such webhooks"))


@webhooks.command()
@click.argument("ids", metavar="[ID]...", nargs=-1, type=click.IntRange(min=1))
@click.option("--job", "job_id", type=click.IntRange(min=1), help="All messages about this job.")
@click.option("--failed", is_flag=True, help="All messages that failed for good.")
@click.option("--url", help="With --failed: only messages to this URL.")
@click.option("--limit", type=click.IntRange(1, LIMIT_MAX), default=10_000, show_default=True)
@click.pass_context
def resend(context: click.Context, /, ids: tuple[int, ...], **which: Any) -> None:
    """Send messages again, now; each keeps its webhook-id."""
    job_id, failed, url, limit = (which[key] for key in ("job_id", "failed", "url", "limit"))
    if sum((bool(ids), job_id is not None, failed)) != 1:
        raise click.UsageError("give one of: IDs, --job ID, --failed")
    if url is not None and not failed:
        raise click.UsageError("--url goes with --failed")
    cli: CommandLine = context.obj
    wanted = MessageFilter("failed" if failed else None, job_id, url, min(PAGE, limit))

    async def work(engine: Engine) -> tuple[set[int], set[int]]:
        if ids:
            return set(ids), set(await engine.outbox.resend(sorted(set(ids))))
        return await _resend_all(engine, wanted, limit)

    requested, sent = in_store(cli.settings(), work)
    missing = sorted(requested - sent) if ids else []
    said = f"{plural(len(sent), 'webhook')} will be sent again" if sent else "nothing to send"
    cli.answer({"sent_again": sorted(sent), "unknown": missing}, said)
    for id_ in missing:
        complain(f"musterd: there is no webhook {id_}")
    context.exit(Exit.UNKNOWN if missing else Exit.DONE)


async def _resend_all(
    engine: Engine, which: MessageFilter, limit: int
) -> tuple[set[int], set[int]]:
    """Page by page, from the newest to the oldest."""
    requested: set[int] = set()
    sent: set[int] = set()
    while len(requested) < limit:
        size = min(which.limit, limit - len(requested))
        page = await engine.outbox.messages(attrs.evolve(which, limit=size))
        if not page:
            break
        requested |= {one.id for one in page}
        sent |= await engine.outbox.resend([one.id for one in page])
        which = attrs.evolve(which, before_id=page[-1].id)
    return requested, sent


def _object(one: MessageRecord) -> dict[str, object]:
    return {
        "id": one.id,
        "webhook_id": one.message_id,
        "job_id": one.job_id,
        "url": one.url,
        "type": one.type,
        "state": one.state,
        "attempts": one.tries,
        "created_at": time_text(one.created_at),
        "due_at": time_text(one.due_at) if one.state == "waiting" else None,
        "ended_at": time_text(one.ended_at),
        "status": one.status,
        "error": one.error,
    }


def _columns(now: datetime) -> Columns[MessageRecord]:
    return {
        ">id": lambda one: str(one.id),
        ">job": lambda one: str(one.job_id),
        "type": lambda one: one.type,
        "state": lambda one: one.state,
        ">tries": lambda one: str(one.tries),
        ">age": lambda one: duration_text(max(0.0, (now - one.created_at).total_seconds())),
        "url": lambda one: one_line(one.url),
        "": lambda one: one_line(one.error or ""),
    }
