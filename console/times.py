"""Reading the times that people type: `--in 5m`, `--at 2030-01-01T09:00:00Z`."""

from __future__ import annotations

import re
from datetime import datetime

import click

from musterd.store.moments import moment_of

UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
DELAY_SECONDS_MAX = 100 * 365 * 86400.0
_DELAY = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", re.ASCII)


def read_delay(_context: click.Context, _option: click.Parameter, text: str | None) -> float | None:
    """Reads `500ms`, `5s`, `5m`, `2h` or `1d` as seconds; raises click.BadParameter."""
    if text is None:
        return None
    found = _DELAY.fullmatch(text.strip())
    if found is None:
        raise click.BadParameter(f"{text!r} is no delay: write 500ms, 5s, 5m, 2h or 1d")
    seconds = float(found[1]) * UNIT_SECONDS[found[2]]
    if seconds > DELAY_SECONDS_MAX:
        raise click.BadParameter(f"{text!r} is more than a hundred years")
    return seconds


def read_moment(
    _context: click.Context, _option: click.Parameter, text: str | None
) -> datetime | None:
    """Reads an RFC 3339 time, which always says its zone; raises click.BadParameter."""
    if text is None:
        return None
    try:
        return moment_of(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
