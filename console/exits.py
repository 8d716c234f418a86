"""How a verb ends: every exit code, and every complaint, in one place."""

from __future__ import annotations

from enum import IntEnum
from typing import IO, TYPE_CHECKING, Any, cast

import click

if TYPE_CHECKING:
    from musterd.config.faults import ConfigError


class Exit(IntEnum):
    """The codes that scripts rely on."""

    DONE = 0
    UNSUCCESSFUL = 1  # the job waited for did not succeed; the node is not healthy
    USAGE = 2
    UNKNOWN = 3  # no such job, no such kind
    WRONG_STATE = 4
    UNAVAILABLE = 69  # the store, or the daemon asked, cannot be reached
    CONFIGURATION = 78


class Complaint(click.ClickException):
    """Ends a verb: says on stderr what is wrong and what to do, and exits with its code."""

    def __init__(self, code: Exit, what: str, advice: str = "") -> None:
        super().__init__(what)
        self.exit_code = int(code)  # type: ignore[misc]  # click means one code a class
        self.advice = advice

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"musterd: {self.message}", file=file, err=file is None)
        if self.advice:
            click.echo(f"  {self.advice}", file=file, err=file is None)


def complaint_about(error: BaseException) -> Complaint | None:
    """Gives what to say of an error that a user can do something about; None = a fault of the
    program.
    """
    from musterd.config.faults import ConfigError
    from musterd.manager.node.errors import StartError
    from musterd.store.errors import InputRefused, StoreMisconfigured, StoreUnavailable

    single = _single(error)
    match single:
        case Complaint():
            return single
        case ConfigError():
            return _faults(single)
        case StoreUnavailable():
            advice = "is it up? `musterd config show --origin` says which store is used, and why"
            return Complaint(Exit.UNAVAILABLE, f"the store is not available: {single}", advice)
        case StoreMisconfigured():
            advice = "`musterd config show --origin` says which store is used, and why"
            return Complaint(Exit.CONFIGURATION, str(single), advice)
        case StartError():
            return Complaint(Exit.CONFIGURATION, str(single))
        case InputRefused():
            return Complaint(Exit.USAGE, str(single))
        case _:
            return None


def _single(error: BaseException) -> BaseException:
    """The one error inside groups of one; a group of several is itself."""
    inner = cast("tuple[BaseException, ...]", getattr(error, "exceptions", ()))
    return _single(inner[0]) if len(inner) == 1 else error


def _faults(error: ConfigError) -> Complaint:
    lines = str(error).splitlines()
    count = len(error.faults)
    head = "the configuration has a fault" if count == 1 else f"there are {count} faults"
    return Complaint(Exit.CONFIGURATION, f"{head}; nothing was done:", "\n  ".join(lines))
