"""Figures as lines of a table in Markdown. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tests.bench.scaling.daemons import MAX_COUNT
from tests.bench.scaling.figures import Found
from tests.bench.scaling.schedules import STEP_SECONDS, Offline, Schedule

COLUMNS = (
    *("load", "crew", "wait p50", "p95", "max", "promise kept", "worker-seconds"),
    *(
        "of the least schedule",
        "of the least constant crew",
        "hired",
        "turns",
        "ended early",
        "p95 by the model",
    ),
)
HEADS = f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|"


def rows(load: str, found: Sequence[Found], known: Offline) -> Iterator[str]:
    best, same = known.least(), known.constant()
    for one in found:
        spent = one.worker_seconds(known.window_seconds)
        cells = [
            load,
            f"`{one.name}`",
            *(_time(one.wait(share)) for share in (0.5, 0.95, 1.0)),
            f"{math.floor(one.kept * 10_000) / 100:.2f} %",
            f"{spent:,.0f}",
            *(_ratio(spent, least) for least in (best, same)),
            str(one.hired),
            str(one.turns),
            "-" if one.ended_early is None else " + ".join(map(str, one.ended_early)),
            _prediction(one),
        ]
        yield f"| {' | '.join(cells)} |"


def offline(found: Sequence[Found], window_seconds: float) -> Offline:
    """By the jobs as they ran under `latency`: many at once on two cores take longer."""
    jobs = next(one.jobs for one in found if one.name == "latency")
    return Offline(sorted(jobs), window_seconds, MAX_COUNT)


def schedules_line(load: str, known: Offline) -> str:
    best, same = known.least(), known.constant()
    if same is None or best is None:
        return f"{load}: no crew of up to {MAX_COUNT} keeps the promise"
    sizes = " ".join(map(str, best.sizes))
    work = sum(one.run_seconds for one in known.line)
    return (
        f"{load}: {len(known.line):,} jobs, {work:,.0f} s of work; least schedule"
        f" {best.worker_seconds:,.0f} worker-seconds ({sizes}, each for {STEP_SECONDS:g} s),"
        f" least constant crew {same.sizes[0]} ({same.worker_seconds:,.0f})"
    )


def _ratio(spent: float, least: Schedule | None) -> str:
    return "-" if least is None else f"{spent / least.worker_seconds:.2f}"


def _time(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _prediction(one: Found) -> str:
    if one.predicted_p95_seconds is None or one.real_p95_seconds is None:
        return "-"
    verdict = "" if one.is_predicted else ": missed"
    return f"{_time(one.predicted_p95_seconds)} (was {_time(one.real_p95_seconds)}){verdict}"
