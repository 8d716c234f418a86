"""Where two meet: a store with a few jobs of which the first one stands in a certain way, and what
can be seen of it afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import uuid4

import attrs
import psycopg

from musterd.store.jobs import NewJob
from musterd.store.leases import Claim
from musterd.store.postgres.claiming import claims_and_findings
from musterd.store.postgres.jobs import new_job_params
from tests.contract import target_tools
from tests.contract.pair_programs import IN_PHASES, NARROW, VERBS, Actor, Step, claiming
from tests.contract.sessions import (
    PATIENCE_SECONDS,
    Connection,
    Running,
    Statement,
    until_blocked_or_done,
)

LOOK = """
    select job.id, job.state, job.request, job.attempt, job.forgiven, job.max_attempts,
           job.last_outcome, case when job.lease_expires_at is not null then job.node end,
           job.cleared_at is not null, job.stale_at is not null, job.reason, job.error ->> 'type',
           job.progress,
           array(select attempt || ' ' || outcome from attempts past
                 where past.job_id = job.id order by attempt),
           array(select name || ' ' || state || ' ' || attempts from job_phases phase
                 where phase.job_id = job.id order by place),
           array(select told.type
                 from (select type, unnest(job_ids) as job_id from event_drafts) told
                 where told.job_id = job.id order by told.type)
    from live_jobs job order by job.id
"""
ARRAYS = 3  # its last columns
THERE = "select state, count(*) from live_jobs where lease_expires_at is null group by state"
COUNTED = """
    select 'pending', sum(pending), 'queued', sum(queued), 'paused', sum(paused),
           'succeeded', sum(succeeded), 'failed', sum(failed), 'canceled', sum(canceled)
    from (select pending, queued, paused, succeeded, failed, canceled from job_counts
          union all
          select pending, queued, paused, succeeded, failed, canceled from count_changes) each
"""
LEASED = "select count(*) from live_jobs where kind = 'narrow' and lease_expires_at is not null"
EXPIRE = "update leases set expires_at = 'epoch' where jobs @> 1::bigint"
AGE = """
    update job_rows set finished_at = finished_at - interval '2 hours' where id = 1;
    update endings set at = at - interval '2 hours' where jobs @> 1::bigint
"""
STALE = """
    update job_rows set stale_at = now() where id = 1;
    update endings set stale = true where jobs @> 1::bigint
"""
WEST, EAST = "west", "east"

Part = tuple[str, str]  # who, and what it does


class Outcome(NamedTuple):
    """All jobs, and again once all that may run has been claimed."""

    seen: tuple[Any, ...]
    afterwards: tuple[Any, ...]


class Scene(NamedTuple):
    """`kinds`: of the jobs. `way`: how the first one came where it stands, by what its holder and
    others have done.
    """

    kinds: tuple[str, ...]
    target: str | None
    way: tuple[str, ...]

    @property
    def is_capped(self) -> bool:
        return self.kinds[0] == "narrow"

    @property
    def verbs(self) -> list[str]:
        begun = "begin phases" in self.way
        return [what for what in VERBS if begun or what not in IN_PHASES]


WAYS: dict[str, tuple[str, ...]] = {
    "pending": (),
    "queued": (),
    "assigned": ("assign",),
    "running": ("claim", "begin phases"),
    "asked to cancel": ("claim", "cancel"),
    "expired": ("claim", "begin phases", "expire"),
    "taken over": ("claim", "expire", "reap", "claim again"),
    "waiting for its retry": ("claim", "retry"),
    "paused": ("claim", "pause itself"),
    "failed": ("claim", "fail"),
    "old": ("claim", "succeed", "age"),
    "stale": ("claim", "succeed", "age", "stale"),
}
TOGETHER = ("queued", "running", "expired", "waiting for its retry", "paused", "failed")
SCENES: dict[str, Scene] = {
    **{f"one {where}": Scene(("plain",), None, way) for where, way in WAYS.items()},
    **{
        f"of a target, {where}": Scene(("plain",) * 3, "t", WAYS[where])
        for where in TOGETHER
    },
    **{
        f"of a capped kind, {where}": Scene(("narrow",) * 3 + ("plain",), None, WAYS[where])
        for where in ("queued", "running", "expired", "waiting for its retry")
    },
}  # fmt: skip


@attrs.define
class Stage:
    """A store on which scenes are set again and again. `main` looks, and stays out of it."""

    main: Connection
    nodes: Sequence[Connection]
    empty: bytes
    table: str = "live_jobs"
    held: Claim = attrs.field(init=False)
    first_ones: int = attrs.field(init=False)
    known: dict[tuple[str, tuple[Part, ...]], Outcome] = attrs.field(
        factory=dict[tuple[str, tuple[Part, ...]], Outcome]
    )

    def set(self, name: str) -> None:
        scene = SCENES[name]
        self.main.execute(self.empty)
        self.first_ones = len(scene.kinds)
        hold = name.endswith("pending")
        new = [NewJob(kind, target=scene.target, hold=hold) for kind in scene.kinds]
        Statement("enqueue", new_job_params(new)).run(self.main)
        self.held = Claim(1, scene.kinds[0], "{}", 1, None, 0, 0.0, 1, uuid4(), None, scene.target)
        for step in scene.way:
            self._go(scene, step)

    def _go(self, scene: Scene, step: str) -> None:
        by_hand = {"expire": EXPIRE, "age": AGE, "stale": STALE}
        if step in by_hand:
            self.main.execute(by_hand[step].encode())
        elif step in ("claim", "claim again", "assign"):
            self._claim(scene, step)
        else:
            self.run(self.main, VERBS[step](self.actor("holder", scene)))

    def _claim(self, scene: Scene, step: str) -> None:
        workers = 0 if step == "assign" else 1
        (*_, claim) = steps = claiming(
            "holder", workers, targeted=scene.target is not None, capped=scene.is_capped,
            ahead=1 - workers,
        )  # fmt: skip
        *_, found = self.run(self.main, steps)
        assert isinstance(claim, Statement)
        claims, _ = claims_and_findings(found[0], claim.params["token"], range(1, workers + 1))
        assert [one.id for one in claims] == [1]
        if step != "claim again":
            self.held = claims[0]

    def actor(self, who: str, scene: Scene) -> Actor:
        return Actor(who, self.held, scene.is_capped)

    def program(self, name: str, part: Part) -> list[Step]:
        who, what = part
        return VERBS[what](self.actor(who, SCENES[name]))

    def run(self, conn: Connection, steps: Sequence[Step]) -> list[Any]:
        return [step.run(conn) for step in steps]

    def serially(self, name: str, *parts: Part) -> Outcome:
        """What they come to one after the other."""
        known = (name, parts)
        if known not in self.known:
            self.set(name)
            for part in parts:
                self.main.execute(b"begin")
                self.run(self.main, self.program(name, part))
                self.main.execute(b"commit")
            self.known[known] = self.look(name)
        return self.known[known]

    def at_once(
        self, name: str, parts: tuple[Part, Part], stop: int, *, commits: bool
    ) -> tuple[Outcome, bool]:
        """The second does all of its work while the first stands after `stop` statements; says
        whether it had to wait.
        """
        self.set(name)
        own, other = self.nodes
        first, second = (self.program(name, part) for part in parts)
        running = None
        try:
            self.run(own, first[:stop])
            running = Running(other, second).start()
            until_blocked_or_done(self.main, running)
            waited = running.thread.is_alive()
            self.run(own, first[stop:])
            own.commit() if commits else own.rollback()
            running.end()
        except (psycopg.Error, AssertionError) as error:
            error.add_note(f"{name}: {parts}, stopped after {stop}")
            raise
        finally:
            own.rollback()
            if running is not None:
                running.thread.join(PATIENCE_SECONDS)
        return self.look(name), waited

    def look(self, name: str) -> Outcome:
        seen = self._look()
        self._check(SCENES[name])
        while self._claims_all(SCENES[name]):
            pass
        self._check(SCENES[name])
        return Outcome(seen, tuple(row[:3] for row in self._look()))

    def _claims_all(self, scene: Scene) -> bool:
        """Whether something was in the way of a claim, and more may lie behind it."""
        targeted = scene.target is not None
        self.main.execute(b"begin")
        (*_, claim) = steps = claiming("later", 9, targeted=targeted, capped=scene.is_capped)
        *_, found = self.run(self.main, steps)
        self.main.execute(b"commit")
        assert isinstance(claim, Statement)
        _, rest = claims_and_findings(found[0], claim.params["token"], ())
        return rest.aside > 0

    def _look(self) -> tuple[Any, ...]:
        """What is new is numbered on from the others: a transaction that was taken back leaves a
        gap in the ids.
        """
        found = self.raw(LOOK)
        new = [row[0] for row in found if row[0] > self.first_ones]
        numbers = {job_id: self.first_ones + place for place, job_id in enumerate(new, start=1)}
        return tuple(
            (numbers.get(row[0], row[0]), *row[1:-ARRAYS], *map(tuple, row[-ARRAYS:]))
            for row in found
        )

    def raw(self, sql: str) -> list[tuple[Any, ...]]:
        return self.main.execute(sql.encode()).fetchall()

    def _check(self, scene: Scene) -> None:
        """The laws that hold whoever did what."""
        target_tools.check(self)
        assert self.raw("select * from musterd.check()") == []
        (counted,) = self.raw(COUNTED)
        by_state = dict(zip(counted[::2], map(int, counted[1::2]), strict=True))
        assert {state: number for state, number in by_state.items() if number} == dict(
            self.raw(THERE)
        )
        assert not scene.is_capped or self.raw(LEASED)[0][0] <= NARROW[0][1]
