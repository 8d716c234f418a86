"""What the supervisor decided, in words for people. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from musterd.manager.node.status import Decision
from musterd.store.words import count_text, plural

LIMITS = {
    "min": "it keeps at least default_count workers",
    "max": "max_count allows no more",
    "shared": "other tenants use the rest of this node's workers",
    "max_running": "no more jobs may run at once",
    "up_cooldown": "it has just grown: the next step waits for its cooldown",
    "down_cooldown": "it has just shrunk: the next step waits for its cooldown",
    "stabilization": "it was needed a moment ago: it shrinks when that has passed",
    "busy": "workers leave when their jobs have ended",
    "no_observation": "the queue could not be observed: it stays as it is",
}


def limit_words(limited_by: str | None) -> str:
    """Why the crew is not what was wished for; nothing where it is."""
    return "" if limited_by is None else LIMITS.get(limited_by, limited_by)


def reason_words(decision: Decision | None) -> str:
    """Why the crew has the size it has."""
    if decision is None:
        return "nothing was decided yet"
    if decision.due is None:
        return LIMITS["no_observation"]
    return _sentence(_seen(decision), limit_words(decision.limited_by))


def act_words(decision: Decision) -> str:
    """What was done to the crew."""
    done = (
        ("hired", decision.hired),
        ("took back", decision.taken_back),
        ("retired", decision.retired),
    )
    words = ", ".join(f"{word} {count_text(count)}" for word, count in done if count)
    return words or "no change"


class Stretch(NamedTuple):
    """Decisions in a row that came to the same; `first` is the oldest of them."""

    first: Decision
    last: Decision
    looks: int


def stretches(decisions: Iterable[Decision]) -> Sequence[Stretch]:
    """The journal, the newest first, where looks that changed nothing for the same reason are one
    line.
    """
    found: list[Stretch] = []
    for one in decisions:
        if found and _is_same(found[-1].last, one):
            found[-1] = found[-1]._replace(last=one, looks=found[-1].looks + 1)
        else:
            found.append(Stretch(one, one, 1))
    return found[::-1]


def _is_same(before: Decision, one: Decision) -> bool:
    return not _acts(before) and not _acts(one) and _gist(before) == _gist(one)


def _gist(one: Decision) -> object:
    return one.size_before, one.desired, one.limited_by, one.due is None, bool(one.due)


def _acts(one: Decision) -> bool:
    return bool(one.hired or one.taken_back or one.retired)


def _seen(decision: Decision) -> str:
    due = decision.due or 0
    words = f"{plural(due, 'due job')} seen"  # it looks no further than it needs
    if decision.share is not None and decision.share != due:
        words += f" ({count_text(decision.share)} of them for this node)"
    words += f", {count_text(decision.busy)} running"
    wish = decision.raw_wish
    return words if wish is None else f"{words}: {plural(wish, 'worker')} wished for"


def _sentence(*parts: str) -> str:
    return "; ".join(part for part in parts if part)
