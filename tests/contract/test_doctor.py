"""A doctor's visit with a clock, a systemd and a time limit of the test's own."""

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest
import trio

from musterd.catalog.kinds import Catalog
from musterd.catalog.load import catalog_of
from musterd.config.settings import Settings
from musterd.console.doctor.judges import Finding, ProgramResult, Setup
from musterd.console.doctor.verb import examine_all, run_program
from tests.contract.rigs import PostgresRig
from tests.support.findings import said
from tests.support.stage import settings_with

UNIT = """LoadState=loaded
ActiveState=active
NeedDaemonReload=yes
Type=notify
TimeoutStopUSec=1min 30s
WatchdogUSec=30s
KillMode=mixed
RestartPreventExitStatus=78
LimitNOFILESoft=256
"""


async def no_systemd(command: Sequence[str]) -> ProgramResult:
    await trio.lowlevel.checkpoint()
    raise AssertionError(f"{command} was run")


def patient(settings: Settings, **changes: Any) -> Setup:
    def kinds() -> Catalog:
        return catalog_of(settings, os.environ)

    def hooks() -> Mapping[str, str]:
        return {}

    values: dict[str, Any] = {
        "settings": settings,
        "tenants": ["default"],
        "origins": {},
        "environ": os.environ,
        "kinds": kinds,
        "hooks": hooks,
        "wall_clock": time.time,
        "monotonic": time.monotonic,
        "run": no_systemd,
    }
    return Setup(**{**values, **changes})


def of(found: Sequence[Finding], name: str) -> list[Finding]:
    return [one for one in found if one.name == name]


@pytest.mark.parametrize(("ahead", "level"), [(0.0, "ok"), (-40.0, "warn"), (1000.0, "fail")])
async def test_a_clock_that_is_wrong(postgres_rig: PostgresRig, ahead: float, level: str) -> None:
    settings = settings_with(store__url=postgres_rig.url)
    found = await examine_all(patient(settings, wall_clock=lambda: time.time() + ahead))
    (clock,) = of(found, "clock")
    assert clock.level == level
    if ahead:
        assert ("40.0 s behind" if ahead < 0 else "16 m 40 s ahead") in clock.found


async def test_what_systemd_says_is_compared(tmp_path: Path) -> None:
    asked: list[Sequence[str]] = []

    async def systemctl(command: Sequence[str]) -> ProgramResult:
        await trio.lowlevel.checkpoint()
        asked.append(command)
        return ProgramResult(0, UNIT)

    settings = settings_with(store__url=f"sqlite:///{tmp_path}/musterd.db")
    found = of(await examine_all(patient(settings, run=systemctl, has_systemd=True)), "systemd")
    assert asked[0][:3] == ["systemctl", "show", "musterd.service"]
    assert [one.level for one in found] == ["warn", "fail", "warn"]
    assert "daemon-reload" in said(found)
    assert "TimeoutStopSec is 90 s" in said(found)
    assert "musterd.service may open 256" in said(found)


async def test_a_systemd_that_does_not_answer(tmp_path: Path) -> None:
    async def systemctl(command: Sequence[str]) -> ProgramResult:
        del command
        await trio.lowlevel.checkpoint()
        raise FileNotFoundError("systemctl")

    settings = settings_with(store__url=f"sqlite:///{tmp_path}/musterd.db")
    found = await examine_all(patient(settings, run=systemctl, has_systemd=True))
    (systemd,) = of(found, "systemd")
    assert systemd.found == "the check itself failed: systemctl"
    assert of(found, "leases")[0].level == "ok"


async def test_a_table_that_is_locked_holds_up_its_own_checks_alone(
    postgres_rig: PostgresRig,
) -> None:
    settings = settings_with(store__url=postgres_rig.url, store__lock_timeout_seconds=60)
    with psycopg.connect(postgres_rig.url) as session:
        session.execute("lock table musterd.job_rows in access exclusive mode")
        found = await examine_all(patient(settings), seconds=1.0)
    (slow,) = of(found, "autovacuum")
    assert (slow.level, slow.found) == ("fail", "no answer within 1 s")
    assert [one.level for one in of(found, "connections")] == ["ok"]


async def test_a_secret_that_cannot_be_read_is_wrong_configuration(tmp_path: Path) -> None:
    settings = settings_with(store__url_file=f"{tmp_path}/not-there")
    found = await examine_all(patient(settings))
    (secrets,) = of(found, "secrets")
    assert (secrets.level, secrets.stop) == ("fail", "misconfigured")
    assert "store.url_file" in secrets.found
    assert of(found, "store") == []


async def test_programs_are_run_and_their_complaints_kept_away() -> None:
    assert await run_program(["sh", "-c", "echo out; echo err >&2; exit 3"]) == ProgramResult(
        3, "out\n"
    )
