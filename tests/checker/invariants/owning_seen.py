"""S4 to S7 by what events and handlers tell."""

from __future__ import annotations

from dataclasses import dataclass

from tests.checker.facts import Record, moment
from tests.checker.invariant import Invariant, noted
from tests.checker.seen import SETTLES, Seen, data_of, is_lost


class OneOwnerSeen(Invariant, name="S4", needs={"events"}):
    def event(self, line: int, record: Record, seen: Seen) -> None:
        if not seen.is_claim(record):
            return
        self.cases += 1
        if seen.in_hand:
            node = data_of(record).get("node")
            story = (
                f"{node} took job {seen.id} while it was in the hand of {seen.node} "
                f"(attempt {seen.attempt})"
            )
            self.accuse(seen.id, (seen.claim_line, line), story)


@dataclass(eq=False)
class TokensOfHandlers(Invariant, name="S5", needs={"handlers"}):
    _attempts: dict[tuple[int, str], tuple[int, int]] = noted(dict)
    _nodes: dict[str, tuple[str, int]] = noted(dict)

    def begin(self, line: int, record: Record) -> None:
        if "token" not in record:
            return
        self.cases += 1
        key = (record["job"], record["token"])
        attempt, first = self._attempts.setdefault(key, (record["attempt"], line))
        if attempt != record["attempt"]:
            story = (
                f"attempts {attempt} and {record['attempt']} of job {record['job']} were given "
                "the same token"
            )
            self.accuse(record["job"], (first, line), story)
        node, first = self._nodes.setdefault(record["token"], (record["who"], line))
        if node != record["who"]:
            story = f"{node} and {record['who']} were given the same token"
            self.accuse(record["job"], (first, line), story)


class FencingSeen(Invariant, name="S6", needs={"events"}):
    def event(self, line: int, record: Record, seen: Seen) -> None:
        if record["type"] not in SETTLES and record["type"] != "job.phase_completed":
            return
        attempt = data_of(record).get("attempt")
        if attempt is None or not seen.in_hand:
            return
        self.cases += 1
        if attempt != seen.attempt:
            story = (
                f"{record['type']} of attempt {attempt} of job {seen.id} was taken while attempt "
                f"{seen.attempt} had it"
            )
            self.accuse(seen.id, (seen.claim_line, line), story)


class NoEarlyStealSeen(Invariant, name="S7", needs={"events"}, wants=("lease_seconds",)):
    def event(self, line: int, record: Record, seen: Seen) -> None:
        world = self.world
        if not is_lost(record) or world.stepped or world.header.get("embedded"):
            return
        self.cases += 1
        # A lease counts from the beginning of the statement that claims, its event from the end.
        late = world.event_slack if seen.state == "running" else 0.0
        claimed = seen.claimed_at - max(late, world.statement)
        early = claimed + world.header["lease_seconds"] - world.slack - moment(record["at"])
        if seen.in_hand and early > 0:
            story = (
                f"attempt {seen.attempt} of job {seen.id} was ended as lost {early:.3f} s before "
                f"a lease of {seen.node} can have run out"
            )
            self.accuse(seen.id, (seen.claim_line, line), story)
