"""Bulk actions, in bounded steps: first how many jobs are meant, then each of them by the same law
as a single action. What changes meanwhile is left out and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
import trio

from musterd.store.control import BulkResult, Candidate, Selection, states_for
from musterd.store.engine import Engine
from musterd.store.jobs import JobFilter
from musterd.store.lifecycle import Action, JobState

COUNT_MAX = 10_000  # jobs are counted one by one up to here
SHOWN_IDS = 5  # of each state and kind
LOOK_ROWS = 5000  # looked through in one transaction
BATCH = 500  # acted on in one transaction
TRIES = 5  # for jobs that somebody else is writing to
PAUSE_SECONDS = 0.05  # between two tries


@attrs.define
class Group:
    """The jobs of one state and kind."""

    state: JobState
    kind: str
    count: int = 0
    ids: list[int] = attrs.field(factory=list[int])  # the first few


@attrs.define
class Survey:
    """How many jobs a selection means. Where `whole` is False there are more than were counted."""

    matched: int = 0
    whole: bool = True
    by_what: dict[tuple[JobState, str], Group] = attrs.field(
        factory=dict[tuple[JobState, str], Group]
    )

    @property
    def groups(self) -> list[Group]:
        """The largest first."""
        return sorted(self.by_what.values(), key=lambda group: -group.count)

    def add(self, one: Candidate) -> None:
        self.matched += 1
        group = self.by_what.setdefault((one.state, one.kind), Group(one.state, one.kind))
        group.count += 1
        if len(group.ids) < SHOWN_IDS:
            group.ids.append(one.id)


@attrs.define
class Tally:
    """What a bulk action has come to so far."""

    done: int = 0  # with those that were requested
    requested: int = 0  # leased: their holders have been asked
    changed: int = 0  # they no longer fitted when their turn came
    refused: int = 0  # their state did not allow it
    busy: int = 0  # somebody else was writing to them all the time
    stopped: bool = False
    through_id: int = 0  # all jobs up to this one have had their turn

    @property
    def skipped(self) -> int:
        return self.changed + self.refused + self.busy


async def pin(engine: Engine, which: Selection) -> Selection:
    """The same selection, of the jobs that are there now: what comes later is not meant."""
    newest = await engine.jobs.find(JobFilter(limit=1))
    return attrs.evolve(which, until_id=newest[0].id if newest else 0)


async def survey(
    engine: Engine,
    which: Selection,
    limit: int | None,
    go_on: Callable[[], bool] = lambda: True,
) -> Survey:
    """Counts, changes nothing. Stops at `limit`, above `COUNT_MAX`, and when `go_on`, which is
    asked from time to time, says so.
    """
    found = Survey()
    most = COUNT_MAX if limit is None else min(limit, COUNT_MAX)
    after: int | None = 0
    while after is not None and found.whole and found.matched != limit:
        look = await engine.control.select(which, after, LOOK_ROWS)
        room = most - found.matched
        for one in look.fitting[:room]:
            found.add(one)
        found.whole = found.matched == limit or len(look.fitting) <= room
        after = look.through_id
        if after is not None and not go_on():
            found.whole = found.matched == limit
            break
    return found


@attrs.frozen
class Order:
    """What is to be done, to which jobs and to how many of them at most.

    `go_on` hears of each batch; when it returns False that was the last one. `after_id`: where an
    earlier one ended (see `Tally.through_id`).
    """

    action: Action
    which: Selection
    limit: int | None
    go_on: Callable[[Tally], bool]
    after_id: int = 0


async def act(engine: Engine, order: Order) -> Tally:
    """Does it, in the order of the jobs' ids. A store that goes away raises; what was done stays
    done.
    """
    tally = Tally(through_id=order.after_id)
    after: int | None = order.after_id
    while after is not None and not tally.stopped:
        look = await engine.control.select(order.which, after, LOOK_ROWS)
        for first in range(0, len(look.fitting), BATCH):
            left = None if order.limit is None else order.limit - tally.done
            if left == 0:
                return tally
            ids = [one.id for one in look.fitting[first : first + BATCH][:left]]
            await _act_on(engine, order, ids, tally)
            tally.through_id = ids[-1]
            if not order.go_on(tally):
                tally.stopped = True
                break
        after = look.through_id
        if after is not None and not look.fitting:
            tally.through_id = after
            tally.stopped = not order.go_on(tally)
    return tally


async def act_on_these(engine: Engine, action: Action, ids: Sequence[int]) -> Tally:
    """Does it to these jobs, at most `BATCH` of them."""
    tally = Tally()
    which = Selection(states_for(action))
    await _act_on(engine, Order(action, which, None, lambda _: True), ids, tally)
    return tally


async def _act_on(engine: Engine, order: Order, ids: Sequence[int], tally: Tally) -> None:
    for attempt in range(TRIES):
        if attempt:
            await trio.sleep(PAUSE_SECONDS)
        step = await engine.control.apply_many(order.action, ids, order.which)
        _add(tally, step, len(ids))
        ids = sorted(step.busy)
        if not ids:
            return
    tally.busy += len(ids)


def _add(tally: Tally, step: BulkResult, asked: int) -> None:
    tally.done += len(step.done)
    tally.requested += len(step.requested)
    tally.refused += len(step.refused)
    tally.changed += asked - len(step.done) - len(step.refused) - len(step.busy)
