"""A decision of the journal in sentences with numbers. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from musterd.console.explain.anew import Anew, is_counted_out
from musterd.manager.node.status import Decision
from musterd.manager.scaling.journal import decision_of
from musterd.store.event_types import acts_text
from musterd.store.scaling_journal import JournalRun
from musterd.store.words import count_text, duration_text, one_line, plural, time_text
from musterd.web.pages.scaling import limit_words

PAUSE_SECONDS = 5.0  # between two decisions are worth a word
QUIET_SECONDS = 60.0  # without a decision are no accident
Numbered = Callable[[Decision], str]


def head(run: JournalRun, asked: datetime | None) -> str:
    """When and where it was decided; `asked`: the time that somebody wanted to know about."""
    first = f"{one_line(run.node)} at {time_text(run.at, 'milliseconds')}"
    if run.ticks > 1:
        last = time_text(run.until, "milliseconds")
        first += f", the first of {count_text(run.ticks)} like ones until {last}"
    before = 0.0 if asked is None else (asked - run.until).total_seconds()
    if before < PAUSE_SECONDS:
        return f"{first}:"
    return f"{first}, the last decision before, {duration_text(before)} earlier:"


def since_then(run: JournalRun, asked: datetime | None) -> Iterator[str]:
    """Why there is no later decision."""
    if asked is None or (asked - run.until).total_seconds() < QUIET_SECONDS:
        return
    one = decision_of(run)
    if one.due == 0 and not one.busy and one.desired == one.size_before:
        yield "Since then nothing was to be decided: a crew at its floor rests until there is news."
    else:
        yield "Since then this node decided nothing that is kept: it had stopped, or hung."


def sentences(run: JournalRun) -> list[str]:
    """What was seen, wished, limited and done."""
    one = decision_of(run)
    return [*_seen(one), *_wished(one), _limited(one), _done(one), *_candidate(one)]


def _seen(one: Decision) -> Iterator[str]:
    hands = f"{plural(one.busy, 'job')} in hand and {plural(one.size_before, 'worker')}"
    if one.due is None:
        yield f"The queue could not be observed; there were {hands}."
        return
    due = plural(one.due, "job")
    due += " or more were due" if is_counted_out(one) else _was(one.due, " due")
    if one.share is not None and one.share != one.due:
        due += f", {count_text(one.share)} of them this node's share"
    yield f"{due}, with {hands} here."
    if one.others_free:
        yield f"The other nodes could have {plural(one.others_free, 'worker')} more."
    if one.room is not None:
        yield f"On all nodes together {plural(one.room, 'job')} more could run at once."


def _was(count: int, what: str) -> str:
    return (" was" if count == 1 else " were") + what


def _wished(one: Decision) -> Iterator[str]:
    if one.raw_wish is None:
        yield "Without that there was no wish."
        return
    wish = f"`{one.policy}` wished for {plural(one.raw_wish, 'worker')}"
    reason = REASONS.get(one.because or "")
    yield f"{wish}{'' if reason is None else reason(one)}."
    if one.slack_seconds is None:
        return
    if one.slack_seconds < 0:
        late = duration_text(-one.slack_seconds)
        yield f"The promise was broken: the worst waiting job was {late} late."
    else:
        left = duration_text(one.slack_seconds)
        yield f"The worst waiting job had {left} left of its promise."


def _of_demand(one: Decision) -> str:
    sum_ = f"{count_text(one.share or 0)} + {count_text(one.busy)}"
    if one.policy == "demand":
        return f", one for each due job and each job in hand: {sum_}"
    return (
        f", the most that it ever does, one for each due job and each job in hand: {sum_} at most;"
        " it takes as many for kinds that are not yet measured"
    )


def _with_job(words: str) -> Numbered:
    def said(one: Decision) -> str:
        if one.decided_by is None:
            return words
        kind = one_line(str(one.decided_by["kind"]))
        return f"{words}; job {one.decided_by['job']}, a {kind}, took most"

    return said


REASONS: Mapping[str, Numbered] = {
    "demand": _of_demand,
    "depth": lambda _: ", one for each due job",
    "steady": lambda _: " for what arrives all the time",
    "drain": _with_job(" to keep the promises of what waits"),
    "upcoming": _with_job(" to keep the promises of what becomes due soon"),
    "floor": lambda _: ", fewer than it keeps anyway",
}


def _limited(one: Decision) -> str:
    if one.limited_by is None:
        return "Nothing stood in the way."
    by = one_line(one.limited_by)
    words = LIMITS.get(by.partition(":")[0])
    said = limit_words(one.limited_by) if words is None else words(one)
    return f"Limited by `{by}`: {said}."


def _counted(name: str, count: int | None) -> str:
    return name if count is None else f"{name} was {count_text(count)}"


LIMITS: Mapping[str, Numbered] = {
    "min": lambda one: f"{_counted('default_count', one.default_count)}, and it keeps as many",
    "max": lambda one: f"{_counted('max_count', one.max_count)}, and it may have no more",
    "shared": lambda one: f"other tenants of the node left {plural(one.desired, 'worker')}",
    "hours": lambda one: (
        f"{limit_words(one.limited_by)}: {_counted('default_count', one.default_count)},"
        f" {_counted('max_count', one.max_count)}"
    ),
    "stabilization": lambda one: (
        f"it wished for a larger crew not long before, so {count_text(one.desired)} stay for now"
    ),
}


def _done(one: Decision) -> str:
    acts = acts_text({"hired": one.hired, "taken_back": one.taken_back, "retired": one.retired})
    size = plural(one.size_before, "worker")
    if acts:
        return f"Done: {acts}; the crew went from {size} to {count_text(one.desired)}."
    if one.desired == one.size_before:
        return f"Done: nothing; the crew stayed at {size}."
    return f"Done: nothing; the crew had {size}, and was to have {count_text(one.desired)}."


def _candidate(one: Decision) -> Iterator[str]:
    if one.candidate is not None:
        yield f"[scaling.candidate] would have {_outcome(one.candidate)}."


def _outcome(plan: Mapping[str, Any]) -> str:
    """`made it 5, having wished for 7, limited by max`."""
    said = f"made it {plan.get('desired')}"
    if plan.get("raw_wish") is not None:
        said += f", having wished for {plan['raw_wish']}"
    return f"{said}, limited by {plan['limited_by']}" if plan.get("limited_by") else said


def anew_sentences(one: Decision, anew: Anew, given: Sequence[str]) -> list[str]:
    """What the observation would have led to with the settings in `given`."""
    settings = ", ".join(one_line(each) for each in given)
    if anew.plan is None:
        found = [f"With {settings}: that cannot be told from the journal."]
    else:
        plan = {
            "desired": anew.plan.desired,
            "raw_wish": anew.plan.raw_wish,
            "limited_by": anew.plan.limited_by,
        }
        same = anew.plan.desired == one.desired
        instead = "the same" if same else f"instead of {count_text(one.desired)}"
        found = [f"With {settings} it would have {_outcome(plan)}: {instead}."]
    if anew.plan is not None and not anew.is_repeated:
        found.append(
            "With today's settings alone it comes out otherwise than it was decided: what the"
            " journal does not hold has been changed since, or played a part."
        )
    found += [f"The journal does not hold {lack}." for lack in anew.lacks]
    return found
