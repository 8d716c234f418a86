"""How examples are told, and where they are found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.checker.writing import History

Story = Callable[[History], None]
CLIENT, NORTH, SOUTH = "client:shop", "node:north", "node:south"
LEASE_SECONDS = 30.0
BOTH = (True, False)


@dataclass(frozen=True)
class Example:
    """`breaks`: the one invariant that it breaks; "" = none. `commits`: how it can be told."""

    name: str
    breaks: str
    tell: Story
    header: dict[str, Any]
    commits: tuple[bool, ...]

    def history(self, commits: bool) -> History:
        history = History(commits=commits, **self.header)
        self.tell(history)
        return history


EXAMPLES: list[Example] = []


def breaks(
    name: str, *, commits: tuple[bool, ...] = BOTH, **header: Any
) -> Callable[[Story], Story]:
    def keep(story: Story) -> Story:
        label = f"{name or 'legal'}-{story.__name__}"
        EXAMPLES.append(Example(label, name, story, header, commits))
        return story

    return keep


def legal(*, commits: tuple[bool, ...] = BOTH, **header: Any) -> Callable[[Story], Story]:
    return breaks("", commits=commits, **header)


def make(h: History, job: int, **options: Any) -> int:
    given = {"kind": "report", "payload": {"number": job}, **options}
    return h.do("enqueue", CLIENT, {"job": job}, **given)


def claim(h: History, job: int, token: str, attempt: int = 1, node: str = NORTH) -> int:
    jobs = [{"job": job, "attempt": attempt}]
    return h.do("claim", node, {"jobs": jobs}, token=token, lease_seconds=LEASE_SECONDS)


def renew(h: History, job: int, token: str, node: str = NORTH) -> int:
    return h.do("renew", node, job=job, token=token, lease_seconds=LEASE_SECONDS)


def ending(state: str = "succeeded", attempt: int = 1, **options: Any) -> dict[str, Any]:
    """What a settlement says."""
    outcome = {"queued": "retrying"}.get(state, state)
    return {"state": state, "attempt": attempt, "outcome": outcome, **options}


def settle(h: History, job: int, token: str, node: str = NORTH, **end: Any) -> int:
    return h.do("settle", node, job=job, token=token, **(end or ending()))


def reap(h: History, job: int, attempt: int = 1, state: str = "queued", node: str = SOUTH) -> int:
    return h.do("reap", node, {"jobs": [{"job": job, "attempt": attempt, "state": state}]})


def control(h: History, op: str, job: int, state: str, *, asked: bool = False) -> int:
    return h.do(op, CLIENT, {"state": state, "asked": asked}, job=job)


def handler(h: History, what: str, job: int, token: str, attempt: int = 1, **more: Any) -> None:
    h.note(what, **{"job": job, "attempt": attempt, "token": token, "who": NORTH, **more})


def row(h: History, job: int, state: str, **fields: Any) -> None:
    """The job as the store has it in the end."""
    h.final("job", **{"id": job, "state": state, "payload": {"number": job}, **fields})


def ran(h: History, job: int, last: str = "job.succeeded", **data: Any) -> None:
    """A job's whole life in events."""
    h.event("job.enqueued", job)
    h.event("job.started", job, attempt=1, node="north", worker=1)
    h.event(last, job, attempt=1, **data)
