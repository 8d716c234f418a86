"""What a daemon loads before its first job, and what it leaves until somebody wants it."""

from __future__ import annotations

import sys
import time

from tests.fix_postgres import FreshDatabase
from tests.support.command import COMMAND, Daemon, Home, eventually
from tests.support.http_client import ask

IMPORTS = (sys.executable, "-X", "importtime", *COMMAND[1:])
QUIET_SECONDS = 0.5
# The web side and its libraries, the other verbs, what only they use.
LATER = (
    *("anyio", "h2", "hpack", "httpcore", "hypercorn", "starlette", "wsproto", "psycopg_pool"),
    *("musterd.web.api.routes", "musterd.web.ui", "musterd.web.pages.layout"),
    *("musterd.console.verbs.enqueue", "musterd.console.verbs.control", "musterd.console.top"),
    *("musterd.console.doctor", "musterd.console.simulate", "musterd.console.verify"),
    *("musterd.store.client", "musterd.store.sqlite"),
)
WEB = {"hypercorn.trio", "starlette.routing"}


def loaded(daemon: Daemon) -> set[str]:
    lines = [line for line in daemon.log if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}


def test_a_start_loads_what_the_first_job_needs(home: Home, fresh_database: FreshDatabase) -> None:
    machine = Home(home.folder, fresh_database())
    assert machine.call("db", "migrate").code == 0
    assert machine.call("enqueue", "report").code == 0
    command = [*IMPORTS, "run", "--set", "http.listen=127.0.0.1:0"]
    with Daemon(command, machine.environ()) as daemon:
        daemon.wait_until_ready()
        eventually(lambda: machine.job(1)["state"] == "succeeded")
        time.sleep(QUIET_SECONDS)
        names = loaded(daemon)
        assert {"trio", "psycopg", "musterd.web.samples"} <= names
        assert sorted(names & set(LATER)) == []
        assert ask(daemon.address, "/livez").status == 200
        eventually(lambda: loaded(daemon) >= WEB)
