"""No output shows a secret: each of them is a canary, and none of them sings.

The daemon logs at its most talkative, every verb is called, every route asked, every row read.
"""

from __future__ import annotations

import json
import sqlite3
import textwrap
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path

import attrs
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.fix_postgres import FreshDatabase
from tests.support.canaries import CANARY, Cage, children_of, verbs
from tests.support.command import COMMAND, Daemon, Home, eventually
from tests.support.http_client import ask

SIGNS = "whsec_" + "Y2FuYXJ5LW9mLXRoZS13ZWJob29rcy1hbmQtbW9yZQ=="
TOKEN = f"{CANARY}-admin-token"
SECOND = f"{CANARY}-second-token"
HEADER = f"{CANARY}-header"
QUERY = f"{CANARY}-query"
WRONG = f"{CANARY}-wrong-password"
FORMS = ("text", "logfmt")  # beside JSON
# They do not end by themselves, or end the daemon, or leave their process deaf to signals.
BY_HAND = ("run", "demo", "bench", "top", "drain")
MORE_WORDS = {
    **dict.fromkeys(
        ("job", "why", "cancel", "pause", "resume", "release", "clear", "delete"), ("1",)
    ),
    "enqueue": ("call", "--payload", "{}"),
    "kinds": ("--check",),
    "init": ("-",),
}
PLACES = (
    *("/status", "/nodes", "/metrics", "/openapi.json", "/", "/jobs", "/jobs/1", "/jobs/1/why"),
    *("/workers", "/scaling", "/duties", "/schedules", "/livez", "/readyz", "/targets/x"),
)
CALLED = f"http://127.0.0.1:1/x?password={QUERY}"
KINDS = f"""
    [kinds.see]
    python = "seeing:see"
    [kinds.see-program]
    command = ["/usr/bin/env"]
    [kinds.break]
    python = "seeing:break_down"
    [kinds.call]
    http = {{ url = "{CALLED}", headers = {{ Authorization = "Bearer {HEADER}" }} }}
"""
HANDLERS = """
    import os


    def see(job):
        return dict(os.environ)


    def break_down(job):
        raise RuntimeError("the handler is broken")
"""


@attrs.frozen
class Scene:
    """A machine whose every secret is a canary."""

    home: Home
    is_postgres: bool
    environ: Mapping[str, str]
    cage: Cage

    @contextmanager
    def daemon(self, *words: str) -> Generator[Daemon]:
        command = [*COMMAND, "run", "--set", "http.listen=127.0.0.1:0", *words]
        with Daemon(command, dict(self.environ)) as daemon:
            yield daemon
            daemon.process.terminate()
            assert daemon.end() == 0
            self.cage.see(f"the log ({' '.join(words)})", "\n".join(daemon.log))


@pytest.fixture(params=["sqlite", "postgresql"])
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Scene:
    secrets = {
        "the signing secret": SIGNS.removeprefix("whsec_"),
        **{text: text for text in (TOKEN, SECOND, HEADER, QUERY, WRONG)},
    }
    environ: dict[str, str] = {}
    url = ""
    if request.param == "postgresql":
        fresh_database: FreshDatabase = request.getfixturevalue("fresh_database")
        url, other = fresh_database(), fresh_database()
        secrets["the store's password"] = str(conninfo_to_dict(url)["password"])
        environ |= {"MUSTERD_TENANTS__ACME__URL": other}
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    (credentials / "second").write_text(SECOND)
    (credentials / "signing").write_text(SIGNS)
    if url:
        (credentials / "store").write_text(url)
        environ |= {"MUSTERD_STORE__URL_FILE": "store", "PGPASSWORD": WRONG}
    (tmp_path / "kinds.toml").write_text(textwrap.dedent(KINDS))
    (tmp_path / "seeing.py").write_text(textwrap.dedent(HANDLERS))
    environ |= {
        "CREDENTIALS_DIRECTORY": str(credentials),
        "MUSTERD_HTTP__TOKEN": TOKEN,
        "MUSTERD_HTTP__TOKENS": '[{name = "board", token_file = "second", scopes = ["read"]}]',
        "MUSTERD_WEBHOOKS__SECRET_FILE": "signing",
        "MUSTERD_CATALOG__PATHS": json.dumps([str(tmp_path / "kinds.toml")]),
        "MUSTERD_RETRY__MAX_RETRIES": "0",
        "MUSTERD_LOG__LEVEL": "debug",
    }
    home = Home(tmp_path / "state")
    return Scene(home, bool(url), home.environ() | environ, Cage(secrets))


def test_no_canary_sings(scene: Scene) -> None:
    cage = scene.cage
    for form in FORMS if scene.is_postgres else ():
        with scene.daemon("--set", f"log.format={form}") as daemon:
            daemon.wait_for_line("ready")
    with scene.daemon("--set", "log.format=json") as daemon:
        listen = where_it_listens(daemon)
        environ = {**scene.environ, "MUSTERD_HTTP__LISTEN": listen}
        for kind in ("see", "see-program", "break", "call", "report"):
            cage.call(environ, "enqueue", kind, "--webhook", "https://hook.invalid/x")
        eventually(lambda: '"succeeded": 3' in by_state(cage, environ))
        look_at_processes(cage, daemon.process.pid)
        call_every_verb(cage, environ)
        ask_every_place(cage, listen)
    read_every_row(cage, scene, environ)
    complain_of_everything(cage, environ)
    assert cage.sung == []


def where_it_listens(daemon: Daemon) -> str:
    daemon.wait_for_line('"event": "ready"')
    line = json.loads(daemon.wait_for_line('"page": "http'))
    page: str = line["page"]
    return page.removeprefix("http://").rstrip("/")


def by_state(cage: Cage, environ: Mapping[str, str]) -> str:
    return cage.call(environ, "status", "--json")


def look_at_processes(cage: Cage, daemon: int) -> None:
    children = children_of(daemon)
    assert children, "no child is there to be looked at"
    for pid in (daemon, *children):
        cage.see(f"the command line of {pid}", Path(f"/proc/{pid}/cmdline").read_text())
    for pid in children:
        environ = Path(f"/proc/{pid}/environ").read_text()
        cage.see(f"the environment of child {pid}", environ)
        assert "CREDENTIALS_DIRECTORY" not in environ
        assert "MUSTERD_" not in environ


def call_every_verb(cage: Cage, environ: Mapping[str, str]) -> None:
    called = [verb for verb in verbs() if verb[0] not in BY_HAND]
    assert ("config", "show") in called
    for verb in called:
        words = (*verb, *MORE_WORDS.get(verb[-1], ()))
        cage.call(environ, *words)
        cage.call(environ, *words, "--json")
    for words in (("config", "show", "--origin"), ("config", "show", "--origin", "--json")):
        assert "***" in cage.call(environ, *words)


def ask_every_place(cage: Cage, listen: str) -> None:
    by = {"Authorization": f"Bearer {TOKEN}"}
    for place in PLACES:
        answer = ask(listen, place, by)
        cage.see(place, f"{answer.headers} {answer.text}")
    told = first_events(listen, by)
    assert "event: snapshot" in told
    cage.see("/events", told)
    wrong = ask(listen, "/status", {"Authorization": f"Bearer {WRONG}"})
    assert wrong.status == 401
    cage.see("a refusal", f"{wrong.headers} {wrong.text}")


def first_events(listen: str, headers: Mapping[str, str]) -> str:
    told = ""
    starts: tuple[dict[str, str], ...] = ({}, {"Last-Event-ID": "0"})
    for start in starts:
        with closing(HTTPConnection(listen, timeout=10)) as connection:
            connection.request("GET", "/events", headers={**headers, **start})
            told += connection.getresponse().read1(1 << 20).decode()
    return told


def read_every_row(cage: Cage, scene: Scene, environ: Mapping[str, str]) -> None:
    folder = Path(environ["CREDENTIALS_DIRECTORY"])
    if (folder / "store").exists():
        with psycopg.connect((folder / "store").read_text()) as session:
            found = session.execute(
                "select relname from pg_class where relkind = 'r'"
                " and relnamespace = 'musterd'::regnamespace"
            ).fetchall()
            for (table,) in found:
                rows = session.execute(f"select * from musterd.{table}".encode()).fetchall()
                cage.see(f"the table {table}", repr(rows))
        return
    with closing(sqlite3.connect(scene.home.folder / "musterd.db")) as session:
        cage.see("the embedded store", "\n".join(session.iterdump()))


def complain_of_everything(cage: Cage, environ: Mapping[str, str]) -> None:
    """What cannot be used is told without what is secret in it."""
    plain = {name: text for name, text in environ.items() if name != "MUSTERD_STORE__URL_FILE"}
    bad = "postgresql://somebody:{}@127.0.0.1:1/jobs"
    for words in (
        ("status", "--set", f"store.url={bad.format(WRONG)}"),
        ("doctor", "--set", f"store.url={bad.format(WRONG)}"),
        ("doctor", "--json", "--set", f"store.url={bad.format(WRONG)}"),
        ("jobs", "--set", f"store.url=postgresql://somebody:{WRONG}@[::bad/jobs"),
        ("config", "check", "--set", f"store.url=mysql://somebody:{WRONG}@host/jobs"),
        ("config", "check", "--set", f"webhooks.secret={WRONG}"),
        ("config", "check", "--set", f"webhooks.url=https://somebody:{WRONG}@example.com/"),
        ("config", "check", "--set", f"http.token={TOKEN}", "--set", "http.listen=nowhere"),
    ):
        assert cage.call(plain, *words)
    unknown = plain | {"MUSTERD_HTTP__TOKNE": TOKEN, "MUSTERD_STORE__URLS": bad.format(WRONG)}
    cage.call(unknown, "config", "check")
    if "MUSTERD_TENANTS__ACME__URL" in environ:
        lost = dict(environ)
        (Path(environ["CREDENTIALS_DIRECTORY"]) / "store").write_text("two\n" + bad.format(WRONG))
        cage.call(lost, "status")
        (Path(environ["CREDENTIALS_DIRECTORY"]) / "store").write_text(f"mysql://x:{WRONG}@host/x")
        cage.call(lost, "status")
        cage.call(lost, "config", "check")
