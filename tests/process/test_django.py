"""A project of Django, its tasks run by a daemon: on PostgreSQL in its own transactions, embedded
after its commits.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import attrs
import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.fix_postgres import FreshDatabase
from tests.support.command import COMMAND, Daemon, Home, eventually, kinds_in

SHOP = Path(__file__).parent / "user" / "django_shop"
TASKS = find_spec("django.tasks") if find_spec("django") else None
KINDS = """
[kinds.django_default]
python = "musterd.contrib.django:run"
retryable = true
[kinds.django_default.retry]
base_seconds = 0.1
max_retries = 1
[kinds.django_mail]
python = "musterd.contrib.django:run"
"""

CHECK = """
import django; django.setup()
try: from django.tasks import default_task_backend as found
except ImportError: from django_tasks import default_task_backend as found
print(*found.check())
"""

pytestmark = pytest.mark.skipif(
    TASKS is None and find_spec("django_tasks") is None,
    reason="Django's tasks are missing: make .venv/dev.stamp installs Django and django-tasks",
)


@attrs.frozen
class Shop:
    home: Home
    facts: Path
    is_embedded: bool

    def environ(self) -> dict[str, str]:
        return self.home.environ() | {
            "DJANGO_SETTINGS_MODULE": "shop.settings",
            "PYTHONPATH": os.pathsep.join([str(SHOP), str(SHOP.parents[3])]),
            "SHOP_FACTS": str(self.facts),
        }

    def does(self, *what: str) -> Any:
        done = subprocess.run(
            [sys.executable, SHOP / "scenario.py", *what],
            env=self.environ(), capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    def finished(self, job_id: str) -> Any:
        eventually(lambda: self.does("result", job_id)["status"] in ("SUCCESSFUL", "FAILED"))
        return self.does("result", job_id)


@pytest.fixture(params=["postgresql", "sqlite"])
def shop(request: pytest.FixtureRequest, home: Home) -> Shop:
    home.folder.mkdir(exist_ok=True)
    facts = home.folder / "facts.json"
    if request.param == "sqlite":
        database = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(home.folder / "shop.db")}
        options = {"url": f"sqlite:///{home.folder.resolve()}/musterd.db"}
        facts.write_text(json.dumps({"database": database, "options": options}))
        return Shop(home, facts, is_embedded=True)
    fresh: FreshDatabase = request.getfixturevalue("fresh_database")
    machine = Home(home.folder, fresh())
    found = conninfo_to_dict(machine.store_url)
    on_server: dict[str, Any] = {
        "ENGINE": "django.db.backends.postgresql", "NAME": found["dbname"], "USER": found["user"],
        "PASSWORD": found["password"], "HOST": found["host"], "PORT": found["port"],
    }  # fmt: skip
    facts.write_text(json.dumps({"database": on_server, "options": {}}))
    return Shop(machine, facts, is_embedded=False)


def test_a_shop_and_its_tasks(shop: Shop) -> None:
    catalog = kinds_in(shop.home.folder, KINDS)
    assert shop.home.call("db", "migrate").code == 0
    shop.does("prepare")
    kept = shop.does("order")
    assert (kept["within"], kept["args"]) == (False, [17]), "until it is committed nobody sees it"
    assert kept["after"] is True
    record = shop.home.job(int(kept["id"]))
    assert (record["kind"], record["priority"], record["state"]) == ("django_mail", 7, "queued")
    assert record["payload"]["task"] == "shop.tasks.mail"
    assert len(shop.home.call("jobs", "--json").lines) == 1, "what was rolled back made no job"
    counted, flaky, broken, later = shop.does("others")
    command = [*COMMAND, "run", "--set", "http.listen=127.0.0.1:0", *catalog]
    with Daemon(command, shop.environ()) as daemon:
        daemon.wait_until_ready()
        done = shop.finished(kept["id"])
        assert (done["status"], done["value"]) == ("SUCCESSFUL", {"number": 17, "greeting": "ü"})
        assert (done["task"], done["queue"], done["attempts"]) == ("shop.tasks.mail", "mail", 1)
        assert (done["errors"], done["times"]) == ([], [True, True])
        assert shop.does("mailed") == [17]
        assert shop.finished(counted)["value"] == 1
        again = shop.finished(flaky)
        assert (again["value"], again["attempts"]) == (2, 2)
        ((name, text),) = again["errors"]
        assert (name, "the line is busy" in text) == ("ValueError", True)
        failed = shop.finished(broken)
        assert (failed["status"], failed["attempts"]) == ("FAILED", 2)
        assert {one[0] for one in failed["errors"]} == {"LookupError"}
        assert shop.does("result", later)["status"] == "READY"
        assert shop.does("unknown") == [False, False, False]


def test_the_check_finds_what_is_wrong(home: Home) -> None:
    database = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(home.folder / "shop.db")}
    home.folder.mkdir(exist_ok=True)
    facts = home.folder / "facts.json"
    facts.write_text(json.dumps({"database": database, "options": {"urls": "x"}}))
    shop = Shop(home, facts, is_embedded=True)
    done = subprocess.run(
        [sys.executable, "-c", CHECK],
        env=shop.environ(), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "unknown option 'urls': options are database, url, schema, tenant" in done.stdout
    assert "the database 'default' is no PostgreSQL" in done.stdout
