"""The machine: what may be done to a store in any order, and what must be true after each step."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import uuid4

import trio
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from musterd.store.control import Selection, states_for
from musterd.store.leases import ClaimRequest
from musterd.store.lifecycle import Action, JobState
from tests.contract.rigs import LEASE_SECONDS, START
from tests.stateful import checks
from tests.stateful.lockstep import NODE, Asked, Lockstep, Visited
from tests.stateful.model import Model
from tests.stateful.model_job import LEASED, Held, Verdict
from tests.stateful.model_line import Wanted
from tests.stateful.stores import Store

Q, Z, S, F, C = (JobState(one) for one in ("queued", "paused", "succeeded", "failed", "canceled"))
KINDS = ("plain", "narrow", "video")
PHASES = ("one", "two", "three", "four")
WANTED = st.builds(
    Wanted,
    kind=st.sampled_from(KINDS),
    target=st.sampled_from((None, "t", "u")),
    priority=st.sampled_from((0, 0, 1, -1)),
    delay_seconds=st.sampled_from((None, None, None, 20.0)),
    hold=st.sampled_from((False, False, False, True)),
    key=st.sampled_from((None, None, None, "k")),
    scope=st.sampled_from(("until_finished", "forever", 50.0)),
    max_attempts=st.sampled_from((None, None, 1, 3)),
)
VERDICTS = st.sampled_from((
    Verdict(S, "succeeded"),
    Verdict(S, "succeeded", finishes="four"),
    Verdict(Q, "retrying"),
    Verdict(Q, "retrying", delay_seconds=0.0),
    Verdict(Q, "retrying", delay_seconds=20.0, percent=60.0),
    Verdict(Q, "retrying", finishes="one"),
    Verdict(F, "failed"),
    Verdict(F, "failed", percent=50.0),
    Verdict(Q, "snoozed", forgive=True, delay_seconds=20.0),
    Verdict(Q, "released", forgive=True, has_started=False),
    Verdict(Q, "released", forgive=True, delay_seconds=0.0),
    Verdict(C, "canceled"),
    Verdict(C, "canceled", has_started=False),
    Verdict(Z, "paused", forgive=True),
))  # fmt: skip
NTH = st.integers(0, 11)  # which of those that there are, the live ones first
FORGED = st.sampled_from((False, False, False, True))  # under a token that nobody was given
ACTIONS = st.sampled_from(Action)
ON_LOST = st.sampled_from(("requeue", "fail", "pause"))
CAPS = st.sampled_from(({}, {"narrow": 1}, {"narrow": 2}, {"narrow": 1, "plain": 2}))


class Machine(RuleBasedStateMachine):
    """All stores are asked the same; what they say is compared with what the model says."""

    def __init__(self, stores: Sequence[Store]) -> None:
        super().__init__()
        one, other = (Asked(store, place) for place, store in enumerate(stores))
        self.both = Lockstep((one, other))
        self.stores = stores
        self.model = Model(START)
        self.held: list[Held] = []
        self.settled: dict[tuple[int, int], tuple[Held, Verdict, bool]] = {}  # by its holder
        self.is_sound = True
        self.aims = True

    def expect(self, expected: Any, what: str, call: Callable[[Asked], Awaitable[Any]]) -> None:
        self.is_sound = False
        found = trio.from_thread.run(self.both.ask, what, call)
        assert found == expected, f"{what}:\n  found {found}\n  wanted {expected}"
        self.is_sound = True

    def nth(self, place: int) -> Held:
        """One of the claims that were made: what stands first, the newest first."""
        live = [one for one in reversed(self.held) if self.model.standing(one)]
        dead = [one for one in reversed(self.held) if not self.model.standing(one)]
        return [*live, *dead][place % len(self.held)]

    @initialize(
        caps=CAPS, most=st.sampled_from((None, None, 2, 3)), jobs=st.lists(WANTED, max_size=6),
        aims=st.sampled_from((True, True, False)),
    )  # fmt: skip
    def begin(
        self, caps: dict[str, int], most: int | None, jobs: list[Wanted], aims: bool = True
    ) -> None:
        """Without any target PostgreSQL claims by another statement."""

        async def anew() -> None:
            await trio.lowlevel.checkpoint()
            for store in self.stores:
                store.begin_anew()

        trio.from_thread.run(anew)
        self.model.caps, self.model.leased_max, self.aims = caps, most, aims
        if jobs:
            self.enqueue(jobs)

    @rule(jobs=st.lists(WANTED, min_size=1, max_size=4))
    def enqueue(self, jobs: list[Wanted]) -> None:
        wanted = [one if self.aims else one._replace(target=None) for one in jobs]
        expected = [self.model.enqueue(one) for one in wanted]
        self.expect(expected, "enqueue", lambda one: one.enqueue(wanted))

    @rule(workers=st.integers(0, 4), ahead=st.integers(0, 2))
    def claim(self, workers: int, ahead: int) -> None:
        if workers + ahead:
            self.visit([], workers, ahead)

    @precondition(lambda self: self.held)
    @rule(
        ends=st.lists(st.tuples(NTH, VERDICTS), min_size=1, max_size=5),
        workers=st.integers(0, 3), forged=FORGED,
    )  # fmt: skip
    def settle(self, ends: list[tuple[int, Verdict]], workers: int, forged: bool) -> None:
        meant: dict[int, tuple[Held, Verdict]] = {}
        for place, verdict in ends:
            held = self.nth(place)
            whole = verdict.among([*self.model.jobs[held.id].phases])
            meant.setdefault(held.id, (held._replace(forged=forged), whole))
        for held, verdict in meant.values():
            stands = self.model.standing(held) is not None
            if not forged:
                self.settled.setdefault((held.id, held.attempt), (held, verdict, stands))
        self.visit(list(meant.values()), workers, 0)

    def visit(self, ends: Sequence[tuple[Held, Verdict]], workers: int, ahead: int) -> None:
        """Settles and claims in one exchange."""
        ended = {held.id: self.model.settle(held, verdict) for held, verdict in ends}
        idle = tuple(range(1, workers + 1))
        asks = workers + ahead > 0
        taken = self.model.claim(idle, ahead, LEASE_SECONDS) if asks else []
        request = ClaimRequest(
            uuid4(), NODE, idle, ahead, LEASE_SECONDS, tuple(self.model.caps.items()),
            self.model.leased_max,
        )  # fmt: skip
        claims: dict[int, list[Any]] = {}

        async def visit(one: Asked) -> Any:
            settlements = [one.settlement(held, verdict, self.model.now) for held, verdict in ends]
            visited, claims[one.place] = await one.visit(settlements, request if asks else None)
            return visited

        rejected = frozenset(number for number, (refused, _) in ended.items() if refused)
        turned = {number: state for number, (_, state) in ended.items() if state is not None}
        self.expect(Visited(rejected, turned, taken), "exchange", visit)
        for mine, others in zip(*claims.values(), strict=True):
            number = self.both.both[0].number(mine.id)
            tokens = (mine.token, others.token)
            self.held.append(Held(number, mine.attempt, mine.worker, mine.target, tokens))

    @precondition(lambda self: self.settled)
    @rule(place=NTH)
    def settle_again(self, place: int) -> None:
        """The reply was lost, and the settlement is sent once more."""
        settled = list(self.settled.values())
        held, verdict, is_written = settled[-1 - place % len(settled)]
        self.visit([(held, verdict)], 0, 0)
        known = is_written and not self.model.jobs[held.id].is_gone
        self.expect(
            frozenset({held.id} if known else ()), "settled already",
            lambda one: one.settled_already([one.settlement(held, verdict, self.model.now)]),
        )  # fmt: skip

    @precondition(lambda self: self.held)
    @rule(place=NTH)
    def read_claims_back(self, place: int) -> None:
        token = self.nth(place).tokens

        async def read_back(one: Asked) -> bool:
            """Each store may have come to the same claims in another number of visits."""
            mine = [held for held in self.held if held.tokens[one.place] == token[one.place]]
            standing = [(held.id, held.attempt) for held in mine if self.model.standing(held)]
            return await one.claims_under(token[one.place]) == sorted(standing)

        self.expect(True, "claims read back", read_back)

    @precondition(lambda self: self.held)
    @rule(place=NTH, has_started=st.booleans(), forged=FORGED)
    def renew(self, place: int, has_started: bool, forged: bool) -> None:
        held = self.nth(place)._replace(forged=forged)
        expected = self.model.renew(held, LEASE_SECONDS, has_started=has_started)
        self.expect(expected, "renew", lambda one: one.renew(held, has_started=has_started))

    @precondition(lambda self: self.held)
    @rule(place=NTH, percent=st.sampled_from((None, 0.0, 40.0, 80.0)))
    def note_progress(self, place: int, percent: float | None) -> None:
        held = self.nth(place)
        expected = self.model.note_progress(held, percent)
        self.expect(expected, "progress", lambda one: one.note_progress(held, percent))

    @precondition(lambda self: self.held)
    @rule(place=NTH, count=st.sampled_from((1, 2, 4)))
    def begin_phases(self, place: int, count: int) -> None:
        held, names = self.nth(place), PHASES[:count]
        expected = self.model.begin_phases(held, names)
        self.expect(expected, "begin phases", lambda one: one.begin_phases(held, names))

    @precondition(lambda self: self.held)
    @rule(place=NTH)
    def finish_phase(self, place: int) -> None:
        held = self.nth(place)
        phases = self.model.jobs[held.id].phases
        rest = [name for name, is_finished in phases.items() if not is_finished]
        if len(rest) > 1:
            expected = self.model.advance(held, rest[0])
            ended, next_, names = *rest[:2], tuple(phases)
            self.expect(expected, "advance", lambda one: one.advance(held, ended, next_, names))

    @rule(on_lost=ON_LOST, budget=st.sampled_from((1, 2, 9)), is_late=st.booleans())
    def reap(self, on_lost: str, budget: int, is_late: bool = False) -> None:
        if is_late:
            self.pass_time(LEASE_SECONDS)
        expected = self.model.reap(on_lost, budget, 1000)
        capped = frozenset(self.model.caps)
        self.expect(expected, "reap", lambda one: one.reap(on_lost, budget, capped, KINDS))

    @rule(action=ACTIONS, number=NTH)
    def control(self, action: Action, number: int) -> None:
        self.act(action, max(1, len(self.model.jobs) - number))

    def act(self, action: Action, number: int) -> None:
        expected = self.model.control(action, number)
        self.expect(expected, action.value, lambda one: one.control(action, number))

    @precondition(lambda self: any(job.halts for job in self.model.jobs.values()))
    @rule(action=st.sampled_from((Action.RESUME, Action.RESUME, Action.CLEAR)), place=NTH)
    def see_to(self, action: Action, place: int) -> None:
        """So that not all targets stay halted."""
        halting = [job.id for job in self.model.jobs.values() if job.halts]
        self.act(action, halting[place % len(halting)])

    @precondition(lambda self: any(job.state in LEASED for job in self.model.jobs.values()))
    @rule(action=st.sampled_from((Action.CANCEL, Action.PAUSE)), place=NTH)
    def ask_holder(self, action: Action, place: int) -> None:
        leased = [job.id for job in self.model.jobs.values() if job.state in LEASED]
        self.act(action, leased[place % len(leased)])

    @precondition(lambda self: self.model.jobs)
    @rule(action=ACTIONS, kinds=st.sampled_from(((), ("plain",), ("narrow", "video"))))
    def control_many(self, action: Action, kinds: tuple[str, ...]) -> None:
        states = states_for(action)
        numbers = [job.id for job in self.model.jobs.values() if not kinds or job.kind in kinds]
        done = self.model.control_many(action, numbers, states)
        expected = (
            {number for number, each in done.items() if each.allowed},
            {number for number, each in done.items() if each.requested},
            {number for number, each in done.items() if not each.allowed},
            set[int](),
        )
        which = Selection(states, kinds)
        self.expect(expected, "control many", lambda one: one.control_many(action, numbers, which))

    @rule(is_paused=st.booleans())
    def pause_queue(self, is_paused: bool) -> None:
        changed = self.model.is_paused is not is_paused
        self.model.is_paused = is_paused

        async def turn(one: Asked) -> bool:
            engine = one.engine
            return await (engine.queue.pause("me") if is_paused else engine.queue.resume())

        self.expect(changed, "pause the queue", turn)

    @rule(seconds=st.sampled_from((1.0, 10.0, LEASE_SECONDS, 100.0)))
    def pass_time(self, seconds: float) -> None:
        self.model.now += seconds
        for store in self.stores:
            store.set_clock(self.model.now)

    @rule(caps=CAPS)
    def change_caps(self, caps: dict[str, int]) -> None:
        """As by a reload; the next reap hears of caps that are gone."""
        self.model.caps = caps
        self.reap("requeue", 9)

    @rule(what=st.sampled_from(("mark", "delete")), age=st.sampled_from((0.0, 50.0)),
          batch=st.sampled_from((2, 100)))  # fmt: skip
    def retain(self, what: str, age: float, batch: int) -> None:
        expected = self.model.mark(age) if what == "mark" else self.model.delete(age)
        self.expect(expected, what, lambda one: one.retain(what, age, batch))

    @invariant()
    def stands_as_the_model_says(self) -> None:
        self.is_sound = False
        trio.from_thread.run(checks.compare_stands, self.both, self.model)
        self.is_sound = True

    def teardown(self) -> None:
        if self.is_sound:
            trio.from_thread.run(checks.compare_all, self.both, self.model)
