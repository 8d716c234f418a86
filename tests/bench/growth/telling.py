"""What each case is about, in words; and its rows as a table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs

from tests.bench.growth.figures import Row


@attrs.frozen
class Story:
    title: str
    aim: str


HALTED_AIM = "a claim of another job at most twice as long"
STORIES = {
    "depth": Story("Deeper queues", "within 5 % of each other"),
    "beside": Story("Beside many other jobs", "within 10 % of a queue with nothing else"),
    "snapshot": Story(
        "While a snapshot is held open",
        "a claim at most twice as long, and as before within 30 s after the release",
    ),
    "fragments": Story(
        "Stretches of one job each", "at most what single jobs cost before there were stretches"
    ),
    "in_hand": Story("Beside many jobs in hand", "within 10 % of a store with none"),
    "mixed": Story("Long jobs beside short ones", "within 1.3 times the short ones alone"),
    "unvacuumed": Story("Without autovacuum", "within 20 % after ten minutes of 1,000 jobs/s"),
    "targets": Story("Busy targets", "jobs without a target within 20 %"),
    "capped": Story("Beside a kind at its limit", "within 20 % of a queue without it"),
    "steady": Story("Sizes in a steady state", "no larger at the end than in the middle"),
    "singles": Story("Jobs that come one by one", "what clients of their own can commit"),
    "daemons": Story("More daemons", "more jobs a second, until the processors are full"),
    "tenants": Story("More tenants", "the same work for the same jobs"),
    "workers": Story("More workers", "what jobs that sleep for 100 ms allow"),
    "sqlite": Story("The embedded engine", "40,000 jobs/s, whatever the depth"),
    "halted": Story("Right after many were enqueued behind a halted target", HALTED_AIM),
    "sqlite-halted": Story("The same with the embedded engine", HALTED_AIM),
}


@attrs.frozen
class Told:
    """The last run of one case: its rows, and how it was taken."""

    case: str
    rows: Sequence[Row]
    taken: str
    commit: str
    machine: str
    scale: float

    @property
    def story(self) -> Story:
        return STORIES[self.case]


def last_runs(path: Path) -> list[Told]:
    """Of each case in the file, in the order of STORIES."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [_told(case, found) for case in STORIES if (found := list(_last(lines, case)))]


def _last(lines: Iterable[dict[str, Any]], case: str) -> Iterator[dict[str, Any]]:
    ours = [line for line in lines if line["case"] == case]
    return (line for line in ours if line["run"] == ours[-1]["run"])


def _told(case: str, lines: Sequence[dict[str, Any]]) -> Told:
    names = {field.name for field in attrs.fields(Row)}
    rows = [Row(**{name: line[name] for name in names}) for line in lines]
    first = lines[0]
    return Told(
        case, rows, first["taken"], first["commit"], first["machine"], float(first["scale"])
    )


def table(told: Told) -> Iterator[str]:
    """Lines of Markdown."""
    first = told.rows[0]
    more = [head for head, _ in _further(first, first)]
    heads = ["", "jobs/s", "of the first", "daemon", "server", "of the first", *more]
    yield f"| {' | '.join(heads)} |"
    yield "|" + "---|" * len(heads)
    for row in told.rows:
        cells = [
            row.label,
            rates(row),
            f"{row.rate / first.rate:.2f}",
            f"{row.daemon_microseconds:.1f} µs",
            f"{row.server_microseconds:.1f} µs",
            f"{row.microseconds / first.microseconds:.2f}",
            *(cell for _, cell in _further(row, first)),
        ]
        yield f"| {' | '.join(cells)} |"


def rates(row: Row) -> str:
    """The median, and the span if there are several."""
    if len(row.rates) == 1:
        return f"{row.rate:,.0f}"
    return f"{row.rate:,.0f} ({min(row.rates):,.0f} to {max(row.rates):,.0f})"


def _further(row: Row, first: Row) -> Iterator[tuple[str, str]]:
    if row.ideal is not None:
        yield "of what they allow", f"{row.rate / row.ideal:.3f}"
    if row.claim_milliseconds is not None and first.claim_milliseconds is not None:
        yield "a claim, p50", f"{row.claim_milliseconds:.2f} ms"
        yield "of the first", f"{row.claim_milliseconds / first.claim_milliseconds:.2f}"
    if row.log_bytes is not None and first.log_bytes is not None:
        yield "log a job", f"{row.log_bytes:,.0f} B"
    if row.mebibytes is not None and first.mebibytes is not None:
        yield "tables and indexes", f"{row.mebibytes:,.0f} MiB"
        yield "of the first", f"{row.mebibytes / first.mebibytes:.2f}"
