"""Any two of the things that may happen to a job, at the same time: nothing that was asked for is
lost, the job has one end, and the counts stay exact.

On PostgreSQL the first one's transaction is held just before its commit while the second runs: it
waits, or passes the job by. The two must come to what they come to one after the other.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any, NamedTuple
from uuid import uuid4

import attrs
import psycopg
import pytest
import trio
from psycopg.conninfo import make_conninfo

from musterd.store.engine import Engine
from musterd.store.jobs import JobRecord, NewJob
from musterd.store.leases import Claim, ClaimRequest, Ends, Hold
from musterd.store.lifecycle import Action, AttemptOutcome, JobState
from tests.contract.job_tools import ending, reap_by, settle
from tests.contract.rigs import LEASE_SECONDS, SCHEMA, PostgresRig, Rig, closing_engine

REQUEUE = reap_by("requeue", 100, 100)
GATE = 4711  # the advisory lock at which the first one waits
LOOKS = 3000


@attrs.define
class Job:
    """A job and all claims of it. Holders act under the first one, stale or not."""

    id: int
    claims: list[Claim]


Happening = Callable[[Engine, Job], Awaitable[bool]]


async def _claim(engine: Engine, job: Job) -> bool:
    taken = await _taken(engine, LEASE_SECONDS)
    job.claims += taken
    return bool(taken)


async def _taken(engine: Engine, lease_seconds: float, ahead: int = 0) -> list[Claim]:
    request = ClaimRequest(uuid4(), "n", () if ahead else (1,), ahead, lease_seconds)
    return (await engine.leases.exchange(Ends(), request)).claims


async def _start(engine: Engine, job: Job) -> bool:
    hold = Hold(job.id, job.claims[0].token, 1, job.claims[0].claimed_epoch)
    return job.id in (await engine.leases.renew([hold], LEASE_SECONDS)).kept


def _settles(state: JobState, outcome: AttemptOutcome, *, forgive: bool = False) -> Happening:
    async def happen(engine: Engine, job: Job) -> bool:
        end = ending(job.claims[0], state, outcome, forgive=forgive)
        return not (await settle(engine, end)).rejected

    return happen


async def _reap(engine: Engine, job: Job) -> bool:
    return job.id in [one.id for one in await engine.leases.reap(REQUEUE)]


def _acts(action: Action) -> Happening:
    async def happen(engine: Engine, job: Job) -> bool:
        return (await engine.control.apply(action, job.id)).allowed

    return happen


# Expired: running, and its lease has run out.
P, Q, A, R, Z, F, X = *("pending", "queued", "assigned", "running", "paused", "failed"), "expired"

# What may happen, how, and from where it changes the job.
HAPPENINGS: dict[str, tuple[Happening, tuple[str, ...]]] = {
    "claim": (_claim, (Q,)),
    "start": (_start, (A, R)),
    "succeed": (_settles(JobState.SUCCEEDED, AttemptOutcome.SUCCEEDED), (A, R, X)),
    "retry": (_settles(JobState.QUEUED, AttemptOutcome.RETRYING), (A, R, X)),
    "give back": (_settles(JobState.QUEUED, AttemptOutcome.RELEASED, forgive=True), (A, R, X)),
    "reap": (_reap, (X,)),
    "cancel": (_acts(Action.CANCEL), (P, Q, A, R, X, Z)),
    "pause": (_acts(Action.PAUSE), (Q, A, R, X)),
    "resume": (_acts(Action.RESUME), (Z, F)),
    "release": (_acts(Action.RELEASE), (P,)),
    "clear": (_acts(Action.CLEAR), (Z, F)),
}
PASSING_BY = {"claim", "reap"}  # these never wait for a job that somebody else is writing to


async def make(engine: Engine, where: str) -> Job:
    """A job that stands there."""
    (job_id,) = await engine.jobs.enqueue([NewJob("a", hold=where == P)])
    if where == P:
        return Job(job_id, [Claim(job_id, "a", "{}", 1, None, 0, 0.0, 1, uuid4())])
    lease_seconds = 0.0 if where == X else LEASE_SECONDS
    (claim,) = await _taken(engine, lease_seconds, ahead=1 if where == A else 0)
    assert claim.id == job_id, "a job was left over"
    ends = {Q: JobState.QUEUED, Z: JobState.PAUSED, F: JobState.FAILED}
    if where in ends:
        await settle(engine, ending(claim, ends[where], forgive=where == Q))
    return Job(job_id, [claim])


class Stand(NamedTuple):
    """What can be seen of a job, but for times."""

    state: JobState
    request: str | None
    attempts: tuple[tuple[int, str | None], ...]
    is_cleared: bool


async def look(engine: Engine, job: Job) -> JobRecord:
    record = await engine.jobs.get(job.id)
    assert record is not None
    return record


async def stand(engine: Engine, job: Job) -> Stand:
    record = await look(engine, job)
    past = tuple((one.attempt, one.outcome and one.outcome.value) for one in record.attempts)
    return Stand(record.state, record.request, past, record.cleared_at is not None)


async def drive(engine: Engine, job: Job) -> JobRecord:
    """Lets the job come to rest: whoever holds it asks for a retry, what is queued is done."""
    for _ in range(3):
        record = await look(engine, job)
        if record.state in (JobState.ASSIGNED, JobState.RUNNING):
            await settle(engine, ending(job.claims[-1], JobState.QUEUED))
        elif record.state is JobState.QUEUED:
            (claim,) = await _taken(engine, LEASE_SECONDS)
            await settle(engine, ending(claim))
    return await look(engine, job)


class Pair(NamedTuple):
    where: str
    first: str
    second: str


def pairs_with(first: str) -> Iterator[Pair]:
    for where in HAPPENINGS[first][1]:
        for second in HAPPENINGS:
            yield Pair(where, first, second)


def check_end(pair: Pair, done: tuple[bool, bool], record: JobRecord) -> None:
    """The laws that hold whatever came first."""
    happened = {name for name, is_done in zip(pair[1:], done, strict=True) if is_done}
    told = f"{pair}, done {done}: {record}"
    numbers = [one.attempt for one in record.attempts]
    assert numbers == sorted(set(numbers)), told
    assert all(one.outcome is not None for one in record.attempts), told
    if "cancel" in happened and "succeed" not in happened:
        assert record.state is JobState.CANCELED, told
    elif "pause" in happened and not happened & {"cancel", "succeed", "clear", "resume"}:
        assert record.state is JobState.PAUSED, told
    elif (
        "succeed" in happened
        or happened <= {"claim", "start", "retry", "give back", "reap"}
        or happened in ({"resume"}, {"release"})
    ):
        assert record.state is JobState.SUCCEEDED, told


async def check_counts(rig: Rig) -> None:
    counted = (await rig.engine.queue.counts()).by_state
    there = dict(rig.raw(f"select state, count(*) from {rig.table} group by state"))
    assert {state.value: number for state, number in counted.items() if number} == there


@pytest.mark.parametrize("first", HAPPENINGS)
async def test_one_after_the_other(rig: Rig, first: str) -> None:
    for pair in pairs_with(first):
        job = await make(rig.engine, pair.where)
        done = [await HAPPENINGS[name][0](rig.engine, job) for name in pair[1:]]
        assert done[0], pair
        check_end(pair, (done[0], done[1]), await drive(rig.engine, job))
    await check_counts(rig)


class Both(NamedTuple):
    """Two sessions on one store. The first one's commits wait while the gate is shut."""

    first: Engine
    second: Engine
    watch: psycopg.Connection[Any]

    @contextmanager
    def shut(self) -> Generator[None]:
        self.watch.execute("select pg_advisory_lock(%s)", (GATE,))
        try:
            yield
        finally:
            self.watch.execute("select pg_advisory_unlock(%s)", (GATE,))

    async def settled(self, name: str, ended: trio.Event) -> bool:
        """Whether that session has ended what it was doing; else it waits for a lock."""
        for _ in range(LOOKS):
            if ended.is_set():
                return True
            waits = self.watch.execute(
                "select from pg_stat_activity where application_name = %s"
                " and wait_event_type = 'Lock' and datname = current_database()",
                (name,),
            )
            if waits.rowcount:
                return False
            await trio.sleep(0.0005)
        raise AssertionError(f"the {name} session neither ended nor waits")


@asynccontextmanager
async def two_sessions(rig: PostgresRig) -> AsyncGenerator[Both]:
    rig.raw(f"""
        create function {SCHEMA}.hold_commit() returns trigger language plpgsql as $$ begin
            if current_setting('application_name') = 'first' then
                perform pg_advisory_xact_lock_shared({GATE});
            end if;
            return null; end $$;
        create constraint trigger hold_commit_of_row after update on {SCHEMA}.job_rows
            deferrable initially deferred for each row execute function {SCHEMA}.hold_commit();
        create constraint trigger hold_commit_of_lease after insert or update on {SCHEMA}.leases
            deferrable initially deferred for each row execute function {SCHEMA}.hold_commit();
    """)
    urls = [make_conninfo(rig.url, application_name=name) for name in ("first", "second")]
    async with AsyncExitStack() as stack:
        engines = [PostgresRig(url).engine for url in urls]
        for engine in engines:
            await stack.enter_async_context(closing_engine(engine))
            await engine.open()
        with psycopg.connect(rig.url, autocommit=True) as watch:
            yield Both(engines[0], engines[1], watch)


class Came(NamedTuple):
    done: tuple[bool, bool]
    second_waited: bool


async def at_once(both: Both, pair: Pair, job: Job) -> Came:
    done: dict[str, bool] = {}

    async def happen(name: str, engine: Engine, ended: trio.Event, what: str) -> None:
        done[name] = await HAPPENINGS[what][0](engine, job)
        ended.set()

    first_ended, second_ended = trio.Event(), trio.Event()
    async with trio.open_nursery() as nursery:
        with both.shut():
            nursery.start_soon(happen, "first", both.first, first_ended, pair.first)
            assert not await both.settled("first", first_ended), f"{pair}: nothing to hold"
            nursery.start_soon(happen, "second", both.second, second_ended, pair.second)
            second_waited = not await both.settled("second", second_ended)
    return Came((done["first"], done["second"]), second_waited)


@pytest.mark.parametrize("first", HAPPENINGS)
async def test_two_at_once(postgres_rig: PostgresRig, first: str) -> None:
    async with two_sessions(postgres_rig) as both:
        calm = both.second
        for pair in pairs_with(first):
            job = await make(calm, pair.where)
            came = await at_once(both, pair, job)
            seen = await stand(calm, job)
            check_end(pair, came.done, await drive(calm, job))

            twin = await make(calm, pair.where)
            alone = await HAPPENINGS[pair.first][0](calm, twin)
            if came.done[1] or pair.second not in PASSING_BY:
                after = await HAPPENINGS[pair.second][0](calm, twin)
                assert came.done == (alone, after), pair
            assert pair.second not in PASSING_BY or not came.second_waited, pair
            assert seen == await stand(calm, twin), pair
            await drive(calm, twin)
    await check_counts(postgres_rig)
