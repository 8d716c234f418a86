"""`musterd status`: one screen, the answer first, and what to do about what is wrong."""

from pathlib import Path
from typing import Any
from uuid import UUID

import attrs
import click
import pytest

from musterd.config.load import load
from musterd.config.tenants import settings_of
from musterd.console.output import Exit
from musterd.console.verbs.status import LINES_MAX, HealthReport, StoreAnswers, lines, remarks
from musterd.manager.node.status import TenantStatus, status_object
from musterd.store.duties import DutyRecord
from musterd.store.overview import Troubles
from musterd.store.remarks import Situation
from tests.support.page_scene import crew_named
from tests.support.top_scene import DECISION, HOSTILE, NODE, NOW, WHERE, counts
from tests.support.web_scene import STATUS

HALTED = (
    "HALTED  4 targets (a, b, c): `musterd jobs --state failed --state paused`, then resume or"
    " clear"
)
QUIET = Troubles(0, (), None, None, None, 0)
MANY = ["workers.max_count=200"] + [
    f"tenants.t{number:03}.workers.max_count=2" for number in range(100)
]
SETTINGS = load(None, {}, MANY, Path("/nonexistent")).settings


def asked(tenant: str = "default", **values: Any) -> StoreAnswers:
    situation = attrs.evolve(Situation(counts(), QUIET, [NODE], [], {}), **values)
    return StoreAnswers(settings_of(SETTINGS, tenant), WHERE, situation=situation)


def tenant_status(name: str, **values: Any) -> TenantStatus:
    return attrs.evolve(crew_named(name), store=WHERE, **values)


def node(*names: str, **values: Any) -> dict[str, Any]:
    tenants = tuple(tenant_status(name) for name in names or ("default",))
    changed = {"store": WHERE, "last_decision": DECISION, "tenants": tenants, **values}
    return status_object(attrs.evolve(STATUS, **changed), None)


def seen(*answers: StoreAnswers, **values: Any) -> HealthReport:
    return attrs.evolve(HealthReport(answers or (asked(),), node(), "", listens=True), **values)


def shown(found: HealthReport) -> list[str]:
    return [click.unstyle(line) for line in lines(found)]


def duty(name: str, holder: str | None) -> DutyRecord:
    return DutyRecord(
        name, holder, None, None, None, None, None, None, 0, 0, 0, None, 0, 0.0, None, NOW
    )  # fmt: skip


def test_all_is_well() -> None:
    assert shown(seen()) == [
        "healthy: running for 1 m 1 s",
        f"  store   {WHERE}",
        "  jobs    4 queued, 1 running",
        "  due     4, the oldest for 3.2 s",
        "  node    n1, running, up 1 m 1 s",
        "  crew    2 of at most 8: 1 busy, 1 idle, 0 retiring",
        "  why     3 -> 8  hired 5  (9 due, 3 busy: wished 12, held by max)",
        "  settled 5 since it started, 0.1/s on average",
    ]


def test_what_is_amiss_beside_the_node_is_told_in_the_first_line() -> None:
    told = shown(seen(asked(counts=counts(paused_at=NOW, paused_by="me"))))
    assert told[0] == "healthy, with 1 remark: running for 1 m 1 s"


def test_a_hundred_tenants_are_one_screen_and_the_ill_ones_are_on_it() -> None:
    names = ["default", *(f"t{number:03}" for number in range(100))]
    answers = [asked(name) for name in names]
    answers[77] = attrs.evolve(answers[77], situation=None, error=HOSTILE)
    answers[50] = asked(names[50], counts=counts(due=900))
    found = seen(*answers, node=node(*names))
    assert found.verdict() == (Exit.UNSUCCESSFUL, f"running for 1 m 1 s, but not for {names[77]}")
    told = shown(found)
    assert len(told) <= LINES_MAX
    assert all(line.isprintable() for line in told)
    place = next(i for i, line in enumerate(told) if line.split()[:1] == ["tenant"])
    assert [line.split()[0] for line in told[place + 1 : place + 3]] == [names[77], names[50]]
    assert told[-1].startswith("  and ")
    assert "more tenants: `musterd status --tenant NAME`" in told[-1]


def test_however_much_is_wrong_it_stays_one_screen() -> None:
    names = ["default", *(f"t{number:03}" for number in range(100))]
    bad = Troubles(9, ("a",), 1, "k", 1e6, 4)
    found = seen(*(asked(name, troubles=bad) for name in names), node=node(*names))
    told = shown(found)
    assert len(told) <= LINES_MAX
    assert any("more: --json has all of them" in line for line in told)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            {"counts": counts(paused_at=NOW, paused_by="me")},
            "PAUSED  by me: `musterd queue resume`",
        ),
        (
            {"troubles": Troubles(4, ("a", "b", "c"), None, None, None, 0)},
            HALTED,
        ),
        (
            {"troubles": Troubles(0, (), None, None, None, 2)},
            "LATE    2 leases have expired, and no node ends them: `musterd duties`",
        ),
        (
            {"troubles": Troubles(0, (), 7, "video", 30_000.0, 0)},
            "LONG    job 7 (video) has run for 8 h 20 m: `musterd job 7`",
        ),
        (
            {
                "nodes": [
                    NODE,
                    attrs.evolve(NODE, id=UUID(int=2), name="south", silent_seconds=54.0),
                ]
            },
            "SILENT  south: died without notice; its jobs are queued again by themselves",
        ),
        ({"nodes": []}, "NOBODY  4 due and no node is alive: `musterd run`"),
        (
            {"duties": [duty("reaping", None), duty("events", "north")]},
            "DUTIES  no node has reaping: `musterd duties`",
        ),
    ],
)
def test_each_trouble_says_what_to_do(values: dict[str, Any], said: str) -> None:
    assert f"  {said}" in shown(seen(asked(**values)))


@pytest.mark.parametrize(
    ("holders", "is_named"), [({"north"}, False), ({"north", "south"}, True), (None, True)]
)
def test_a_silent_node_is_named_while_it_has_jobs(
    holders: set[str | None] | None, is_named: bool
) -> None:
    gone = attrs.evolve(NODE, id=UUID(int=2), name="south", silent_seconds=20.0)
    known = None if holders is None else frozenset(holders)
    told = shown(seen(asked(nodes=[NODE, gone], holders=known)))
    assert any("SILENT  south" in line for line in told) is is_named


def test_a_silent_node_is_named_no_longer_than_leases_last() -> None:
    gone = attrs.evolve(NODE, id=UUID(int=2), name="south", silent_seconds=56.0)
    assert not any("SILENT" in line for line in shown(seen(asked(nodes=[NODE, gone]))))


def test_a_configuration_that_was_refused_is_a_remark() -> None:
    faults = ("musterd.toml:3: workers.max_cuont: unknown key", "another")
    found = seen(asked(), node=node("default", reload_faults=faults))
    (told,) = [line for line in shown(found) if "REFUSED" in line]
    assert "max_cuont: unknown key and 1 more; fix it, then `musterd reload --wait`" in told


def test_a_full_crew_and_late_jobs_are_a_remark() -> None:
    full = {"store_trouble": None, "idle": 0, "busy": 8, "max_count": 8}
    late = asked(counts=counts(oldest_due_seconds=61.0))
    assert remarks(late, None, full)[0].startswith("FULL    the crew is at its maximum")
    assert remarks(asked(), None, full) == []


def test_hostile_names_are_made_harmless() -> None:
    bad = Troubles(1, (HOSTILE,), 1, HOSTILE, 1e6, 1)
    found = seen(asked(troubles=bad, counts=counts(paused_at=NOW, paused_by=HOSTILE)))
    assert all(line.isprintable() for line in shown(found))


def test_a_node_that_was_reloaded_says_with_which_configuration_it_works() -> None:
    nodes = [attrs.evolve(NODE, name="n1", config_generation=3), NODE]
    told = shown(seen(asked(nodes=nodes)))
    assert "  node    n1, running, up 1 m 1 s, configuration 3" in told
    assert "  nodes   2: 4 workers, 2 busy" in told


def test_a_broken_promise_is_told_while_it_is_broken() -> None:
    def behind(slack: float | None) -> list[str]:
        told = node(last_decision=attrs.evolve(DECISION, slack_seconds=slack))
        return [one for one in shown(seen(node=told)) if "BEHIND" in one]

    (said,) = behind(-12.5)
    assert "a job has waited 12.5 s longer than promised: `musterd scaling`" in said
    assert behind(0.5) == behind(None) == []
