"""Nodes that take, renew and give up one duty, in every order, while leases run out in between.

In transactions that follow each other, on every engine; and in transactions that meet, on
PostgreSQL, where the one that comes second stands before the row until the first is committed.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import attrs
import psycopg
import pytest
import trio

from musterd.store.postgres.duties import PostgresDuties
from tests.contract.duty_tools import DUTY, Act, Believers, Model, orders, program
from tests.contract.rigs import SCHEMA, PostgresRig, Rig, SqliteRig
from tests.contract.sessions import (
    Connection,
    Running,
    Statement,
    migrate,
    sessions,
    statement_of,
    until_blocked_or_done,
)
from tests.fix_postgres import FreshDatabase


class Looker:
    """Reads the one row, moves its lease into the past and takes it away."""

    def __init__(self, rig: Rig, main: Connection | None) -> None:
        self._rig, self._main = rig, main

    def raw(self, sql: str) -> list[tuple[Any, ...]]:
        if self._main is None:
            return self._rig.raw(sql)
        cursor = self._main.execute(sql.encode())
        return cursor.fetchall() if cursor.description else []

    def begin(self) -> None:
        self.raw("delete from duties")

    def expire(self) -> None:
        past = "0" if self._main is None else "'epoch'"
        self.raw(f"update duties set expires_at = {past} where term is not null")

    def model(self) -> Model:
        now = "clock_timestamp()"
        if isinstance(self._rig, SqliteRig):
            now = str(round(self._rig.now * 1_000_000))
        stands = f"term is not null and expires_at > {now}"
        found = self.raw(f"select node, term, {stands}, hand_overs, runs, items from duties")
        if not found:
            return Model()
        ((node, term, holds, hand_overs, runs, items),) = found
        assert items == 10 * runs
        token = UUID(bytes=term) if isinstance(term, bytes) else term
        return Model(node, token, bool(holds), hand_overs, runs)


@contextmanager
def looking(rig: Rig) -> Generator[Looker]:
    if not isinstance(rig, PostgresRig):
        yield Looker(rig, None)
        return
    with psycopg.connect(rig.url, autocommit=True) as main:
        main.execute(f"set search_path = {SCHEMA}".encode())
        yield Looker(rig, main)


async def do(rig: Rig, act: Act) -> bool:
    duties = rig.engine.duties
    if act.verb == "take":
        return DUTY in await duties.take((DUTY,), act.holder)
    if act.verb == "renew":
        return DUTY in await duties.renew([act.report], act.lease_seconds)
    await duties.release([act.report])
    return True


EXPIRE = Act("expire")
PROGRAMS = {
    "two nodes, two leases run out": (
        (*("take renew release",) * 2, ), 2,
    ),
    "a node that comes back under another term, and one that comes too late": (
        ("take renew take2", "take release renew"), 2,
    ),
    "three nodes": (("take renew", "take release", "take renew"), 1),
}  # fmt: skip


@pytest.mark.parametrize("unopened", ["sqlite-memory", "postgresql"], indirect=True)
@pytest.mark.parametrize("name", PROGRAMS)
async def test_in_whatever_order_one_term_stands_and_nothing_is_counted_twice(
    rig: Rig, name: str
) -> None:
    texts, expiries = PROGRAMS[name]
    programs = [program(text, node) for text, node in zip(texts, "abc", strict=False)]
    met = 0
    with looking(rig) as looker:
        for order in orders([*programs, (EXPIRE,) * expiries]):
            await play(rig, looker, order)
            met += 1
    assert met >= 560


async def play(rig: Rig, looker: Looker, order: Sequence[Act]) -> None:
    looker.begin()
    model, believers = Model(), Believers()
    for act in order:
        expected, model = model.after(act)
        did = expected
        if act.verb == "expire":
            looker.expire()
        elif act.verb == "release":
            await do(rig, act)  # which tells nobody whether it did
        else:
            did = await do(rig, act)
        assert did == expected, order
        believers.told(act, did)
        assert looker.model() == model, order
    assert (model.hand_overs, model.runs) == (believers.hand_overs, believers.reports)


def statement(act: Act) -> Statement:
    def call(run: Any) -> Any:
        duties = PostgresDuties(run, run)
        if act.verb == "take":
            return duties.take((DUTY,), act.holder)
        if act.verb == "renew":
            return duties.renew([act.report], act.lease_seconds)
        return duties.release([act.report])

    return statement_of(call)


BEFORE: dict[str, list[Act]] = {
    "nobody has had it": [],
    "its lease stands": [Act("take", "a")],
    "its lease has run out": [Act("take", "a"), EXPIRE],
    "it was given up": [Act("take", "a"), Act("release", "a")],
    "it was taken over": [Act("take", "a"), EXPIRE, Act("take", "b", lasting=True)],
    "it was taken over, and that has run out": [
        Act("take", "a"), EXPIRE, Act("take", "b", lasting=False),
    ],
}  # fmt: skip
ACTS = [
    Act("renew", "a"), Act("renew", "a", lasting=False), Act("release", "a"), Act("take", "a", 2),
    Act("renew", "b"), Act("release", "b"), Act("take", "b", 2), Act("take", "b", 2, lasting=False),
    Act("take", "c"), Act("take", "c", lasting=False),
]  # fmt: skip
# What makes a difference where three meet.
OF_THREE = [
    Act("renew", "a"), Act("release", "a"), Act("take", "a", 2),
    Act("take", "b", 2), Act("take", "b", 2, lasting=False), Act("take", "c"),
]  # fmt: skip


@attrs.frozen
class Scene:
    rig: PostgresRig
    looker: Looker
    main: Connection
    nodes: list[Connection]


@pytest.fixture
def scene(fresh_database: FreshDatabase) -> Generator[Scene]:
    rig = PostgresRig(fresh_database())
    trio.run(migrate, rig)
    with (
        looking(rig) as looker,
        psycopg.connect(rig.url, autocommit=True) as main,
        sessions(rig.url, 3) as nodes,
    ):
        yield Scene(rig, looker, main, nodes)


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize(("acts", "count"), [(ACTS, 2), (OF_THREE, 3)], ids=["two", "three"])
def test_of_those_that_meet_each_sees_what_the_one_before_it_left(
    scene: Scene, before: str, acts: list[Act], count: int
) -> None:
    for meeting in itertools.permutations(acts, count):
        model = prepare(scene, BEFORE[before])
        did = meet(scene, meeting)
        # The first is committed first; whoever waited for it goes on in any order.
        possible = [
            ([results[one] for one in meeting], then)
            for order in itertools.permutations(meeting[1:])
            for results, then in [play_on(model, (meeting[0], *order))]
        ]
        assert (did, scene.looker.model()) in possible, (before, meeting)


def prepare(scene: Scene, before: Sequence[Act]) -> Model:
    scene.looker.begin()
    model = Model()
    for act in before:
        _, model = model.after(act)
        if act.verb == "expire":
            scene.looker.expire()
        else:
            statement(act).run(scene.main)
    assert scene.looker.model() == model
    return model


def play_on(model: Model, order: Sequence[Act]) -> tuple[dict[Act, bool], Model]:
    did: dict[Act, bool] = {}
    believers = Believers()
    believers.standing = model.term if model.stands else None
    for act in order:
        did[act], model = model.after(act)
        believers.told(act, did[act])
    return did, model


def meet(scene: Scene, meeting: Sequence[Act]) -> list[bool]:
    """The first stands between its statement and its commit until the others have come."""
    first, *others = scene.nodes[: len(meeting)]
    found = [bool(statement(meeting[0]).run(first))]
    running: list[Running] = []
    for conn, act in zip(others, meeting[1:], strict=True):
        running.append(Running(conn, [statement(act)]).start())
        until_blocked_or_done(scene.main, running[-1])
    first.commit()
    return found + [bool(one.end()[0]) for one in running]
