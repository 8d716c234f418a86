"""What the lines of a history mean, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

Record = dict[str, Any]

ENDED = frozenset({"succeeded", "failed", "canceled"})
LEASED = frozenset({"assigned", "running"})


class Point(NamedTuple):
    """A place in the history. Earlier is smaller."""

    seq: int
    t: float


NEVER = Point(-1, float("-inf"))


@dataclass(slots=True, eq=False)
class Op:
    """An operation. It was carried out between `lo` and `hi`, both included."""

    id: int | str
    name: str
    who: str
    call: Record
    line: int
    asked: Point
    result: Record = field(default_factory=dict[str, Any])
    done_line: int = 0
    lo: Point = NEVER
    hi: Point = NEVER
    applied: bool = False

    @property
    def lines(self) -> tuple[int, ...]:
        return (self.line, self.done_line) if self.done_line else (self.line,)

    @property
    def node(self) -> str:
        return self.who.removeprefix("node:")


@dataclass(slots=True, eq=False)
class End:
    """How a claim ended, as the store took it. `how`: settle | reap."""

    how: str
    state: str
    outcome: str
    op: Op
    forgiven: bool = False
    delay: float | None = None


@dataclass(slots=True, eq=False)
class Claim:
    """A job in a node's hand. `leased_from`: no later than that its lease began anew, as far as the
    store has it; `trusted_from`: as far as its node knows.
    """

    job: int
    token: str
    attempt: int
    op: Op
    lease: float
    leased_from: float
    trusted_from: float
    lease_line: int
    forward: float
    maybe_ends: int = 0
    end: End | None = None
    undone: bool = False  # its commit may have been lost in a failover

    @property
    def node(self) -> str:
        return self.op.node


@dataclass(slots=True, eq=False)
class Job:
    """What is known of a job from operations. `claim` is the latest."""

    id: int
    made: Op | None = None
    claim: Claim | None = None
    claims: dict[str, Claim] = field(default_factory=dict[str, Claim])
    attempt: int = 0
    used: int = 0  # attempts that count against its budget, since it was made or resumed
    last_end: Op | None = None  # that made it succeeded, failed or canceled
    last_state: str = ""
    resumed: Point = NEVER  # when somebody last asked for that, or it was done
    unsure: set[int | str] = field(default_factory=set[int | str])  # asked for, perhaps to come
    # Cancels that nobody has an answer to, perhaps to come.
    unsure_cancels: set[int | str] = field(default_factory=set[int | str])
    rest: tuple[str, Op] | None = None  # surely pending or paused, and nobody asked it to go on
    request: tuple[str, Op] | None = None  # its holder was asked, and nobody asked it to go on
    due: float | None = None  # not before this, on the recorder's clock
    due_line: int = 0
    due_forward: float = 0.0
    plain: bool = True  # never delayed, held, paused, resumed or requeued
    cleared: bool = False
    touched: int = -1
    maybe_lost: bool = False
    deleted: Op | None = None

    @property
    def kind(self) -> str:
        return str(self.made.call.get("kind", "")) if self.made else ""

    @property
    def target(self) -> str | None:
        return self.made.call.get("target") if self.made else None

    def claim_of(self, attempt: int) -> Claim | None:
        """The latest claim of that attempt."""
        for claim in reversed(self.claims.values()):
            if claim.attempt == attempt and not claim.undone:
                return claim
        return None

    def forget(self) -> None:
        """After a failover that may have taken back some of what was known."""
        for claim in self.claims.values():
            claim.undone = True
        self.claim, self.last_end, self.rest, self.request = None, None, None, None
        self.attempt, self.used = 0, 0
        self.due, self.plain, self.deleted = None, False, None


@dataclass(slots=True, frozen=True)
class Violation:
    """`lines` of the history are what shows it."""

    invariant: str
    job: int | None
    lines: tuple[int, ...]
    story: str


def settled(op: Op) -> End:
    """What a settlement, or a giving back, came to."""
    if op.name == "give_back":
        return End("settle", "queued", "released", op, forgiven=True)
    state = op.result.get("state") or op.call["state"]
    turned = state != op.call["state"]
    delay = None if turned else op.call.get("delay_seconds")
    return End("settle", state, op.call["outcome"], op, bool(op.call.get("forgive")), delay)


def moment(text: object) -> float:
    """RFC 3339 as seconds since the epoch."""
    return datetime.fromisoformat(str(text)).timestamp()
