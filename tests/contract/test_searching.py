"""Searches: what they find, in which order, how far one look comes, and where they begin."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Any, TypeVar

import attrs
import pytest

from musterd.store import searching
from musterd.store.jobs import JobFilter, JobRecord, NewJob
from musterd.store.lifecycle import ENDED, JobState
from musterd.store.searching import Search
from tests.contract.job_tools import ending, put, settle, take, take_one
from tests.contract.rigs import Rig

T = TypeVar("T")

LOST = '{"type": "ConnectionError", "message": "Connection to 10.0.0.7 lost"}'
FULL = '{"type": "OSError", "message": "no space left (100 %_\\\\ full)"}'


async def found(rig: Rig, **wanted: Any) -> list[int]:
    return [one.id for one in await rig.engine.jobs.find(JobFilter(**wanted))]


async def one_each(rig: Rig) -> None:
    """Jobs 1 to 6: failed twice, to be retried, succeeded, in hand, queued; ten minutes apart."""
    ends = [
        (JobState.FAILED, LOST), (JobState.FAILED, FULL), (JobState.QUEUED, LOST),
        (JobState.SUCCEEDED, None),
    ]  # fmt: skip
    for state, error in ends:
        await rig.engine.jobs.enqueue([NewJob("a", dedup_key="key")])
        await settle(rig.engine, ending(await take_one(rig.engine), state, error=error))
        if state is JobState.QUEUED:  # it keeps its key
            await rig.engine.jobs.enqueue([NewJob("b")])
            break
        rig.pass_time(600)
    await take_one(rig.engine)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("connection to", {1, 3}),
        ("CONNECTIONERROR: Connection", {1, 3}),
        ("%", {2}),
        ("_\\", {2}),
        ("no space", {2}),
        ("{", set[int]()),
        ("message", set[int]()),
    ],
)
async def test_an_error_is_found_by_words_of_its_type_and_message(
    rig: Rig, text: str, wanted: set[int]
) -> None:
    await one_each(rig)
    assert set(await found(rig, error=text)) == wanted
    failed = (JobState.FAILED,)
    assert set(await found(rig, error=text, states=failed)) == wanted - {3}


async def test_a_key_is_found_with_all_jobs_that_had_it(rig: Rig) -> None:
    await one_each(rig)
    assert await found(rig, dedup_key="key") == [3, 2, 1]
    assert await found(rig, dedup_key="key", states=(JobState.FAILED,)) == [2, 1]
    assert await found(rig, dedup_key="key", before_id=2) == [1]
    assert await found(rig, dedup_key="ke") == []


async def test_the_holder_of_a_key_is_found_however_many_jobs_are_newer(rig: Rig) -> None:
    (kept,) = await rig.engine.jobs.enqueue([NewJob("a", dedup_key="key")])
    await put(rig.engine, *[0] * 30)
    look = await rig.engine.jobs.look(JobFilter(dedup_key="key", span=5, limit=1))
    assert [one.id for one in look.jobs] == [kept]


async def test_jobs_are_found_by_when_they_were_made_or_ended(rig: Rig) -> None:
    for _ in range(3):
        await put(rig.engine, 0)
        rig.pass_time(3600)
    for claim in await take(rig.engine, workers=2):
        await settle(rig.engine, ending(claim))
    first, second, third = reversed(await rig.engine.jobs.find(JobFilter()))
    assert await found(rig, since=second.created_at) == [third.id, second.id]
    assert await found(rig, until=second.created_at) == [first.id]
    hour = timedelta(hours=1)
    between = {"since": first.created_at + hour / 2, "until": third.created_at}
    assert await found(rig, **between) == [second.id]
    assert await found(rig, **between, states=(JobState.QUEUED,)) == []
    assert await found(rig, since=third.created_at + hour / 2) == []
    assert await found(rig, until=first.created_at) == []
    assert first.finished_at is not None
    ended = {"since": first.finished_at, "by_end": True}
    assert await found(rig, **ended) == [second.id, first.id]
    assert await found(rig, **ended, until=first.finished_at) == []
    assert await found(rig, by_end=True, until=third.created_at + 2 * hour) == [second.id, first.id]


async def test_a_walk_begins_and_ends_where_the_time_says(rig: Rig) -> None:
    """So jobs of another day cost nothing, however many they are."""
    await put(rig.engine, *[0] * 40)
    rig.pass_time(86_400)
    middle = await put(rig.engine, 0, 0)
    rig.pass_time(86_400)
    await put(rig.engine, *[0] * 40)
    (last,) = await rig.engine.jobs.find(JobFilter(limit=1, before_id=middle[1] + 1))
    hour = timedelta(hours=1)
    since, until = last.created_at - hour, last.created_at + hour
    which = JobFilter(since=since, until=until, kind="report", span=10, limit=10)
    look = await rig.engine.jobs.look(which)
    assert [one.id for one in look.jobs] == middle[::-1]
    assert look.through_id is None


async def test_one_look_comes_by_so_many_jobs_and_no_more(rig: Rig) -> None:
    (rare,) = await put(rig.engine, 0, kind="rare")
    others = await put(rig.engine, *[0] * 25)
    which = JobFilter(kind="rare", span=10, limit=3)
    look = await rig.engine.jobs.look(which)
    assert (look.jobs, look.through_id, look.looked) == ([], others[-10], 10)
    listed = await rig.engine.jobs.find(JobFilter(limit=10))
    assert look.through_at == listed[-1].created_at
    look = await rig.engine.jobs.look(attrs.evolve(which, before_id=look.through_id))
    assert (look.jobs, look.through_id) == ([], others[-20])
    look = await rig.engine.jobs.look(attrs.evolve(which, before_id=look.through_id))
    assert ([one.id for one in look.jobs], look.through_id) == ([rare], None)


async def test_jobs_at_rest_are_found_along_their_index(rig: Rig) -> None:
    """Ten times as many jobs of other states lie between them as a look comes by."""
    seldom: list[int] = []
    for _ in range(3):
        (one,) = await rig.engine.jobs.enqueue([NewJob("a", hold=True)])
        seldom.append(one)
        await put(rig.engine, *[0] * 20)
    which = JobFilter(states=(JobState.PENDING, JobState.FAILED), kind="a", span=2, limit=2)
    look = await rig.engine.jobs.look(which)
    assert [one.id for one in look.jobs] == seldom[:0:-1]
    look = await rig.engine.jobs.look(attrs.evolve(which, before_id=look.through_id))
    assert ([one.id for one in look.jobs], look.through_id) == ([seldom[0]], None)


async def test_a_short_line_is_found_below_any_number_of_other_jobs(rig: Rig) -> None:
    await rig.engine.jobs.enqueue([NewJob("a", target="t")])
    await take_one(rig.engine)
    waiting = await rig.engine.jobs.enqueue(
        [NewJob("a", target="t"), NewJob("a", delay_seconds=600), NewJob("b")]
    )
    done = await put(rig.engine, *[9] * 30)
    for claim in await take(rig.engine, workers=len(done)):
        await settle(rig.engine, ending(claim, JobState.CANCELED))
    which = JobFilter(states=(JobState.QUEUED,), span=5, limit=5)
    look = await rig.engine.jobs.look(which)
    assert ([one.id for one in look.jobs], look.through_id) == (waiting[::-1], None)
    look = await rig.engine.jobs.look(attrs.evolve(which, kind="a", before_id=waiting[2]))
    assert [one.id for one in look.jobs] == waiting[1::-1]
    both = attrs.evolve(which, states=(JobState.QUEUED, JobState.RUNNING), limit=9, span=9)
    assert [one.id for one in (await rig.engine.jobs.look(both)).jobs] == [*waiting[::-1], 1]
    ended = attrs.evolve(which, states=(JobState.QUEUED, JobState.SUCCEEDED))
    assert (await rig.engine.jobs.look(ended)).jobs == []


STATES = tuple(JobState)


async def a_mixture(rig: Rig, rng: Random) -> list[JobRecord]:
    """Jobs of all sorts, newest first."""
    for _ in range(12):
        key = rng.choice([None, None, "k", "l"])
        made = [
            NewJob(rng.choice("ab"), hold=rng.random() < 0.2, dedup_key=key),
            *[NewJob(rng.choice("ab"), target=rng.choice([None, "t"])) for _ in range(3)],
        ]
        await rig.engine.jobs.enqueue(made)
        rig.pass_time(rng.choice([10, 300, 4000]))
        claims = await take(rig.engine, workers=2, ahead=1)
        for claim in claims[: rng.randint(0, 3)]:
            state = rng.choice([JobState.FAILED, JobState.CANCELED, JobState.SUCCEEDED])
            error = None if state is JobState.SUCCEEDED else rng.choice([LOST, FULL])
            await settle(rig.engine, ending(claim, state, error=error))
    return await rig.engine.jobs.find(JobFilter(limit=1_000))


def a_filter(rng: Random, moments: Sequence[datetime]) -> JobFilter:
    def perhaps(values: Sequence[T]) -> T | None:
        return rng.choice(values) if rng.random() < 0.3 else None

    since, until = perhaps(moments), perhaps(moments)
    return JobFilter(
        tuple(rng.sample(STATES, rng.choice([0, 0, 1, 2, 3]))),
        kind=perhaps("ab"), target=perhaps("tu"), dedup_key=perhaps("klm"),
        error=perhaps(["Lost", "space", "nothing"]), since=since, until=until,
        by_end=rng.random() < 0.3, span=rng.randint(1, 9), limit=rng.randint(1, 6),
        after_id=rng.choice([None, None, None, 0, 7, 30]),
    )  # fmt: skip


def fits(which: JobFilter) -> Callable[[JobRecord], bool]:
    """What a search means, in as many words."""

    def one(job: JobRecord) -> bool:
        at = job.finished_at if which.by_end else job.created_at
        return (
            (not which.states or job.state in which.states)
            and (which.after_id is None or job.id > which.after_id)
            and which.kind in (None, job.kind)
            and which.target in (None, job.target)
            and which.dedup_key in (None, job.dedup_key)
            and (which.error is None or which.error.lower() in (job.error or "").lower())
            and (not which.by_end or job.state in ENDED)
            and (which.since is None or (at is not None and at >= which.since))
            and (which.until is None or (at is not None and at < which.until))
        )

    return one


@pytest.mark.parametrize("seed", range(4))
async def test_looks_in_a_row_find_each_job_once_whatever_is_asked(rig: Rig, seed: int) -> None:
    rng = Random(seed)
    everything = await a_mixture(rig, rng)
    moments = [
        at for one in everything for at in (one.created_at, one.finished_at) if at is not None
    ]
    for _ in range(60):
        which = a_filter(rng, moments)
        wanted = [one.id for one in everything if fits(which)(one)]
        seen, asked = list[int](), which
        while True:
            look = await rig.engine.jobs.look(asked)
            assert len(look.jobs) <= which.limit
            seen += [one.id for one in look.jobs]
            if look.through_id is None:
                break
            assert asked.before_id is None or look.through_id < asked.before_id
            asked = attrs.evolve(asked, before_id=look.through_id)
        assert seen == wanted, which


async def test_a_search_ends_after_so_many_jobs_and_says_how_far_it_came(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "FIRST_SPAN", 4)
    monkeypatch.setattr(searching, "LOOKED_MAX", 20)
    (rare,) = await put(rig.engine, 0, kind="rare")
    others = await put(rig.engine, *[0] * 40)
    which = JobFilter(kind="rare", span=10)
    search = Search(rig.engine.jobs, which)
    assert await search.next(3) == []
    assert search.reach is not None
    assert (search.reach.looked, search.reach.before_id) == (24, others[-24])
    assert await search.next(3) == []
    further = Search(rig.engine.jobs, attrs.evolve(which, before_id=search.reach.before_id))
    assert [one.id for one in await further.next(3)] == [rare]
    assert further.reach is None
    hurried = Search(rig.engine.jobs, which, lambda: False)
    assert await hurried.next(3) == []
    assert hurried.reach is not None
    assert hurried.reach.looked == 4


async def test_a_search_gives_part_after_part(rig: Rig) -> None:
    made = await put(rig.engine, *[0] * 7)
    search = Search(rig.engine.jobs, JobFilter(kind="report"))
    parts = [[one.id for one in await search.next(3)] for _ in range(4)]
    assert parts == [made[:3:-1], made[3:0:-1], made[:1], []]
    assert search.reach is None
