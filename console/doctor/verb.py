"""`musterd doctor`: whether everything around the queue is in order, and what to do."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import attrs
import click
import trio

from musterd.catalog.kinds import Catalog
from musterd.config.faults import ConfigError
from musterd.config.load import Loaded
from musterd.console.command import CommandLine, Verb
from musterd.console.doctor import checks
from musterd.console.doctor.judges import Check, Finding, ProgramResult, Setup, fail
from musterd.console.doctor.running import what_runs
from musterd.console.output import Exit
from musterd.console.verbs.kinds import broken_hooks_of, check_kinds
from musterd.store.errors import StoreError
from musterd.store.waiting import each_in_order
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
    loaded, catalog, faults = _configured(cli)
    found = [*faults, *trio.run(examine_all, _setup(cli, unit, loaded, catalog))]
    cli.show(
        [{"verdict": _verdict(found), "checks": [_object(one) for one in found]}],
        lambda: _lines(found),
    )
    context.exit(_code(found))


def _configured(cli: CommandLine) -> tuple[Loaded, Catalog, list[Finding]]:
    """With faults, what is sound of it. Raises ConfigError if the store cannot be found then."""
    try:
        return *cli.load_all(), []
    except ConfigError as error:
        settings = cli.settings_for()
        first = f"{plural(len(error.faults), 'fault')}, the first: {error.faults[0]}"
        advice = "musterd config check lists them all"
        fault = fail("files", first, "files without faults", advice)
        findings = [attrs.evolve(fault, group=checks.CONFIGURATION)]
        return Loaded(settings, {}), cli.catalog_if_sound(settings), findings


def _setup(cli: CommandLine, unit: str, loaded: Loaded, catalog: Catalog) -> Setup:
    cli.of_tenant(loaded.settings)  # complains of a tenant that is not there
    settings, running = what_runs(cli.of_node(loaded.settings), catalog)
    return Setup(
        settings=settings,
        running=running,
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


CHECK_SECONDS = 10.0
AT_ONCE = 4  # a setup is not to be made ill by its doctor


async def examine(checks: Sequence[Check], seconds: float = CHECK_SECONDS) -> list[Finding]:
    """The findings of the checks, in order."""
    looks = [partial(_run_check, check, seconds) for check in checks]
    return [one for findings in await each_in_order(looks, AT_ONCE) for one in findings]


async def _run_check(check: Check, seconds: float) -> Sequence[Finding]:
    try:
        with trio.fail_after(seconds):
            findings = list(await check.look())
    except trio.TooSlowError:
        said, advice = f"no answer within {seconds:g} s", "find out what delays it, then run doctor"
        findings = [fail(check.name, said, "an answer in time", f"{advice} again")]
    except ConfigError as error:
        said = "; ".join(str(error).splitlines())
        advice = "fix it: the daemon refuses to start"
        found = fail(check.name, said, "a secret that can be read", advice)
        findings = [attrs.evolve(found, stop="misconfigured")]
    except (StoreError, OSError) as error:
        findings = [_failed(check, str(error))]
    except Exception as error:  # noqa: BLE001 - it is reported, by the name of the check
        findings = [_failed(check, f"{type(error).__name__}: {error}")]
    return [attrs.evolve(one, tenant=check.tenant, group=check.group) for one in findings]


def _failed(check: Check, said: str) -> Finding:
    found = f"the check itself failed: {one_line(said)}"
    return fail(check.name, found, "an answer", "the message says what went wrong")


CLOSE_SECONDS = 5.0
PROGRAM_BYTES_MAX = 64 * 1024


async def examine_all(setup: Setup, seconds: float = CHECK_SECONDS) -> list[Finding]:
    """All findings: the stores' after the rest, each tenant's together."""
    try:
        found_stores = checks.stores_of(setup)
    except ConfigError:
        found_stores = []  # reported by the check of secrets
    try:
        found = await examine(checks.first_checks(setup, found_stores), seconds)
        found += await examine(checks.open_checks(found_stores, setup), seconds)
    finally:
        with trio.move_on_after(CLOSE_SECONDS, shield=True):
            for one in found_stores:
                await one.engine.close()
    own = [one for one in found if not one.tenant]
    theirs = [one for store in found_stores for one in found if one.tenant == store.tenant]
    return [*own, *theirs]


async def run_program(command: Sequence[str]) -> ProgramResult:
    """Raises OSError if there is no such program; ignores its stderr."""
    done = await trio.run_process(
        list(command), capture_stdout=True, stderr=subprocess.DEVNULL, check=False
    )
    out = done.stdout[:PROGRAM_BYTES_MAX].decode("utf-8", "replace")
    return ProgramResult(done.returncode, out)
