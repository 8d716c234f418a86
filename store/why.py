"""Why a job is not running: the first reason that stops it now, those behind it, and the answer as
programs and people see it. Pure.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import attrs

from musterd.store.estimate import Estimate, bound_of, estimate, free_workers
from musterd.store.lifecycle import ENDED, LEASED, AttemptOutcome, JobState
from musterd.store.reasons import (
    NAMED_MAX,
    Code,
    Reason,
    finished,
    held_back,
    in_hand,
    kept_out,
    workers_busy,
)
from musterd.store.why_facts import WhyFacts
from musterd.store.words import count_text, duration_text, one_line, plural, time_text

NEXT_UP = Reason(Code.NEXT_UP, "nothing stops it: a worker takes it in a moment")
# A job that one of these holds up does not stand in line for workers.
NOT_IN_LINE = frozenset({Code.NOT_DUE, Code.TARGET_HALTED, Code.BEHIND_IN_TARGET, Code.KIND_LIMIT})
RUNS_NOWHERE = frozenset({Code.KIND_UNKNOWN, Code.KIND_BROKEN})
NOTHING_RUNS = RUNS_NOWHERE | {Code.QUEUE_PAUSED}  # and nobody can say when that ends


@attrs.frozen
class Position:
    """The job's place among the claimable ones. Not exact = at least that far behind."""

    number: int
    of: int
    is_exact: bool
    of_is_exact: bool

    @property
    def text(self) -> str:
        number = count_text(self.number, exact=self.is_exact)
        return f"number {number} of {count_text(self.of, exact=self.of_is_exact)}"


@attrs.frozen
class Why:
    """The answer. There is always a first reason."""

    seen: WhyFacts
    reasons: tuple[Reason, ...]
    position: Position | None
    start: Estimate | None  # where it waits for workers


def why(seen: WhyFacts) -> Why:
    """Draws the conclusions."""
    state = seen.job.state
    if state in ENDED:
        return Why(seen, (finished(seen),), None, None)
    if state in LEASED:
        return Why(seen, tuple(in_hand(seen)), None, None)
    full = store_limit(seen)
    reasons = _put_in_order(seen, [*held_back(seen), *kept_out(seen), *([full] if full else [])])
    if state is not JobState.QUEUED or any(one.code in NOT_IN_LINE for one in reasons):
        return Why(seen, tuple(reasons), None, None)
    place = _position(seen)
    claiming = [node for node in seen.nodes if node.claims]
    if not claiming or any(one.code in NOTHING_RUNS for one in reasons):
        return Why(seen, tuple(reasons), place, None)
    free = free_workers(claiming, seen.leased)
    room = room_of(seen)
    if place.number <= (free if room is None else min(free, room)):
        return Why(seen, tuple(reasons) or (NEXT_UP,), place, None)
    start = estimate(seen)
    if place.number > free:
        reasons.append(workers_busy(claiming, place.text, start.unmeasured))
    return Why(seen, tuple(reasons), place, start)


def _put_in_order(seen: WhyFacts, reasons: list[Reason]) -> list[Reason]:
    """A job that was put off because its kind can't run says that first: time alone won't help."""
    job = seen.job
    if job.last_outcome is not AttemptOutcome.RELEASED or job.run_at <= seen.now:
        return reasons
    return sorted(reasons, key=lambda one: one.code not in RUNS_NOWHERE)


def _position(seen: WhyFacts) -> Position:
    line = seen.line
    before, every = sum(line.before.values()), sum(line.all.values())
    if line.is_whole or line.includes_it:
        return Position(before + 1, every, is_exact=True, of_is_exact=line.is_whole)
    return Position(before, every, is_exact=False, of_is_exact=False)


def room_of(seen: WhyFacts) -> int | None:
    """How many more jobs may run now; None = there is no bound."""
    most = bound_of(seen.nodes)
    return None if most is None else max(0, most - seen.leased_total)


def store_limit(seen: WhyFacts) -> Reason | None:
    """Says so if the bound on all jobs is what keeps this one, rather than want of workers."""
    most, room = bound_of(seen.nodes), room_of(seen)
    if most is None or room is None:
        return None
    before = sum(seen.line.before.values())
    idle = free_workers([node for node in seen.nodes if node.claims], seen.leased)
    if room and (room > before or room >= idle):
        return None
    by_node = Counter(one_line(one.node) for one in seen.leased).most_common()
    shown = by_node[:NAMED_MAX]
    hands = ", ".join(f"{count_text(number)} on {node}" for node, number in shown)
    hands += ", …" if len(by_node) > NAMED_MAX else ""
    rest = f", and {plural(before, 'job')} before it" if before else ""
    return Reason(
        Code.STORE_LIMIT,
        f"of all jobs {count_text(most)} may run at once:"
        f" {count_text(seen.leased_total)} are in hand{f' ({hands})' if hands else ''}{rest}",
        who=", ".join(node for node, _ in shown) or None,
        what={
            "limit": most,
            "in_hand": seen.leased_total,
            "before": before,
            "nodes": dict(shown),
        },
        do="wait, or raise limits.max_running",
    )


def why_object(answer: Why, tenant: str) -> dict[str, object]:
    """Gives the answer as every interface shows it. The first reason is the one that counts."""
    job, place = answer.seen.job, answer.position
    return {
        "id": job.id,
        "kind": job.kind,
        "tenant": tenant,
        "state": job.state.value,
        "at": time_text(answer.seen.now),
        "reasons": [_reason_object(reason) for reason in answer.reasons],
        "position": None if place is None else place.number,
        "position_exact": None if place is None else place.is_exact,
        "position_of": None if place is None else place.of,
        "estimated_start": None if answer.start is None else _start(answer.start, answer.seen.now),
    }


def why_text(answer: Why) -> str:
    """Gives the answer for people: the first reason, when it starts, what to do, what else."""
    job, now = answer.seen.job, answer.seen.now
    first, *others = answer.reasons
    lines = [f"job {job.id} · {one_line(job.kind)} · {job.state.value}"]
    lines.append(f"  {first.text}{_times(first, now)}")
    if answer.start is not None:
        lines.append(f"  {band_text(answer.start)}")
    if first.do is not None:
        lines.append(f"  do: {first.do}")
    if others:
        lines += ["", "and then:"]
    for reason in others:
        lines.append(f"  {reason.text}{_times(reason, now)}")
        lines += [f"    do: {reason.do}"] if reason.do else []
    return "\n".join(lines)


def band_text(start: Estimate) -> str:
    """Says when: `starts in about 12.0 s to 40.0 s`."""
    early, late = start.earliest_seconds, start.latest_seconds
    if late is None:
        return f"starts in {duration_text(early)} or later" if early else "nobody can say when"
    if not early:
        return f"starts within about {duration_text(late)}"
    return f"starts in about {duration_text(early)} to {duration_text(late)}"


def _reason_object(reason: Reason) -> dict[str, object]:
    whole = {
        "code": reason.code.value,
        "text": reason.text,
        "who": reason.who,
        "what": None if reason.what is None else dict(reason.what),
        "since": time_text(reason.since),
        "until": time_text(reason.until),
        "do": reason.do,
    }
    return {key: value for key, value in whole.items() if value is not None}


def _start(start: Estimate, now: datetime) -> dict[str, object]:
    late = start.latest_seconds
    return {
        "earliest": time_text(now + timedelta(seconds=start.earliest_seconds)),
        "latest": None if late is None else time_text(now + timedelta(seconds=late)),
        "unmeasured_kinds": list(start.unmeasured),
    }


def _times(reason: Reason, now: datetime) -> str:
    parts: list[str] = []
    if reason.since is not None:
        parts.append(f"since {_moment(reason.since)}, {_away(reason.since, now)}")
    if reason.until is not None:
        parts.append(f"until {_moment(reason.until)}, {_away(reason.until, now)}")
    return f"  ({'; '.join(parts)})" if parts else ""


def _moment(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _away(moment: datetime, now: datetime) -> str:
    seconds = (moment - now).total_seconds()
    return f"in {duration_text(seconds)}" if seconds > 0 else f"{duration_text(-seconds)} ago"
