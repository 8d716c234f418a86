"""Real daemons tell a real receiver of the end of jobs."""

import json
import signal
import sqlite3
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from tests.support.command import Home, eventually
from tests.support.hooked import Got, Hooked, Say, hooked
from tests.support.receiver_checks import is_genuine

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
NEXT_SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
LOCAL = (
    *("--set", "webhooks.allow_private=true", "--set", "webhooks.allow_http=true"),
    *("--set", "webhooks.retry_base_seconds=0.2", "--set", "webhooks.retry_max_seconds=2"),
)
SIGNED = (*LOCAL, "--set", f"webhooks.secret={SECRET}")


def enqueue(home: Home, receiver: Hooked, kind: str = "noop", *options: str) -> int:
    asked = ("enqueue", kind, "--webhook", receiver.url, "--json", *options, *LOCAL)
    done = home.call(*asked)
    assert done.code == 0, done
    made: int = done.json["id"]
    return made


def listed(home: Home, *options: str) -> list[dict[str, Any]]:
    return home.call("webhooks", "--json", *options).lines


def is_delivered(home: Home) -> bool:
    found = listed(home)
    return bool(found) and all(one["state"] == "delivered" for one in found)


def genuine(got: Got, secret: str = SECRET) -> bool:
    return is_genuine(secret, got.headers, got.body, now=time.time())


def test_an_end_is_told_once_signed_and_shown(machine: Home) -> None:
    with hooked() as receiver, machine.daemon(*SIGNED) as daemon:
        daemon.wait_until_ready()
        job_id = enqueue(machine, receiver, "report", "--payload", '{"secret": 1}')
        eventually(lambda: is_delivered(machine))
        job = machine.job(job_id)
        daemon.send(signal.SIGTERM)
        assert daemon.end() == 0
    (got,) = receiver.got
    assert genuine(got)
    assert got.path == "/hook?a=1"
    assert got.headers["content-type"] == "application/json"
    assert got.json["type"] == "job.succeeded"
    told = got.json["data"]
    assert (told["id"], told["state"], told["attempt"]) == (job_id, "succeeded", 1)
    assert "payload" not in told
    assert (job["webhook"]["url"], job["webhook"]["attempts"]) == (receiver.url, 1)
    assert job["webhook"]["sent_at"] is not None


def test_two_secrets_sign_while_one_takes_the_place_of_the_other(
    home: Home, tmp_path: Path
) -> None:
    file = tmp_path / "secrets"
    file.write_text(f"{SECRET}\n")
    setting = ("--set", f"webhooks.secret_file={file}")
    with hooked() as receiver, home.daemon(*LOCAL, *setting) as daemon:
        daemon.wait_until_ready()
        enqueue(home, receiver)
        eventually(lambda: len(receiver.got) == 1)
        file.write_text(f"{NEXT_SECRET}\n{SECRET}\n")
        enqueue(home, receiver)
        eventually(lambda: len(receiver.got) == 2)
        log = "\n".join(daemon.log)
    first, second = receiver.got
    assert (genuine(first), genuine(first, NEXT_SECRET)) == (True, False)
    assert (genuine(second), genuine(second, NEXT_SECRET)) == (True, True)
    assert SECRET not in log


def test_what_is_no_delivery_comes_again(home: Home) -> None:
    script = [
        Say(302, {"location": "/elsewhere"}),
        Say(500),
        Say(503, {"retry-after": "1"}),
        Say(204, after_seconds=0.3),
    ]
    with hooked(script) as receiver, home.daemon(*SIGNED) as daemon:
        daemon.wait_until_ready()
        enqueue(home, receiver)
        eventually(lambda: is_delivered(home))
        (found,) = listed(home)
    assert found["attempts"] == 4
    assert {got.path for got in receiver.got} == {"/hook?a=1"}
    assert {got.id for got in receiver.got} == {found["webhook_id"]}
    assert all(map(genuine, receiver.got))


def test_a_slow_receiver_is_not_waited_for_for_ever(home: Home) -> None:
    script = [Say(204, after_seconds=3)]
    limit = ("--set", "webhooks.timeout_seconds=0.5")
    with hooked(script) as receiver, home.daemon(*SIGNED, *limit) as daemon:
        daemon.wait_until_ready()
        enqueue(home, receiver)
        eventually(lambda: is_delivered(home))
    assert len(receiver.got) >= 2


def test_a_receiver_that_is_gone_and_one_that_comes_back(home: Home) -> None:
    with hooked([Say(410)]) as receiver, home.daemon(*SIGNED) as daemon:
        daemon.wait_until_ready()
        enqueue(home, receiver)
        eventually(lambda: len(listed(home, "--state", "failed")) == 1)
        enqueue(home, receiver)
        eventually(lambda: len(listed(home, "--state", "failed")) == 2)
        assert len(receiver.got) == 1
        again = home.call("webhooks", "resend", "--failed", "--url", receiver.url)
        assert (again.code, again.out) == (0, "2 webhooks will be sent again\n")
        eventually(lambda: is_delivered(home))
        assert len(receiver.got) == 3


def test_a_receiver_that_was_down_hears_of_it_when_it_is_up(home: Home) -> None:
    with hooked() as receiver:
        port = receiver.port
    with home.daemon(*SIGNED) as daemon:
        daemon.wait_until_ready()
        enqueue(home, receiver)
        eventually(lambda: any(one["attempts"] > 1 for one in listed(home)))
        assert "no connection to 127.0.0.1" in listed(home)[0]["error"]
        with hooked(port=port) as up:
            eventually(lambda: is_delivered(home))
    assert len(up.got) == 1


def test_a_node_that_ends_waits_for_its_receiver(home: Home) -> None:
    with hooked([Say(after_seconds=1.5)]) as receiver, home.daemon(*SIGNED) as daemon:
        daemon.wait_until_ready()
        enqueue(home, receiver)
        eventually(lambda: bool(receiver.got))
        daemon.send(signal.SIGTERM)
        assert daemon.end() == 0
        assert is_delivered(home)
    assert len(receiver.got) == 1


def test_killed_in_the_middle_of_it_the_next_one_tells_it(machine: Home) -> None:
    quick = ("--set", "webhooks.timeout_seconds=0.5")
    with hooked([Say(after_seconds=20)]) as receiver:
        with machine.daemon(*SIGNED, "--set", "webhooks.timeout_seconds=30") as daemon:
            daemon.wait_until_ready()
            job_id = enqueue(machine, receiver)
            eventually(lambda: bool(receiver.got))
            daemon.send(signal.SIGKILL)
            daemon.end()
        (held,) = listed(machine)
        assert (held["state"], held["attempts"]) == ("waiting", 1)
        # Its time will be over in half a minute: nobody has to wait for that here.
        make_due(machine)
        with machine.daemon(*SIGNED, *quick) as daemon:
            eventually(lambda: is_delivered(machine))
    first, second = receiver.got
    assert first.id == second.id
    assert second.json["data"]["id"] == job_id


def test_killed_between_the_end_and_the_telling_it_is_told_by_the_next(machine: Home) -> None:
    with hooked() as receiver:
        # Killed as soon as the end is seen: before, in or after the telling, as it comes.
        for _ in range(3):
            with machine.daemon(*SIGNED, "--set", "webhooks.retry_base_seconds=0.01") as daemon:
                daemon.wait_until_ready()
                job_id = enqueue(machine, receiver)
                eventually(partial(has_succeeded, machine, job_id))
                daemon.send(signal.SIGKILL)
                daemon.end()
        make_due(machine)
        with machine.daemon(*SIGNED):
            eventually(lambda: is_delivered(machine))
    told = {got.json["data"]["id"] for got in receiver.got}
    assert told == {1, 2, 3}
    assert len({got.id for got in receiver.got}) == 3


def test_what_cannot_be_told_is_refused_at_once(home: Home) -> None:
    for url, said in (
        ("ftp://example.com/", "webhook: wanted a URL that starts with https://"),
        ("http://example.com/", "[webhooks] allow_http = true allows http://"),
        ("https://127.0.0.1/", "[webhooks] allow_private = true allows 127.0.0.1"),
        ("https://169.254.169.254/", "nothing is ever sent to 169.254.169.254"),
    ):
        done = home.call("enqueue", "noop", "--webhook", url)
        assert done.code == 2
        assert said in done.err


def test_a_secret_that_cannot_be_read_is_a_fault_at_the_start(home: Home, tmp_path: Path) -> None:
    file = tmp_path / "nothing"
    done = home.call("run", "--set", f"webhooks.secret_file={file}", "--set", "http.listen=")
    assert done.code == 78
    assert f"{file}: webhooks.secret_file: cannot be read" in done.err


def test_messages_are_listed_and_sent_again_by_what_is_asked_for(home: Home) -> None:
    assert home.call("webhooks").out == "no such webhooks\n"
    with hooked() as receiver, home.daemon(*SIGNED) as daemon:
        daemon.wait_until_ready()
        job_id = enqueue(home, receiver)
        eventually(lambda: is_delivered(home))
        (found,) = listed(home, "--job", str(job_id))
        assert (found["job_id"], found["type"], found["status"]) == (job_id, "job.succeeded", 204)
        assert listed(home, "--state", "failed") == []
        assert receiver.url in home.call("webhooks").out
        assert home.call("webhooks", "resend", str(found["id"])).code == 0
        eventually(lambda: len(receiver.got) == 2)
        eventually(lambda: is_delivered(home))
        assert home.call("webhooks", "resend", "--job", str(job_id), "--json").json == {
            "sent_again": [found["id"]],
            "unknown": [],
        }
        eventually(lambda: len(receiver.got) == 3)
        unknown = home.call("webhooks", "resend", "4711")
        assert (unknown.code, unknown.err) == (3, "musterd: there is no webhook 4711\n")
        assert home.call("webhooks", "resend").code == 2
        assert home.call("webhooks", "resend", "--job", "1", "--url", "x").code == 2


def test_a_reload_brings_another_url(home: Home, tmp_path: Path) -> None:
    file = tmp_path / "musterd.toml"
    file.write_text("")
    with hooked() as receiver, home.daemon("--config", str(file), *SIGNED) as daemon:
        daemon.wait_until_ready()
        home.call("enqueue", "noop", "--wait")
        file.write_text(f"[webhooks]\nurl = {json.dumps(receiver.url)}\n")
        daemon.send(signal.SIGHUP)
        daemon.wait_for_line("event=reloaded")
        eventually(lambda: told_after(home, receiver))
    assert receiver.got[0].json["type"] == "job.succeeded"


def told_after(home: Home, receiver: Hooked) -> bool:
    home.call("enqueue", "noop", "--wait")
    return bool(receiver.got)


def has_succeeded(home: Home, job_id: int) -> bool:
    return bool(home.job(job_id)["state"] == "succeeded")


def make_due(home: Home) -> None:
    """What a dead node held is due again now."""
    if home.store_url:
        with psycopg.connect(home.store_url, autocommit=True) as connection:
            connection.execute(
                "update musterd.webhooks set due_at = clock_timestamp() where state = 'waiting'"
            )
        return
    with closing(sqlite3.connect(home.folder / "musterd.db")) as file, file:
        file.execute("update webhooks set due_at = 0 where state = 'waiting'")


def test_a_webhook_cannot_steer_the_daemon_that_sends_it(home: Home) -> None:
    with home.daemon(*LOCAL) as daemon:
        daemon.wait_until_ready()
        port = daemon.address.rpartition(":")[2]
        for host in ("127.0.0.1", "localhost"):
            url = f"http://{host}:{port}/queue/pause"
            assert home.call("enqueue", "noop", "--webhook", url, *LOCAL).code == 0
        eventually(lambda: [one["state"] for one in listed(home)] == ["failed"] * 2)
        assert all("this daemon itself" in one["error"] for one in listed(home))
        assert home.call("status", "--json").json["counts"]["paused_at"] is None


def test_a_receiver_with_a_secret_of_its_own_knows_what_is_meant_for_it(
    home: Home, tmp_path: Path
) -> None:
    (tmp_path / "own").write_text(NEXT_SECRET)
    with hooked() as receiver, hooked() as other:
        origin = receiver.url.partition("/hook")[0]
        own = f'webhooks.receivers=[{{url = "{origin}", secret_file = "{tmp_path / "own"}"}}]'
        with home.daemon(*SIGNED, "--set", own) as daemon:
            daemon.wait_until_ready()
            for one in (receiver, other):
                enqueue(home, one)
            eventually(lambda: is_delivered(home) and len(listed(home)) == 2)
        (got,), (elsewhere,) = receiver.got, other.got
    assert (genuine(got, NEXT_SECRET), genuine(got)) == (True, False)
    assert (genuine(elsewhere, NEXT_SECRET), genuine(elsewhere)) == (False, True)
