"""A trace of another system, as CSV: one line for each attempt. Pure.

enqueued,started,finished,kind
2026-11-09T08:00:00Z,2026-11-09T08:00:01.5Z,2026-11-09T08:00:04Z,report
"""

from __future__ import annotations

import csv
from array import array
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import NamedTuple

from musterd.manager.scaling.model.reading import ATTEMPTS_MAX
from musterd.manager.scaling.model.trace import NONE, LeftOut, Trace
from musterd.store.words import moment_of

TIMES = ("enqueued", "started", "finished")
FIELDS = (*TIMES, "kind")
FOREVER = datetime(9999, 1, 1, tzinfo=UTC).timestamp()
SHOWN_MAX = 40  # characters of what was found


class InvalidTrace(ValueError):
    """Says which line and which column is wrong, and how."""


class Row(NamedTuple):
    """Times are seconds since the epoch; None = not yet."""

    enqueued: float
    started: float | None
    finished: float | None
    kind: str


def is_csv(first_line: str) -> bool:
    """Whether a file that begins so is no log of events, which has a JSON object in each line."""
    line = first_line.lstrip("\ufeff \t").lower()
    return not line.startswith("{") and ("," in line or TIMES[0] in line)


def rows_of(lines: Iterable[str]) -> Iterator[Row]:
    """Raises `InvalidTrace`. Columns may come in any order; others are skipped."""
    reader = csv.reader(lines, strict=True)
    try:
        places = _places(next(reader, list[str]()))
        for cells in reader:
            if cells:
                yield _row(cells, places, reader.line_num)
    except csv.Error as error:
        raise InvalidTrace(f"line {reader.line_num}: {error}") from None


def trace_of_rows(
    rows: Iterable[Row], since: datetime | None = None, attempts_max: int = ATTEMPTS_MAX
) -> Trace | None:
    """None = no job has both its start and its end. `since`: only what was enqueued later."""
    least = None if since is None else since.timestamp()
    wanted = (row for row in rows if least is None or row.enqueued >= least)
    found = list(islice(wanted, attempts_max))
    is_cut = next(wanted, None) is not None
    ended = [row for row in found if row.started is not None and row.finished is not None]
    if not ended:
        return None
    ended.sort(key=lambda row: row.finished or 0.0)
    began = min(row.enqueued for row in found)
    due = array("d", (row.enqueued - began for row in ended))
    starts = [row.started or 0.0 for row in ended]
    ends = [row.finished or 0.0 for row in ended]
    run = array("d", (end - start for start, end in zip(starts, ends, strict=True)))
    waited = array("d", (start - row.enqueued for start, row in zip(starts, ended, strict=True)))
    waiting = sum(row.started is None for row in found)
    left_out = LeftOut(len(found) - len(ended) - waiting, waiting, cut=is_cut)
    many = len(ended)
    return Trace(
        datetime.fromtimestamp(began, UTC),
        ends[-1] - began,
        due,
        run,
        waited,
        array("q", [NONE]) * many,
        array("d", [0.0]) * many,
        sorted(range(many), key=lambda entry: (due[entry], entry)),
        [row.kind for row in ended],
        left_out,
    )


def _places(header: Sequence[str]) -> dict[str, int]:
    names = [name.strip().lstrip("\ufeff").strip().lower() for name in header]
    missing = [name for name in FIELDS if name not in names]
    if missing:
        found = ", ".join(names)[:SHOWN_MAX] or "nothing"
        wanted = ", ".join(FIELDS)
        raise InvalidTrace(
            f"line 1: found {found}, wanted the names of the columns: {wanted};"
            f" {', '.join(missing)} missing"
        )
    return {name: names.index(name) for name in FIELDS}


def _row(cells: Sequence[str], places: dict[str, int], line: int) -> Row:
    def cell(name: str) -> str:
        place = places[name]
        if place >= len(cells):
            raise InvalidTrace(
                f"line {line}, {name}: the line has {len(cells)} values, wanted one in column"
                f" {place + 1}"
            )
        return cells[place].strip()

    def time(name: str) -> float | None:
        text = cell(name)
        try:
            return _seconds(text) if text else None
        except (ValueError, OverflowError):
            shown = repr(text[:SHOWN_MAX])
            raise InvalidTrace(
                f"line {line}, {name}: found {shown}, wanted a time as 2026-11-09T08:00:00Z, or"
                " seconds since 1970"
            ) from None

    enqueued, started, finished = (time(name) for name in TIMES)
    if enqueued is None:
        raise InvalidTrace(f"line {line}, enqueued: found nothing, wanted a time")
    if started is None and finished is not None:
        raise InvalidTrace(f"line {line}, started: found nothing, but the job has finished")
    pairs = (("started", enqueued, started, "enqueued"), ("finished", started, finished, "started"))
    for name, before, after, other in pairs:
        if before is not None and after is not None and after < before:
            raise InvalidTrace(f"line {line}, {name}: it is before {other}")
    return Row(enqueued, started, finished, cell("kind"))


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        return moment_of(text).timestamp()
    if not 0 <= found < FOREVER:
        raise ValueError("no such time")
    return found
