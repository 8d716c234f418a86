"""How examples are written, and where they are found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.checker.writing import History

CLIENT, NORTH, SOUTH = "client:shop", "node:north", "node:south"
LEASE_SECONDS = 30.0
BOTH = (True, False)


def ending(state: str = "succeeded", attempt: int = 1, **options: Any) -> dict[str, Any]:
    """What a settlement says."""
    outcome = {"queued": "retrying"}.get(state, state)
    return {"state": state, "attempt": attempt, "outcome": outcome, **options}


class Story(History):
    """A history in the words of the jobs' life; a word stands for all the lines it takes."""

    def make(self, job: int, **options: Any) -> int:
        given = {"kind": "report", "payload": {"number": job}, **options}
        return self.do("enqueue", CLIENT, {"job": job}, **given)

    def claim(self, job: int, token: str, attempt: int = 1, node: str = NORTH) -> int:
        jobs = [{"job": job, "attempt": attempt}]
        return self.do("claim", node, {"jobs": jobs}, token=token, lease_seconds=LEASE_SECONDS)

    def take(self, job: int = 1, token: str = "a", **options: Any) -> None:
        """Makes a job and claims it."""
        self.make(job, **options)
        self.claim(job, token)

    def run(self, job: int = 1, token: str = "a", **options: Any) -> None:
        """Makes a job and claims it, and its handler begins."""
        self.take(job, token, **options)
        self.handler("begin", job, token)

    def renew(self, job: int, token: str, node: str = NORTH) -> int:
        return self.do("renew", node, job=job, token=token, lease_seconds=LEASE_SECONDS)

    def run_unrenewed(self, seconds: float) -> None:
        """Job 1 runs; nobody knows whether its lease was renewed, and it goes on for so long."""
        self.run()
        call = self.call("renew", NORTH, job=1, token="a", lease_seconds=LEASE_SECONDS)
        self.reply(call, "unknown")
        self.wait(seconds)

    def settle(self, job: int, token: str, node: str = NORTH, **end: Any) -> int:
        return self.do("settle", node, job=job, token=token, **(end or ending()))

    def reap(self, job: int, attempt: int = 1, state: str = "queued", node: str = SOUTH) -> int:
        return self.do("reap", node, {"jobs": [{"job": job, "attempt": attempt, "state": state}]})

    def lapse(self, wait_seconds: float = 31) -> None:
        """The lease of job 1 runs out and is reaped."""
        self.wait(wait_seconds)
        self.reap(1)

    def move(self, wait_seconds: float = 31) -> None:
        """The lease of job 1 runs out, and the other node claims the job."""
        self.lapse(wait_seconds)
        self.claim(1, "b", 2, SOUTH)

    def move_and_run(self, wait_seconds: float = 31, **phase: Any) -> None:
        """The lease of job 1 runs out, and the other node begins with it."""
        self.move(wait_seconds)
        self.handler("begin", 1, "b", 2, who=SOUTH, **phase)

    def control(self, op: str, job: int, state: str, *, asked: bool = False) -> int:
        return self.do(op, CLIENT, {"state": state, "asked": asked}, job=job)

    def claim_in_spite_of(self, op: str, state: str) -> None:
        """Job 1 is asked to do otherwise, and is claimed."""
        self.make(1)
        self.control(op, 1, state)
        self.claim(1, "a")

    def handler(self, what: str, job: int, token: str, attempt: int = 1, **more: Any) -> None:
        self.note(what, **{"job": job, "attempt": attempt, "token": token, "who": NORTH, **more})

    def run_until_told(self) -> None:
        """Job 1 is told to stop shortly before its lease runs out."""
        self.run()
        self.wait(28)
        self.note("told", job=1, attempt=1)

    def succeed(self, token: str = "a", attempt: int = 1) -> None:
        """Job 1's handler begins and comes to a good end."""
        self.handler("begin", 1, token, attempt)
        self.handler("end", 1, token, attempt, outcome="success")

    def stop(self, after_seconds: float = 0) -> None:
        """Job 1's handler ends, as it was told to."""
        self.wait(after_seconds)
        self.note("end", job=1, attempt=1, who=NORTH, token="a", outcome="stopped")

    def drain(self, seconds: float = 0, children: int = 0) -> None:
        """The node is told to stop, and ends so much later."""
        self.note("process", what="told", node="north")
        self.wait(seconds)
        self.note("process", what="ended", node="north", children=children)

    def freeze(self, seconds: float, node: str = "north") -> None:
        """The node stands still for so long."""
        self.note("fault", what="freeze", node=node)
        self.wait(seconds)
        self.note("fault", what="thaw", node=node)

    def row(self, job: int, state: str, **fields: Any) -> None:
        """The job as the store has it in the end."""
        self.final("job", **{"id": job, "state": state, "payload": {"number": job}, **fields})

    def finish(self, state: str) -> None:
        """The faults are over; the store has job 1, in this state."""
        self.end()
        self.row(1, state)

    def ran(self, job: int, last: str = "job.succeeded", **data: Any) -> None:
        """A job's whole life in events."""
        self.event("job.enqueued", job)
        self.event("job.started", job, attempt=1, node="north", worker=1)
        self.event(last, job, attempt=1, **data)


Write = Callable[[Story], None]


@dataclass(frozen=True)
class Example:
    """`breaks`: the one invariant that it breaks; "" = none. `commits`: how it can be told."""

    name: str
    breaks: str
    write: Write
    header: dict[str, Any]
    commits: tuple[bool, ...]

    def history(self, commits: bool) -> Story:
        story = Story(commits=commits, **self.header)
        self.write(story)
        return story


EXAMPLES: list[Example] = []


def breaks(
    name: str, *, commits: tuple[bool, ...] = BOTH, **header: Any
) -> Callable[[Write], Write]:
    def keep(write: Write) -> Write:
        label = f"{name or 'legal'}-{write.__name__}"
        EXAMPLES.append(Example(label, name, write, header, commits))
        return write

    return keep


def legal(*, commits: tuple[bool, ...] = BOTH, **header: Any) -> Callable[[Write], Write]:
    return breaks("", commits=commits, **header)
