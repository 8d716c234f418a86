"""A server whose processes stop for a while: connections stay open, and nothing answers."""

from __future__ import annotations

import time
from pathlib import Path

from tests.support.command import Home, eventually
from tests.support.http_client import ask
from tests.support.postgres_server import PostgresServer
from tests.support.servers import Load, check_ended_once, connect, count_ended, ended, states
from tests.support.standby import freeze, thaw

FROZEN_SECONDS = 6.0  # beyond the lease, and beyond what an answer is waited for


def test_what_is_sent_to_a_frozen_server_is_carried_out_once_at_most(
    primary: PostgresServer, tmp_path: Path, options: tuple[str, ...]
) -> None:
    """When it wakes up it finds what was sent before it froze, and what was sent again since."""
    url = primary.dsn("jobs")
    home = Home(tmp_path / "state", url)
    with home.daemon(*options) as daemon:
        daemon.wait_until_ready()
        with Load(url) as load, connect(primary) as session:
            eventually(lambda: count_ended(session) > 200)
            freeze(primary)
            try:
                time.sleep(FROZEN_SECONDS)
                daemon.wait_for_line("trouble=timeout")
                assert ask(daemon.address, "/readyz").status == 503
            finally:
                thaw(primary)
            before = count_ended(session)
            eventually(lambda: count_ended(session) > before + 100)
            load.end()
            eventually(lambda: set(load.promised) <= ended(session).keys())
            eventually(lambda: set(states(session)) == {"succeeded"})
            check_ended_once(session)
            assert session.execute("select count(*) from musterd.target_holders").fetchone() == (0,)
        eventually(lambda: ask(daemon.address, "/readyz").status == 200)
        assert daemon.process.poll() is None
