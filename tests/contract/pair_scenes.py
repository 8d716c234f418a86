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
from tests.contract.pair_programs import (
    IN_PHASES,
    NARROW,
    OF_TWO,
    RETAINING,
    VERBS,
    Actor,
    Step,
    claiming,
)
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
    from kept_counts
"""
LEASED = "select count(*) from live_jobs where kind = 'narrow' and lease_expires_at is not null"
EXPIRE = "update leases set expires_at = 'epoch' where jobs @> 1::bigint"
# So old that retention wants them, and so young that their endings may be gathered.
AGE = """
    update job_rows set finished_at = finished_at - interval '45 minutes' where finished_at < now();
    update endings set at = (select max(at) from endings) - interval '45 minutes'
"""
STALE = """
    update job_rows set stale_at = now() where finished_at < now();
    update endings set stale = true
"""
# As a large batch comes: all that is alike in one stretch.
JOIN = """
    with gone as (delete from ready returning *)
    insert into ready select priority, run_at, min(first_id), max(last_id), kind from gone
    group by priority, run_at, kind
"""
HURRY = "update job_rows set priority = 9 where id = (select max(id) from job_rows)"
BY_HAND = {"expire": EXPIRE, "age": AGE, "stale": STALE, "join": JOIN, "hurry the last": HURRY}
# How many workers claim, and what they get; nothing = the last job.
CLAIMS: dict[str, tuple[int, list[int]]] = {
    "claim": (1, [1]), "claim again": (1, [1]), "assign": (0, [1]), "claim two": (2, [1, 2]),
    "claim another": (1, []),
}  # fmt: skip
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
        left_out = set[str]()
        if "begin phases" not in self.way:
            left_out |= IN_PHASES
        if "claim two" not in self.way or "succeed both" in self.way:
            left_out |= OF_TWO
        if "age" not in self.way:
            left_out |= RETAINING
        if not self.is_capped:
            left_out |= {"unpark"}
        return [what for what in VERBS if what not in left_out]


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
    "failed and old": ("claim", "fail", "age"),
    "failed and stale": ("claim", "fail", "age", "stale"),
}
# Where several stand together.
PARKED = ("hurry the last", "join", "claim another")
OTHER_WAYS: dict[str, tuple[tuple[str, ...], str | None, tuple[str, ...]]] = {
    "of one stretch, queued": (("plain",) * 3, None, ("join",)),
    "of one stretch, parked": (("narrow",) * 4, None, PARKED),
    "of one stretch, parked with room": (("narrow",) * 4, None, (*PARKED, "the other succeeds")),
    "of a target, behind": (("plain",) * 3, "t", ("hurry the last", "claim another")),
    "of one claim, running": (("plain",) * 3, None, ("claim two",)),
    "of one claim, expired": (("plain",) * 3, None, ("claim two", "expire")),
    "of one ending, old": (("plain",) * 2, None, ("claim two", "succeed both", "age")),
    "of two endings, old": (
        ("plain",) * 2, None, ("claim two", "succeed", "the other succeeds", "age"),
    ),
    "of one ending, stale": (("plain",) * 2, None, ("claim two", "succeed both", "age", "stale")),
}  # fmt: skip
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
    **{name: Scene(*how) for name, how in OTHER_WAYS.items()},
}  # fmt: skip


@attrs.define
class Stage:
    """A store on which scenes are set again and again. `main` looks, and stays out of it."""

    main: Connection
    nodes: Sequence[Connection]
    empty: bytes
    table: str = "live_jobs"
    held: Claim = attrs.field(init=False)
    beside: Claim | None = attrs.field(default=None, init=False)
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
        self.beside = None
        for step in scene.way:
            self._go(scene, step)

    def _go(self, scene: Scene, step: str) -> None:
        if step in BY_HAND:
            self.main.execute(BY_HAND[step].encode())
        elif step in CLAIMS:
            self._claim(scene, step)
        else:
            self.run(self.main, VERBS[step](self.actor("holder", scene)))

    def _claim(self, scene: Scene, step: str) -> None:
        workers, ids = CLAIMS[step]
        (*_, claim) = steps = claiming(
            "holder", workers, targeted=scene.target is not None, capped=scene.is_capped,
            ahead=int(workers == 0),
        )  # fmt: skip
        *_, found = self.run(self.main, steps)
        assert isinstance(claim, Statement)
        claims, _ = claims_and_findings(found[0], claim.params["token"], range(1, workers + 1))
        assert [one.id for one in claims] == (ids or [len(scene.kinds)])
        if step == "claim another":
            self.beside = claims[0]
        elif step != "claim again":
            self.held, *others = claims
            self.beside = others[0] if others else None

    def actor(self, who: str, scene: Scene) -> Actor:
        return Actor(who, self.held, scene.is_capped, self.beside)

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
