"""Makes a failing scenario small: leaves out what it does not need to fail in the same way; and
shows of its history what the violation is about.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import attrs

from tests.checker.facts import Violation
from tests.simulation.plan import Scenario
from tests.simulation.running import Run, run

ANYBODY = frozenset({"fault", "process"})


@attrs.frozen
class Shrunk:
    """`left_out`: numbers of the deeds that it does not need. `tries`: how many runs it took."""

    run: Run
    left_out: frozenset[int]
    tries: int


def without(scenario: Scenario, left_out: Iterable[int]) -> Scenario:
    gone = frozenset(left_out)
    deeds = tuple(deed for number, deed in enumerate(scenario.deeds) if number not in gone)
    return attrs.evolve(scenario, deeds=deeds)


def shrink(
    failed: Run,
    seconds: float,
    carry_out: Callable[[Scenario], Run] = run,
    now: Callable[[], float] = time.monotonic,
) -> Shrunk:
    """Within so many seconds, as small as it gets. What fails after it fails by an invariant that
    failed before.
    """
    wanted, deadline = set(failed.violated), now() + seconds
    best, left_out, tries = failed, frozenset[int](), 0
    progress = True
    while progress:
        progress = False
        for part in _parts(failed.scenario, left_out):
            if now() >= deadline:
                return Shrunk(best, left_out, tries)
            if part <= left_out:
                continue
            tries += 1
            tried = carry_out(without(failed.scenario, left_out | part))
            if wanted & set(tried.violated):
                best, left_out, progress = tried, left_out | part, True
    return Shrunk(best, left_out, tries)


def _parts(scenario: Scenario, left_out: frozenset[int]) -> Iterator[frozenset[int]]:
    """What could be left out together: all of one sort, then neighbours, fewer and fewer."""
    here = [number for number in range(len(scenario.deeds)) if number not in left_out]
    for what in sorted({scenario.deeds[number].what for number in here}):
        yield frozenset(number for number in here if scenario.deeds[number].what == what)
    size = len(here) // 2
    while size:
        for first in range(0, len(here), size):
            yield frozenset(here[first : first + size])
        size //= 2


def relevant(lines: Sequence[str], violation: Violation) -> list[int]:
    """The numbers of the lines that tell of its job, of the faults, and of what shows it."""
    shown, calls = set(violation.lines), set[int]()
    last = max(violation.lines, default=len(lines))
    about: list[int] = []
    for number, text in enumerate(lines, start=1):
        record: dict[str, Any] = json.loads(text)
        of_job = violation.job is not None and violation.job in _jobs_of(record)
        if of_job and "id" in record and record["record"] in {"call", "commit"}:
            calls.add(record["id"])
        of_call = record["record"] in {"commit", "reply"} and record.get("id") in calls
        before = number <= last or record["record"] == "event"
        if number in shown or (before and (of_job or of_call or record["record"] in ANYBODY)):
            about.append(number)
    return about


def _jobs_of(record: dict[str, Any]) -> set[object]:
    found: set[object] = {record.get("job"), record.get("job_id")}
    for one in record.get("jobs") or ():
        found.add(one if isinstance(one, int) else one["job"])
    return found


def numbers_text(numbers: Iterable[int]) -> str:
    """`0-3,7`"""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and spans[-1][-1] == number - 1:
            spans[-1].append(number)
        else:
            spans.append([number])
    return ",".join(f"{span[0]}-{span[-1]}" if len(span) > 1 else f"{span[0]}" for span in spans)


def numbers_of(text: str) -> frozenset[int]:
    """Of `numbers_text`. Raises ValueError."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)
