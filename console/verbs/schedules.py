"""`musterd schedules`: when jobs are wanted again and again, and what became of the last slots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from musterd.config.faults import did_you_mean
from musterd.config.schedules import Schedule, of_tenant
from musterd.config.settings import Settings
from musterd.console.command import STORE_SECTIONS, CommandLine, Verb, Verbs
from musterd.console.completers import complete_schedules
from musterd.console.output import Columns, Complaint, Exit, or_dash, table_of
from musterd.console.verbs.enqueue import kind_named
from musterd.manager.duties.schedules import firing_of, payload_limits, schedule_object
from musterd.store.engine import Engine
from musterd.store.input import check_payload
from musterd.store.opening import in_store
from musterd.store.schedules import Wish
from musterd.store.words import count_text, duration_text, one_line

SECTIONS = (*STORE_SECTIONS, "schedules")


@click.group(cls=Verbs, invoke_without_command=True)
@click.pass_context
def schedules(context: click.Context) -> None:
    """Show all schedules with their last and next slots; or control one."""
    if context.invoked_subcommand is not None:
        return
    cli: CommandLine = context.obj
    settings = cli.of_tenant(cli.settings_for(SECTIONS))
    own = _own(settings)
    found = in_store(settings, lambda engine: engine.schedules.know(sorted(own))) if own else []
    objects = [schedule_object(own[record.name], record) for record in found]
    empty = "there are no schedules: add [schedules.NAME] to the configuration"
    cli.show(objects, lambda: table_of(objects, COLUMNS, empty))


@schedules.command("run-now", cls=Verb)
@click.argument("name", shell_complete=complete_schedules)
@click.pass_obj
def run_now(cli: CommandLine, name: str) -> None:
    """Enqueue a job of a schedule now, in addition to its slots."""
    settings = cli.of_tenant(cli.load().settings)
    schedule = _named(settings, name)
    catalog = cli.catalog(settings)
    kind_named(catalog, schedule.kind)
    check_payload(schedule.payload, payload_limits(settings.limits))

    async def work(engine: Engine) -> int | None:
        return (await engine.schedules.fire(firing_of(schedule, catalog, None))).job_id

    job_id = in_store(settings, work)
    said = f"job {job_id} of schedule {name} is queued"
    cli.answer({"schedule": name, "job_id": job_id}, said)


def _steering(action: Wish, about: str) -> None:
    @schedules.command(action, cls=Verb, help=about)
    @click.argument("name", shell_complete=complete_schedules)
    @click.pass_obj
    def steer(cli: CommandLine, name: str) -> None:
        settings = cli.of_tenant(cli.settings_for(SECTIONS))
        _named(settings, name)
        changed = in_store(settings, lambda engine: engine.schedules.steer(action, name))
        state = "paused" if action == "pause" else "running"
        said = f"is {state}" if changed else f"was {state} already"
        found = {"schedule": name, "paused": action == "pause", "changed": changed}
        cli.answer(found, f"schedule {name} {said}")


_steering("pause", "Skip the slots of a schedule until it is resumed.")
_steering("resume", "Fire a schedule again, starting with its next slot.")


def _own(settings: Settings) -> Mapping[str, Schedule]:
    return of_tenant(settings.schedules, settings.tenant)


def _named(settings: Settings, name: str) -> Schedule:
    own = _own(settings)
    if name not in own:
        hint = did_you_mean(name, own) or "`musterd schedules` lists them"
        raise Complaint(Exit.UNKNOWN, f"there is no schedule {name!r}", hint)
    return own[name]


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


COLUMNS: Columns[dict[str, Any]] = {
    "schedule": lambda one: one["name"],
    "kind": lambda one: one_line(one["kind"]),
    "when": lambda one: one_line(_when(one)),
    "last fired": lambda one: (one["last_fired_at"] or "-")[:19],
    "last job": lambda one: or_dash(
        one["last_job_id"], lambda job_id: f"{job_id} {one['last_job_state']}"
    ),
    "next": _next,
    ">fired": lambda one: count_text(one["fired"]),
    ">skipped": lambda one: count_text(one["skipped"]),
    ">missed": lambda one: count_text(one["missed_slots"]),
}
