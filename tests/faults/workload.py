"""What clients ask for, all the while: jobs of all sorts, and now and then that one be canceled,
paused, resumed, released. Each request and what came of it is written down.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any, Self

import psycopg

from musterd import Client
from musterd.store.errors import NoSuchJob, NotAllowed, OutcomeUnknown, StoreUnavailable
from musterd.store.postgres.client import PatientConnection
from tests.faults.recording import Recorder
from tests.faults.sizes import Mix

KEYS_MAX = 40
RECENT = 400
MANY = 5  # jobs in one request, now and then
MANY_SHARE = 0.05
ANSWER_SECONDS = 6.0
# What halts its target, or waits for somebody to let it go on.
HALTED = """
    select id, state from musterd.jobs where state in ('paused', 'pending')
    or (state = 'failed' and target is not null and cleared_at is null) order by id limit 200
"""
UNFINISHED = """
    select count(*) from musterd.jobs where state not in ('succeeded', 'failed', 'canceled')
"""
LEFT = """
    select (select count(*) from musterd.jobs
            where state not in ('succeeded', 'failed', 'canceled'))
         + (select count(*) from musterd.webhooks where state = 'waiting')
"""


class Workload:
    """Enqueues at a steady rate while the block lasts, or until `stop_enqueueing`."""

    def __init__(self, recorder: Recorder, url: str, seed: int, mix: Mix, hook: str) -> None:
        self._recorder = recorder
        self._url = url
        self._mix = mix
        self._hook = hook
        self._recent: deque[int] = deque(maxlen=RECENT)
        self._known: set[tuple[int, str]] = set()  # a job and its key, as some client was told
        self._keys: deque[tuple[str, dict[str, Any]]] = deque(maxlen=KEYS_MAX)
        self._full = threading.Event()  # no more jobs
        self._is_crowded = False
        self._over = threading.Event()
        self.troubles: list[BaseException] = []
        self._told = 0
        self._counting = threading.Lock()
        self._pause = 2 * mix.batch / mix.jobs_a_second  # of each of the two that enqueue
        works = (self._enqueue, self._enqueue, self._control)
        self._threads = [
            threading.Thread(
                target=self._guarded, args=(work, f"c{number}", Random(f"{seed} {number}"))
            )
            for number, work in enumerate(works, start=1)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._full.set()
        self._over.set()
        for thread in self._threads:
            thread.join()

    def stop_enqueueing(self) -> None:
        self._full.set()
        for thread in self._threads[:2]:
            thread.join()

    def _guarded(self, work: Callable[[str, Random], None], who: str, rng: Random) -> None:
        try:
            work(who, rng)
        except BaseException as error:
            self.troubles.append(error)
            raise

    def _client(self) -> Client:
        return Client(self._url, pool_size=1, answer_seconds=ANSWER_SECONDS)

    def _enqueue(self, who: str, rng: Random) -> None:
        number = 0
        with self._client() as client:
            while not self._full.wait(rng.expovariate(1 / self._pause)):
                number += 1
                if self._is_crowded:
                    continue
                if self._mix.batch == 1 and rng.random() > MANY_SHARE:
                    self._ask(client, who, self._drawn(rng, f"{who}-{number}"))
                    continue
                count = max(MANY, self._mix.batch)
                jobs = [self._drawn(rng, f"{who}-{number}.{one}") for one in range(count)]
                self._ask_many(client, who, jobs)

    def _drawn(self, rng: Random, name: str) -> dict[str, Any]:
        """A job, as the options of `enqueue` say it."""
        if self._keys and rng.random() < 0.08:
            return dict(rng.choice(list(self._keys))[1])
        payload: dict[str, Any] = {"n": name, "ms": rng.choice(self._mix.milliseconds)}
        if rng.random() < self._mix.slow_share:
            payload["ms"] = 3000
        if rng.random() < 0.15:
            payload["fails"] = rng.choice((1, 1, 2, 9, 20))
        job: dict[str, Any] = {"kind": rng.choice(self._mix.kinds), "payload": payload}
        if rng.random() < 0.15:
            job["target"] = f"t{rng.randrange(self._mix.targets)}"
        if rng.random() < 0.3:
            job["priority"] = rng.choice((-5, 1, 9))
        if rng.random() < 0.1:
            job["delay_seconds"] = round(rng.uniform(0.1, 3), 3)
        if rng.random() < 0.03:
            job["hold"] = True
        if rng.random() < 0.05:
            job["webhook"] = self._hook
        if rng.random() < 0.1:
            job["dedup_key"] = f"k-{name}"
            job["dedup_scope"] = rng.choice(("until_finished", "forever"))
            self._keys.append((job["dedup_key"], job))
        return job

    def _ask(self, client: Client, who: str, job: dict[str, Any]) -> None:
        call = self._called(who, job)
        options = {key: value for key, value in job.items() if key not in ("kind", "payload")}
        try:
            made = client.enqueue(job["kind"], job["payload"], **options)
        except StoreUnavailable as error:
            self._recorder.reply(call, status_of(error))
        else:
            self._answered(call, job, made)

    def _ask_many(self, client: Client, who: str, jobs: list[dict[str, Any]]) -> None:
        calls = [self._called(who, job) for job in jobs]
        try:
            made = client.enqueue_many(jobs)
        except StoreUnavailable as error:
            for call in calls:
                self._recorder.reply(call, status_of(error))
        else:
            for call, job, job_id in zip(calls, jobs, made, strict=True):
                self._answered(call, job, job_id)

    def _called(self, who: str, job: dict[str, Any]) -> int:
        asked = {**job, "webhook": True} if "webhook" in job else job
        return self._recorder.call("enqueue", who, **asked)

    def _answered(self, call: int, job: dict[str, Any], job_id: int) -> None:
        """What is told for a key a second time is the first one's job."""
        key = job.get("dedup_key")
        is_new = True
        if key is not None:
            is_new = (job_id, key) not in self._known
            self._known.add((job_id, key))
        self._recorder.reply(call, "ok", job=job_id, new=is_new)
        self._recent.append(job_id)
        with self._counting:
            self._told += 1

    def wait_until_told(self, jobs: int, at_most_seconds: float) -> None:
        """Until clients have been told of so many more."""
        until, wanted = time.monotonic() + at_most_seconds, self._told + jobs
        while self._told < wanted:
            assert time.monotonic() < until, f"{wanted - self._told} of {jobs} jobs still not told"
            time.sleep(0.05)

    def _control(self, who: str, rng: Random) -> None:
        with self._client() as client:
            while not self._over.wait(rng.expovariate(self._mix.controls_a_second)):
                if self._recent and not self._full.is_set() and rng.random() < 0.6:
                    action = rng.choice(("cancel", "pause", "pause", "resume"))
                    self._act(client, who, action, self._chosen(rng))
                else:
                    self._see_to_halted(client, who, rng)

    def _chosen(self, rng: Random) -> int:
        """Rather one that is young, and may still wait or run."""
        ids = list(self._recent)
        return ids[-1 - min(int(rng.expovariate(0.1)), len(ids) - 1)]

    def _see_to_halted(self, client: Client, who: str, rng: Random) -> None:
        try:
            connecting = PatientConnection.connect(self._url, autocommit=True, connect_timeout=3)
            with connecting as session:
                session.answer_seconds = ANSWER_SECONDS  # the line may let bytes vanish
                session.execute("set statement_timeout = '2s'")
                found = session.execute(HALTED).fetchall()
                crowd = session.execute(UNFINISHED).fetchone()
        except psycopg.Error:
            return  # the store is away: at the next time
        self._is_crowded = crowd is not None and crowd[0] > self._mix.crowd
        share = 1.0 if self._full.is_set() else 0.3
        for job_id, state in found:
            if rng.random() < share and not self._over.is_set():
                self._act(client, who, self._remedy(state, rng), job_id)

    def _remedy(self, state: str, rng: Random) -> str:
        if state == "pending":
            return "release"
        if state == "paused":
            return "resume" if rng.random() < 0.9 else "clear"
        return "clear" if self._full.is_set() else rng.choice(("clear", "resume"))

    def _act(self, client: Client, who: str, action: str, job_id: int) -> None:
        call = self._recorder.call(action, who, job=job_id)
        try:
            state = getattr(client, action)(job_id)
        except (NotAllowed, NoSuchJob):
            self._recorder.reply(call, "refused")
        except StoreUnavailable as error:
            self._recorder.reply(call, status_of(error))
        else:
            asked = state in ("assigned", "running")
            self._recorder.reply(call, "ok", state=state, asked=asked)


def status_of(error: StoreUnavailable) -> str:
    """What is promised: only of an unknown outcome something may have been written."""
    return "unknown" if isinstance(error, OutcomeUnknown) else "refused"


def all_ended(url: str, seconds: float) -> bool:
    """Whether in that time all jobs have ended, and all messages about them were delivered."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not left_to_do(url):
            return True
        time.sleep(0.2)
    return False


def left_to_do(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as session:
        row = session.execute(LEFT).fetchone()
    assert row is not None
    return int(row[0])
