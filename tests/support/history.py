"""Judges what the store has done: laws over its history. Knows nothing of the code under test."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import attrs

SLACK_SECONDS = 1e-3  # leases are kept in whole microseconds


@attrs.frozen
class Event:
    """One change of a job's ownership, at the moment of its commit."""

    at: float
    what: str  # claim | renew | settle | reap
    job: int
    token: UUID | None = None
    node: str | None = None
    lease_until: float = 0.0
    state: str | None = None


def check_history(events: Sequence[Event]) -> None:
    """Each job has one owner at a time, whose token fences its writes; no lease is ended early."""
    owners: dict[int, Event] = {}
    ended: set[int] = set()
    tokens: set[tuple[int, UUID | None]] = set()
    for event in events:
        owner = owners.get(event.job)
        if event.what == "claim":
            assert owner is None, f"claimed twice: {event}, held by {owner}"
            assert event.job not in ended, f"claimed after its end: {event}"
            assert (event.job, event.token) not in tokens, f"a token used again: {event}"
            tokens.add((event.job, event.token))
            owners[event.job] = event
            continue
        assert owner is not None, f"nobody owned it: {event}"
        if event.what == "reap":
            early = owner.lease_until - event.at
            assert early <= SLACK_SECONDS, f"stolen {early} s early: {event}, held by {owner}"
        else:
            assert event.token == owner.token, f"not fenced: {event}, held by {owner}"
        if event.what == "renew":
            owners[event.job] = attrs.evolve(owner, lease_until=event.lease_until)
            continue
        del owners[event.job]
        if event.state in ("succeeded", "failed", "canceled"):
            ended.add(event.job)


def settlements_of(events: Sequence[Event], job: int) -> list[str | None]:
    """What the accepted settlements made of a job, in order."""
    return [event.state for event in events if event.job == job and event.what == "settle"]


def claims_in_order(events: Sequence[Event]) -> list[int]:
    return [event.job for event in events if event.what == "claim"]
