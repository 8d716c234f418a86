"""What a handler sees of its job, and what it may raise. The same in every isolation.

Standard library only: a handler's child process loads this file by its path, in an interpreter
that may know nothing else of musterd.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any, NamedTuple, Protocol, cast

DELAY_SECONDS_MAX = 366 * 86_400
NOTE_LENGTH_MAX = 500
SPENT_NAMES_MAX = 100
SPENT_NAME_LENGTH_MAX = 200
LOG_LEVELS = ("debug", "info", "warning", "error", "critical")
AMOUNT_MAX = 1e300  # so far from what a double holds that no sum of two is infinite


class Retry(Exception):
    """Try this job again: after `in_seconds`, or after the delay that its kind's policy gives.

    Counts as a failed attempt: when all are used up, the job has failed with this message.
    """

    def __init__(self, in_seconds: float | None = None, message: str = "") -> None:
        self.in_seconds = None if in_seconds is None else _delay("Retry", in_seconds)
        super().__init__(message)


class Fatal(Exception):
    """This job has failed and is not tried again, whatever its kind says."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message)


class Snooze(Exception):
    """Not now: the job waits `in_seconds` and is then run again. Burns no attempt."""

    def __init__(self, in_seconds: float, message: str = "") -> None:
        self.in_seconds = _delay("Snooze", in_seconds)
        super().__init__(message)


class Cancel(Exception):
    """This job is not wanted any more: it ends as canceled."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)


class BudgetExceeded(Exception):
    """More was spent than the kind's `budgets` allow."""

    def __init__(self, name: str, spent: float, budget: float) -> None:
        super().__init__(f"spent {spent:g} of {name}, the budget is {budget:g}")
        self.name, self.spent, self.budget = name, spent, budget


class Fence(NamedTuple):
    """Names one claim of one job. A side system that keeps the newest `attempt` of each `id`, and
    refuses older ones, is safe from a run that has lost its lease without knowing it.
    """

    id: int
    token: str
    attempt: int


class PhaseFacts(NamedTuple):
    """Which phase of a job is run, and where it finds what earlier ones returned."""

    name: str
    names: tuple[str, ...]  # of all phases, in order
    finished: Collection[str]
    result_of: Callable[[str], str | None]  # of a finished one: JSON text, None = nothing


class Facts(NamedTuple):
    """What is known of a job when it starts."""

    kind: str
    payload: Any
    job_id: int
    token: object  # its text is what side systems get
    attempt: int
    budgets: Mapping[str, float]
    spent: Mapping[str, float]  # by earlier attempts, and earlier phases of this one
    phase: PhaseFacts | None = None  # None = its kind has no phases
    schedule: str | None = None
    scheduled_for: datetime | None = None
    traceparent: str | None = None


class Link(Protocol):
    """Where a context's words go. All calls return soon and never raise."""

    def log(self, text: str, level: str = "info") -> None: ...
    def note(self, percent: float, note: str | None) -> None: ...
    def spent(self, amounts: Mapping[str, float]) -> None: ...
    def remaining_seconds(self) -> float: ...


class JobContext:
    """One attempt at one job. All calls are plain ones, also in an `async def`."""

    __slots__ = ("_ask_facts", "_known", "_link", "_spent", "attempt", "overspent", "payload")

    def __init__(self, payload: Any, attempt: int, facts: Callable[[], Facts], link: Link) -> None:
        """`facts` are put together when they are asked for: most jobs want their payload alone."""
        self.payload = payload
        self.attempt = attempt
        self.overspent: BudgetExceeded | None = None  # spent on after it was too much
        self._ask_facts, self._link = facts, link
        self._known: Facts | None = None
        self._spent: dict[str, float] | None = None  # nothing yet by this attempt

    @property
    def _facts(self) -> Facts:
        if self._known is None:
            self._known = self._ask_facts()
        return self._known

    @property
    def kind(self) -> str:
        return self._facts.kind

    @property
    def fence(self) -> Fence:
        return Fence(self._facts.job_id, str(self._facts.token), self.attempt)

    @property
    def phase(self) -> str | None:
        """The phase of the job that is being run; None where the kind has none."""
        phase = self._facts.phase
        return None if phase is None else phase.name

    @property
    def schedule(self) -> str | None:
        """The schedule that made the job; None = none did."""
        return self._facts.schedule

    @property
    def scheduled_for(self) -> datetime | None:
        """The slot of its schedule that the job is for, with its time zone, however late it runs;
        None for a job that no schedule made, or that was made by hand.
        """
        return self._facts.scheduled_for

    @property
    def traceparent(self) -> str | None:
        """The trace that this attempt is part of, as W3C writes it; None = it is part of none, or
        the node does not trace.
        """
        return self._facts.traceparent

    def phase_results(self) -> dict[str, Any]:
        """What the finished phases returned, by name, in their order; empty where none has."""
        phase = self._facts.phase
        if phase is None:
            return {}
        return {name: self.phase_result(name) for name in phase.names if name in phase.finished}

    def phase_result(self, name: str) -> Any:
        """What an earlier phase returned. Raises LookupError where there is no such phase, and of
        one that has not finished.
        """
        kind, phase = self._facts.kind, self._facts.phase
        if phase is None:
            raise LookupError(f"kind {kind!r} has no phase {name!r}: it has no phases")
        if name not in phase.names:
            known = ", ".join(phase.names)
            raise LookupError(f"kind {kind!r} has no phase {name!r}: its phases are {known}")
        if name not in phase.finished:
            finished = ", ".join(each for each in phase.names if each in phase.finished)
            raise LookupError(f"phase {name!r} has not finished; finished are: {finished or '-'}")
        result = phase.result_of(name)
        return None if result is None else json.loads(result)

    def progress(self, percent: float, note: str | None = None) -> None:
        """Tells how far the job is, from 0 to 100. Call it as often as you like."""
        if not math.isfinite(percent):
            raise ValueError(f"progress: found {percent}, wanted a number from 0 to 100")
        short = None if note is None else keepable(str(note))[:NOTE_LENGTH_MAX]
        self._link.note(float(min(100.0, max(0.0, percent))), short)

    def log(self, text: object, level: str = "info") -> None:
        """Adds a line to the attempt's log, which can be read while the job runs. Of a long log the
        end is kept. Levels are debug, info, warning, error and critical.
        """
        if level not in LOG_LEVELS:
            raise ValueError(f"log: found level {shown(level)}, wanted {', '.join(LOG_LEVELS)}")
        self._link.log(f"{text}\n", level)

    def spend(self, **amounts: float) -> None:
        """Counts what the job has used: `job.spend(tokens=120)`.

        Raises BudgetExceeded when the total of all attempts is above the kind's budget of that
        name. A handler may catch it and end with what it has; if it spends on, its job fails with
        `budget_exceeded`. Raises ValueError, and counts nothing, where a name or a sum is none that
        a store can keep.
        """
        budgets = self._facts.budgets
        before = self._facts.spent if self._spent is None else self._spent
        was_over = any(before.get(name, 0) > most for name, most in budgets.items())
        spent = dict(before)
        for name, amount in amounts.items():
            spent[name] = spent.get(name, 0) + _amount(name, amount)
        fault = spent_fault(spent)
        if fault is not None:
            raise ValueError(f"spend: {fault}")
        self._spent = spent
        self._link.spent(spent)
        for name, most in budgets.items():
            if spent.get(name, 0) > most:
                error = BudgetExceeded(name, spent[name], most)
                self.overspent = error if was_over else self.overspent
                raise error

    def remaining(self) -> float:
        """Seconds for which the lease may still be trusted; renewals make it grow again. At 0 the
        job may be another's: write nothing more.
        """
        return max(0.0, self._link.remaining_seconds())


class Ending(NamedTuple):
    """How a handler ended. `names`: what its error is called, the exact class first, then what it
    derives from.
    """

    ended: str  # success | failure | cancel | retry | snooze
    result: str | None = None  # JSON text
    names: tuple[str, ...] = ()
    message: str = ""
    in_seconds: float | None = None
    final: bool = False  # a failure that nothing may make retryable
    is_crash: bool = False  # the handler did not choose this end: a traceback helps


_NO_RESULT = Ending("success")


def ending_of_value(job: JobContext, value: object) -> Ending:
    """The end of a handler that returned."""
    if job.overspent is not None:
        return ending_of_error(job, job.overspent)
    if value is None:
        return _NO_RESULT
    try:
        return Ending("success", _encode(value))
    except Exception as error:  # noqa: BLE001 - a value's own methods may raise anything
        message = f"the result is no JSON: {message_of(error)}"
        return Ending("failure", None, ("result_invalid",), message, final=True)


def ending_of_error(job: JobContext, error: BaseException) -> Ending:
    """The end of a handler that raised."""
    error = _only_one(error)
    message = message_of(error)
    if isinstance(error, BudgetExceeded) or job.overspent is not None:
        message = message_of(job.overspent or error)
        return Ending("failure", None, ("budget_exceeded",), message, final=True)
    if isinstance(error, Retry):
        return Ending("retry", None, names_of(error), message, error.in_seconds)
    if isinstance(error, Snooze):
        return Ending("snooze", None, (), message, error.in_seconds)
    if isinstance(error, Cancel):
        return Ending("cancel", None, (), message)
    if isinstance(error, Fatal):
        return Ending("failure", None, names_of(error), message, final=True)
    return Ending("failure", None, names_of(error), message, is_crash=True)


def names_of(error: BaseException) -> tuple[str, ...]:
    """As an author writes them: `ValueError`, `shop.errors.Declined`."""
    names = [
        each.__qualname__
        if each.__module__ in ("builtins", "musterd.workers.context")
        else f"{each.__module__}.{each.__qualname__}"
        for each in type(error).__mro__
    ]
    return tuple(names[:-1])  # without `object`


def message_of(error: BaseException) -> str:
    leaves = _members(error)
    if leaves:
        said = ", ".join(f"{names_of(each)[0]}: {message_of(each)}" for each in leaves)
        return f"{error.args[0]}: {said}"
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - a user's own __str__
        return "(its message can't be had: __str__ raised)"


def _only_one(error: BaseException) -> BaseException:
    """What a nursery or a task group has wrapped, where it is a single error."""
    while len(members := _members(error)) == 1:
        error = members[0]
    return error


def _members(error: BaseException) -> tuple[BaseException, ...]:
    return cast(Any, error).exceptions if isinstance(error, BaseExceptionGroup) else ()


def keepable(text: str) -> str:
    """The text without what no store keeps: NUL and halves of characters."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()


def spent_fault(spent: Mapping[Any, Any]) -> str | None:
    """Why these sums cannot be kept; None = they can."""
    if len(spent) > SPENT_NAMES_MAX:
        return f"found {len(spent)} names, wanted at most {SPENT_NAMES_MAX}"
    for name, amount in spent.items():
        if type(name) is not str or len(name) > SPENT_NAME_LENGTH_MAX or keepable(name) != name:
            longest = SPENT_NAME_LENGTH_MAX
            return f"found the name {shown(name)}, wanted whole characters, at most {longest}"
        if type(amount) not in (int, float) or not 0 <= amount <= AMOUNT_MAX:
            return f"found {name}={shown(amount)} in all, wanted a number up to {AMOUNT_MAX:g}"
    return None


def _amount(name: str, amount: Any) -> float:
    """As a plain number, whatever library it comes from."""
    try:
        number = int(amount) if isinstance(amount, int) else float(amount)
        if 0 <= number <= AMOUNT_MAX:
            return number
    except (TypeError, ValueError, OverflowError):
        pass  # told below
    raise ValueError(f"spend: found {name}={shown(amount)}, wanted a number from 0 up")


def shown(value: object) -> str:
    """For a message about it: short, whatever it is."""
    try:
        return repr(value)[:50]
    except Exception:  # noqa: BLE001 - a value's own method, or an integer too long to be written
        return f"a {type(value).__name__}"


# One for all: json.dumps would make a new one at every call.
_encode = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode


def _delay(name: str, seconds: object) -> float:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise TypeError(f"{name}: found in_seconds={seconds!r}, wanted a number of seconds")
    if not 0 <= seconds <= DELAY_SECONDS_MAX:
        raise ValueError(f"{name}: found in_seconds={seconds}, wanted 0 to {DELAY_SECONDS_MAX}")
    return float(seconds)
