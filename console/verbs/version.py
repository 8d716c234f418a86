"""`musterd version`."""

from __future__ import annotations

import platform

import click

from musterd import __version__
from musterd.console.given import Given, Verb
from musterd.console.out import print_json, say


@click.command(cls=Verb)
@click.pass_obj
def version(given: Given) -> None:
    """Say which musterd this is."""
    import sqlite3

    found = {
        "musterd": __version__,
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "system": f"{platform.system()} {platform.machine()}",
    }
    if given.json:
        print_json(found)
        return
    rest = ", ".join(f"{name} {text}" for name, text in list(found.items())[1:3])
    say(f"musterd {__version__} ({rest}, {found['system']})")
