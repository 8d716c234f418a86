"""Targets together with caps; and what holds of targets whoever writes to the database."""

import sqlite3

import psycopg
import pytest

from musterd.store.jobs import NewJob
from musterd.store.lifecycle import Action
from tests.contract.job_tools import ending, ids, put, settle
from tests.contract.rigs import PostgresRig, Rig
from tests.contract.target_tools import check, put_target, take_all


class TestWithCaps:
    CAPS = (("report", 1),)

    async def test_both_are_kept(self, rig: Rig) -> None:
        made = await put_target(rig.engine, 0, 0)
        other = await put_target(rig.engine, 0, 0, target="u")
        order: list[int] = []
        for _ in range(4):
            (claim,) = await take_all(rig.engine, 5, caps=self.CAPS)
            check(rig)
            order.append(claim.id)
            await settle(rig.engine, ending(claim))
        assert order == [made[0], made[1], other[0], other[1]] or order == [
            made[0], other[0], made[1], other[1],
        ]  # fmt: skip

    async def test_one_that_waits_for_its_cap_is_not_overtaken(self, rig: Rig) -> None:
        (blocker,) = await put(rig.engine, 9)
        (first,) = await put_target(rig.engine, 0)
        (second,) = await rig.engine.jobs.enqueue([NewJob("other", target="t")])
        (held,) = await take_all(rig.engine, 5, caps=self.CAPS)
        assert held.id == blocker
        check(rig)
        (urgent,) = await rig.engine.jobs.enqueue([NewJob("other", target="t", priority=3)])
        (before,) = await take_all(rig.engine, 5, caps=self.CAPS)
        assert before.id == urgent
        check(rig)
        ends = [ending(held), ending(before)]
        (after,) = await take_all(rig.engine, 5, ends, self.CAPS)
        assert after.id == first
        (last,) = await take_all(rig.engine, 5, [ending(after)], self.CAPS)
        assert last.id == second
        check(rig)

    async def test_one_that_waits_for_its_cap_can_be_canceled(self, rig: Rig) -> None:
        await put(rig.engine, 9)
        (first,) = await put_target(rig.engine, 0)
        (second,) = await rig.engine.jobs.enqueue([NewJob("other", target="t")])
        await take_all(rig.engine, 5, caps=self.CAPS)
        await rig.engine.control.apply(Action.CANCEL, first)
        assert ids(await take_all(rig.engine, 5, caps=self.CAPS)) == [second]
        check(rig)


class TestTheLaw:
    async def test_the_database_lets_no_two_of_a_target_be_leased(self, rig: Rig) -> None:
        _, second = await put_target(rig.engine, 0, 0)
        await take_all(rig.engine)
        none_behind(rig)
        with pytest.raises((sqlite3.IntegrityError, psycopg.errors.UniqueViolation)):
            lease_by_hand(rig, second)

    async def test_a_claim_mends_what_somebody_broke_by_hand(self, rig: Rig) -> None:
        made = await put_target(rig.engine, 0, 0)
        await put(rig.engine, 0)
        (claim, _) = await take_all(rig.engine)
        rig.raw("delete from target_holders")
        none_behind(rig)
        more = await put(rig.engine, 0)
        assert ids(await take_all(rig.engine)) == more
        check(rig)
        rig.raw(f"update target_holders set job_id = {made[1]}")
        none_behind(rig)
        assert await take_all(rig.engine) == []
        check(rig)
        assert ids(await take_all(rig.engine, 9, [ending(claim)])) == [made[1]]

    @pytest.mark.parametrize("name", ["''", "'" + "x" * 201 + "'"])
    async def test_a_name_has_1_to_200_characters(self, rig: Rig, name: str) -> None:
        await put(rig.engine, 0)
        with pytest.raises((sqlite3.IntegrityError, psycopg.IntegrityError)):
            rig.raw(
                "insert into job_rows (kind, target, created_at, run_at)"
                f" select kind, {name}, created_at, run_at from job_rows"
            )


def none_behind(rig: Rig) -> None:
    rig.raw(
        "with taken as (delete from waiting where room = 'behind' returning *) insert into ready"
        " select priority, run_at, first_id, last_id, kind, target from taken"
        if isinstance(rig, PostgresRig)
        else "update job_rows set behind = 0"
    )


def lease_by_hand(rig: Rig, job_id: int) -> None:
    """As the one job of its target that is leased."""
    rig.raw(
        "insert into leases (token, kind, target, node, claimed_at, expires_at, heartbeat_at, jobs,"
        "  span) select token, kind, target, node, claimed_at, expires_at, heartbeat_at,"
        f" '{{[{job_id},{job_id}]}}', '[{job_id},{job_id}]' from leases"
        if isinstance(rig, PostgresRig)
        else "update job_rows set state = 'running', attempt = 1, node = 'n', started_at = run_at,"
        " lease_expires_at = run_at, heartbeat_at = run_at,"
        " claim_token = (select claim_token from job_rows where state = 'running')"
        f" where id = {job_id}"
    )
