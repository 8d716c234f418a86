"""Work that does not end though its job is to be canceled or paused. Pure.

Its lease goes on being renewed, so that nobody else starts the job beside it; people are told; and
whenever it ends, the job becomes what was asked for.
"""

from __future__ import annotations

from collections.abc import Iterable

from musterd.workers.claiming.held import Held
from musterd.workers.observer import Ignored
from musterd.workers.outcome import Outcome, on_request


def ignored_by(held: Held, now_local: float) -> Ignored | None:
    """What this claim's work ignores; None = nothing, or not for long."""
    if held.request is None or held.settling or not held.ignores_request(now_local):
        return None
    claim = held.claim
    seconds = now_local - held.asked_local
    return Ignored(claim.id, claim.kind, claim.attempt, held.request, seconds)


def all_ignored(helds: Iterable[Held], now_local: float) -> list[Ignored]:
    """The longest first."""
    found = [one for held in helds if (one := ignored_by(held, now_local)) is not None]
    return sorted(found, key=lambda one: -one.seconds)


def end_after_request(held: Held, outcome: Outcome, now_local: float) -> Outcome:
    """What an end amounts to that the work came to by itself. Success within the time it had to
    stop is success; whatever else it does once it was told, the job is what was asked for.
    """
    if held.request is None:
        return outcome
    if outcome.ended == "success" and not held.ignores_request(now_local):
        return outcome
    return on_request(held.request)._replace(log=outcome.log, spent=outcome.spent)
