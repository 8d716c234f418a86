"""How a verb ends: every exit code, and every complaint, in one place."""

from __future__ import annotations

from enum import IntEnum
from typing import IO, Any

import click


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
        self.exit_code = int(code)  # type: ignore[misc] - click means one code a class
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
    from musterd.manager.errors import StartError
    from musterd.store.errors import InputRefused, StoreMisconfigured, StoreUnavailable

    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    match error:
        case ConfigError():
            return _faults(error)
        case StoreUnavailable():
            advice = "is it up? `musterd config show --origin` says which store is used, and why"
            return Complaint(Exit.UNAVAILABLE, f"the store is not available: {error}", advice)
        case StoreMisconfigured():
            advice = "`musterd config show --origin` says which store is used, and why"
            return Complaint(Exit.CONFIGURATION, str(error), advice)
        case StartError():
            return Complaint(Exit.CONFIGURATION, str(error))
        case InputRefused():
            return Complaint(Exit.USAGE, str(error))
        case _:
            return None


def _faults(error: Any) -> Complaint:
    lines = str(error).splitlines()
    count = len(error.faults)
    head = "the configuration has a fault" if count == 1 else f"there are {count} faults"
    return Complaint(Exit.CONFIGURATION, f"{head}; nothing was done:", "\n  ".join(lines))
