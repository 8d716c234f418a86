"""A history: all take turns at once, troubles come, all comes to rest, the checker judges."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import trio

from musterd.catalog.kinds import Catalog
from musterd.store.leases import ClaimRequest, Ends
from musterd.store.lifecycle import Action
from musterd.store.postgres.engine import PostgresEngine
from tests.checker.verdict import judge
from tests.histories.chores import SCHEDULE, Chores, reaping
from tests.histories.ground import MISPLACED, Ground, Seat
from tests.histories.line import Line
from tests.histories.nodes import Node, patiently
from tests.histories.plan import Plan
from tests.histories.troubles import make
from tests.histories.users import User
from tests.simulation.closing import UNFINISHED, Remains, write_down
from tests.simulation.kinds import catalog_of, settings_of
from tests.simulation.recording import Recorder
from tests.simulation.world import Finding

RECORDS = (
    *("clients", "claims", "duties", "schedules", "outbox", "handlers", "events"),
    *("faults", "jobs", "messages", "duty_rows", "schedule_rows", "counts"),
)
MAIN_SECONDS = 20.0  # turns take less, unless somebody waits for ever
END_SECONDS = 15.0
END_LEASE_SECONDS = 10.0  # of who works off what is left
PAUSES = (0.0, 0.0, 0.001, 0.004)
PATIENCE_SECONDS = 0.005  # until somebody asks again whom the store has refused
STATEMENT_SECONDS = 2.0
JOBS_EACH = 1000  # numbers of a user's jobs


@attrs.frozen
class Result:
    """Small enough to be handed from process to process, but for the history of a failure."""

    seed: int
    violated: list[str]
    story: str
    operations: int
    jobs: int
    met: Counter[str]  # troubles, and operations of which nobody knows
    seconds: float
    lines: list[str]


class Story:
    """Of one plan, as it happens. `running`: who speaks over which seat, and ends with it."""

    def __init__(self, ground: Ground, plan: Plan) -> None:
        self.ground, self.plan = ground, plan
        self.began = trio.current_time()
        self.settings = settings_of({})
        self.catalog: Catalog = catalog_of(self.settings, {"capped": None, **plan.caps})
        self.recorder = Recorder(trio.current_time, commits=False, **self._header())
        self.findings: list[Finding] = []
        self.met: Counter[str] = Counter()
        self.operations = 0
        self.jobs: list[int] = []
        self.killed: Counter[int] = Counter()  # by seat
        self.engines: list[PostgresEngine] = []
        self._to_come = list(plan.troubles)
        self._nursery: trio.Nursery

    def _header(self) -> dict[str, Any]:
        plan, retry = self.plan, self.settings.retry
        caps = dict(plan.caps) | ({"": plan.leased_max} if plan.leased_max else {})
        keep = dict.fromkeys(("succeeded", "failed", "canceled"), plan.retention_seconds)
        return {
            "records": sorted(RECORDS),
            "lease_seconds": plan.lease_seconds,
            "statement_seconds": STATEMENT_SECONDS,
            "caps": caps,
            "budgets": {"": retry.max_retries + 1},
            "retention": keep,
            "schedules": True,
            "bounds": {"end": END_SECONDS - 2.0},
        }

    def line(self, seat: Seat, who: str, impatience: float) -> Line:
        engine = seat.engine()
        self.engines.append(engine)
        rng = self.plan.rng(f"{who} {len(self.engines)}")
        # As of one that has met no limits for long, or just has.
        engine.leases.exchanger.claimer._limits = rng.choice((0, 50))  # pyright: ignore[reportPrivateUsage]
        line = Line(engine, who, self.recorder, self._asked)
        line.impatience, line.rng = impatience, rng
        return line

    def _asked(self, operation: str) -> None:
        """Troubles come after so many."""
        del operation
        self.operations += 1
        while self._to_come and self._to_come[0].after < self.operations:
            self._nursery.start_soon(make, self, self._to_come.pop(0))

    async def live(self) -> None:
        self.ground.begin_anew()
        with trio.move_on_after(MAIN_SECONDS) as limit:
            await self._take_part()
        if limit.cancelled_caught:
            self.findings.append(Finding("stuck", f"no end of it in {MAIN_SECONDS:g} s"))
        self._to_come.clear()
        for step in (self._heal, self._bring_to_an_end, self._write_down):
            await self._watched("the end", step)
        for one in self.engines:
            await one.close()

    # -- who takes part

    async def _take_part(self) -> None:
        async with trio.open_nursery() as self._nursery:
            for number in range(self.plan.nodes):
                self._nursery.start_soon(self._node, number)
            for number in range(self.plan.users):
                self._nursery.start_soon(self._user, number)

    async def _user(self, number: int) -> None:
        seat = self.plan.nodes + number
        line = self.line(self.ground.seats[seat], f"client:c{number}", self.plan.impatience)
        user = User(line, self.plan.rng(line.who), self.jobs, JOBS_EACH * number)
        await self._take_turns(line.who, user.turn, self.plan.turns, lambda: True)

    async def _node(self, number: int) -> None:
        """One process after the other, of the same name."""
        left, seat = self.plan.turns, self.ground.seats[number]
        while left > 0:
            died = self.killed[number]
            line = self.line(seat, f"node:n{number}", self.plan.impatience)
            rng = self.plan.rng(f"{line.who} {died} work")
            node = Node(f"n{number}", line, rng, self.plan, self.catalog)
            chores = Chores(node, node.token())
            taken = list[int]()

            def lives(died: int = died, taken: list[int] = taken) -> bool:
                taken.append(1)
                return self.killed[number] == died

            async with trio.open_nursery() as both:
                both.start_soon(self._take_turns, line.who, node.turn, left, lives)
                both.start_soon(self._take_turns, line.who, chores.turn, left, lives)
            left -= max(1, len(taken) // 2)

    async def _take_turns(
        self, who: str, turn: Callable[[], Awaitable[object]], count: int, lives: Callable[[], bool]
    ) -> None:
        rng = self.plan.rng(f"{who} pauses {count}")
        for _ in range(count):
            if not lives():
                return
            if not await self._watched(who, lambda: self._turn(turn)):
                return
            await trio.sleep(rng.choice(PAUSES))

    async def _turn(self, turn: Callable[[], Awaitable[object]]) -> None:
        if not await patiently(turn, PATIENCE_SECONDS):
            self.met["not taken or unknown"] += 1

    async def _watched(self, who: str, step: Callable[[], Awaitable[object]]) -> bool:
        """False = it ended in an error that nothing that is asked may end in."""
        try:
            await step()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told
            told = "".join(traceback.format_exception(error))
            self.findings.append(Finding("crash", f"{who}: {told}"))
            return False
        return True

    # -- how it ends

    async def _heal(self) -> None:
        """What was on its way comes to its end before it is calm."""
        for seat in self.ground.seats:
            assert seat.proxy is not None
            seat.proxy.be_well()
        if not await self.ground.come_to_rest():
            self.findings.append(Finding("stuck", "statements are under way, and do not end"))
        self.recorder.note("fault", what="heal")

    async def _bring_to_an_end(self) -> None:
        """One node does all that is left."""
        line = self.line(self.ground.calm, "node:last", 0.0)
        last = Node("last", line, self.plan.rng("last"), self.plan, self.catalog)
        deadline = trio.current_time() + END_SECONDS
        await line.queue.resume()
        for (job,) in self.ground.ask("select id from live_jobs where state = 'paused'"):
            if last.rng.random() < 0.5:
                await line.control.apply(Action.RESUME, job)
        unfinished = UNFINISHED.replace("job_rows", "live_jobs")
        while self.ground.ask(unfinished) != [(0,)] and trio.current_time() < deadline:
            await patiently(lambda: self._work_off(last), PATIENCE_SECONDS)

    async def _work_off(self, last: Node) -> None:
        plan, line = self.plan, last.line
        await line.leases.reap(reaping(last))
        claim = ClaimRequest(
            last.token(), last.name, tuple(range(1, 21)), 0, END_LEASE_SECONDS,
            tuple(plan.caps.items()), plan.leased_max,
        )  # fmt: skip
        plain = list(last.held.values())
        last.held.clear()
        ends = Ends([one.settled(last.verdict_in_the_end(one)) for one in plain])
        done = await line.leases.exchange(ends, claim)
        last.take(done.claims)
        if not done.claims:
            await trio.sleep(PATIENCE_SECONDS)

    async def _write_down(self) -> None:
        engine = self.engines[-1]
        await write_down(Remains(engine, self.recorder, self.ground.moment, (SCHEDULE,)))
        for job_id, fault in self.ground.ask(MISPLACED):
            self.findings.append(Finding("check", f"job {job_id} {fault}"))

    def result(self) -> Result:
        lines = self.recorder.lines()
        judgement = judge(lines)
        stories = [f"{one.what}: {one.story}" for one in self.findings]
        stories += [f"{one.invariant}: {one.story}" for one in judgement.violations[:3]]
        violated = sorted(judgement.violated | {one.what for one in self.findings})
        seconds = trio.current_time() - self.began
        self.met["unknown"] += sum('"status":"unknown"' in line for line in lines)
        jobs = sum(line.startswith('{"record":"final.job"') for line in lines)
        return Result(
            self.plan.seed, violated, "\n".join(stories), self.operations, jobs, self.met,
            seconds, lines if violated else [],
        )  # fmt: skip


async def run(ground: Ground, plan: Plan) -> Result:
    story = Story(ground, plan)
    await story.live()
    return story.result()
