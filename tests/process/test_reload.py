"""A daemon reads its configuration anew: by the verb, by HTTP, by a signal."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

from tests.support.command import Daemon, Home, eventually
from tests.support.http_client import ask
from tests.support.site import WORKERS, Site


def test_the_verb_says_what_came_of_it(site: Site) -> None:
    with site.daemon() as daemon:
        there = ("--set", daemon.listen)
        same = site.call("reload", "--wait", "--json", *there).json
        assert (same["result"], same["generation"], same["changed"]) == ("unchanged", 2, [])
        site.write("[workers]\nmax_count = 9\n[store]\npool_size = 9\n")
        done = site.call("reload", "--wait", *there)
        assert done.code == 0
        assert "reloaded; generation 3" in done.out
        *changed, code = done.out.splitlines()[2:]
        assert code.startswith("code of Python kinds is read anew")
        rows = [line.split()[:4] for line in changed]
        assert rows == [
            ["workers.max_count", "6", "9", "at"], ["store.pool_size", "4", "9", "needs"],
        ]  # fmt: skip
        metrics = ask(daemon.address, "/metrics").text
        assert "musterd_workers_max 9.0" in metrics
        assert "musterd_config_generation 3.0" in metrics
        site.write("[workers]\nmax_cuont = 9\n[catalog]\npaths = ['no-such']\n")
        bad = site.call("reload", "--wait", *there)
        assert (bad.code, bad.out) == (78, "")
        missing = site.file.parent / "no-such"
        faults = [line.strip() for line in bad.err.splitlines()[1:]]
        assert faults == [
            f"{site.file}:2: workers.max_cuont: unknown key - did you mean max_count?",
            f"{site.file}:4: catalog.paths: {missing} cannot be read: No such file or directory",
        ]
        assert site.call("config", "check").err.splitlines()[1:] == bad.err.splitlines()[1:]
        assert "musterd_config_reload_success 0.0" in ask(daemon.address, "/metrics").text
        site.write()
        begun = site.call("reload", *there)
        assert (begun.code, "its log will have the result" in begun.out) == (0, True)
        daemon.wait_for_line("event=reloaded generation=4")


def test_where_nobody_is_or_somebody_else_nothing_reloads(small: Site, tmp_path: Path) -> None:
    nobody = small.call("reload", "--set", "http.listen=127.0.0.1:9")
    assert (nobody.code, nobody.out) == (69, "")
    assert "no reload: no daemon answers at 127.0.0.1:9" in nobody.err
    assert "systemctl reload musterd" in nobody.err
    with small.daemon() as daemon:
        other = Home(tmp_path / "other").call("reload", "--wait", "--set", daemon.listen)
        assert (other.code, "uses another store" in other.err) == (69, True)
        assert "reloaded" not in "".join(daemon.log)


# Each breaks one step on the way from the files to what runs.
BROKEN = {
    "no TOML": (WORKERS + "x", "not TOML"),
    "an unknown kind": (
        WORKERS + '[schedules.x]\nkind = "nothing"\nevery_seconds = 9\n', "nothing",
    ),
    "a catalog that is none": (WORKERS + '[catalog]\npaths = ["bad.toml"]\n', "kinds.x.duration"),
    "a module that is not there": (
        WORKERS + '[catalog]\npaths = ["gone.toml"]\n', "cannot import no_such_module",
    ),
    "a secret that is not there": (
        WORKERS + '[webhooks]\nsecret_file = "no-such-file"\n', "webhooks.secret_file",
    ),
    "a token that is not there": (
        WORKERS + '[http]\ntoken_file = "no-such-file"\n', "http.token_file",
    ),
    "a tenant without a store": (
        WORKERS + '[tenants.acme]\nurl_file = "no-such-file"\n', "url_file",
    ),
}  # fmt: skip


def test_what_breaks_on_the_way_changes_nothing(small: Site) -> None:
    folder = small.file.parent
    (folder / "bad.toml").write_text("[kinds.x]\nduration_ms = -1\n")
    (folder / "gone.toml").write_text('[kinds.x]\npython = "no_such_module:f"\n')
    with small.daemon() as daemon:
        eventually(lambda: bool(hashes(daemon)))
        before = hashes(daemon)
        for name, (text, said) in BROKEN.items():
            small.write(text.replace("= 6", "= 9"))
            answer = ask(daemon.address, "/reload", method="POST")
            assert (answer.status, said in " ".join(answer.json["faults"])) == (422, True), name
        metrics = ask(daemon.address, "/metrics").text
        assert "musterd_workers_max 6.0" in metrics
        assert "musterd_config_generation 1.0" in metrics
        assert "musterd_config_reload_success 0.0" in metrics
        seen = ask(daemon.address, "/status").json["node"]
        assert (seen["generation"], len(seen["reload_faults"])) == (1, 1)
        small.write(WORKERS.replace("6", "9"))
        healed = ask(daemon.address, "/reload", method="POST")
        assert (healed.status, healed.json["result"]) == (200, "applied")
        assert ask(daemon.address, "/status").json["node"]["reload_faults"] == []
        assert "musterd_config_reload_success 1.0" in ask(daemon.address, "/metrics").text
        assert hashes(daemon) == before  # the size of a crew is each node's own
        daemon.process.terminate()
        assert daemon.end() == 0
    told = [one["data"]["result"] for one in _reloads(small)]
    assert told == ["refused"] * len(BROKEN) + ["applied"]


def hashes(daemon: Daemon) -> list[str]:
    return [one["config_hash"] for one in ask(daemon.address, "/nodes").json["nodes"]]


def _reloads(site: Site) -> list[dict[str, Any]]:
    return site.call("events", "--type", "config.reloaded", "--json").lines


def test_work_that_runs_goes_on_as_it_began(small: Site) -> None:
    """Also in child processes; the next attempt, and the next job, go by what is new, also the
    code of modules.
    """
    small.speak("old", code=75)
    catalog = WORKERS + '[catalog]\npaths = ["kinds"]\n'
    small.write(catalog)
    with small.daemon() as daemon:
        put(daemon, "say", gate=str(small.gate))
        put(daemon, "shout")
        eventually(lambda: all(Path(f"{small.gate}.{one}").exists() for one in ("say", "shout")))
        small.speak("newer")  # of another length: Python goes by whole seconds and lengths
        daemon.send(signal.SIGHUP)
        daemon.wait_for_line("event=reloaded")
        assert [job(daemon, one)["state"] for one in (1, 2)] == ["running"] * 2
        small.gate.touch()
        eventually(lambda: [job(daemon, one)["state"] for one in (1, 2)] == ["succeeded"] * 2)
        assert [job(daemon, one)["result"] for one in (1, 2)] == ["old", "newer"]
        outcomes = [one["outcome"] for one in job(daemon, 2)["attempts"]]
        assert outcomes == ["retrying", "succeeded"]
        for _ in range(6):  # also the worker whose child knows the old module
            put(daemon, "say")
        eventually(lambda: all(job(daemon, one)["result"] for one in range(3, 9)))
        assert {job(daemon, one)["result"] for one in range(3, 9)} == {"newer"}


def put(daemon: Daemon, kind: str, **payload: str) -> None:
    body = json.dumps({"kind": kind, "payload": payload}).encode()
    sent = {"Content-Type": "application/json"}
    assert ask(daemon.address, "/jobs", sent, method="POST", body=body).status == 201


def job(daemon: Daemon, job_id: int) -> dict[str, Any]:
    found: dict[str, Any] = ask(daemon.address, f"/jobs/{job_id}").json
    return found


def test_tokens_are_read_anew(small: Site) -> None:
    token = small.file.parent / "token"
    token.write_text("the-first-token")
    small.write(WORKERS + '[http]\ntoken_file = "token"\n')
    with small.daemon() as daemon:
        old, new = ({"Authorization": f"Bearer the-{one}-token"} for one in ("first", "second"))
        assert ask(daemon.address, "/status", old).status == 200
        token.write_text("the-second-token")
        late = small.call("reload", "--set", daemon.listen)
        assert (late.code, "refuses the token" in late.err) == (69, True)
        daemon.send(signal.SIGHUP)
        daemon.wait_for_line("setting changed.*key=http.token_file")
        assert ask(daemon.address, "/status", old).status == 401
        assert ask(daemon.address, "/status", new).status == 200
        log = "\n".join(daemon.log)
    assert "second-token" not in log


def test_a_larger_payload_is_let_in_after_a_reload(small: Site) -> None:
    small.write(WORKERS + "[limits]\nmax_payload_bytes = 1000\n")
    body = json.dumps({"kind": "noop", "payload": "x" * 100_000}).encode()
    sent = {"Content-Type": "application/json"}
    with small.daemon() as daemon:
        assert ask(daemon.address, "/jobs", sent, method="POST", body=body).status == 413
        small.write()
        assert ask(daemon.address, "/reload", method="POST").status == 200
        assert ask(daemon.address, "/jobs", sent, method="POST", body=body).status == 201
