"""The answer to "why is my job not running?": for programs, and for people. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from musterd.store.estimate import Estimate
from musterd.store.reasons import Reason
from musterd.store.shown import time_text
from musterd.store.why import Why
from musterd.store.words import duration_text, one_line


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
