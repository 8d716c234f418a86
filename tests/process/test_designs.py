"""Real daemons with the files under docs/designs do what their designs say. Where a test would
take minutes, it shortens the times of the file, and nothing else.
"""

from __future__ import annotations

import json
import re
import signal
import sqlite3
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from datetime import datetime
from itertools import pairwise
from typing import Any

import attrs
import psycopg
import pytest

from tests.support.command import Daemon, Done, Home, eventually
from tests.support.hooked import Say, hooked
from tests.support.http_client import ask
from tests.support.pages import DOCS, blocks, page

NAMES = sorted(
    path.name for path in (DOCS / "designs").glob("[0-9]-*.toml") if "kinds" not in path.name
)
DELIVERED = "job.webhook_delivered"
SHORT_LEASE = {"workers.lease_timeout_seconds": 3, "leases.heartbeat_seconds": 0.5}


@attrs.frozen
class Design:
    """A machine whose verbs and daemons use one of the files."""

    home: Home
    name: str

    def options(self, **times: object) -> tuple[str, ...]:
        sets = [("--set", f"{key}={value}") for key, value in times.items()]
        return (
            "--config",
            str(DOCS / "designs" / self.name),
            *(word for one in sets for word in one),
        )

    def call(self, *arguments: str) -> Done:
        return self.home.call(*self.options(), *arguments)

    def add(self, kind: str, payload: object = None, **given: str) -> int:
        flags = [word for key, value in given.items() for word in (f"--{key}", value)]
        done = self.call("enqueue", kind, "--payload", json.dumps(payload or {}), "--json", *flags)
        assert done.code == 0, done
        made: int = done.json["id"]
        return made

    @contextmanager
    def daemon(self, **times: object) -> Generator[Daemon]:
        with self.home.daemon(*self.options(**times)) as daemon:
            daemon.wait_until_ready()
            yield daemon

    def state(self, job_id: int) -> str:
        found: str = self.home.job(job_id)["state"]
        return found

    def becomes(self, job_id: int, state: str) -> dict[str, Any]:
        eventually(lambda: self.state(job_id) == state)
        return self.home.job(job_id)

    def reason(self, job_id: int) -> str:
        """The code of the first reason why it does not run."""
        found: str = self.call("why", str(job_id), "--json").json["reasons"][0]["code"]
        return found

    def told(self, job_id: int) -> list[dict[str, Any]]:
        return self.call("events", "--job", str(job_id), "--json").lines


@pytest.mark.parametrize("name", NAMES)
def test_config_check_accepts_the_file_and_its_handlers_are_there(home: Home, name: str) -> None:
    design = Design(home, name)
    checked = design.call("config", "check")
    assert (checked.code, checked.err) == (0, "")  # and warns of nothing
    kinds = design.call("kinds", "--check")
    assert (kinds.code, kinds.err) == (0, "")


# -- design 0


def test_0_an_overspent_job_fails_and_halts_its_target(machine: Home) -> None:
    design = Design(machine, "0-targets.toml")
    with design.daemon() as daemon:
        bad = design.add("call", {"tokens": 2000}, target="shop")
        behind = design.add("call", {"tokens": 300}, target="shop")
        other = design.add("call", {"tokens": 300}, target="office")
        found = design.becomes(bad, "failed")
        assert (found["error"]["type"], found["attempt"]) == ("budget_exceeded", 1)
        assert design.becomes(other, "succeeded")["result"] == {"tokens": 300}
        assert (design.state(behind), design.reason(behind)) == ("queued", "target_halted")
        assert found["spent"] == {"tokens": 1100}
        wrong = ask(daemon.address, f"/targets/office/jobs/{bad}/resume/", method="POST")
        assert wrong.status == 404
        assert design.call("clear", str(bad)).code == 0
        design.becomes(behind, "succeeded")


def test_0_a_dead_workers_job_fails_and_a_person_resumes_it(machine: Home) -> None:
    design = Design(machine, "0-targets.toml")
    with design.daemon(**SHORT_LEASE) as daemon:
        lost = design.add("slow", target="shop")
        behind = design.add("report", target="shop")
        design.becomes(lost, "running")
        daemon.send(signal.SIGKILL)
        daemon.end()
    with design.daemon(**SHORT_LEASE) as daemon:
        found = design.becomes(lost, "failed")
        assert (found["error"]["type"], found["attempt"]) == ("lease_lost", 1)
        assert (design.state(behind), design.reason(behind)) == ("queued", "target_halted")
        answer = ask(daemon.address, f"/targets/shop/jobs/{lost}/resume/", method="POST")
        assert answer.status == 200
        design.becomes(behind, "succeeded")
        first, last = machine.job(lost), machine.job(behind)
        assert (first["state"], first["attempt"]) == ("succeeded", 2)
        assert first["finished_at"] <= last["started_at"]


def test_0_a_resumed_job_has_its_whole_budget(machine: Home) -> None:
    design = Design(machine, "0-targets.toml")
    with design.daemon(**SHORT_LEASE) as daemon:
        job = design.add("call", {"tokens": 900, "pause_seconds": 0.3})

        def spent() -> int:
            found: dict[str, int] = machine.job(job)["spent"] or {}
            return found.get("tokens", 0)

        eventually(lambda: spent() >= 300)
        daemon.send(signal.SIGKILL)
        daemon.end()
    with design.daemon(**SHORT_LEASE):
        assert design.becomes(job, "failed")["spent"]["tokens"] >= 300
        assert design.call("resume", str(job)).code == 0
        assert design.becomes(job, "succeeded")["spent"] == {"tokens": 900}


def test_0_a_drain_that_takes_too_long_pauses_what_runs(machine: Home) -> None:
    design = Design(machine, "0-targets.toml")
    with design.daemon(**{"shutdown.grace_period_seconds": 0.5}) as daemon:
        job = design.add("slow", target="shop")
        design.becomes(job, "running")
        behind = design.add("report", target="shop")
        daemon.send(signal.SIGTERM)
        assert daemon.end() == 0
    found = machine.job(job)
    assert (found["state"], found["reason"]) == ("paused", "Job was interrupted by user")
    assert design.state(behind) == "queued"
    with design.daemon() as daemon:
        time.sleep(1)
        assert design.reason(behind) == "target_halted"
        ask(daemon.address, f"/targets/shop/jobs/{job}/resume/", method="POST")
        design.becomes(behind, "succeeded")
        assert design.state(job) == "succeeded"


def test_0_a_request_from_another_process_pauses_a_running_job(machine: Home) -> None:
    design = Design(machine, "0-targets.toml")
    with design.daemon():
        job = design.add("slow")
        design.becomes(job, "running")
        assert design.call("pause", str(job)).code == 0
        found = design.becomes(job, "paused")
        assert (found["reason"], found["lease_owner"]) == ("Job was interrupted by user", None)
        assert design.call("resume", str(job)).code == 0
        found = design.becomes(job, "succeeded")
        assert (found["cancel_requested"], found["attempt"]) == (False, 2)


def test_0_each_tenant_has_its_own_crew(machine: Home) -> None:
    design = Design(machine, "0-targets.toml")
    with design.daemon() as daemon:
        for tenant in ("default", "acme"):
            assert design.call("enqueue", "slow", "--count", "9", "--tenant", tenant).code == 0
        for _ in range(6):
            time.sleep(0.5)
            crews = ask(daemon.address, "/status").json["node"]["tenants"]
            sizes = {one["name"]: one["idle"] + one["busy"] + one["retiring"] for one in crews}
            assert sizes == {"default": 2, "acme": 1}


# -- design 1


def test_1_a_killed_workers_job_goes_back_and_w_holds(machine: Home) -> None:
    design = Design(machine, "1-work-queue.toml")
    with design.daemon(**SHORT_LEASE) as daemon:
        assert design.call("enqueue", "slow", "--count", "8").code == 0
        eventually(lambda: in_hand(daemon) == 4)
        time.sleep(2)  # the crew might have eight workers
        assert in_hand(daemon) == 4
        daemon.send(signal.SIGKILL)
        daemon.end()
    with design.daemon(**SHORT_LEASE):
        found = [design.becomes(job_id, "succeeded") for job_id in range(1, 9)]
    outcomes = [[one["outcome"] for one in job["attempts"]] for job in found]
    assert outcomes.count(["lost", "succeeded"]) == 4
    assert outcomes.count(["succeeded"]) == 4


def in_hand(daemon: Daemon) -> int:
    counts: dict[str, int] = ask(daemon.address, "/status").json["counts"]["jobs"]
    return counts["running"] + counts["assigned"]


# -- design 2


def test_2_phases_pass_results_on_and_progress_is_that_of_the_design(home: Home) -> None:
    design = Design(home, "2-lifecycle.toml")
    with design.daemon():
        job = design.add("video")
        found = design.becomes(job, "succeeded")
        told = design.told(job)
    assert found["result"] == {"sent": ["download", "process"]}
    phases = found["progress"]["phases"]
    assert [one["state"] for one in phases] == ["succeeded"] * 3
    assert phases[1]["result"] == {"frames_of": "a.mp4"}
    types = [one["type"] for one in told if one["type"] != "job.progress"]
    assert types == ["job.enqueued", "job.started", *["job.phase_completed"] * 3, "job.succeeded"]
    progress = [one["data"]["overall"] for one in told if one["type"] == "job.progress"]
    assert progress == [17, 42, 93]
    completed = [one["data"] for one in told if one["type"] == "job.phase_completed"]
    assert [one["phase"] for one in completed] == ["download", "process", "upload"]
    assert [one["overall"] for one in completed] == [33, 67, 100]


def test_2_a_job_that_is_due_later_wakes_a_worker_at_its_time(home: Home) -> None:
    design = Design(home, "2-lifecycle.toml")
    with design.daemon():
        found = design.becomes(design.add("noop", **{"in": "2s"}), "succeeded")
    due, started = (datetime.fromisoformat(found[key]) for key in ("run_at", "started_at"))
    assert 0 <= (started - due).total_seconds() < 2


def test_2_what_the_process_died_with_has_failed_and_fatal_failures_stay(home: Home) -> None:
    design = Design(home, "2-lifecycle.toml")
    with design.daemon() as daemon:
        job, fatal = design.add("slow"), design.add("fatal")
        design.becomes(job, "running")
        assert len(design.becomes(fatal, "failed")["attempts"]) == 1
        daemon.send(signal.SIGKILL)
        daemon.end()
    with design.daemon():
        started = time.monotonic()
        assert design.becomes(job, "failed")["error"]["type"] == "lease_lost"
        assert time.monotonic() - started < 5  # at its start, not when the lease would have ended


def test_2_a_cancel_before_the_start_cancels_all_phases_and_is_told_once(home: Home) -> None:
    design = Design(home, "2-lifecycle.toml")
    with design.daemon():
        job = design.add("video", **{"in": "1h"})
        assert [design.call("cancel", str(job)).code for _ in range(2)] == [0, 4]
        found = design.becomes(job, "canceled")
        assert [one["state"] for one in found["progress"]["phases"]] == ["canceled"] * 3
        types = [one["type"] for one in design.told(job)]
    assert types == ["job.enqueued", "job.canceled"]


def test_2_a_shutdown_waits_for_webhooks_which_are_told_later(home: Home) -> None:
    design = Design(home, "2-lifecycle.toml")
    local = {"webhooks.allow_private": "true", "webhooks.allow_http": "true"}
    with hooked([Say(204, after_seconds=2)]) as receiver, design.daemon(**local) as daemon:
        asked = ("enqueue", "noop", "--webhook", receiver.url, "--json")
        job = home.call(*design.options(**local), *asked).json["id"]
        design.becomes(job, "succeeded")
        assert home.job(job)["webhook"]["sent_at"] is None
        eventually(lambda: len(receiver.got) == 1)
        daemon.send(signal.SIGTERM)
        assert daemon.end() == 0
    types = [one["type"] for one in design.told(job)]
    assert types[-2:] == ["job.succeeded", "job.webhook_delivered"]
    assert home.job(job)["webhook"]["sent_at"] is not None


@pytest.mark.parametrize(
    ("grace_seconds", "code", "state"), [(0.5, 1, "queued"), (20, 0, "succeeded")]
)
def test_2_a_shutdown_that_times_out_cleans_up_and_says_so(
    home: Home, grace_seconds: float, code: int, state: str
) -> None:
    design = Design(home, "2-lifecycle.toml")
    with design.daemon(**{"shutdown.grace_period_seconds": grace_seconds}) as daemon:
        job = design.add("slow")
        design.becomes(job, "running")
        daemon.send(signal.SIGTERM)
        assert daemon.end() == code
        assert daemon.wait_for_line("event=stopped")
    assert design.state(job) == state


def test_2_old_jobs_go_stale_then_are_deleted_and_both_hooks_are_called(home: Home) -> None:
    design = Design(home, "2-lifecycle.toml")
    hours = {"retention.stale_after_hours": 1 / 3600, "retention.delete_after_hours": 3 / 3600}
    with design.daemon(**hours, **{"retention.interval_seconds": 1}):
        job = design.add("noop")
        eventually(lambda: design.call("job", str(job)).code == 3, 60)
        eventually(lambda: [one["type"] for one in design.told(job)].count(DELIVERED) == 2, 60)
        types = [one["type"] for one in design.told(job)]
    assert types.index("job.stale") < types.index("job.deleted")


# -- design 3


def test_3_kinds_are_deterministic_and_a_job_is_put_back_with_backoff(machine: Home) -> None:
    design = Design(machine, "3-depth.toml")
    with design.daemon():
        twice = [design.add("resize", {"width": 7}) for _ in range(2)]
        other = design.add("resize", {"width": 8})
        again, bad, gone = (design.add(kind) for kind in ("import", "reject", "withdraw"))
        found = [design.becomes(one, "succeeded")["result"] for one in (*twice, other)]
        retried = design.becomes(again, "succeeded")
        assert [design.becomes(bad, "failed")["attempt"], design.state(gone)] == [1, "canceled"]
    assert found[0] == found[1] == {"duration_ms": 240}  # on each engine, on each machine
    assert found[2] != found[0]
    assert [one["outcome"] for one in retried["attempts"]] == ["retrying", "retrying", "succeeded"]
    assert retried["run_at"] > retried["created_at"]


def test_3_jobs_start_in_the_order_of_their_creation(machine: Home) -> None:
    design = Design(machine, "3-depth.toml")
    ids = [design.add("resize", {"width": number}) for number in range(6)]
    with design.daemon(**{"workers.default_count": 1, "workers.max_count": 1}):
        found = [design.becomes(one, "succeeded") for one in ids]
    for before, after in pairwise(found):
        assert before["finished_at"] <= after["started_at"]


def test_3_the_crew_follows_the_depth_of_the_queue(machine: Home) -> None:
    design = Design(machine, "3-depth.toml")
    with design.daemon() as daemon:
        assert design.call("enqueue", "slow", "--count", "20").code == 0
        eventually(lambda: [one["desired"] for one in decisions(daemon)[-1:]] == [8])
        eventually(lambda: [one["desired"] for one in decisions(daemon)[-1:]] == [2])
        for one in decisions(daemon):
            assert (one["policy"], one["raw_wish"]) == ("depth", one["due"])
            assert one["desired"] == min(max(one["due"], 2), 8)


def decisions(daemon: Daemon) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ask(daemon.address, "/scaling").json["decisions"]
    return found


# -- design 4


@pytest.mark.parametrize("name", ["4-everyone.toml", "4-stealing.toml"])
def test_4_without_leaders_each_daemon_does_all_and_none_twice(
    server_home: Home, name: str
) -> None:
    design = Design(server_home, name)
    soon = {"retention.stale_after_hours": 2 / 3600, "retention.interval_seconds": 1}
    with design.daemon(**soon) as one, design.daemon(**soon) as two:
        assert design.call("enqueue", "noop", "--count", "2000").code == 0
        with psycopg.connect(server_home.store_url, autocommit=True) as conn:
            marked = "select count(*) from musterd.jobs where stale_at is not null"
            eventually(lambda: conn.execute(marked).fetchone() == (2000,), 60)
        assert not [duty for duty in duties(design) if duty["node"]]
        for daemon in (one, two):
            text = ask(daemon.address, "/metrics").text
            (runs,) = re.findall(
                r'duty_runs_total{duty="retention",result="ok",tenant="default"} (\S+)', text
            )
            assert float(runs) > 0
    told = design.call("events", "--type", "job.stale", "--limit", "5000", "--json").lines
    assert len({one["job_id"] for one in told}) == len(told) == 2000


def test_4_a_daemon_alone_leads_everything(home: Home) -> None:
    design = Design(home, "4-leader.toml")
    seen = "select duty, held_for, is_held from duty_leaders where duty <> 'schedules'"
    with design.daemon(), closing(sqlite3.connect(home.folder / "musterd.db")) as conn:
        eventually(lambda: len(conn.execute(seen).fetchall()) == 7)
        time.sleep(1)
        for duty, held_for, is_held in conn.execute(seen):
            assert 1 <= held_for < 60, duty
            assert is_held == 1, duty


def test_4_leaders_can_be_seen_and_are_replaced_within_seconds(server_home: Home) -> None:
    design = Design(server_home, "4-leader.toml")
    with design.daemon() as one, design.daemon():
        node = one.wait_for_line("event=ready").partition("node=")[2].split()[0]
        eventually(lambda: node in {duty["node"] for duty in duties(design)})
        with psycopg.connect(server_home.store_url) as conn:  # as the page asks
            (queries,) = blocks(page("designs.md"), "sql")
            who, stuck = (conn.execute(one) for one in queries.text.encode().split(b";\n")[:2])
            assert node in {leader for _, leader, *_ in who.fetchall()}
            assert stuck.fetchall() == []
        one.send(signal.SIGKILL)
        killed = time.monotonic()
        eventually(lambda: node not in {duty["node"] for duty in duties(design)})
        assert 7 <= time.monotonic() - killed <= 20


def duties(design: Design) -> list[dict[str, Any]]:
    return design.call("duties", "--json").lines
