"""`musterd doctor`: whether everything around the queue is as it should be, and what to do."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import attrs
import click
import trio

from musterd.console.command import CommandLine, Verb
from musterd.console.doctor.examination import examine_all, run_program
from musterd.console.doctor.finding import Finding, Setup
from musterd.console.kind_checks import broken_hooks_of, check_kinds
from musterd.console.output import Exit
from musterd.store.words import one_line, plural

MARKS = {"ok": "ok  ", "warn": "WARN", "fail": "FAIL"}
COLOURS = {"warn": "yellow", "fail": "red"}


@click.command(cls=Verb)
@click.option(
    "--unit", default="musterd.service", show_default=True, help="The systemd unit to check."
)
@click.pass_context
def doctor(context: click.Context, unit: str) -> None:
    """Check configuration, machine and store; say what is wrong and what to do.

    Exits 0 if nothing fails (warnings are no failure), 1 if something does, 69 if a store cannot
    be reached.
    """
    cli: CommandLine = context.obj
    found = trio.run(examine_all, _setup(cli, unit))
    cli.show(
        [{"verdict": _verdict(found), "checks": [_object(one) for one in found]}],
        lambda: _lines(found),
    )
    context.exit(_code(found))


def _setup(cli: CommandLine, unit: str) -> Setup:
    loaded, catalog = cli.load_all()
    cli.of_tenant(loaded.settings)  # complains of a tenant that is not there
    settings = loaded.settings
    return Setup(
        settings=settings,
        tenants=list(settings.tenants) if cli.tenant is None else [cli.tenant],
        origins=loaded.origins,
        environ=os.environ,
        kinds=lambda: check_kinds(catalog, settings),
        hooks=lambda: broken_hooks_of(settings),
        wall_clock=time.time,
        monotonic=time.monotonic,
        run=run_program,
        unit=unit,
        has_systemd=Path("/run/systemd/system").is_dir(),
    )


def _code(found: Sequence[Finding]) -> Exit:
    stops = {one.stop for one in found}
    if "unavailable" in stops:
        return Exit.UNAVAILABLE
    if "misconfigured" in stops:
        return Exit.CONFIGURATION
    return Exit.UNSUCCESSFUL if any(one.level == "fail" for one in found) else Exit.DONE


def _verdict(found: Sequence[Finding]) -> str:
    fails = sum(one.level == "fail" for one in found)
    warnings = sum(one.level == "warn" for one in found)
    if not fails and not warnings:
        return f"all is well ({plural(len(found), 'finding')})"
    ill = ((fails, "failure"), (warnings, "warning"))
    counts = ", ".join(plural(count, what) for count, what in ill if count)
    return f"{counts}, {len(found) - fails - warnings} ok"


def _object(one: Finding) -> dict[str, object]:
    shown = attrs.asdict(one, filter=lambda field, _: field.name != "stop")
    return {**shown, "tenant": one.tenant or None}


def _lines(found: Sequence[Finding]) -> list[str]:
    lines: list[str] = []
    several = len({one.tenant for one in found if one.tenant}) > 1
    heading = ""
    for one in found:
        head = f"{one.group} of tenant {one.tenant}" if several and one.tenant else one.group
        if head != heading:
            lines += [*([""] if lines else []), click.style(head, bold=True)]
            heading = head
        lines += _finding_lines(one)
    return [*lines, "", _verdict(found)]


def _finding_lines(one: Finding) -> list[str]:
    line = f"  {MARKS[one.level]}  {one.name}: {one_line(one.found)}"
    if one.level == "ok":
        return [click.style(line, dim=True)]
    lines = [click.style(line, fg=COLOURS[one.level])]
    lines += [f"        wanted: {one_line(one.wanted)}"] if one.wanted else []
    lines += [f"        do:     {one_line(one.advice)}"] if one.advice else []
    return lines
