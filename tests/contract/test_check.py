"""What check() finds of the places of jobs: each fault, once somebody has made it by hand. The
suite asks it after every test, so it must miss none.
"""

from __future__ import annotations

import pytest

from musterd.store.jobs import NewJob
from tests.contract.job_tools import ending, settle, take
from tests.contract.rigs import PostgresRig
from tests.contract.target_tools import put_target, take_all

# One of each: it succeeded; it is in hand; it has a target; it is behind that; it is claimable.
ENDED, HELD, FIRST, BEHIND, READY = range(1, 6)
INTO_READY = """
    insert into ready (priority, run_at, first_id, last_id, kind)
    select priority, run_at, id, id, kind from job_rows where id =
"""
OTHER = "other kind, target, priority or time"
BY_HAND = "set session_replication_role = replica;"  # no trigger sees to it

MADE = [
    (f"delete from ready where first_id = {READY}", READY, "is queued and stands nowhere"),
    (f"delete from waiting where first_id = {BEHIND}", BEHIND, "is queued and stands nowhere"),
    (f"delete from leases where jobs @> {HELD}::bigint", HELD, "is queued and stands nowhere"),
    (
        f"insert into waiting select 'parked', kind, * from ready where first_id = {READY}",
        READY, "stands in several places: parked and ready",
    ),
    (
        f"{INTO_READY} {HELD}",
        HELD, "stands in several places: leases and ready",
    ),
    (
        f"{INTO_READY} {ENDED}",
        ENDED, "stands in ready and is succeeded",
    ),
    (
        f"update leases set jobs = jobs + '{{[{ENDED},{ENDED}]}}' where jobs @> {HELD}::bigint",
        ENDED, "stands in leases and is succeeded",
    ),
    (
        f"{BY_HAND} delete from job_rows where id = {READY}",
        READY, "stands in ready and is not there",
    ),
    (
        f"update ready set kind = 'other' where first_id = {READY}",
        READY, f"stands in ready as another one: {OTHER}",
    ),
    (
        f"update ready set target = 'u' where first_id = {READY}",
        READY, f"stands in ready as another one: {OTHER}",
    ),
    (
        f"update ready set priority = 7 where first_id = {READY}",
        READY, f"stands in ready as another one: {OTHER}",
    ),
    (
        f"update waiting set run_at = run_at + interval '1 s' where first_id = {BEHIND}",
        BEHIND, f"stands in behind as another one: {OTHER}",
    ),
    (
        f"update leases set kind = 'other' where jobs @> {HELD}::bigint",
        HELD, f"stands in leases as another one: {OTHER}",
    ),
    (
        f"update leases set span = '[{HELD},)' where jobs @> {HELD}::bigint",
        HELD, "stands in a lease with another span",
    ),
    (
        f"update leases set span = '(,{HELD}]' where jobs @> {HELD}::bigint",
        HELD, "stands in a lease with another span",
    ),
    (
        ("alter table leases drop constraint jobs_are_within_their_span;"
         f"update leases set span = '[{READY},{READY}]' where jobs @> {HELD}::bigint"),
        HELD, "stands in a lease with another span",
    ),
    ("delete from target_holders", BEHIND, "stands behind nobody"),
    (f"update target_holders set job_id = {BEHIND}", BEHIND, "stands behind nobody"),
    (
        f"{BY_HAND} update job_rows set request = 'cancel' where id = {READY}",
        READY, "its holder is asked, and there is none",
    ),
    (
        f"delete from endings where jobs @> {ENDED}::bigint",
        ENDED, "is succeeded and no ending names it as it is",
    ),
    ("update endings set state = 'failed'", ENDED, "is succeeded and no ending names it as it is"),
    ("update endings set kind = 'other'", ENDED, "is succeeded and no ending names it as it is"),
    ("update endings set stale = true", ENDED, "is succeeded and no ending names it as it is"),
    (
        "update endings set at = at - interval '1 hour'",
        ENDED, "is succeeded and no ending names it as it is",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("change", "job_id", "fault"), MADE)
async def test_each_fault_is_found(
    postgres_rig: PostgresRig, change: str, job_id: int, fault: str
) -> None:
    rig = postgres_rig
    await rig.engine.jobs.enqueue([NewJob("plain"), NewJob("plain")])
    ended, _ = await take(rig.engine, workers=2)
    await settle(rig.engine, ending(ended))
    assert await put_target(rig.engine, 0, 0) == [FIRST, BEHIND]
    assert [claim.id for claim in await take_all(rig.engine)] == [FIRST]
    await rig.engine.jobs.enqueue([NewJob("ready")])
    assert rig.faults() == []
    rig.tampered = True
    rig.raw(change)
    assert rig.faults() == [(job_id, fault)]
