"""What verbs print and how they end: text and JSON on stdout, complaints on stderr, exit codes."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from enum import IntEnum
from typing import IO, Any, TextIO, TypeVar, cast

import click

from musterd.config.faults import ConfigError
from musterd.store.errors import InputRefused, StoreMisconfigured, StoreUnavailable
from musterd.store.words import cut, table

T = TypeVar("T")

STATE_COLOURS = {
    "succeeded": "green",
    "failed": "red",
    "canceled": "yellow",
    "paused": "yellow",
    "running": "cyan",
    "assigned": "cyan",
}


def print_json(value: object) -> None:
    click.echo(json.dumps(value))


def say(text: str = "") -> None:
    click.echo(text)


def say_lines(lines: Iterable[str]) -> None:
    for line in lines:
        say(line)


def complain(text: str) -> None:
    click.echo(text, err=True)


def coloured(state: str, text: str) -> str:
    """`text` in the colour of a job's state, unless colour is off."""
    colour = STATE_COLOURS.get(state)
    return click.style(text, fg=colour) if colour else text


Columns = Mapping[str, Callable[[T], str]]


def table_of(
    found: Sequence[T],
    columns: Columns[T],
    empty: str = "",
    state: Callable[[T], str] = lambda _: "",
) -> list[str]:
    """Heads and one line per row, in the colour of its job state if it has one; `empty` if there
    are no rows. A head with `>` aligns its column right.
    """
    if empty and not found:
        return [empty]
    rows = [[cell(one) for cell in columns.values()] for one in found]
    right = frozenset(place for place, head in enumerate(columns) if head.startswith(">"))
    heads, *lines = table([head.removeprefix(">") for head in columns], rows, right)
    return [heads, *(coloured(state(one), line) for one, line in zip(found, lines, strict=True))]


def or_dash(value: T | None, text: Callable[[T], str] = str) -> str:
    return "-" if value is None else text(value)


BLOCKS = " ▁▂▃▄▅▆▇█"


def bars(values: Sequence[int], highest: int) -> str:
    """One block per value; only zero looks empty."""
    top = len(BLOCKS) - 1
    return "".join(BLOCKS[-(-value * top // max(1, highest))] for value in values)


class StoreAwayNotice:
    """Complains once each time the store goes away."""

    def __init__(self) -> None:
        self._is_said = False

    def say(self, message: str) -> None:
        if not self._is_said:
            self._is_said = True
            complain(f"the store is not available, waiting for it: {message}")

    def is_back(self) -> None:
        self._is_said = False


class LiveLine:
    """A line at the foot of a terminal; other lines pass above it. A `quiet` one shows nothing."""

    def __init__(self, terminal: TextIO | None = None, *, quiet: bool = False) -> None:
        self._terminal = sys.stdout if terminal is None else terminal
        self._shown = ""
        self.is_quiet = quiet

    def show(self, text: str) -> None:
        """Replaces the line with `text`, cut to the terminal's width."""
        if not self.is_quiet:
            self._shown = cut(text, shutil.get_terminal_size().columns - 1)
            self._terminal.write(f"\r\x1b[K{self._shown}")
            self._terminal.flush()

    async def keep_showing(self, text: Callable[[], str], every_seconds: float) -> None:
        """Shows what `text` returns, again and again, until cancelled."""
        import trio

        try:
            while True:
                self.show(text())
                await trio.sleep(every_seconds)
        finally:
            self.done()

    def write(self, text: str) -> int:
        """Writes lines above the live one, so that a log can write here."""
        self._terminal.write(f"\r\x1b[K{text}{self._shown}")
        return len(text)

    def flush(self) -> None:
        self._terminal.flush()

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._terminal.fileno()

    def done(self) -> None:
        if not self.is_quiet:
            self._shown = ""
            self._terminal.write("\r\x1b[K")
            self._terminal.flush()


@contextmanager
def live_line(*, quiet: bool = False, terminal: TextIO | None = None) -> Generator[LiveLine]:
    """A live line for the block; quiet unless the output is a terminal."""
    stream = sys.stdout if terminal is None else terminal
    line = LiveLine(stream, quiet=quiet or not stream.isatty())
    try:
        yield line
    finally:
        line.done()


class Exit(IntEnum):
    """Exit codes; scripts rely on them."""

    DONE = 0
    UNSUCCESSFUL = 1  # the job waited for did not succeed; the node is not healthy
    USAGE = 2
    UNKNOWN = 3  # no such job, kind, tenant, ...
    WRONG_STATE = 4
    UNAVAILABLE = 69  # the store, or the daemon asked, cannot be reached
    CONFIGURATION = 78


WHICH_STORE = "`musterd config show --origin` says which store is used, and why"


class Complaint(click.ClickException):
    """Ends a verb: says on stderr what is wrong and what to do, and exits with its code."""

    def __init__(self, code: Exit, what: str, advice: str = "") -> None:
        super().__init__(what)
        self.exit_code = int(code)  # type: ignore[misc]  # click expects one code per class
        self.advice = advice

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"musterd: {self.message}", file=file, err=file is None)
        if self.advice:
            click.echo(f"  {self.advice}", file=file, err=file is None)


def innermost(error: BaseException) -> BaseException:
    """The single error in nested groups; a group of several stays a group."""
    inner = cast("tuple[BaseException, ...]", getattr(error, "exceptions", ()))
    return innermost(inner[0]) if len(inner) == 1 else error


def complaint_about(error: BaseException) -> Complaint | None:
    """The complaint for an error that a user can fix; None = a bug."""
    from musterd.manager.node.process import StartError

    single = innermost(error)
    match single:
        case Complaint():
            return single
        case ConfigError():
            count = len(single.faults)
            head = "the configuration has a fault" if count == 1 else f"there are {count} faults"
            faults = "\n  ".join(str(single).splitlines())
            return Complaint(Exit.CONFIGURATION, f"{head}; nothing was done:", faults)
        case StoreUnavailable():
            advice = f"is it up? {WHICH_STORE}"
            return Complaint(Exit.UNAVAILABLE, f"the store is not available: {single}", advice)
        case StoreMisconfigured():
            return Complaint(Exit.CONFIGURATION, str(single), WHICH_STORE)
        case StartError():
            return Complaint(Exit.CONFIGURATION, str(single))
        case InputRefused():
            return Complaint(Exit.USAGE, str(single))
        case _:
            return None
