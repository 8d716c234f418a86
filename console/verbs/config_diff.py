"""`musterd config diff`: what a reload would do, before it is done."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from musterd.console.given import Given, Verb
from musterd.console.out import complain, print_json, say

if TYPE_CHECKING:
    from musterd.catalog.kinds import Catalog
    from musterd.config.reload import Changes
    from musterd.config.settings import Settings


@click.command(cls=Verb)
@click.argument("file", type=click.Path(path_type=Path))
@click.pass_obj
def diff(given: Given, file: Path) -> None:
    """Show what a reload would do if FILE were the configuration.

    FILE is read in place of --config FILE or /etc/musterd/musterd.toml; the layers above it stay.
    Exit 78 if a reload would refuse it; else 0, also where something is different.
    """
    from musterd.catalog.differences import kind_changes
    from musterd.config.reload import changes
    from musterd.manager.reload.checks import check_takeover
    from musterd.manager.reload.outcome import difference_object

    present, kinds = given.load_all()
    wanted, new_kinds = _other(given, file).load_all()
    found, named = changes(present.settings, wanted.settings), kind_changes(kinds, new_kinds)
    fresh = (*named.added, *(one.name for one in named.changed))
    _check_secrets(found, wanted.settings)
    before = _checked(kinds, fresh, present.settings)
    check_takeover(found, before, _checked(new_kinds, fresh, wanted.settings))
    running = _running(given, present.settings, kinds)
    whole = difference_object(found, named)
    same = not (whole["changed"] or any(map(_any, (whole["kinds"], whole["schedules"]))))
    same = same and not _any(whole["tenants"])
    if given.json:
        print_json({"same": same, "running": running, **whole})
    else:
        _tell(whole, file, same=same)
    if running is not None and not running["same"] and not given.json:
        complain(f"musterd: {running['node']} runs with another configuration than the files here:")
        complain("  it has not been reloaded since they changed, or waits for a restart")


def _other(given: Given, file: Path) -> Given:
    other = Given()
    other.config_file, other.sets, other.tenant = file, given.sets, given.tenant
    return other


def _check_secrets(found: Changes, wanted: Settings) -> None:
    """Raises ConfigError where those that are to be others cannot be read. What stays as it is may
    be for the daemon alone to read, as systemd's credentials are.
    """
    import os

    from musterd.config.credentials import resolve_http_tokens, resolve_signing_keys

    changed = {one.key for one in found.keys}
    if changed & {"webhooks.secret", "webhooks.secret_file"}:
        resolve_signing_keys(wanted, os.environ)
    if found.settings.http.listen and changed & {"http.token_file", "http.tokens"}:
        resolve_http_tokens(found.settings, os.environ)


def _checked(catalog: Catalog, names: Iterable[str], settings: Settings) -> Catalog:
    """These kinds, with what keeps them from running here."""
    from musterd.catalog.kinds import Catalog
    from musterd.console.checked import checked

    some = Catalog([catalog[name] for name in names if name in catalog])
    return checked(some, settings) if some else some


def _running(given: Given, present: Settings, kinds: Catalog) -> dict[str, Any] | None:
    """The daemon of this machine and store, if one answers, and whether it goes by the files as
    they are. What may differ from machine to machine is not compared.
    """
    from musterd.config.faults import ConfigError
    from musterd.console.ask import NodeSilent, ask_node
    from musterd.console.opening import engine_for
    from musterd.manager.node.fingerprint import fingerprint

    own = given.of_node(present)
    try:
        seen = ask_node(own, "/status")["node"]
        if seen["store"] != engine_for(own).where:
            return None
        rows = [one for one in ask_node(own, "/nodes")["nodes"] if one["node"] == seen["node"]]
    except (NodeSilent, ConfigError):  # or its token, or its store's URL, is not for us to read
        return None
    if not rows:
        return None
    same = rows[0]["config_hash"] == fingerprint(present, kinds)
    return {"node": seen["node"], "same": same}


def _any(named: dict[str, Any]) -> bool:
    return any(named.values())


def _tell(whole: dict[str, Any], file: Path, *, same: bool) -> None:
    from musterd.console.differences import lines_of

    if same:
        say(f"{file} changes nothing")
    for line in lines_of(whole):
        say(line)
    if whole["restart"]:
        count = len(whole["restart"])
        say(f"{count} of them {'needs' if count == 1 else 'need'} a restart")
