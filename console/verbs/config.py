"""`musterd config`: the effective configuration, its check, and what a reload would change."""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from musterd.catalog.differences import check_takeover, fingerprint, kind_changes
from musterd.catalog.kinds import Catalog
from musterd.config.changes import Changes, changes
from musterd.config.credentials import (
    check_token_files,
    resolve_http_tokens,
    resolve_signing_keys,
)
from musterd.config.faults import ConfigError, Fault
from musterd.config.load import SHIPPED_FILE
from musterd.config.settings import LeasePlan, Settings, lease_plan
from musterd.config.show import as_text, as_tree, count_changed
from musterd.config.tenants import settings_of
from musterd.console.command import CommandLine, Verbs
from musterd.console.daemon_client import DaemonSilent, ask_daemon
from musterd.console.output import Complaint, Exit, complain, print_json, say
from musterd.console.simulate.feasible import unkept_promises
from musterd.console.verbs.kinds import broken_hooks_of, check_kinds
from musterd.manager.reload.outcome import difference_object, value_text
from musterd.store.opening import engine_for
from musterd.store.words import cut, one_line, plural, table


@click.group(cls=Verbs)
def config() -> None:
    """Show, check and begin the configuration."""


@config.command()
@click.option("--origin", is_flag=True, help="Say which layer each value came from.")
@click.pass_obj
def show(cli: CommandLine, origin: bool) -> None:
    """Print the effective configuration as TOML, secrets masked."""
    loaded = cli.load()
    if cli.json:
        print_json(as_tree(loaded, origin))
    else:
        say(as_text(loaded, origin).rstrip("\n"))


@config.command()
@click.pass_obj
def check(cli: CommandLine) -> None:
    """Check configuration and catalog, and report every fault; exit 78 if there is one."""
    loaded, catalog = cli.load_all()
    origins = loaded.origins
    if broken := broken_hooks_of(loaded.settings):
        raise ConfigError(Fault(origins[key], key=key, found=why) for key, why in broken.items())
    if loaded.settings.http.listen:
        check_token_files(loaded.settings, os.environ)
    changed = count_changed(loaded)
    said = f"{plural(changed, 'setting')} not as shipped" if changed else "all as shipped"
    plan = lease_plan(loaded.settings)
    warnings = [_few_renewals(plan)] if plan.renewals < RENEWALS_MIN else []
    for name in loaded.settings.tenants:
        own = settings_of(loaded.settings, name)
        warnings += [one.words for one in unkept_promises(own, catalog, time.time)]
    cli.answer(
        {"valid": True, "settings_changed": changed, "kinds": len(catalog), "warnings": warnings},
        f"the configuration is valid ({said}); the catalog has {len(catalog)} kinds",
    )
    for warning in warnings:
        complain(f"musterd: warning: {warning}")


RENEWALS_MIN = 2


def _few_renewals(plan: LeasePlan) -> str:
    return (
        f"a lease of {plan.lease_seconds:g} s, trusted until {plan.margin_seconds:g} s before its"
        f" end and renewed every {plan.heartbeat_seconds:g} s, has time for {plan.renewals}"
        " renewal: if it fails, the work is stopped"
    )


HEAD = """\
# Settings of musterd, all commented out, with their defaults: remove the # of those to change.
# `musterd config check --config THIS_FILE` finds faults, `musterd run --config THIS_FILE` uses it.
# For editors: `musterd config schema > musterd.schema.json`
#:schema ./musterd.schema.json
"""


@config.command()
@click.argument("file", type=click.Path(path_type=Path), default="musterd.toml")
@click.pass_obj
def init(cli: CommandLine, file: Path) -> None:
    """Write a file with all settings, commented out.

    FILE is musterd.toml unless named; - is standard output. A file that is there is left alone.
    """
    text = commented_settings(SHIPPED_FILE.read_text("utf-8"))
    if str(file) == "-":
        say(text.rstrip("\n"))
        return
    try:
        with file.open("x", encoding="utf-8") as new:
            new.write(text)
    except FileExistsError:
        what = f"{file} is there already; nothing was written"
        raise Complaint(Exit.USAGE, what, "name another file, or remove it") from None
    except OSError as error:
        raise Complaint(Exit.USAGE, f"{file} cannot be written: {error.strerror}") from None
    use = f"musterd run --config {shlex.quote(str(file))}"
    cli.answer({"file": str(file)}, f"{file} is written; change what you like, then `{use}`")


def commented_settings(shipped: str) -> str:
    """The shipped file with each key commented out."""
    _, _, tables = shipped.partition("\n\n")  # without its own head
    lines = [line if line.startswith(("#", "[")) or not line else f"# {line}"
        for line in tables.splitlines()]  # fmt: skip
    return "\n".join([HEAD, *lines]) + "\n"


@config.command()
def schema() -> None:
    """Print the JSON Schema of a configuration file, for editors."""
    from musterd.config.schema import settings_schema

    say(json.dumps(settings_schema(), indent=1))


KEPT_PERCENT = 99.9
SHARE_PLACES = 9
KEPT_PERCENT_MIN = 95.0  # below, more than all would have to be late before an alert fires


@config.command()
@click.option(
    "--kept",
    type=click.FloatRange(KEPT_PERCENT_MIN, 100, max_open=True),
    default=KEPT_PERCENT,
    show_default=True,
    metavar="PERCENT",
    help="The share of the jobs of a kind that is to start as soon as promised.",
)
@click.option(
    "--runbooks", default="", metavar="URL", help="Put before the paths of runbooks: https://…/"
)
@click.pass_obj
def alerts(cli: CommandLine, kept: float, runbooks: str) -> None:
    """Print rules for Prometheus, with alerts for the promises of the catalog.

    The file has all rules that musterd ships with. For each kind that has a promise (its own
    max_wait_seconds, or that of [scaling]) two alerts fire while too many of its jobs start late:
    over an hour and 5 minutes, and over six hours and 30 minutes.
    """
    from musterd.console.alerts.promises import SHIPPED_RULES, promises_of, rules_text

    if quote := set(runbooks) & set("\"'{}#\n "):
        raise click.UsageError(f"--runbooks: no URL has {min(quote)!r} in it")
    loaded, catalog = cli.load_all()
    promised = promises_of(catalog, loaded.settings.scaling)
    share = round(kept / 100, SHARE_PLACES)
    text = rules_text(SHIPPED_RULES.read_text("utf-8"), promised, share, runbooks)
    cli.answer({"promises": promised, "kept": share, "rules": text}, text.rstrip("\n"))
    if not promised:
        complain("musterd: no kind has a promise: the rules are those for any kind, as shipped")


@config.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.pass_obj
def diff(cli: CommandLine, file: Path) -> None:
    """Show what a reload would do if FILE were the configuration.

    FILE replaces --config FILE or /etc/musterd/musterd.toml; the layers above it stay. Exits 78 if
    a reload would refuse it, else 0, even if something is different.
    """
    present, kinds = cli.load_all()
    wanted, new_kinds = cli.proposing(file).load_all()
    found, named = changes(present.settings, wanted.settings), kind_changes(kinds, new_kinds)
    fresh = (*named.added, *(one.name for one in named.changed))
    _check_secrets(found, wanted.settings)
    before = _checked_kinds(kinds, fresh, present.settings)
    check_takeover(found, before, _checked_kinds(new_kinds, fresh, wanted.settings))
    running = _running_daemon(cli, present.settings, kinds)
    whole = difference_object(found, named)
    parts = [part for name in ("kinds", "schedules", "tenants") for part in whole[name].values()]
    same = not (whole["changed"] or any(parts))
    lines = [f"{file} changes nothing"] if same else []
    lines += difference_lines(whole)
    if restart := len(whole["restart"]):
        lines.append(f"{restart} of them {'needs' if restart == 1 else 'need'} a restart")
    cli.answer({"same": same, "running": running, **whole}, *lines)
    if running is not None and not running["same"] and not cli.json:
        complain(f"musterd: {running['node']} runs with a configuration other than the files here:")
        complain("  it has not been reloaded since they changed, or waits for a restart")


def _check_secrets(found: Changes, wanted: Settings) -> None:
    """Only changed ones must be readable here: others may be for the daemon alone."""
    changed = {one.key for one in found.keys}
    if changed & {"webhooks.secret", "webhooks.secret_file"}:
        resolve_signing_keys(wanted, os.environ)
    if found.settings.http.listen and changed & {"http.token_file", "http.tokens"}:
        resolve_http_tokens(found.settings, os.environ)


def _checked_kinds(catalog: Catalog, names: Iterable[str], settings: Settings) -> Catalog:
    some = Catalog([catalog[name] for name in names if name in catalog])
    return check_kinds(some, settings) if some else some


def _running_daemon(cli: CommandLine, present: Settings, kinds: Catalog) -> dict[str, Any] | None:
    """The daemon of this store here, if it answers, and whether it has the files' configuration."""
    own = cli.of_node(present)
    try:
        seen = ask_daemon(own, "/status")["node"]
        if seen["store"] != engine_for(own).where:
            return None
        rows = [one for one in ask_daemon(own, "/nodes")["nodes"] if one["node"] == seen["node"]]
    except (DaemonSilent, ConfigError):  # or its token, or its store's URL, is not for us to read
        return None
    if not rows:
        return None
    same = rows[0]["config_hash"] == fingerprint(present, kinds)
    return {"node": seen["node"], "same": same}


VALUE_WIDTH = 40
APPLIES = {
    "at once": "at once",
    "next claim": "at the next claim",
    "next job": "for jobs that start from now on",
    "restart": "needs a restart",
}


def difference_lines(found: dict[str, Any]) -> list[str]:
    rows = [_key_row(one["key"], one) for one in found["changed"]]
    for what in ("kinds", "schedules"):
        rows += _named_rows(what, found[what])
    lines = table(("key", "from", "to", "applies"), rows) if rows else []
    return [*lines, *_tenant_lines(found["tenants"])]


def _key_row(key: str, one: dict[str, Any]) -> tuple[str, str, str, str]:
    return (key, _value_text(one["from"]), _value_text(one["to"]), APPLIES[one["applies"]])


def _named_rows(what: str, found: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    when = APPLIES["next job" if what == "kinds" else "at once"]
    rows = [(f"{what}.{name}", "-", "added", when) for name in found["added"]]
    for one in found["changed"]:
        rows += [_key_row(f"{what}.{one['name']}.{key['key']}", key) for key in one["keys"]]
    return rows + [(f"{what}.{name}", "-", "removed", when) for name in found["removed"]]


def _tenant_lines(found: dict[str, list[str]]) -> Iterator[str]:
    said = {
        "added": "is served",
        "removed": "is left when its running jobs have ended",
        "moved": "is served at its new place when its running jobs have ended",
    }
    for how, what in said.items():
        for name in found[how]:
            yield f"tenant {name} {how}: it {what}"


def _value_text(value: object) -> str:
    return cut(one_line(value_text(value)), VALUE_WIDTH)
