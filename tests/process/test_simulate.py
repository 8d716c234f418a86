"""What other settings would have made of past jobs, and which to take, as an operator asks it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.command import Home

LOG = ("events", "--since", "0", "--json")


def told(number: int, second: float, what: str, job_id: int) -> str:
    at = f"2026-11-02T08:{int(second) // 60:02}:{second % 60:06.3f}Z"
    data = {"attempt": 1, "node": "north", "worker": job_id} if what != "enqueued" else {}
    return json.dumps(
        {"id": number, "at": at, "type": f"job.{what}", "tenant": "default", "job_id": job_id}
        | {"kind": "k", "data": data}
    )


def burst() -> str:
    """Forty jobs of 10 s at once, which had 8 workers."""
    lines = [(0.25, "enqueued", job) for job in range(1, 41)]
    for job in range(1, 41):
        start = 1.0 + (job - 1) // 8 * 10
        lines += ((start, "started", job), (start + 10, "succeeded", job))
    lines.sort(key=lambda one: one[0])
    return "".join(told(number, *one) + "\n" for number, one in enumerate(lines, start=1))


def test_a_store_that_has_done_some_jobs(machine: Home, tmp_path: Path) -> None:
    with machine.daemon() as daemon:
        daemon.wait_until_ready()
        machine.call("enqueue", "noop", "--count", "30", "--wait")
        machine.call("enqueue", "report", "--count", "12", "--wait")
    found = machine.call("simulate", "--json", "--with", "workers.max_count=3").json
    assert (found["trace"]["attempts"], found["trace"]["due_unknown"]) == (42, 0)
    assert found["trace"]["left_out"] == {
        "running": 0, "waiting": 0, "unstarted": 0, "cut": False,
    }  # fmt: skip
    assert found["trace"]["busy_most"] <= 8
    assert found["changed"] == {"workers.max_count": {"from": 8, "to": 3}}
    assert found["present"]["settings"]["workers.max_count"] == 8
    assert found["proposed"]["crew_most"] <= 3
    assert found["proposed"]["wait_max_seconds"] >= found["present"]["wait_max_seconds"]

    wanted = tmp_path / "wanted.toml"
    wanted.write_text("[workers]\nmax_count = 3\n")
    against = machine.call("simulate", "--json", "--against", str(wanted)).json
    assert against["proposed"] == found["proposed"]

    log = tmp_path / "log.jsonl"
    log.write_text(machine.call(*LOG).out)
    from_file = machine.call("simulate", "--json", "--trace", str(log)).json
    assert from_file["trace"]["attempts"] == 42
    assert from_file["proposed"] is None

    advice = machine.call("tune", "--json", "--wait", "0.5").json
    assert advice["reached"] is True
    assert advice["recommended"]["wait_seconds"] <= 0.5
    assert advice["simulations"] <= 40


def test_a_log_in_a_file_is_shown_to_a_person(home: Home) -> None:
    done = home.call("simulate", "--trace", "-", "--with", "workers.max_count=40", given=burst())
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == "trace: 40 attempts in 50.8 s from 2026-11-02 08:00:00Z"
    assert lines[2] == "proposed: workers.max_count 8 -> 40"
    rows = {line[:14].strip(): line[14:].split("  ") for line in lines[4:18]}
    p95, crew = (
        [cell for cell in rows[name] if cell.strip()] for name in ("wait p95", "crew most")
    )
    assert [cell.strip() for cell in p95] == ["40.8 s", "41.0 s", "1.0 s"]
    assert [cell.strip() for cell in crew] == ["-", "8", "40"]

    done = home.call("tune", "--trace", "-", "--wait", "15", given=burst())
    assert (done.code, done.err) == (0, "")
    workers, _, scaling = done.out[done.out.index("[workers]") :].rstrip().partition("\n\n")
    assert workers.splitlines() == ["[workers]", "default_count = 1", "max_count = 19"]
    assert scaling.splitlines() == ["[scaling]", 'policy = "latency"', "max_wait_seconds = 15"]
    assert "max 8 -> 19: p95 wait 41.0 s -> 11.0 s" in done.out


def test_what_cannot_be_simulated_is_said(home: Home, tmp_path: Path) -> None:
    empty = home.call("simulate")
    assert (empty.code, empty.out) == (3, "")
    assert "has nothing to simulate" in empty.err
    assert "run some jobs first" in empty.err
    log = tmp_path / "log.jsonl"
    log.write_text(told(1, 0.0, "enqueued", 1) + "\n")
    assert home.call("tune", "--trace", str(log)).code == 3
    log.write_text(told(1, 0.0, "enqueued", 1) + '\n{"id": 2, "at": "yesterday"}\n')
    broken = home.call("simulate", "--trace", str(log))
    assert (broken.code, broken.out) == (2, "")
    assert f"{log}: line 2: `type` is no text" in broken.err
    for arguments, code, said in (
        (("--trace", str(log), "--since", "7d"), 2, "takes a position or a time only"),
        (("--with", "workers.max_count=1"), 78, "default_count <= max_count"),
    ):
        done = home.call("simulate", *arguments)
        assert (done.code, done.out, said in done.err) == (code, "", True), done
    done = home.call("simulate", "--trace", "-", "--with", "log.level=debug", given=burst())
    assert done.code == 0
    assert "changes nothing that the model knows" in done.err
    away = home.call("tune", "--set", "store.url=postgresql://127.0.0.1:1/none")
    assert away.code == 69


def test_what_another_system_did_is_read_from_csv(home: Home, tmp_path: Path) -> None:
    head = "enqueued,started,finished,kind"
    jobs = [f"0.25,{1 + n // 2},{3 + n // 2},mail" for n in range(8)]
    found = home.call("simulate", "--trace", "-", "--json", given="\n".join([head, *jobs])).json
    assert found["trace"]["attempts"] == 8
    assert found["trace"]["begun_at"] == "1970-01-01T00:00:00.250000Z"
    assert found["present"]["wait_max_seconds"] < found["trace"]["wait_max_seconds"]
    advice = home.call("tune", "--trace", "-", given="\n".join([head, *jobs]))
    assert (advice.code, "[workers]" in advice.out or "as they are" in advice.out) == (0, True)
    odd = tmp_path / "odd.csv"
    odd.write_text(f"{head}\n1,2,3,mail\nsoon,2,3,mail\n")
    done = home.call("simulate", "--trace", str(odd))
    assert (done.code, done.out) == (2, "")
    assert f"{odd}: line 3, enqueued: found 'soon', wanted a time as" in done.err
    odd.write_text("enqueued,started,kind\n1,2,mail\n")
    done = home.call("simulate", "--trace", str(odd))
    assert (done.code, "line 1: found enqueued, started, kind, wanted" in done.err) == (2, True)
    odd.write_text(f"{head}\n1,,,mail\n")
    done = home.call("simulate", "--trace", str(odd))
    assert (done.code, "has nothing to simulate" in done.err) == (3, True)
    done = home.call("simulate", "--trace", str(odd), "--since", "5")
    assert (done.code, "with CSV, --since takes a time only" in done.err) == (2, True)
