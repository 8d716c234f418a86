"""Faults that were contained: a lasting one does not fill the log."""

import logging
from types import SimpleNamespace
from typing import Any, cast

import attrs
import trio

from musterd.manager.events.node_events import FAULT_SECONDS, FAULTS_MAX, FaultReporter
from musterd.workers.outcome import Contained, Where


@attrs.define
class Desk:
    """Writes down what the reporter says. `counted` is what the metrics heard."""

    counted: list[Where] = attrs.field(factory=list[Where])
    lines: list[logging.LogRecord] = attrs.field(factory=list[logging.LogRecord])
    reporter: FaultReporter = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        log = logging.Logger("tests.faults")  # noqa: LOG001 - one for each test
        log.addFilter(self._take)
        metrics = SimpleNamespace(contained=self.counted.append)
        self.reporter = FaultReporter(cast(Any, SimpleNamespace(log=log, metrics=metrics)))

    def _take(self, line: logging.LogRecord) -> bool:
        self.lines.append(line)
        return False

    def said(self) -> list[tuple[bool, dict[str, object]]]:
        """Of each line whether it has a traceback, and its fields."""
        return [(bool(line.exc_info), cast(Any, line).fields) for line in self.lines]


def fault(where: Where, job_id: int | None = None, text: str = "odd") -> Contained:
    try:
        raise KeyError(text)
    except KeyError as error:
        return Contained(where, None, job_id, error)


async def test_a_lasting_fault_is_written_once_a_minute_and_counted(
    autojump_clock: trio.testing.MockClock,
) -> None:
    del autojump_clock
    desk = Desk()
    for _ in range(121):
        desk.reporter.contained(fault("hint"))
        await trio.sleep(1)
    assert FAULT_SECONDS == 60
    assert len(desk.counted) == 121
    again = {"where": "hint", "repeated": 59}
    assert desk.said() == [(True, {"where": "hint"}), (True, again), (True, again)]


async def test_each_job_that_a_fault_costs_has_a_line(  # noqa: ASYNC124 - its clock is Trio's
    autojump_clock: trio.testing.MockClock,
) -> None:
    del autojump_clock
    desk = Desk()
    for job_id in (1, 2):
        desk.reporter.contained(fault("attempt", job_id))
    short = {"where": "attempt", "job_id": 2, "error": "KeyError: 'odd'"}
    assert desk.said() == [(True, {"where": "attempt", "job_id": 1}), (False, short)]


async def test_faults_of_other_sorts_are_written_in_full(  # noqa: ASYNC124 - its clock is Trio's
    autojump_clock: trio.testing.MockClock,
) -> None:
    """As many as are remembered at most; the oldest is forgotten first."""
    del autojump_clock
    desk = Desk()
    for number in range(FAULTS_MAX + 1):
        desk.reporter.contained(Contained("child", f"kind{number}", None, KeyError()))
    desk.reporter.contained(Contained("child", "kind0", None, KeyError()))
    desk.reporter.contained(Contained("child", f"kind{FAULTS_MAX}", None, KeyError()))
    assert [has for has, _ in desk.said()] == [True] * (FAULTS_MAX + 2)
