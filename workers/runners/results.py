"""From what a program, a server or a handler came to, to the outcome of its attempt."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

import attrs

from musterd.catalog.kinds import WorkKind
from musterd.store.errors import InputRefused
from musterd.store.input import SUSPECT, PayloadLimits, check_payload
from musterd.workers.context import (
    SPENT_NAME_LENGTH_MAX,
    SPENT_NAMES_MAX,
    BudgetExceeded,
    Ending,
)
from musterd.workers.outcome import SUCCESS, Assignment, Outcome

AT_ONCE_MAX = 1e15  # that is spent at once


class Spending:
    """Counts what a program or a server says it has spent of its kind's budgets, beside what was
    spent before. Raises nothing: `over` is set once it is too much.
    """

    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment
        before = assignment.claim.spent
        self._spent: dict[str, float] = json.loads(before) if before else {}
        self.text: str | None = None  # JSON; None = this attempt spent nothing
        self.over: BudgetExceeded | None = None

    def add(self, amounts: Mapping[str, float]) -> str | None:
        """Gives why some of these are not counted; None = all are."""
        counted = 0
        for name, amount in amounts.items():
            if name in self._spent or self._has_room_for(name):
                self._spent[name] = self._spent.get(name, 0) + amount
                counted += 1
        if counted:
            self._report()
        if counted == len(amounts):
            return None
        most, longest = SPENT_NAMES_MAX, SPENT_NAME_LENGTH_MAX
        return f"wanted at most {most} names of at most {longest} characters"

    def _has_room_for(self, name: str) -> bool:
        return len(self._spent) < SPENT_NAMES_MAX and len(name) <= SPENT_NAME_LENGTH_MAX

    def _report(self) -> None:
        self.text = json.dumps(self._spent)
        self._assignment.recorder.spend(self.text)
        for name, most in self._assignment.kind.budgets.items():
            if self._spent.get(name, 0) > most:
                self.over = BudgetExceeded(name, self._spent[name], most)

    def ending(self, outcome: Outcome) -> Outcome:
        """The end of the attempt: a failure where too much was spent, whatever else it came to."""
        if self.over is not None:
            return Outcome("failure", None, "budget_exceeded", str(self.over))
        return outcome


def amounts_of(value: object) -> Mapping[str, float] | None:
    """`value` as amounts by name; None = it is none."""
    found = cast("dict[str, object]", value) if isinstance(value, dict) else {"": None}
    amounts = {
        name: amount
        for name, amount in found.items()
        if name.isidentifier()
        and isinstance(amount, int | float)
        and not isinstance(amount, bool)
        and 0 <= amount < AT_ONCE_MAX
    }
    return amounts if len(amounts) == len(found) else None


@attrs.frozen
class AnswerLimits:
    """What an answer may be: the bounds of `[limits]`."""

    result_bytes_max: int
    depth_max: int


def success(answer: bytes, source: str, limits: AnswerLimits) -> Outcome:
    """A success with the answer as its result; a failure `result_invalid` if no store can keep it.

    `source` is what to call the answer: its stdout, its body. An empty one is no result.
    """
    try:
        text = answer.decode().strip()
    except UnicodeDecodeError as error:
        return invalid(f"{source} is not UTF-8: byte {error.start} is {answer[error.start]:#04x}")
    if not text:
        return SUCCESS
    result = text if _is_json(text) else json.dumps(text, ensure_ascii=False)
    size_bytes = len(result.encode())
    if size_bytes > limits.result_bytes_max:
        return too_large(source, f"{size_bytes} bytes as JSON", limits)
    try:
        check_payload(result, PayloadLimits(limits.result_bytes_max, limits.depth_max))
    except InputRefused as error:
        return invalid(f"{source}: {str(error).removeprefix('payload').removeprefix(': ')}")
    return Outcome("success", result)


def too_large(source: str, found: str, limits: AnswerLimits) -> Outcome:
    wanted = f"at most {limits.result_bytes_max} ([limits] max_result_bytes)"
    return invalid(f"{source} is too large for a result: found {found}, wanted {wanted}")


def invalid(message: str) -> Outcome:
    """The work was done, but its result can't be kept: doing it again would not help."""
    return Outcome("failure", None, "result_invalid", message)


def _is_json(text: str) -> bool:
    """Whether it is one JSON value. One too deep to be read counts, and is refused later."""
    try:
        _read(text)
    except RecursionError:
        return True
    except ValueError:
        return False
    return True


def _refuse(word: str) -> object:
    raise ValueError(f"{word} is no JSON")  # NaN and the infinities


_read = json.JSONDecoder(parse_constant=_refuse).decode  # one for all: it is costly to make


def outcome_of(ending: Ending, kind: WorkKind, limits: AnswerLimits) -> Outcome:
    """A failure may be tried again if its kind is retryable, or lists its error or one that it
    derives from in `retry_on`. A result that no store can keep is a failure as well.
    """
    if ending.ended == "success":
        return _success(ending.result, limits)
    if ending.ended == "cancel":
        return Outcome("cancel", message=ending.message)
    if ending.ended == "snooze":
        return Outcome("snooze", message=ending.message or None, delay_seconds=ending.in_seconds)
    error_type = ending.names[0] if ending.names else "error"
    if ending.ended == "retry":
        wait = ending.in_seconds
        return Outcome("retry", None, error_type, ending.message, True, delay_seconds=wait)
    retryable = not ending.final and (
        kind.retryable or not _bare_and_full(ending.names).isdisjoint(kind.retry_on)
    )
    return Outcome("failure", None, error_type, ending.message, retryable)


def _success(result: str | None, limits: AnswerLimits) -> Outcome:
    if result is None:
        return SUCCESS
    # The common case at little cost: what is that short can't be too deep.
    if len(result) <= limits.depth_max and not SUSPECT.search(result) and _is_json(result):
        return Outcome("success", result)
    fault = result_fault(result, limits)
    if fault is None:
        return Outcome("success", result)
    return Outcome("failure", None, "result_invalid", fault)


def result_fault(result: str, limits: AnswerLimits) -> str | None:
    """Why this JSON text can't be kept; None = it can."""
    size_bytes = len(result.encode("utf-8", "surrogatepass"))
    if size_bytes > limits.result_bytes_max:
        wanted = f"at most {limits.result_bytes_max} ([limits] max_result_bytes)"
        return f"result: found {size_bytes} bytes, wanted {wanted}"
    try:
        check_payload(result, PayloadLimits(limits.result_bytes_max, limits.depth_max))
    except InputRefused as error:
        return str(error).replace("payload", "result", 1)
    return None


def _bare_and_full(names: tuple[str, ...]) -> set[str]:
    return {*names, *(name.rpartition(".")[2] for name in names)}
