"""What goes to stdout: JSON for programs, aligned text for people."""

from __future__ import annotations

import json
import sys
from typing import TextIO

import click

STATE_COLOURS = {
    "succeeded": "green",
    "failed": "red",
    "canceled": "yellow",
    "paused": "yellow",
    "running": "cyan",
    "assigned": "cyan",
}


def print_json(value: object) -> None:
    """Prints one object on one line."""
    click.echo(json.dumps(value))


def say(text: str = "") -> None:
    click.echo(text)


def complain(text: str) -> None:
    click.echo(text, err=True)


def coloured(state: str, text: str) -> str:
    """Gives `text` in the colour of a job's state; click takes the colour out where it is not
    wanted.
    """
    colour = STATE_COLOURS.get(state)
    return click.style(text, fg=colour) if colour else text


class LiveLine:
    """One line at the foot of a terminal, written over and over; others pass above it."""

    def __init__(self, terminal: TextIO | None = None) -> None:
        self._terminal = sys.stdout if terminal is None else terminal
        self._shown = ""

    def show(self, text: str) -> None:
        """Puts `text` in the place of what the line showed, cut to the terminal's width."""
        import shutil

        from musterd.store.words import cut

        self._shown = cut(text, shutil.get_terminal_size().columns - 1)
        self._terminal.write(f"\r\x1b[K{self._shown}")
        self._terminal.flush()

    def write(self, text: str) -> int:
        """Writes whole lines above the live one, so that a log can be written here."""
        self._terminal.write(f"\r\x1b[K{text}{self._shown}")
        return len(text)

    def flush(self) -> None:
        self._terminal.flush()

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._terminal.fileno()

    def done(self) -> None:
        """Takes the line away."""
        self._shown = ""
        self._terminal.write("\r\x1b[K")
        self._terminal.flush()
