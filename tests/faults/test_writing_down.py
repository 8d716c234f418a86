"""What the harness and the handlers write becomes one history."""

from __future__ import annotations

import json
from pathlib import Path

from tests.checker.history import read
from tests.faults.figures import Story, recoveries
from tests.faults.recording import Evidence, Recorder, names_of, records, write_history
from tests.support.wire_proxy import Talk

NODE = "vm-77-a1b2c3"


def line(**fields: object) -> str:
    return json.dumps(fields) + "\n"


def test_lines_of_all_files_stand_in_the_order_of_their_time(tmp_path: Path) -> None:
    harness, witness, path = (tmp_path / name for name in ("harness", "witness", "history"))
    handler = {"job": 1, "attempt": 1, "who": "node:n001"}
    harness.write_text(
        line(record="fault", t=10.0, what="shipping_ends")
        + line(record="fault", t=10.4, what="failover", lost_since_t=10.15)
        + line(record="process", t=10.5, what="ended", node="n001")
    )
    witness.write_text(
        line(record="effect", t=10.3, **handler) + line(record="begin", t=10.1, **handler)
    )
    event = {"record": "event", "id": 1, "at": "2030-01-01T00:00:00Z", "type": "node.started"}
    names = names_of([{**event, "data": {"node": NODE}}], {77: "n001", 78: "n002"})
    header = {"records": ["faults"]}
    write_history(Evidence(header, (harness, witness), (event,), names), path)
    with path.open() as text:
        told = [record for _, record in read(text)]
    assert [one["record"] for one in told[1:]] == [
        *("fault", "begin", "effect", "fault", "process", "event")
    ]
    assert [one["t"] for one in told[1:6]] == [0.0, 0.1, 0.3, 0.4, 0.5]
    assert told[2]["who"] == f"node:{NODE}"
    assert told[5]["node"] == NODE
    assert told[4]["lost_since"] == 3  # the effect, and what followed


def test_a_line_is_in_the_file_before_its_deed_is_begun(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "lines")
    call = recorder.call("enqueue", "c1", kind="work")
    assert [one["op"] for one in records(tmp_path / "lines")] == ["enqueue"]
    recorder.reply(call, "ok", job=7)
    recorder.close()
    assert [one["id"] for one in records(tmp_path / "lines")] == [call, call]


def test_figures_count_from_the_fault_to_the_next_end_of_work() -> None:
    faults = [
        {"what": "kill", "node": NODE, "wall": 100.0},
        {"what": "thaw", "node": NODE, "wall": 100.5},
        {"what": "store_away", "how": "postmaster_kill", "wall": 103.0},
        {"what": "cut_reply", "wall": 200.0},
    ]
    lost = [(NODE, 99.0, 104.0), (NODE, 100.2, 105.0), ("other", 99.0, 106.0)]
    found = recoveries(Story(faults, [99.0, 101.0, 105.5], lost))
    assert {name: (each.count, each.most) for name, each in found.items()} == {
        "kill": (1, 1.0),
        "kill, until what it held was taken from it": (1, 4.0),
        "postmaster_kill": (1, 2.5),
    }


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + (len(body) + 4).to_bytes(4, "big") + body


def parse(name: bytes, text: bytes) -> bytes:
    return message(b"P", name + b"\0" + text + b"\0\0\0")


def bind(name: bytes) -> bytes:
    return message(b"B", b"\0" + name + b"\0\0\0\0\0\0\0")


SYNC, READY, IN_BLOCK = message(b"S"), message(b"Z", b"I"), message(b"Z", b"T")


def done(tag: bytes) -> bytes:
    return message(b"C", tag + b"\0")


def test_a_commit_is_known_by_its_command() -> None:
    talk = Talk()
    assert not talk.client_says(message(b"Q", b"begin\0"))
    assert not talk.server_says(done(b"BEGIN"))
    assert not talk.server_says(IN_BLOCK)
    assert [talk.client_says(one) for one in (parse(b"", b"delete from x"), bind(b""), SYNC)] == [
        False
    ] * 3
    assert talk.client_says(message(b"Q", b"COMMIT\0"))
    assert talk.server_says(done(b"COMMIT"))
    assert not talk.server_says(READY)


def test_a_prepared_statement_that_writes_commits_at_the_end_of_its_request() -> None:
    talk = Talk()
    talk.client_says(parse(b"s1", b"with a as (select 1) update x set y = 1"))
    for _ in range(2):
        assert not talk.client_says(bind(b"s1"))
        assert talk.client_says(SYNC)
        assert not talk.server_says(done(b"UPDATE 1"))
        assert talk.server_says(READY)
    talk.client_says(bind(b"s1"))
    assert not talk.server_says(message(b"E", b"SERROR\0\0"))
    assert not talk.server_says(READY)  # it has failed


def test_reading_is_no_commit() -> None:
    talk = Talk()
    told = [parse(b"", b"select * from jobs where deleted"), bind(b""), SYNC]
    assert not any(talk.client_says(one) for one in told)
    assert not talk.server_says(READY)
