"""The past of a queue in steps of one length: what charts draw and `GET /history` gives. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from math import ceil

from attrs import field, frozen

from musterd.store.history import (
    ALL,
    STEPS_SECONDS,
    EndedJobs,
    Past,
    PastMark,
    QueueLook,
    add_ended,
    quantile,
    step_for,
)
from musterd.store.words import time_text

POINTS_MAX = 2_000
MEDIAN, HIGH = 0.5, 0.95


@frozen
class Span:
    """From where to where, in seconds since the epoch, and how long the steps are: multiples of it
    since the epoch, of which the first may begin earlier.
    """

    since: float
    until: float
    step: int

    @property
    def begins(self) -> Sequence[int]:
        """Where each step begins."""
        first = int(self.since // self.step) * self.step
        return range(first, max(first + self.step, ceil(self.until)), self.step)

    @property
    def kept_step(self) -> int:
        """The length of the rows that are read: steps may be several of them."""
        return max(one for one in STEPS_SECONDS if self.step % one == 0)


@frozen
class Point:
    """What is known of one step. `look` None = nobody looked at the queue."""

    at: int
    look: QueueLook | None
    ended: EndedJobs


@frozen(eq=False)
class Picture:
    """All that is known of a span. Kinds have only the steps in which something became of them."""

    span: Span
    points: Sequence[Point]
    kinds: Mapping[str, Sequence[Point]] = field(factory=dict[str, Sequence[Point]])
    marks: Sequence[PastMark] = ()

    @property
    def ended(self) -> EndedJobs:
        """What became of all jobs."""
        return total(ALL, (point.ended for point in self.points))


def span_of(
    now: float, since: float | None, until: float | None, step: float | None, keep_seconds: float
) -> Span:
    """The span that was asked for: by default the last hour, in the shortest steps that are kept of
    it. Raises `ValueError`, which says what is wrong.
    """
    until = now if until is None else until
    since = until - 3600.0 if since is None else since
    if since >= until:
        raise ValueError("since: wanted a moment before until")
    reach_seconds, wanted_seconds = now - since, step or 0.0
    kept = step_for(reach_seconds, wanted_seconds, keep_seconds)
    length = kept * max(1, ceil(wanted_seconds / kept))
    points = (until - since) / length
    if points > POINTS_MAX:
        wanted = ceil((until - since) / POINTS_MAX)
        raise ValueError(
            f"step: found {length} s, which makes {ceil(points):,} steps; wanted at most"
            f" {POINTS_MAX:,}: a step of {wanted:,} s, or a later since"
        )
    return Span(since, until, length)


def picture_of(past: Past, span: Span) -> Picture:
    begins = span.begins
    kinds: dict[str, dict[int, EndedJobs]] = {}
    for row in past.kinds:
        at = row.at - row.at % span.step
        own = kinds.setdefault(row.ended.kind, {})
        own[at] = add_ended(own[at], row.ended) if at in own else row.ended
    looks = _looks(past, span)
    whole, none = kinds.pop(ALL, {}), EndedJobs(ALL)
    return Picture(
        span,
        [Point(at, looks.get(at), whole.get(at, none)) for at in begins],
        {
            kind: [Point(at, None, one) for at, one in sorted(own.items())]
            for kind, own in sorted(kinds.items())
        },
        past.marks,
    )


def _looks(past: Past, span: Span) -> Mapping[int, QueueLook]:
    """The highest of each step. A row stands for those after it in which nobody was to look."""
    found: dict[int, QueueLook] = {}
    for row in past.queue:
        at = row.at - row.at % span.step
        found[at] = _highest(found[at], row.look) if at in found else row.look
    last: tuple[int, QueueLook] | None = None
    for at in span.begins:
        if at in found:
            last = at, found[at]
        elif last is not None and at <= last[0] + last[1].stands_seconds and at <= span.until:
            found[at] = last[1]
    return found


def _highest(one: QueueLook, other: QueueLook) -> QueueLook:
    return QueueLook(
        max(one.depth, other.depth),
        max(one.oldest_seconds, other.oldest_seconds),
        max(one.crew, other.crew),
        max(one.wish, other.wish),
        max(one.max_count, other.max_count),
        other.stands_seconds,
    )


def total(kind: str, ended: Iterable[EndedJobs]) -> EndedJobs:
    found = EndedJobs(kind)
    for one in ended:
        found = add_ended(found, one)
    return found


def history_object(picture: Picture) -> dict[str, object]:
    """The picture as programs see it."""
    span = picture.span
    return {
        "since": _time(span.since),
        "until": _time(span.until),
        "step_seconds": span.step,
        "points": [{**_look(point.look), **_ended(point)} for point in picture.points],
        "kinds": [
            {"kind": kind, "points": [_ended(point) for point in points]}
            for kind, points in picture.kinds.items()
        ],
        "marks": [{**one.mark._asdict(), "at": _time(one.at)} for one in picture.marks],
    }


LOOK_FIELDS: Sequence[str] = ("depth", "oldest_seconds", "crew", "wish", "max_count")
QUANTILES = {
    "wait_p50_seconds": (MEDIAN, "waits"),
    "wait_p95_seconds": (HIGH, "waits"),
    "run_p50_seconds": (MEDIAN, "runs"),
    "run_p95_seconds": (HIGH, "runs"),
}


def quantiles_of(ended: EndedJobs) -> Mapping[str, float | None]:
    return {
        name: quantile(getattr(ended, which), share) for name, (share, which) in QUANTILES.items()
    }


def _look(look: QueueLook | None) -> Mapping[str, object]:
    if look is None:
        return dict.fromkeys(LOOK_FIELDS)
    seen = look._asdict()
    return {
        **{name: seen[name] for name in LOOK_FIELDS},
        "oldest_seconds": _short(seen["oldest_seconds"]),
    }


def _ended(point: Point) -> dict[str, object]:
    ended = point.ended
    times = {name: _short(value) for name, value in quantiles_of(ended).items()}
    return {
        "at": _time(point.at),
        "succeeded": ended.succeeded,
        "failed": ended.failed,
        "canceled": ended.canceled,
        "retried": ended.retried,
        **times,
    }


def _short(seconds: float | None) -> float | None:
    """Three digits are more than is known."""
    return None if seconds is None else float(f"{seconds:.3g}")


def _time(at: float) -> str | None:
    return time_text(datetime.fromtimestamp(at, UTC))
