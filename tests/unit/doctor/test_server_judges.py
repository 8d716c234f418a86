"""What the doctor makes of facts about a server and its tables."""

from typing import Any

import attrs
import pytest

from musterd.console.doctor import checks, postgres
from musterd.store.events import Fault
from musterd.store.health import (
    Connections,
    Holder,
    Missing,
    Replication,
    Server,
    Slot,
    Table,
)
from tests.support.findings import said, worst
from tests.support.stage import settings_with

WELL = {
    "autovacuum": "on",
    "track_counts": "on",
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "off",
    "statement_timeout": "0",
    "autovacuum_max_workers": "3",
}
SERVER = Server(150012, "15.12", False, "app", False, True, False, WELL)
CONNECTIONS = Connections(100, 3, 10, 5, -1, 5, -1, 8)
TABLE = Table("job_rows", 1_000, 10, 60.0, postgres.TABLE_OPTIONS["job_rows"], 8192, 1_000)
SESSION = Holder("session", "4711", "report", "psql", "idle in transaction", 120.0, 12)


def having(**settings: str) -> Server:
    return attrs.evolve(SERVER, settings={**WELL, **settings})


class TestServer:
    def test_a_good_one_is_well(self) -> None:
        settings = settings_with()
        assert worst(postgres.judge_server(SERVER)) == "ok"
        assert worst(postgres.judge_durability(SERVER)) == "ok"
        assert worst(postgres.judge_session(SERVER, "none", settings)) == "ok"
        assert worst(postgres.judge_rights([], SERVER)) == "ok"

    @pytest.mark.parametrize(
        ("changes", "level"),
        [
            ({"in_recovery": True}, "fail"),
            ({"version": 130000}, "fail"),
            ({"version": 990000}, "warn"),
        ],
    )
    def test_versions_and_standbys(self, changes: dict[str, Any], level: str) -> None:
        assert worst(postgres.judge_server(attrs.evolve(SERVER, **changes))) == level

    @pytest.mark.parametrize(
        ("key", "level"),
        [("fsync", "fail"), ("full_page_writes", "fail"), ("synchronous_commit", "warn")],
    )
    def test_what_makes_a_commit_no_promise(self, key: str, level: str) -> None:
        found = postgres.judge_durability(having(**{key: "off"}))
        assert worst(found) == level
        assert key in said(found)

    def test_a_pooler_leaves_the_roles_own_settings_in_force(self) -> None:
        odd = having(default_transaction_isolation="serializable", statement_timeout="500")
        assert worst(postgres.judge_session(odd, "none", settings_with())) == "ok"
        found = said(postgres.judge_session(odd, "transaction", settings_with()))
        assert "read committed" in found
        assert "statement_timeout = 500 ms" in found

    def test_a_role_that_may_only_read_is_a_failure(self) -> None:
        odd = having(default_transaction_read_only="on", idle_session_timeout="1000")
        found = postgres.judge_session(odd, "none", settings_with())
        assert [one.level for one in found] == ["fail", "warn"]

    @pytest.mark.parametrize(
        ("mode", "listen_url", "level"),
        [
            ("none", "", "ok"),
            ("transaction", "", "warn"),
            ("transaction", "postgresql://direct/jobs", "ok"),
            ("session", "postgresql://direct/jobs", "warn"),
            ("statement", "postgresql://direct/jobs", "fail"),
        ],
    )
    def test_poolers(self, mode: Any, listen_url: str, level: str) -> None:
        settings = settings_with()
        store = attrs.evolve(settings.store, listen_url=listen_url)
        found = postgres.judge_pooler(mode, attrs.evolve(settings, store=store))
        assert worst(found) == level

    def test_rights_that_are_missing_are_named(self) -> None:
        missing = [Missing("table job_rows", "UPDATE")] * 7
        blind = attrs.evolve(SERVER, sees_statistics=False)
        found = postgres.judge_rights(missing, blind)
        assert [one.level for one in found] == ["fail", "warn"]
        assert "UPDATE on table job_rows" in said(found)
        assert "and 2 more" in said(found)
        assert 'grant pg_read_all_stats to "app"' in said(found)

    @pytest.mark.parametrize(
        ("skew", "level"), [(0.1, "ok"), (-1.9, "ok"), (-30.0, "warn"), (400.0, "fail")]
    )
    def test_clocks(self, skew: float, level: str) -> None:
        assert worst(postgres.judge_clock(skew, 0.001)) == level

    def test_a_slow_answer_is_no_skew(self) -> None:
        assert worst(postgres.judge_clock(3.0, 2.5)) == "ok"

    def test_replication(self) -> None:
        assert worst(postgres.judge_replication(Replication([], "", None))) == "ok"
        idle = Slot("left", False, 1024**3, "reserved")
        found = postgres.judge_replication(Replication([idle], "ANY 1 (b)", 0))
        assert [one.level for one in found] == ["fail", "warn"]
        assert "pg_drop_replication_slot('left')" in said(found)


class TestTables:
    def test_good_ones_are_well(self) -> None:
        assert worst(postgres.judge_autovacuum(SERVER, [TABLE], "musterd")) == "ok"
        assert worst(postgres.judge_tables([TABLE])) == "ok"
        assert worst(postgres.judge_horizon([SESSION._replace(age_seconds=0.1)])) == "ok"

    def test_a_job_in_no_place_is_a_failure(self) -> None:
        assert worst(postgres.judge_places([])) == "ok"
        found = postgres.judge_places([Fault(n, "is queued and stands nowhere") for n in range(7)])
        assert worst(found) == "fail"
        assert "job 4 is queued and stands nowhere; and 2 more" in said(found)

    def test_autovacuum_that_is_off_is_a_failure(self) -> None:
        odd = TABLE._replace(options={"autovacuum_enabled": "false"})
        found = postgres.judge_autovacuum(having(autovacuum="off"), [odd], "musterd")
        assert [one.level for one in found] == ["fail", "fail", "warn"]
        assert 'alter table "musterd".job_rows reset (autovacuum_enabled)' in said(found)

    def test_options_that_somebody_changed_are_named(self) -> None:
        odd = TABLE._replace(options={**TABLE.options, "autovacuum_vacuum_threshold": "9"})
        found = said(postgres.judge_autovacuum(SERVER, [odd], "musterd"))
        assert "job_rows: autovacuum_vacuum_threshold = 9" in found
        assert "set (autovacuum_vacuum_threshold = 5000)" in found

    def test_dead_rows_that_outnumber_the_live_ones(self) -> None:
        dead = TABLE._replace(dead_rows=200_000, vacuumed_seconds_ago=None)
        assert "200,000 dead rows, never vacuumed" in said(postgres.judge_tables([dead]))
        many = dead._replace(live_rows=1_000_000)
        assert worst(postgres.judge_tables([many])) == "ok"

    def test_rows_that_were_not_frozen_for_long(self) -> None:
        assert worst(postgres.judge_tables([TABLE._replace(frozen_age=1_100_000_000)])) == "warn"
        assert worst(postgres.judge_tables([TABLE._replace(frozen_age=1_900_000_000)])) == "fail"

    @pytest.mark.parametrize(
        ("holder", "level", "advice"),
        [
            (SESSION, "warn", "select pg_terminate_backend(4711)"),
            (SESSION._replace(age_seconds=4000.0), "fail", "pg_terminate_backend(4711)"),
            (SESSION._replace(age_seconds=None, age_transactions=200_000), "warn", "4711"),
            (SESSION._replace(sort="prepared", id="it's"), "warn", "rollback prepared 'it''s'"),
            (
                SESSION._replace(sort="slot", id="left", age_seconds=None, age_transactions=10**7),
                "fail",
                "pg_drop_replication_slot('left')",
            ),
            (SESSION._replace(sort="standby"), "warn", "hot_standby_feedback"),
        ],
    )
    def test_who_holds_the_horizon_is_named(self, holder: Holder, level: str, advice: str) -> None:
        found = postgres.judge_horizon([holder])
        assert worst(found) == level
        assert holder.id in found[0].found
        assert advice in said(found)


class TestNodes:
    def test_room_for_all_nodes(self) -> None:
        settings = settings_with()
        assert checks.node_connections(1, settings) == 8
        assert worst(checks.judge_connections(CONNECTIONS, 3, 1, settings)) == "ok"

    def test_too_many_nodes_for_the_server(self) -> None:
        found = checks.judge_connections(CONNECTIONS, 14, 1, settings_with())
        assert worst(found) == "warn"
        assert "the nodes may open 112, others have 5" in said(found)

    def test_no_room_at_all(self) -> None:
        full = attrs.evolve(CONNECTIONS, used=97)
        assert worst(checks.judge_connections(full, 1, 1, settings_with())) == "fail"

    def test_the_roles_own_limit_counts(self) -> None:
        few = attrs.evolve(CONNECTIONS, role_limit=6)
        found = checks.judge_connections(few, 1, 1, settings_with())
        assert "the role's limit" in said(found)

    def test_nobody_there(self) -> None:
        assert "no node is alive" in said(checks.judge_nodes([]))
