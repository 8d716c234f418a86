"""Two PostgreSQL servers, one following the other: the first dies, falls silent or comes back, the
second is promoted, and daemons go on without a restart.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Generator

import pytest

from tests.support.command import Daemon, Home, eventually
from tests.support.postgres_server import PostgresServer
from tests.support.servers import (
    Load,
    Session,
    check_ended_once,
    connect,
    count_ended,
    ended,
    seconds_to_next_end,
    states,
    url_of,
)
from tests.support.standby import (
    Standby,
    caught_up,
    follow_closely,
    freeze,
    kill_hard,
)

LOG = logging.getLogger(__name__)  # pytest --log-cli-level=info shows the figures
RECOVERY_SECONDS = 15.0  # on a busy machine; what is promised is 5

OUTAGE_SECONDS = 4.0  # somebody has to notice, so that the pauses between attempts have grown

OURS = (
    "select count(*) from pg_stat_activity"
    " where application_name = 'musterd' and pid <> pg_backend_pid()"
)
LISTENING = f"{OURS} and query ~* '^(listen|-- idle_check)'"  # what it has last asked


@pytest.fixture
def home(
    primary: PostgresServer, standby: Standby, tmp_path_factory: pytest.TempPathFactory
) -> Home:
    return Home(tmp_path_factory.mktemp("state"), url_of(primary, standby))


@pytest.fixture
def daemon(home: Home, options: tuple[str, ...]) -> Generator[Daemon]:
    with home.daemon(*options) as daemon:
        daemon.wait_until_ready()
        yield daemon


def test_nothing_acknowledged_is_lost_with_synchronous_replication(
    home: Home, primary: PostgresServer, standby: Standby, options: tuple[str, ...], daemon: Daemon
) -> None:
    follow_closely(primary)
    with home.daemon(*options) as other, Load(home.store_url) as load:
        other.wait_until_ready()
        with connect(primary) as session:
            eventually(lambda: count_ended(session) > 300)
            seen = ended(session)
        kill_hard(primary)
        time.sleep(OUTAGE_SECONDS)
        with connect(standby) as session:
            promote_and_end_all("after a death", session, standby, load)
            eventually(lambda: set(states(session)) == {"succeeded"})
            now = ended(session)
            assert {job: now[job] for job in seen} == seen
            check_ended_once(session)
        assert daemon.process.poll() is None
        assert other.process.poll() is None


def test_a_silent_primary_is_left_for_the_promoted_standby(
    home: Home, primary: PostgresServer, standby: Standby, daemon: Daemon
) -> None:
    """Its connections stay open and nothing answers: the limits of waiting end that."""
    follow_closely(primary)
    with Load(home.store_url) as load:
        with connect(primary) as session:
            eventually(lambda: count_ended(session) > 100)
        freeze(primary)
        with connect(standby) as session:
            _tell("after a silence", seconds_to_next_end(session, standby.promote))
            kill_hard(primary)  # before it wakes up: it thinks that it is the primary
            load.end()
            promised = set(load.promised)
            eventually(lambda: promised <= ended(session).keys(), 30)
            check_ended_once(session)
    assert daemon.process.poll() is None


def test_an_old_primary_that_comes_back_as_a_standby_is_passed_over(
    home: Home, primary: PostgresServer, standby: Standby, daemon: Daemon
) -> None:
    with Load(home.store_url, batch=1) as load:
        eventually(lambda: len(load.promised) > 5)
        follow_closely(primary)
        primary.stop()
        standby.promote()
        with Standby(standby, port=primary.port) as back, connect(standby) as session:
            seconds_to_next_end(session)
            session.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where"
                " application_name = 'musterd' and pid <> pg_backend_pid()"
            )
            seconds_to_next_end(session)
            assert home.call("enqueue", "noop", "--wait").code == 0
            load.end()
            eventually(lambda: ended(session).keys() >= set(load.promised), 30)
            caught_up(standby)
            with connect(back) as copy:
                assert copy.execute("select pg_is_in_recovery()").fetchone() == (True,)
                assert ended(copy) == ended(session)
    assert daemon.process.poll() is None


def test_a_primary_that_is_made_read_only_is_left(
    home: Home, primary: PostgresServer, standby: Standby, daemon: Daemon
) -> None:
    """A planned change: no connection breaks, and the old server goes on reading."""
    follow_closely(primary)
    with Load(home.store_url) as load, connect(primary) as old:
        eventually(lambda: count_ended(old) > 100)
        old.execute("alter system set default_transaction_read_only = on")
        old.execute("select pg_reload_conf()")
        daemon.wait_for_line("trouble=read_only")
        caught_up(primary)
        with connect(standby) as session:
            promote_and_end_all("after a planned change", session, standby, load)
            # Nobody has stayed behind, not even who only listens.
            eventually(lambda: old.execute(OURS).fetchone() == (0,))
            eventually(lambda: session.execute(LISTENING).fetchone() == (1,))
            check_ended_once(session)
    assert daemon.process.poll() is None


def test_what_asynchronous_replication_has_not_carried_over_is_as_if_it_had_not_been(
    home: Home, primary: PostgresServer, standby: Standby, daemon: Daemon
) -> None:
    """Claims of the lost tail end nothing on the promoted server, where their attempt is given out
    again under the same number; jobs of the lost tail are gone.
    """
    with connect(primary) as session:
        session.execute(
            "select musterd.enqueue('second', delay_seconds => 1.5) from generate_series(1, 4)"
        )
        caught_up(primary)
        standby.follow_nobody()
        session.execute("select musterd.enqueue('quick') from generate_series(1, 3)")
        eventually(lambda: states(session) == {"running": 4, "succeeded": 3})
    kill_hard(primary)
    standby.promote()
    with connect(standby) as session:
        # The first claims are still being worked on, and know nothing of their end.
        eventually(lambda: states(session) == {"succeeded": 4}, 30)
        assert {attempt for attempt, _ in ended(session).values()} == {1}
        check_ended_once(session)
    daemon.wait_for_line("lease lost|settlements refused")
    assert home.call("enqueue", "noop", "--wait").code == 0


def test_a_daemon_that_starts_before_the_promotion_waits_for_it(
    home: Home, primary: PostgresServer, standby: Standby, options: tuple[str, ...]
) -> None:
    assert home.call("db", "migrate").code == 0
    caught_up(primary)
    primary.stop()
    with home.daemon(*options) as daemon:
        daemon.wait_for_line("trouble=read_only")
        refused = home.call("enqueue", "noop")
        assert refused.code == 69
        assert f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}/jobs" in refused.err
        assert "session is read-only" in refused.err
        standby.promote()
        daemon.wait_until_ready()
    with contextlib.closing(connect(standby)) as session:
        assert _is_reachable(session)


def _is_reachable(session: Session) -> bool:
    return states(session) == {}


def promote_and_end_all(what: str, session: Session, standby: Standby, load: Load) -> None:
    """Everything that was acknowledged before and after the promotion comes to its end."""
    before = len(load.promised)
    _tell(what, seconds_to_next_end(session, standby.promote))
    eventually(lambda: len(load.promised) > before + 100)
    load.end()
    promised = set(load.promised)
    eventually(lambda: promised <= ended(session).keys(), 30)


def _tell(what: str, seconds: float) -> None:
    LOG.info("%s: work went on %.1f s after the promotion", what, seconds)
    assert seconds < RECOVERY_SECONDS
