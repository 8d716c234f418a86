"""Two sessions at one target, each stopped after each of its statements: nobody waits for ever,
nothing is lost, and every job comes to its end.
"""

import itertools
import threading
import time
from collections.abc import Callable, Generator, Sequence
from typing import Any
from uuid import UUID, uuid4

import attrs
import psycopg
import pytest
import trio

from musterd.store.jobs import NewJob
from musterd.store.leases import Claim, ClaimRequest, Settlement
from musterd.store.lifecycle import Action, JobState
from musterd.store.postgres.claiming import claim_params, claims_and_findings
from musterd.store.postgres.exchanges import settlement_params
from musterd.store.postgres.jobs import new_job_params
from musterd.store.postgres.leases import reap_params
from musterd.store.postgres.migrating import PACKAGE
from musterd.store.postgres.statements import Params, fill, texts
from musterd.store.sqlfiles import load_statements
from tests.contract.job_tools import ending
from tests.contract.rigs import LEASE_SECONDS, SCHEMA, PostgresRig
from tests.contract.sessions import migrate
from tests.contract.target_tools import check, rule
from tests.fix_postgres import FreshDatabase

SQL = {name: fill(text, SCHEMA).encode() for name, text in load_statements(PACKAGE).items()}
PATIENCE_SECONDS = 5.0
EMPTY = "truncate job_rows, attempts, target_holders, count_changes, event_drafts restart identity"
TARGETS = texts(["t"])
EXPIRE = b"update leases set expires_at = 'epoch'"
BLOCKED = b"select cardinality(pg_blocking_pids(%s)) > 0"
UNENDED = "select id, state from live_jobs where state not in ('succeeded', 'canceled')"

Connection = psycopg.Connection[Any]
Step = Callable[[Connection], Any]


@attrs.define
class Scene:
    """A store with a few jobs of one target, brought to where two sessions meet."""

    rig: PostgresRig
    main: Connection
    table: str = "live_jobs"
    held: dict[int, Claim] = attrs.field(factory=dict[int, Claim])

    def begin(self) -> None:
        self.main.execute(f"set search_path = {SCHEMA}".encode())
        self.main.execute(EMPTY.encode())
        self.held.clear()

    def raw(self, sql: str) -> list[tuple[Any, ...]]:
        return self.main.execute(sql.encode()).fetchall()

    def put(self, count: int, **more: Any) -> None:
        run(self.main, "enqueue", new_job_params([NewJob("a", target="t", **more)] * count))

    def claim(self) -> list[Claim]:
        """Until nothing is in its way any more."""
        found: list[Claim] = []
        for _ in range(5):
            token = uuid4()
            (row,) = run(self.main, "claim_targets", claiming(token)).fetchall()
            claims, rest = claims_and_findings(row, token, (1, 2, 3))
            found += claims
            if not rest.aside:
                break
        self.held.update((one.id, one) for one in found)
        return found

    def prepare(self, operations: Sequence[str]) -> None:
        self.put(3)
        for operation in operations:
            if operation == "claim all":
                self.claim()
                continue
            for step in OPERATIONS[operation](self):
                step(self.main)
            self.held.clear()

    def drain(self) -> None:
        """Whatever stands in the way of the others is cleared."""
        self.main.execute(b"update job_rows set run_at = least(run_at, clock_timestamp())")
        for _ in range(20):
            left = self.raw(UNENDED)
            if not left:
                return
            for job_id, state in left:
                if state in ("paused", "failed"):
                    control(self.main, Action.CLEAR, job_id)
                elif state == "pending":
                    control(self.main, Action.RELEASE, job_id)
            found = [(one.id, one) for one in self.mine()]
            for job_id, claim in found:
                for step in settling([ending(claim)]):
                    step(self.main)
                self.held.pop(job_id, None)
            self.claim()
            if all(state == "failed" for _, state in left):
                return  # cleared ones stay failed
        pytest.fail(f"stuck: {self.raw(UNENDED)}")

    def mine(self) -> list[Claim]:
        """The claims that stand, whoever made them."""
        leased = self.main.execute(
            b"select id, claim_token, attempt from live_jobs where state in ('assigned', 'running')"
        ).fetchall()
        return [
            Claim(job_id, "a", "{}", attempt, None, 0, 0.0, 1, token, None, "t")
            for job_id, token, attempt in leased
        ]


def run(conn: Connection, name: str, params: Params) -> psycopg.Cursor[Any]:
    return conn.cursor(binary=True).execute(SQL[name], params)


def control(conn: Connection, action: Action, job_id: int) -> None:
    run(conn, "control", {"action": action.value, "id": job_id})


def claiming(token: UUID) -> Params:
    return claim_params(ClaimRequest(token, "n", (1, 2, 3), 0, LEASE_SECONDS))


def settling(ended: Sequence[Settlement]) -> list[Step]:
    targets = {"targets": TARGETS}
    return [
        lambda conn: run(conn, "lock_targets", targets),
        lambda conn: run(conn, "settle", settlement_params(ended)),
        lambda conn: run(conn, "hand_over", {**targets, "ring": False}),
    ]


def claim_steps(scene: Scene) -> list[Step]:
    return [lambda conn: run(conn, "claim_targets", claiming(uuid4())).fetchall()]


def settle_steps(state: JobState, *, claims: bool) -> Callable[[Scene], list[Step]]:
    def steps(scene: Scene) -> list[Step]:
        ended = [ending(one, state, delay_seconds=None) for one in scene.held.values()]
        return settling(ended) + (claim_steps(scene) if claims else [])

    return steps


def control_steps(action: Action, job_id: int) -> Callable[[Scene], list[Step]]:
    """The first is what the function begins with: to stand in the middle of it."""
    return lambda _scene: [
        lambda conn: run(conn, "lock_targets", {"targets": TARGETS}),
        lambda conn: control(conn, action, job_id),
    ]


def reap_steps(_scene: Scene) -> list[Step]:
    params = {**reap_params(rule()), "targeted": True}
    found: list[Any] = []

    def hand_over(conn: Connection) -> None:
        targets = texts(sorted({row[5] for row in found}))
        run(conn, "hand_over", {"targets": targets, "ring": True})

    return [lambda conn: found.extend(run(conn, "reap", params).fetchall()), hand_over]


def enqueue_steps(_scene: Scene) -> list[Step]:
    new = new_job_params([NewJob("a", target="t", priority=1)])
    return [lambda conn: run(conn, "enqueue", new)]


OPERATIONS: dict[str, Callable[[Scene], list[Step]]] = {
    "claim": claim_steps,
    "succeed": settle_steps(JobState.SUCCEEDED, claims=False),
    "succeed and claim": settle_steps(JobState.SUCCEEDED, claims=True),
    "retry": settle_steps(JobState.QUEUED, claims=True),
    "give back": settle_steps(JobState.QUEUED, claims=False),
    "fail": settle_steps(JobState.FAILED, claims=False),
    "reap": reap_steps,
    "enqueue": enqueue_steps,
    **{
        f"{action.value} {job_id}": control_steps(action, job_id)
        for action, job_id in [
            (Action.CANCEL, 1), (Action.PAUSE, 1), (Action.RESUME, 1), (Action.CLEAR, 1),
            (Action.CANCEL, 2), (Action.PAUSE, 2), (Action.RESUME, 2),
        ]
    },
}  # fmt: skip

# How it stands when two meet, and what then makes a difference.
SCENES: dict[str, tuple[tuple[str, ...], str]] = {
    "free": ((), "claim, enqueue, cancel 1, pause 1, pause 2"),
    "one runs": (
        ("claim all",),
        "claim, succeed, succeed and claim, retry, reap, enqueue, cancel 1, pause 1, pause 2",
    ),
    "one waits for its retry": (
        ("claim all", "give back"),
        "claim, enqueue, cancel 1, pause 1, cancel 2, pause 2",
    ),
    "one has failed": (
        ("claim all", "fail"),
        "claim, enqueue, resume 1, clear 1, cancel 2, pause 2",
    ),
    "the next one is not yet claimed": (
        ("claim all", "succeed"),
        "claim, enqueue, cancel 2, pause 2",
    ),
    "a waiting one is paused": (
        ("pause 2",),
        "claim, enqueue, cancel 1, cancel 2, resume 2, pause 1",
    ),
}


@pytest.fixture
def scene(fresh_database: FreshDatabase) -> Generator[Scene]:
    rig = PostgresRig(fresh_database())
    trio.run(migrate, rig)
    with psycopg.connect(rig.url, autocommit=True) as main:
        yield Scene(rig, main)


@pytest.mark.parametrize("name", SCENES)
def test_whatever_meets_goes_on(scene: Scene, name: str) -> None:
    before, operations = SCENES[name]
    met = 0
    with (
        psycopg.connect(scene.rig.url) as first,
        psycopg.connect(scene.rig.url) as second,
    ):
        for left, right in itertools.product(operations.split(", "), repeat=2):
            stops = len(OPERATIONS[left](scene))
            for stop in range(1, stops + 1):
                scene.begin()
                scene.prepare(before)
                scene.main.execute(EXPIRE)
                meet(scene, (first, second), (left, right), stop)
                check(scene)
                scene.drain()
                assert scene.raw("select count(*) from target_holders") == [(0,)]
                met += 1
    assert met > 10


def meet(
    scene: Scene, sessions: tuple[Connection, Connection], names: tuple[str, str], stop: int
) -> None:
    """The second session does all of its work while the first stands after `stop` statements."""
    first, second = sessions
    steps, others = (OPERATIONS[name](scene) for name in names)
    wrong: list[Exception] = []

    def work() -> None:
        try:
            for other in others:
                other(second)
            second.commit()
        except (psycopg.Error, AssertionError) as error:
            second.rollback()
            wrong.append(error)

    for step in steps[:stop]:
        step(first)
    thread = threading.Thread(target=work)
    thread.start()
    wait_until(lambda: not thread.is_alive() or is_blocked(scene.main, second))
    for step in steps[stop:]:
        step(first)
    first.commit()
    thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive(), f"{names} after {stop}: still waiting"
    assert wrong == [], f"{names} after {stop}"


def is_blocked(main: Connection, conn: Connection) -> bool:
    row = main.execute(BLOCKED, [conn.info.backend_pid]).fetchone()
    assert row is not None
    return bool(row[0])


def wait_until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.001)
