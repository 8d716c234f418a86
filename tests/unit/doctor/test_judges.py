"""What the doctor makes of facts: levels, and what it says is to be done."""

from datetime import datetime
from typing import Any, cast

import attrs
import pytest

from musterd.config.cron import Cron
from musterd.console.doctor import judges
from musterd.console.doctor.checks import judge_schema
from musterd.console.doctor.judges import (
    judge_leases,
    judge_schedules,
    judge_signing,
    judge_zones,
)
from musterd.store.engine import SchemaState
from musterd.store.health import File
from tests.support.findings import said, worst
from tests.support.schedule_scene import schedules_of
from tests.support.stage import settings_with

FILE = File("/s/musterd.db", 4096, 0, 0, "wal", "3.45", True, None, 0o600, 77, True)
UNIT = {
    "LoadState": "loaded",
    "ActiveState": "active",
    "NeedDaemonReload": "no",
    "Type": "notify",
    "TimeoutStopUSec": "10min",
    "WatchdogUSec": "30s",
    "KillMode": "mixed",
    "RestartPreventExitStatus": "78",
    "LimitNOFILESoft": "4096",
}


class TestLeases:
    def test_the_shipped_times_go_together(self) -> None:
        assert worst(judge_leases(settings_with())) == "ok"

    @pytest.mark.parametrize(
        ("changes", "named"),
        [
            ({"store__statement_timeout_seconds": 40}, "store.statement_timeout_seconds = 40"),
            ({"store__lock_timeout_seconds": 10}, "store.lock_timeout_seconds"),
            ({"store__reconnect_max_seconds": 10}, "store.reconnect_max_seconds"),
            ({"workers__poll_interval_ms": 10_000}, "workers.poll_interval_ms"),
            ({"workers__scale_interval_ms": 20_000}, "workers.scale_interval_ms"),
            ({"leases__heartbeat_seconds": 7.2}, "3.9 renewals"),
            ({"duties__lease_seconds": 90}, "duties.lease_seconds"),
            ({"duties__mode": '"everyone"'}, "duties.mode"),
        ],
    )
    def test_what_works_badly_is_named(self, changes: dict[str, Any], named: str) -> None:
        found = judge_leases(settings_with(**changes))
        assert worst(found) == "warn"
        assert named in said(found)


class TestFile:
    def test_a_sound_one(self) -> None:
        assert worst(judges.judge_file(FILE)) == "ok"

    @pytest.mark.parametrize(
        ("changes", "level"),
        [
            ({"fault": "row 3 missing from index"}, "fail"),
            ({"journal_mode": "delete"}, "fail"),
            ({"wal_bytes": 10**9}, "warn"),
            ({"mode": 0o644}, "warn"),
        ],
    )
    def test_what_is_wrong(self, changes: dict[str, Any], level: str) -> None:
        found = judges.judge_file(attrs.evolve(FILE, **changes))
        assert worst(found) == level
        assert said(found)

    def test_the_file_system_is_that_of_the_longest_mount(self) -> None:
        mounts = [
            "22 1 8:1 / / rw - ext4 /dev/sda1 rw",
            "23 22 0:40 / /srv/the\\040jobs rw - nfs4 server:/jobs rw",
            "nonsense",
        ]
        assert judges.file_system_of("/srv/jobs.db", mounts) == "ext4"
        assert judges.file_system_of("/srv/the jobs/musterd.db", mounts) == "nfs4"
        assert judges.file_system_of("/x", []) is None

    @pytest.mark.parametrize(
        ("sort", "level"),
        [
            (None, "ok"),
            ("ext4", "ok"),
            ("nfs4", "fail"),
            ("fuse.sshfs", "fail"),
            ("tmpfs", "warn"),
            ("overlay", "warn"),
        ],
    )
    def test_file_systems(self, sort: str | None, level: str) -> None:
        assert worst(judges.judge_file_system("/s/musterd.db", sort)) == level


class TestMachine:
    @pytest.mark.parametrize(
        ("free", "whole", "level"),
        [(10**7, 10**11, "fail"), (10**9, 10**11, "warn"), (10**9, 10**10, "ok")],
    )
    def test_disks(self, free: int, whole: int, level: str) -> None:
        disk = judges.Disk("/s", "the embedded store", free, whole, 10**6, 10**7)
        assert worst(judges.judge_disk(disk)) == level

    def test_a_disk_without_room_for_files(self) -> None:
        disk = judges.Disk("/s", "the embedded store", 10**12, 10**13, 5, 10**7)
        assert "inodes" in said(judges.judge_disk(disk))

    def test_open_files(self) -> None:
        settings = settings_with()
        assert worst(judges.judge_open_files(1024, settings, "it")) == "ok"
        assert worst(judges.judge_open_files(256, settings, "it")) == "warn"

    def test_permissions(self) -> None:
        given = judges.GivenFile("/etc/musterd/token", "http.token_file", 0o600, True)
        assert worst(judges.judge_permissions([given])) == "ok"
        assert "everyone can read" in said(
            judges.judge_permissions([attrs.evolve(given, mode=0o644)])
        )
        open_to_all = attrs.evolve(given, mode=0o622, is_secret=False)
        assert "writable by everyone" in said(judges.judge_permissions([open_to_all]))


class TestSystemd:
    def test_a_unit_that_fits(self) -> None:
        assert worst(judges.judge_unit("musterd.service", UNIT, settings_with())) == "ok"

    def test_no_unit_is_no_fault(self) -> None:
        shown = judges.properties("LoadState=not-found\nType=simple\n")
        assert worst(judges.judge_unit("musterd.service", shown, settings_with())) == "ok"

    @pytest.mark.parametrize(
        ("changes", "level", "named"),
        [
            ({"LoadState": "bad-setting"}, "fail", "bad-setting"),
            ({"NeedDaemonReload": "yes"}, "warn", "systemctl daemon-reload"),
            ({"TimeoutStopUSec": "1min 30s"}, "fail", "TimeoutStopSec is 90 s"),
            ({"Type": "simple"}, "warn", "Type=notify"),
            ({"WatchdogUSec": "0"}, "warn", "no watchdog"),
            ({"WatchdogUSec": "infinity"}, "warn", "no watchdog"),
            ({"KillMode": "control-group"}, "warn", "KillMode=mixed"),
            ({"RestartPreventExitStatus": ""}, "warn", "RestartPreventExitStatus=78"),
        ],
    )
    def test_drift_is_named(self, changes: dict[str, str], level: str, named: str) -> None:
        found = judges.judge_unit("musterd.service", {**UNIT, **changes}, settings_with())
        assert worst(found) == level
        assert named in said(found)

    def test_the_grace_period_bounds_the_stop(self) -> None:
        settings = settings_with(shutdown__grace_period_seconds=900)
        needed = f"a drain may take {judges.ending_seconds(settings) + 5:g} s"
        assert needed in said(judges.judge_unit("x", UNIT, settings))
        forever = {**UNIT, "TimeoutStopUSec": "infinity"}
        assert worst(judges.judge_unit("x", forever, settings)) == "ok"

    @pytest.mark.parametrize(
        ("text", "seconds"),
        [("5min 30s", 330.0), ("1h 2ms", 3600.002), ("0", 0.0), ("infinity", None), ("", None)],
    )
    def test_spans(self, text: str, seconds: float | None) -> None:
        assert judges.span_seconds(text) == seconds


def test_schemas() -> None:
    settings = settings_with()
    assert judge_schema(SchemaState(15, 15), settings).level == "ok"
    assert judge_schema(SchemaState(14, 15), settings).level == "warn"
    assert judge_schema(SchemaState(0, 15), settings_with(store__migrate="false")).level == "fail"


class Never:
    """A rhythm that the configuration would have let pass."""

    text = "never"

    def next_after(self, moment: datetime) -> datetime | None:
        del moment
        return None


def test_a_schedule_that_never_fires() -> None:
    schedules = schedules_of(never="cron='@yearly'", daily="cron='@daily'")
    schedules["never"] = attrs.evolve(schedules["never"], rhythm=cast("Cron", Never()))
    found = judge_schedules(schedules, 1_800_000_000.0)
    assert "schedule never never fires" in said(found)
    assert len(found) == 1


def test_zones_and_signatures() -> None:
    assert judge_zones(500) == []
    assert "tzdata" in said(judge_zones(0))
    settings = settings_with(webhooks__url='"https://example.com/hook"')
    assert judge_signing(settings, True) == []
    assert "unsigned" in said(judge_signing(settings, False))
