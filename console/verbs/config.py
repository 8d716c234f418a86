"""`musterd config`: what is configured, where it comes from, and whether it holds together."""

from __future__ import annotations

import click

from musterd.console.given import Given, Verbs
from musterd.console.out import print_json, say
from musterd.console.verbs.config_diff import diff


@click.group(cls=Verbs)
def config() -> None:
    """Show and check the configuration."""


@config.command()
@click.option("--origin", is_flag=True, help="Say which layer each value came from.")
@click.pass_obj
def show(given: Given, origin: bool) -> None:
    """Print the effective configuration as TOML, secrets masked."""
    from musterd.config.show import as_text, as_tree

    loaded = given.load()
    if given.json:
        print_json(as_tree(loaded, origin))
    else:
        say(as_text(loaded, origin).rstrip("\n"))


@config.command()
@click.pass_obj
def check(given: Given) -> None:
    """Check the configuration and the catalog, and name every fault; exit 78 if there is one."""
    from musterd.config.faults import ConfigError, Fault
    from musterd.console.checked import broken_hooks_of

    loaded, catalog = given.load_all()
    if broken := broken_hooks_of(loaded.settings):
        origins = loaded.origins
        raise ConfigError(Fault(origins[key], key=key, found=why) for key, why in broken.items())
    given_by = {origin for origin in loaded.origins.values() if origin != "default"}
    if given.json:
        print_json({"valid": True, "settings_changed": len(given_by), "kinds": len(catalog)})
        return
    changed = [key for key, origin in loaded.origins.items() if origin != "default"]
    said = f"{len(changed)} settings differ from the shipped ones" if changed else "all as shipped"
    say(f"the configuration is valid ({said}); the catalog has {len(catalog)} kinds")


config.add_command(diff)
