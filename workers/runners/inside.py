"""A handler inside the daemon: how it is imported, its context, and how it ends."""

from __future__ import annotations

import importlib
import json
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from musterd.catalog.kinds import Python
from musterd.workers.context import Ending, Facts, JobContext
from musterd.workers.joblog import JobLog
from musterd.workers.outcome import Assignment, Note, Outcome
from musterd.workers.runners.results import AnswerLimits, outcome_of

_NOTHING: Mapping[str, float] = {}
_OWN_FOLDER = str(Path(__file__).parent)


class InsideLink:
    """What a handler says goes straight to the attempt. `report` may be called on any thread."""

    __slots__ = ("_log_bytes_max", "_remaining", "_report", "job_log", "last_spent")

    def __init__(
        self, remaining: Callable[[], float], report: Callable[[Note], None], log_bytes_max: int
    ) -> None:
        self._remaining, self._report, self._log_bytes_max = remaining, report, log_bytes_max
        self.job_log: JobLog | None = None
        self.last_spent: Mapping[str, float] | None = None

    def log(self, text: str) -> None:
        if self.job_log is None:
            self.job_log = JobLog(self._log_bytes_max)
        self.job_log.add(text.encode("utf-8", "replace"))

    def note(self, percent: float, note: str | None) -> None:
        self._report(Note(percent, note))

    def spent(self, amounts: Mapping[str, float]) -> None:
        self.last_spent = amounts

    def remaining_seconds(self) -> float:
        return self._remaining()


def context_of(assignment: Assignment, link: InsideLink) -> JobContext:
    claim, kind = assignment.claim, assignment.kind
    spent: Mapping[str, float] = json.loads(claim.spent) if claim.spent else _NOTHING
    facts = Facts(
        kind.name, assignment.payload, claim.id, claim.token, claim.attempt, kind.budgets, spent,
        assignment.phase,
    )  # fmt: skip
    return JobContext(facts, link)


def log_crash(link: InsideLink, ending: Ending, error: BaseException) -> None:
    """Puts the traceback into the log, without our own part of it."""
    if not ending.is_crash:
        return
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_OWN_FOLDER):
        trace = trace.tb_next
    link.log("".join(traceback.format_exception(type(error), error, trace)))


def conclude(
    ending: Ending, assignment: Assignment, link: InsideLink, limits: AnswerLimits
) -> Outcome:
    outcome = outcome_of(ending, assignment.kind, limits)
    if link.job_log is None and link.last_spent is None:
        return outcome
    leave_traces(assignment, link)
    return outcome._replace(log=assignment.traces.log, spent=assignment.traces.spent)


def leave_traces(assignment: Assignment, link: InsideLink) -> None:
    """So that an attempt that is cancelled has a log as well."""
    log, spent = link.job_log, link.last_spent
    assignment.traces.log = None if log is None else log.text()
    assignment.traces.spent = None if spent is None else json.dumps(dict(spent))


def import_function(behaviour: Python) -> Callable[..., Any]:
    """Raises what the import raises; AttributeError or TypeError if there is no such function."""
    with _IMPORTING:
        _FINDER.add(behaviour.search_path)
        found: Any = importlib.import_module(behaviour.module)
    for name in behaviour.function.split("."):
        found = getattr(found, name)
    if not callable(found):
        what = f"{behaviour.module}:{behaviour.function}"
        raise TypeError(f"{what} is no function but {type(found).__name__}")
    function: Callable[..., Any] = found
    return function


class _UsersFolders:
    """A finder for top-level modules in the users' folders."""

    def __init__(self) -> None:
        self._folders: list[str] = []

    def add(self, folders: Sequence[Path]) -> None:
        new = [str(each) for each in folders if str(each) not in self._folders]
        if new:
            self._folders += new
            importlib.invalidate_caches()
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is not None or name == "musterd" or name in sys.stdlib_module_names:
            return None
        return PathFinder.find_spec(name, self._folders, target)


_IMPORTING = threading.Lock()
_FINDER = _UsersFolders()
