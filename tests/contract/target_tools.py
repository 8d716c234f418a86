"""What the tests of targets share: a visit that looks again while jobs are in its way, and what
must hold of the rows after each step.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from musterd.store.engine import Engine
from musterd.store.jobs import NewJob
from musterd.store.leases import (
    Caps,
    Claim,
    ReapRequest,
    Settlement,
)
from musterd.store.lifecycle import JobState
from tests.contract.job_tools import ending, ids, reap_by, visit
from tests.contract.rigs import Rig

ROWS = """
    select job.id, job.priority, job.run_at, job.state, job.target, job.parked, job.behind,
           job.cleared_at, holder.job_id, holder.reserved
    from {table} job left join target_holders holder on holder.target = job.target
"""
BLOCKING = ("queued", "assigned", "running", "paused", "failed")
HALTING = ("paused", "failed")
LEASED = ("assigned", "running")


class Store(Protocol):
    @property
    def table(self) -> str: ...

    def raw(self, sql: str) -> list[tuple[Any, ...]]: ...


class Row(NamedTuple):
    id: int
    priority: int
    run_at: Any
    state: str
    target: str | None
    parked: bool
    behind: bool
    cleared_at: Any
    holder: int | None  # of its target
    reserved: bool | None

    @property
    def order(self) -> tuple[int, Any, int]:
        return (-self.priority, self.run_at, self.id)


async def put_target(engine: Engine, *priorities: int, target: str = "t", **more: Any) -> list[int]:
    """One job a priority."""
    return await engine.jobs.enqueue(
        [NewJob("report", priority=one, target=target, **more) for one in priorities]
    )


async def take_all(
    engine: Engine, workers: int = 9, settlements: Sequence[Settlement] = (), caps: Caps = ()
) -> list[Claim]:
    """Looks again for as long as jobs are taken out of the way."""
    exchange = await visit(engine, workers, settlements, caps)
    assert exchange.rejected == frozenset()
    found = exchange.claims
    while exchange.parked and len(found) < workers:
        exchange = await visit(engine, workers - len(found), (), caps)
        found += exchange.claims
    return found


async def one_of(rig: Rig) -> Claim:
    (claim,) = await take_all(rig.engine)
    check(rig)
    return claim


async def runs_next(rig: Rig, *ended: Claim, state: JobState = JobState.SUCCEEDED) -> list[int]:
    """Ends these, and says what runs then."""
    found = await take_all(rig.engine, 9, [ending(one, state) for one in ended])
    check(rig)
    return ids(found)


def rule(on_lease_lost: str = "requeue") -> ReapRequest:
    return reap_by(on_lease_lost, 1000, 100)


def rows_of(rig: Store) -> dict[int, Row]:
    return {row[0]: Row(*row) for row in rig.raw(ROWS.format(table=rig.table))}


def check(rig: Store) -> dict[int, Row]:
    """The rows, once they are as they have to be whenever nobody is in between."""
    rows = rows_of(rig)
    for row in rows.values():
        if row.holder == row.id:
            assert row.state in BLOCKING, f"{row.target} is held by a job that is {row.state}"
            assert row.cleared_at is None, f"{row.target} is held by a job that was cleared"
            assert not row.behind, f"job {row.id} stands behind itself"
        if row.behind:
            assert row.holder not in (None, row.id), f"job {row.id} stands behind nobody"
            ahead = rows[row.holder or 0]
            if row.reserved and ahead.state == "queued":
                assert ahead.order < row.order, f"job {row.id} was overtaken"
        if row.parked and row.target is not None:
            assert row.holder == row.id, f"job {row.id} is parked and has no target"
        if row.state in LEASED and row.target is not None:
            assert (row.holder, bool(row.reserved)) == (row.id, False)
    return rows


def having(rows: dict[int, Row]) -> dict[str, int]:
    """Who has each target, having been claimed for it."""
    return {
        row.target: row.holder
        for row in rows.values()
        if row.target is not None and row.holder is not None and not row.reserved
    }
