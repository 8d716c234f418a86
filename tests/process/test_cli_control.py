"""Acting on single jobs from the command line, on the embedded store."""

from pathlib import Path

from tests.support.command import Home, eventually


def test_a_job_is_held_released_paused_resumed_and_canceled(home: Home) -> None:
    made = home.call("enqueue", "noop", "--hold", "--json").json
    assert made["state"] == "pending"
    steps = [
        ("release", "job 1 queued (it was pending)\n", "queued"),
        ("pause", "job 1 paused (it was queued)\n", "paused"),
        ("resume", "job 1 queued (it was paused)\n", "queued"),
        ("cancel", "job 1 canceled (it was queued)\n", "canceled"),
    ]
    for verb, said, state in steps:
        done = home.call(verb, "1")
        assert (done.code, done.out, done.err) == (0, said, "")
        assert home.job(1)["state"] == state


def test_what_a_state_does_not_allow_and_what_is_not_there(home: Home) -> None:
    home.call("enqueue", "noop")
    refused = home.call("release", "1")
    assert (refused.code, refused.out) == (4, "")
    assert refused.err == "musterd: job 1 is queued: release wants a job that is pending\n"
    missing = home.call("cancel", "7", "1", "--json")
    assert missing.code == 3
    assert missing.err == "musterd: there is no job 7\n"
    first, second = missing.lines
    assert (first["found"], first["state"]) == (False, None)
    assert (second["allowed"], second["state_before"], second["state"]) == (
        True, "queued", "canceled",
    )  # fmt: skip
    assert home.call("cancel").code == 2
    assert home.call("cancel", "0").code == 2


def test_a_key_is_given_to_one_job(home: Home) -> None:
    assert home.call("enqueue", "noop", "--dedup", "k").out == "job 1 queued\n"
    assert home.call("enqueue", "noop", "--dedup", "k").out == (
        "job 1 already has this key: none was enqueued\n"
    )
    assert home.call("enqueue", "noop", "--dedup", "k", "--json").json["dedup_key"] == "k"
    assert home.call("enqueue", "noop", "--dedup", "k", "--count", "2").code == 2


def test_a_running_job_is_stopped_by_its_daemon_at_once(home: Home, tmp_path: Path) -> None:
    catalog = tmp_path / "long.toml"
    catalog.write_text("[kinds.long]\nduration_ms = 600000\n")
    known = ("--set", f'catalog.paths=["{catalog}"]')
    rare = ("leases.heartbeat_seconds=60", "workers.lease_timeout_seconds=300")
    with home.daemon(*known, "--set", rare[0], "--set", rare[1]) as daemon:
        daemon.wait_until_ready()
        home.call("enqueue", "long", "--count", "2", *known)
        eventually(lambda: home.job(2)["state"] == "running")
        assert "has been asked to cancel it" in home.call("cancel", "1").out
        assert home.call("pause", "2").code == 0
        # Long before the next heartbeat: the daemon has been woken.
        eventually(lambda: home.job(1)["state"] == "canceled", 10)
        eventually(lambda: home.job(2)["state"] == "paused", 10)
    assert home.job(1)["reason"] == "canceled on request"
    assert home.job(2)["reason"] == "Job was interrupted by user"
    assert [one["outcome"] for one in home.job(1)["attempts"]] == ["canceled"]
