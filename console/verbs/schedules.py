"""`musterd schedules`: when jobs are wanted again and again, and what became of the last slots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from musterd.console.command import CommandLine, Verb, Verbs
from musterd.console.completers import complete_schedules
from musterd.console.opening import in_store
from musterd.console.output import Complaint, Exit, print_json, say
from musterd.store.words import count_text, duration_text, one_line, table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from musterd.config.schedules import Schedule
    from musterd.config.settings import Settings
    from musterd.store.engine import Engine
    from musterd.store.schedules import Wish


@click.group(cls=Verbs, invoke_without_command=True)
@click.pass_context
def schedules(context: click.Context) -> None:
    """Show all schedules with their last and next slots; or control one."""
    if context.invoked_subcommand is not None:
        return
    from musterd.manager.duties.schedules import schedule_object

    cli: CommandLine = context.obj
    settings = cli.settings()
    own = _own(settings)

    found = in_store(settings, lambda engine: engine.schedules.know(sorted(own))) if own else []
    objects = [schedule_object(own[record.name], record) for record in found]
    cli.show(objects, lambda: _lines(objects))


@schedules.command("run-now", cls=Verb)
@click.argument("name", shell_complete=complete_schedules)
@click.pass_obj
def run_now(cli: CommandLine, name: str) -> None:
    """Enqueue a job of a schedule now, in addition to its slots."""
    from musterd.console.verbs.enqueue import kind_named
    from musterd.manager.duties.schedules import firing_of, payload_limits
    from musterd.store.payload import check_payload

    settings = cli.settings()
    schedule = _named(settings, name)
    catalog = cli.catalog(settings)
    kind_named(catalog, schedule.kind)
    check_payload(schedule.payload, payload_limits(settings.limits))

    async def work(engine: Engine) -> int | None:
        return (await engine.schedules.fire(firing_of(schedule, catalog, None))).job_id

    job_id = in_store(settings, work)
    if cli.json:
        print_json({"schedule": name, "job_id": job_id})
    else:
        say(f"job {job_id} of schedule {name} is queued")


@schedules.command("pause", cls=Verb)
@click.argument("name", shell_complete=complete_schedules)
@click.pass_obj
def pause(cli: CommandLine, name: str) -> None:
    """Skip the slots of a schedule until it is resumed."""
    _control(cli, "pause", name)


@schedules.command("resume", cls=Verb)
@click.argument("name", shell_complete=complete_schedules)
@click.pass_obj
def resume(cli: CommandLine, name: str) -> None:
    """Fire a schedule again, starting with its next slot."""
    _control(cli, "resume", name)


def _control(cli: CommandLine, action: Wish, name: str) -> None:
    settings = cli.settings()
    _named(settings, name)

    changed = in_store(settings, lambda engine: engine.schedules.steer(action, name))
    if cli.json:
        print_json({"schedule": name, "paused": action == "pause", "changed": changed})
        return
    state = "paused" if action == "pause" else "running"
    say(f"schedule {name} is {state}" if changed else f"schedule {name} was {state} already")


def _own(settings: Settings) -> Mapping[str, Schedule]:
    from musterd.config.schedules import of_tenant

    return of_tenant(settings.schedules, settings.tenant)


def _named(settings: Settings, name: str) -> Schedule:
    from musterd.config.faults import did_you_mean

    own = _own(settings)
    if name not in own:
        hint = did_you_mean(name, own) or "`musterd schedules` lists them"
        raise Complaint(Exit.UNKNOWN, f"there is no schedule {name!r}", hint)
    return own[name]


def _lines(objects: list[dict[str, Any]]) -> list[str]:
    if not objects:
        return ["there are no schedules: add [schedules.NAME] to the configuration"]
    heads = (
        "schedule",
        "kind",
        "when",
        "last fired",
        "last job",
        "next",
        "fired",
        "skipped",
        "missed",
    )
    rows = [
        (
            one["name"],
            one_line(one["kind"]),
            one_line(_when(one)),
            (one["last_fired_at"] or "-")[:19],
            "-" if one["last_job_id"] is None else f"{one['last_job_id']} {one['last_job_state']}",
            _next(one),
            count_text(one["fired"]),
            count_text(one["skipped"]),
            count_text(one["missed_slots"]),
        )
        for one in objects
    ]
    return table(heads, rows, right=frozenset({6, 7, 8}))


def _when(one: dict[str, Any]) -> str:
    if one["cron"] is None:
        return f"every {one['every_seconds']} s"
    zone = "" if one["timezone"] == "UTC" else f" {one['timezone']}"
    return f"{one['cron']}{zone}"


def _next(one: dict[str, Any]) -> str:
    if not one["enabled"]:
        return "disabled"
    if one["paused_at"] is not None:
        return "paused"
    seconds = one["seconds_until_next"]
    return "never" if seconds is None else f"in {duration_text(seconds)}"
