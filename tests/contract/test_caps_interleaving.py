"""Two sessions that claim under the cap of a kind and the bound on all jobs, each stopped after
each of its statements: whatever is committed when, no more are leased than may be, no room is lost,
and nobody waits for ever.
"""

import itertools
from collections.abc import Callable, Generator
from uuid import uuid4

import attrs
import pytest

from musterd.store.jobs import NewJob
from musterd.store.leases import Claim, ClaimRequest, Hold, ReapRequest, ReapRule
from musterd.store.lifecycle import Action, JobState
from musterd.store.postgres.claiming import claim_params, claims_and_findings
from musterd.store.postgres.exchanges import settlement_params
from musterd.store.postgres.jobs import new_job_params
from musterd.store.postgres.leases import hold_params, reap_params
from musterd.store.postgres.statements import texts
from tests.contract.job_tools import ending
from tests.contract.rigs import LEASE_SECONDS
from tests.contract.sessions import (
    Connection,
    Running,
    Statement,
    stopped_sessions,
    until_blocked_or_done,
)
from tests.fix_postgres import FreshDatabase

MOST = 4
CAPS = (("narrow", 2),)
EMPTY = "truncate job_rows, attempts, target_holders, count_changes, event_drafts restart identity"
LEASED = """
    select count(*), count(*) filter (where kind = 'narrow'),
           count(target), count(distinct target)
    from live_jobs where state in ('assigned', 'running')
"""
EXPIRE = "update leases set expires_at = 'epoch' where jobs @> 2::bigint"
TARGETS = texts(["a", "b"])


@attrs.frozen
class Scene:
    main: Connection
    nodes: list[Connection]
    held: list[Claim] = attrs.field(factory=list[Claim])

    def begin(self, leased: int) -> None:
        """Jobs of all sorts, and so many of them leased: a narrow one and one of a target first."""
        self.main.execute(EMPTY.encode())
        jobs = [NewJob("narrow"), NewJob("wide", target="a"), NewJob("narrow"), NewJob("wide")]
        jobs += [NewJob(kind) for kind in ("narrow", "wide", "wide", "wide")]
        jobs += [NewJob("wide", target=target) for target in "abab"]
        Statement("enqueue", new_job_params(jobs)).run(self.main)
        *_, claim = claiming(leased, "claim_targets")
        (row,) = claim.run(self.main)
        self.held[:] = claims_and_findings(row, claim.params["token"], range(1, leased + 1))[0]
        assert len(self.held) == leased
        self.check()

    def fill(self) -> None:
        """Whatever has happened: what may run runs in the end."""
        for _ in range(4):
            for step in claiming(9, "claim_targets"):
                step.run(self.main)
        self.check()
        ((leased, *_),) = self.main.execute(LEASED.encode()).fetchall()
        assert leased == MOST

    def check(self) -> None:
        """What is committed now."""
        ((leased, narrow, aimed, targets),) = self.main.execute(LEASED.encode()).fetchall()
        assert leased <= MOST
        assert narrow <= 2
        assert aimed == targets


def claiming(workers: int, name: str) -> list[Statement]:
    idle = tuple(range(1, workers + 1))
    request = ClaimRequest(uuid4(), "n", idle, 0, LEASE_SECONDS, CAPS, MOST)
    params = claim_params(request)
    return [
        Statement("lock_caps", {"lock_ms": "0"}),
        Statement("unpark", params),
        Statement(name, params),
    ]


def settling(claim: Claim, state: JobState) -> list[Statement]:
    end = settlement_params([ending(claim, state, delay_seconds=None)])
    return [
        Statement("lock_targets", {"targets": TARGETS}),
        Statement("settle", end),
        Statement("hand_over", {"targets": TARGETS, "ring": False}),
    ]


def reaping() -> list[Statement]:
    rule = ReapRequest({}, ReapRule("requeue", 9), 10)
    reap = Statement("reap", {**reap_params(rule), "targeted": True})
    return [reap, Statement("hand_over", {"targets": TARGETS, "ring": True})]


def renewing(claim: Claim) -> list[Statement]:
    params = hold_params([Hold(claim.id, claim.token, None, None)])
    return [Statement("renew", {**params, "lease_seconds": LEASE_SECONDS})]


Make = Callable[[Claim], list[Statement]]
# Each of a session that holds this claim.
PROGRAMS: dict[str, Make] = {
    "claim": lambda _: claiming(3, "claim_with_limits"),
    "claim with targets": lambda _: claiming(3, "claim_targets"),
    "succeed and claim": lambda one: [
        *settling(one, JobState.SUCCEEDED), *claiming(3, "claim_targets"),
    ],
    "retry and claim": lambda one: [
        *settling(one, JobState.QUEUED), *claiming(3, "claim_with_limits"),
    ],
    "succeed": lambda one: settling(one, JobState.SUCCEEDED),
    "reap": lambda _: reaping(),
    "renew": renewing,
    "cancel": lambda one: [Statement("control", {"action": Action.CANCEL.value, "id": one.id})],
    "pause a waiting one": lambda _: [
        Statement("control", {"action": Action.PAUSE.value, "id": 5}),
        Statement("control", {"action": Action.RESUME.value, "id": 5}),
    ],
}  # fmt: skip
CLAIMING = ("claim", "claim with targets", "succeed and claim", "retry and claim")


@pytest.fixture
def scene(fresh_database: FreshDatabase) -> Generator[Scene]:
    with stopped_sessions(fresh_database(), 2) as (main, nodes):
        yield Scene(main, nodes)


@pytest.mark.parametrize("leased", [3, 4])
def test_no_commit_leaves_more_leased_than_may_be(scene: Scene, leased: int) -> None:
    claimed = 0
    for left, right in itertools.product(PROGRAMS, repeat=2):
        if left not in CLAIMING and right not in CLAIMING:
            continue
        stop = 0
        while True:
            stop += 1
            scene.begin(leased)
            scene.main.execute(EXPIRE.encode())
            first, second = PROGRAMS[left](scene.held[0]), PROGRAMS[right](scene.held[1])
            meet(scene, first, second, stop)
            ((attempts,),) = scene.main.execute(b"select sum(attempt) from live_jobs").fetchall()
            claimed += attempts - leased
            if stop == len(first):
                break
    assert claimed > 50


def meet(scene: Scene, first: list[Statement], second: list[Statement], stop: int) -> None:
    """The second session does all of its work while the first stands after `stop` statements."""
    own, other = scene.nodes
    for step in first[:stop]:
        step.run(own)
    running = Running(other, second).start()
    until_blocked_or_done(scene.main, running)
    scene.check()
    for step in first[stop:]:
        step.run(own)
    own.commit()
    scene.check()
    running.end()
    scene.check()
