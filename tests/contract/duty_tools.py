"""What nodes may do to one duty, and what should stand in its row then: for tests that try every
order.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Literal
from uuid import UUID, uuid5

import attrs

from musterd.store.duties import DutyReport, Holder

DUTY = "reaping"
LEASE_SECONDS = 30.0
SPACE = UUID(int=0)
Verb = Literal["take", "renew", "release", "expire"]


@attrs.frozen
class Act:
    """What a node does. `term` is whose term it is and which of its terms. A lease that is not
    `lasting` has run out as soon as it is written.
    """

    verb: Verb
    node: str = ""
    term: int = 1
    lasting: bool = True

    @property
    def token(self) -> UUID:
        return uuid5(SPACE, f"{self.node}/{self.term}")

    @property
    def lease_seconds(self) -> float:
        return LEASE_SECONDS if self.lasting else -1.0

    @property
    def holder(self) -> Holder:
        return Holder(self.node, uuid5(SPACE, self.node), self.token, self.lease_seconds)

    @property
    def report(self) -> DutyReport:
        return DutyReport(DUTY, self.token, runs=1, items=10)


@attrs.frozen
class Model:
    """What should stand in the row; all that a node is told goes by it."""

    node: str = ""  # who had it last
    term: UUID | None = None
    stands: bool = False
    hand_overs: int = 0
    runs: int = 0

    def after(self, act: Act) -> tuple[bool, Model]:
        """Whether it changes anything, and what is there then."""
        if act.verb == "expire":
            return True, attrs.evolve(self, stands=False)
        if act.verb == "take":
            return self._taken(act)
        if self.term != act.token:
            return False, self
        then = attrs.evolve(self, runs=self.runs + 1)
        if act.verb == "renew":
            return True, attrs.evolve(then, stands=act.lasting)
        return True, attrs.evolve(then, term=None, stands=False)

    def _taken(self, act: Act) -> tuple[bool, Model]:
        if self.term is not None and self.stands:
            return False, self
        changed = self.node not in ("", act.node)
        hand_overs = self.hand_overs + changed
        return True, attrs.evolve(
            self, node=act.node, term=act.token, stands=act.lasting, hand_overs=hand_overs
        )


def program(text: str, node: str) -> tuple[Act, ...]:
    """`take renew take2 release1`: a verb, and which of the node's terms it names."""
    acts: list[Act] = []
    for word in text.split():
        verb: Any = word.rstrip("0123456789")
        acts.append(Act(verb, node, int(word.removeprefix(verb) or 1)))
    return tuple(acts)


def orders(programs: Sequence[tuple[Act, ...]]) -> Iterator[list[Act]]:
    """Every order in which these may follow each other."""
    left = [one for one in programs if one]
    if not left:
        yield []
    for place, (first, *rest) in enumerate(left):
        others = [*left[:place], tuple(rest), *left[place + 1 :]]
        yield from ([first, *order] for order in orders(others))


class Believers:
    """What the nodes have been told, whatever the row says: who may think that it has the duty."""

    def __init__(self) -> None:
        self.standing: UUID | None = None
        self.taken_by: list[str] = []
        self.reports = 0

    def told(self, act: Act, did: bool) -> None:
        if act.verb == "expire":
            self.standing = None
        elif did and act.verb == "take":
            assert self.standing is None, "two terms stand"
            self.standing = act.token if act.lasting else None
            self.taken_by.append(act.node)
        elif did:
            assert self.standing in (None, act.token), "another's term stands"
            self.standing = act.token if act.verb == "renew" and act.lasting else None
            self.reports += 1

    @property
    def hand_overs(self) -> int:
        return sum(one != other for one, other in itertools.pairwise(self.taken_by))
