"""Any two statements that write to jobs, at once, in both orders: on one job, of one target, of one
kind with a cap. One stands in its open transaction while the other waits or passes; then it commits
or takes all back. It must come to what they come to one after the other.
"""

import re
from collections.abc import Generator
from typing import Any

import pytest

from musterd.store.postgres.migrating import PACKAGE
from musterd.store.postgres.setup import PLANNER
from musterd.store.sqlfiles import load_statements
from tests.contract.pair_programs import PASSING, UNSEEN, statements
from tests.contract.pair_scenes import EAST, SCENES, WEST, Outcome, Part, Stage
from tests.contract.rigs import SCHEMA
from tests.contract.sessions import Connection, stopped_sessions
from tests.fix_postgres import FreshDatabase
from tests.support.empty_schema import emptying

LOCKS = re.compile(
    r"(update|insert into|delete from) \{schema\}"
    r"\.(job_rows|job_phases|target_holders|ready|waiting|leases|endings)\b"
    r"|for (no key )?update|take_turn\(|control_job\(|hand_over\(|enqueue_keyed\("
)
# They lock, and never a job: nodes, counts, endings, the log, decisions, messages. Or they lock
# jobs by themselves, and wait for nothing.
OTHERS = {
    "beat", "fold_counts", "forget_hours", "forget_journal", "forget_leftovers", "held_up",
    "resend_webhooks", "settle_webhooks", "take_webhooks", "trim_events",
}  # fmt: skip


@pytest.fixture
def stage(fresh_database: FreshDatabase) -> Generator[Stage]:
    with stopped_sessions(fresh_database(), 2) as (main, nodes):
        for conn in (main, *nodes):
            plan_as_the_product(conn)
        yield Stage(main, nodes, emptying(main, SCHEMA))


def plan_as_the_product(conn: Connection) -> None:
    for setting in {**PLANNER, "jit": "off"}.items():
        conn.execute(b"select set_config(%s, %s, false)", setting)
    conn.commit()


def test_no_statement_that_locks_a_job_is_left_out(stage: Stage) -> None:
    locking = {name for name, text in load_statements(PACKAGE).items() if LOCKS.search(text)}
    met: set[str] = set()
    for name in SCENES:
        stage.set(name)
        for what in SCENES[name].verbs:
            met |= statements(stage.program(name, (WEST, what)))
    assert met == locking - OTHERS
    assert locking > OTHERS


@pytest.mark.timeout(400)  # on a busy machine
@pytest.mark.parametrize("name", SCENES)
def test_every_pair_comes_to_what_one_after_the_other_does(stage: Stage, name: str) -> None:
    untouched = stage.serially(name)
    verbs = SCENES[name].verbs
    effective = [
        what for what in verbs if what in UNSEEN or stage.serially(name, (WEST, what)) != untouched
    ]
    met = 0
    for what in effective:
        for other in verbs:
            met += meet(stage, name, ((WEST, what), (EAST, other)))
    assert met > 20


def meet(stage: Stage, name: str, parts: tuple[Part, Part]) -> int:
    """All the ways in which these two may meet; says how many there were. Who changes nothing, with
    the other or without, is left out.
    """
    first, second = parts
    passes = second[1] in PASSING
    idle = stage.serially(name, second) == stage.serially(name) and second[1] not in UNSEEN
    if idle and stage.serially(name, first, second) == stage.serially(name, first):
        return 0
    in_order = [stage.serially(name, first, second), stage.serially(name, second, first)]
    alone = [stage.serially(name, first)] if passes else []
    if second[1] == "cancel all":  # one after the other: a claim may come between two of them
        alone.append(stage.serially(name, (second[0], "cancel"), first, second))
    stops = range(1, len(stage.program(name, first)) + 1)
    for stop in stops:
        found, waited = stage.at_once(name, parts, stop, commits=True)
        said = f"{name}: {parts}, commits after {stop}, waited: {waited}"
        check(found, [*in_order, *alone], piecemeal=passes, said=said)
    by_itself = [stage.serially(name, second)]
    nothing = [stage.serially(name)] if passes else []
    found, waited = stage.at_once(name, parts, stops[-1], commits=False)
    said = f"{name}: {parts}, takes all back, waited: {waited}"
    check(found, [*by_itself, *nothing], piecemeal=passes, said=said)
    return len(stops) + 1


def check(found: Outcome, allowed: list[Outcome], *, piecemeal: bool, said: str) -> None:
    """`piecemeal`: who passes some jobs by may have done the rest of its work."""
    if found in allowed:
        return
    strange = [
        row for row in found.seen
        if all(row not in one.seen for one in allowed) and not is_claimed_instead(row)
    ]  # fmt: skip
    assert piecemeal, told(said, found, allowed)
    assert not strange, told(said, found, allowed)


def is_claimed_instead(row: tuple[Any, ...]) -> bool:
    """Of a claim that passed another by; that no cap is broken is looked at elsewhere."""
    _, state, request, attempt, *_ = row
    return (state, request, attempt) == ("running", None, 1) and row[7] in (WEST, EAST)


def told(said: str, found: Outcome, allowed: list[Outcome]) -> str:
    lines = [said, *(f"  found {row}" for row in found.seen), f"  then {found.afterwards}"]
    for number, one in enumerate(allowed):
        lines += [f"  or {number}: {row}" for row in one.seen] + [f"  then {one.afterwards}"]
    return "\n".join(lines)
