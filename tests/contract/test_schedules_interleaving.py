"""Nodes that see to the slots of one schedule at once: a slot makes at most one job, whoever comes
when, beside somebody who wants a job now, and while the job of an earlier slot ends.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal
from uuid import UUID

import attrs
import pytest

from musterd.store.leases import Claim, ClaimRequest
from musterd.store.postgres.claiming import claim_params, claims_and_findings
from musterd.store.postgres.exchanges import settlement_params
from musterd.store.schedules import Firing
from tests.contract.job_tools import ending, settle, take_one
from tests.contract.rigs import Rig
from tests.contract.sessions import (
    Connection,
    Running,
    Statement,
    stopped_sessions,
    until_blocked_or_done,
)
from tests.fix_postgres import FreshDatabase

START = datetime(2040, 1, 1, tzinfo=UTC)
EMPTY = "truncate job_rows, attempts, schedules, count_changes, event_drafts restart identity"
TOKEN = UUID(int=7)
JOBS = "select count(*) from job_rows"


@attrs.frozen
class Act:
    """`slot` in minutes; 0 = now. `end`: the job of slot 1 ends."""

    verb: Literal["fire", "let go", "end"]
    slot: int = 0
    skips: bool = False

    @property
    def at(self) -> datetime:
        return START + timedelta(minutes=self.slot)

    @property
    def firing(self) -> Firing:
        at = self.at if self.slot else None
        return Firing("nightly", at, "report", "{}", 0, None, self.skips)


@attrs.frozen
class Model:
    """What should stand in the schedule's row."""

    slot: int = 0
    fired: int = 0
    skipped: int = 0
    missed: int = 0
    last: Literal["none", "first", "later"] = "none"  # whose job is the last one made
    first_ended: bool = False

    def after(self, act: Act) -> tuple[bool, Model]:
        """Whether it was taken, and what is there then."""
        if act.verb == "end":
            return True, attrs.evolve(self, first_ended=True)
        if act.slot and act.slot <= self.slot:
            return False, self
        then = attrs.evolve(self, slot=max(self.slot, act.slot))
        if act.verb == "let go":
            return True, attrs.evolve(then, missed=self.missed + 1)
        is_busy = self.last == "later" or (self.last == "first" and not self.first_ended)
        if act.skips and is_busy:
            return True, attrs.evolve(then, skipped=self.skipped + 1)
        last: Literal["first", "later"] = "later" if self.fired else "first"
        return True, attrs.evolve(then, fired=self.fired + 1, last=last)

    @property
    def counts(self) -> tuple[int, int, int, int]:
        return self.slot, self.fired, self.skipped, self.missed


FIRST = Act("fire", 1)
ACTS = [
    Act("fire", 2), Act("fire", 2, skips=True), Act("fire", 3), Act("fire", 3, skips=True),
    Act("fire"), Act("fire", skips=True), Act("let go", 2), Act("let go", 3), Act("end"),
]  # fmt: skip


@pytest.mark.parametrize("unopened", ["sqlite-memory", "postgresql"], indirect=True)
async def test_in_whatever_order_a_slot_makes_one_job(rig: Rig) -> None:
    for number, order in enumerate(itertools.permutations(ACTS, 3)):
        name = f"schedule {number}"
        made = await rig.engine.schedules.fire(attrs.evolve(FIRST.firing, schedule=name))
        claim = await take_one(rig.engine)
        assert claim.id == made.job_id
        _, model = Model().after(FIRST)
        for act in order:
            expected, model = model.after(act)
            assert await do(rig, act, name, claim) == expected, order
        (found,) = await rig.engine.schedules.know([name])
        slot = round((found.last_slot - START) / timedelta(minutes=1))
        assert (slot, found.fired, found.skipped, found.missed) == model.counts, order
        for _ in range(model.fired - 1):
            await settle(rig.engine, ending(await take_one(rig.engine)))
        if Act("end") not in order:
            await settle(rig.engine, ending(claim))


async def do(rig: Rig, act: Act, name: str, held: Claim) -> bool:
    if act.verb == "end":
        return not (await settle(rig.engine, ending(held))).rejected
    if act.verb == "let go":
        return await rig.engine.schedules.let_go(name, act.at, 1)
    return (await rig.engine.schedules.fire(attrs.evolve(act.firing, schedule=name))).taken


@attrs.frozen
class Scene:
    main: Connection
    nodes: list[Connection]
    held: list[Claim] = attrs.field(factory=list[Claim])

    def begin(self) -> Model:
        """The job of slot 1 runs."""
        self.main.execute(EMPTY.encode())
        self.main.execute(
            b"insert into schedules (name, last_slot) values ('nightly', %s)", [START]
        )
        self.statement(FIRST).run(self.main)
        request = claim_params(ClaimRequest(TOKEN, "n", (1,), 0, 30.0))
        (row,) = Statement("claim", request).run(self.main)
        self.held[:] = claims_and_findings(row, TOKEN, (1,))[0]
        return Model().after(FIRST)[1]

    def statement(self, act: Act) -> Statement:
        if act.verb == "end":
            return Statement("settle", settlement_params([ending(self.held[0])]))
        if act.verb == "let go":
            params = {"name": "nightly", "up_to": act.at, "count": 1}
            return Statement("let_slots_go", params)
        return Statement("fire_schedule", attrs.asdict(act.firing))

    def counts(self) -> tuple[int, int, int, int]:
        found = self.main.execute(b"select last_slot, fired, skipped, missed from schedules")
        ((at, fired, skipped, missed),) = found.fetchall()
        ((jobs,),) = self.main.execute(JOBS.encode()).fetchall()
        assert jobs == fired
        return round((at - START) / timedelta(minutes=1)), fired, skipped, missed


@pytest.fixture
def scene(fresh_database: FreshDatabase) -> Generator[Scene]:
    with stopped_sessions(fresh_database(), 3) as (main, nodes):
        yield Scene(main, nodes)


@pytest.mark.parametrize("count", [2, 3])
def test_those_that_meet_come_to_what_some_order_of_them_would(scene: Scene, count: int) -> None:
    """An end waits for nobody: a slot that looks at the job meanwhile may still see it run."""
    several = ACTS if count == 2 else [ACTS[place] for place in (0, 1, 3, 5, 8)]
    for meeting in itertools.permutations(several, count):
        model = scene.begin()
        meet(scene, meeting)
        orders = itertools.permutations(meeting)
        assert scene.counts() in {played(model, order).counts for order in orders}, meeting


def played(model: Model, order: Sequence[Act]) -> Model:
    for act in order:
        _, model = model.after(act)
    return model


def meet(scene: Scene, meeting: Sequence[Act]) -> None:
    """The first stands between its statement and its commit until the others have come."""
    first, *others = scene.nodes[: len(meeting)]
    scene.statement(meeting[0]).run(first)
    running: list[Running] = []
    for conn, act in zip(others, meeting[1:], strict=True):
        running.append(Running(conn, [scene.statement(act)]).start())
        until_blocked_or_done(scene.main, running[-1])
    first.commit()
    for one in running:
        one.end()
