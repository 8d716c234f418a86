"""Phases in every isolation and of every behaviour: what each is given, what becomes of it."""

import json
import os
import sys
import time
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from random import Random
from typing import Any

import attrs
import pytest
import trio

from musterd.catalog.kinds import (
    Command,
    HttpCall,
    Isolation,
    Phase,
    PhaseInput,
    Pipeline,
    WorkKind,
)
from musterd.store.job_log import plain
from musterd.store.jobs import NewJob
from musterd.store.sqlite.engine import SqliteEngine
from musterd.workers.claiming.desk import Desk
from musterd.workers.claiming.held import Held
from musterd.workers.log_writer import LogWriter
from musterd.workers.outcome import Outcome
from musterd.workers.progress import PhaseBook, ProgressWriter
from musterd.workers.toolbox import Toolbox
from musterd.workers.worker import attempt
from tests.contract.job_tools import take_one
from tests.runners.rig import python_kind, some_tools
from tests.support.desks import make_desk
from tests.support.http_calls import answer
from tests.support.scripted_server import scripted
from tests.support.stage import live_settings


@attrs.define
class Line:
    """One worker with a store in memory, for whole attempts."""

    engine: SqliteEngine
    desk: Desk
    book: PhaseBook
    box: Toolbox
    nursery: trio.Nursery
    held: Held | None = None

    @property
    def said(self) -> str:
        assert self.held is not None
        assert self.held.log is not None
        return plain(self.held.log.text())

    async def run(self, kind: WorkKind, payload: Any = None, **of_claim: Any) -> Outcome:
        await self.engine.jobs.enqueue([NewJob("video", json.dumps(payload or {}))])
        claim = (await take_one(self.engine))._replace(**of_claim)
        self.desk.book_claims([claim], time.monotonic() + 70)
        self.held = held = self.desk.held[claim.id]
        held.start(1, (trio.current_time(), time.monotonic()), claim.claimed_epoch)
        with trio.fail_after(60):
            outcome = await attempt(held, kind, self.box, self.book)
        assert outcome is not None
        return outcome


@pytest.fixture
async def line() -> AsyncGenerator[Line]:
    engine = SqliteEngine(":memory:", time.time, busy_timeout_seconds=1)
    await engine.open()
    await engine.migrate()
    desk = make_desk()
    notes = ProgressWriter(desk, engine, live_settings())
    book = PhaseBook(desk, engine, Random(1), notes, LogWriter(engine, live_settings()))
    tools = some_tools()
    async with trio.open_nursery() as nursery:
        box = Toolbox(lambda: attrs.evolve(tools, variables=dict(os.environ)), nursery)
        nursery.start_soon(book.run)
        nursery.start_soon(notes.run)
        yield Line(engine, desk, book, box, nursery)
        nursery.cancel_scope.cancel()
    with trio.move_on_after(10, shield=True):
        await box.close()
        box.tools.connections.close()
        await engine.close()


def pipeline(*phases: tuple[str, WorkKind, PhaseInput]) -> WorkKind:
    made = tuple(
        Phase(name, attrs.evolve(kind, name="video", phase=name), input_)
        for name, kind, input_ in phases
    )
    return attrs.evolve(python_kind("facts"), name="video", behaviour=Pipeline(made))


def python(name: str, function: str, isolation: Isolation = "process") -> Any:
    return name, python_kind(function, isolation), "payload"


def command(name: str, *argv: str, input_: PhaseInput = "payload") -> Any:
    behaviour = Command(argv, None, 0o077, (), {}, ())
    return name, attrs.evolve(python_kind("facts"), behaviour=behaviour), input_


def result_of(outcome: Outcome) -> Any:
    assert outcome.ended == "success", outcome
    return None if outcome.result is None else json.loads(outcome.result)


@pytest.mark.parametrize(
    ("isolation", "prefix"),
    [("process", ""), ("process", "async_"), ("task", "async_"), ("thread", "")],
)
async def test_a_handler_reads_what_earlier_phases_returned(
    line: Line, isolation: Isolation, prefix: str
) -> None:
    kind = pipeline(
        command("first", "echo", '{"a": [1, "ü"]}'),
        command("second", "true"),
        python("third", f"{prefix}phased", isolation),
        python("last", f"{prefix}phased", isolation),
    )
    read = ["first", "second", "third", "last", "frist"]
    outcome = await line.run(kind, {"read": read})
    seen = result_of(outcome)
    assert seen["phase"] == "last"
    assert seen["seen"]["first"] == {"a": [1, "ü"]}
    assert seen["seen"]["second"] is None
    assert seen["seen"]["third"]["phase"] == "third"
    finished = "finished are: first, second, third"
    assert seen["seen"]["last"] == f"LookupError: phase 'last' has not finished; {finished}"
    known = "its phases are first, second, third, last"
    assert seen["seen"]["frist"] == f"LookupError: kind 'video' has no phase 'frist': {known}"
    assert line.said == "phase third\nin third\nphase last\nin last\n"
    assert line.held is not None
    assert line.held.last_note is not None
    assert (line.held.last_note.percent, line.held.last_note.phase) == (87.5, "last")


async def test_large_results_travel_when_they_are_asked_for(line: Line) -> None:
    tools = attrs.evolve(some_tools(), max_frame_bytes=100_000)  # less than both together
    line.box = Toolbox(lambda: tools, line.nursery)
    kind = pipeline(
        python("a", "large"), python("b", "large", "thread"), python("c", "reads_large")
    )
    outcome = await line.run(kind, {"size": 60_000, "read": ["a", "b", "a"]})
    assert result_of(outcome) == [60_000, 60_000, 60_000]
    await line.box.close()


async def test_any_thread_of_a_handler_may_ask(line: Line) -> None:
    kind = pipeline(command("first", "echo", "7"), python("last", "reads_in_threads"))
    assert result_of(await line.run(kind)) == [7] * 8


@pytest.mark.parametrize("isolation", ["process", "thread"])
async def test_a_result_that_is_too_large_fails_its_phase(line: Line, isolation: Isolation) -> None:
    kind = pipeline(python("a", "large", isolation), python("b", "reads_large"))
    outcome = await line.run(kind, {"size": 70_000})
    assert (outcome.ended, outcome.error_type) == ("failure", "result_invalid")
    assert str(outcome.message).startswith("phase 'a': result: found 70002 bytes, wanted at most")


async def test_a_command_is_given_the_payload_or_the_results_as_well(line: Line) -> None:
    say_phase = 'printf \'"%s of %s"\' "$MUSTERD_PHASE" "$MUSTERD_JOB_ID"'
    kind = pipeline(
        command("first", "sh", "-c", say_phase),
        command("plain", "cat"),
        command("all", "cat", input_="phases"),
    )
    outcome = await line.run(kind, {"n": 1.5})
    assert result_of(outcome) == {
        "payload": {"n": 1.5},
        "phases": {"first": "first of 1", "plain": {"n": 1.5}},
    }


@pytest.mark.parametrize("isolation", ["process", "thread"])
async def test_a_handler_sees_its_slot_and_all_results(line: Line, isolation: Isolation) -> None:
    slot = datetime(2030, 1, 2, 3, 4, tzinfo=UTC)
    kind = pipeline(command("first", "echo", "7"), python("last", "slotted", isolation))
    outcome = await line.run(kind, schedule="nightly", scheduled_for=slot)
    assert result_of(outcome) == ["nightly", "2030-01-02T03:04:00+00:00", {"first": 7}]


async def test_a_program_is_told_its_slot(line: Line) -> None:
    slot = datetime(2030, 1, 2, 3, 4, tzinfo=UTC)
    say = 'printf \'"%s %s"\' "$MUSTERD_SCHEDULE" "$MUSTERD_SCHEDULED_FOR"'
    outcome = await line.run(
        pipeline(command("only", "sh", "-c", say)), schedule="nightly", scheduled_for=slot
    )
    assert result_of(outcome) == "nightly 2030-01-02T03:04:00.000000Z"


async def test_a_server_is_told_the_slot(line: Line) -> None:
    slot = datetime(2030, 1, 2, 3, 4, tzinfo=UTC)
    async with scripted([answer("200 OK", b"{}")]) as server:
        call = HttpCall("POST", f"{server.url}/done", {}, {})
        http = attrs.evolve(python_kind("facts"), behaviour=call)
        await line.run(pipeline(("tell", http, "payload")), schedule="nightly", scheduled_for=slot)
    (seen,) = server.seen
    assert seen.headers["musterd-schedule"] == "nightly"
    assert seen.headers["musterd-scheduled-for"] == "2030-01-02T03:04:00.000000Z"


async def test_a_server_is_given_the_results_as_well(line: Line) -> None:
    async with scripted([answer("200 OK", b'{"ok": true}')]) as server:
        call = HttpCall("POST", f"{server.url}/done", {}, {})
        http = attrs.evolve(python_kind("facts"), behaviour=call)
        kind = pipeline(command("first", "echo", "5"), ("tell", http, "phases"))
        outcome = await line.run(kind, [1])
    (seen,) = server.seen
    assert result_of(outcome) == {"ok": True}
    assert json.loads(seen.body) == {"payload": [1], "phases": {"first": 5}}
    assert seen.headers["musterd-phase"] == "tell"


async def test_a_phase_that_ignores_its_limit_is_stopped(line: Line) -> None:
    stubborn = command("stay", sys.executable, "-c", "import time; time.sleep(60)")
    name, kind, input_ = stubborn
    limited = attrs.evolve(kind, time_limit_seconds=0.2, grace_seconds=0.2)
    outcome = await line.run(pipeline((name, limited, input_), python("after", "phased")))
    assert (outcome.ended, outcome.error_type) == ("failure", "time_limit")
    assert outcome.message == "phase 'stay': took longer than its time limit of 0.2 s"


async def test_an_error_names_its_phase(line: Line) -> None:
    kind = pipeline(command("first", "true"), command("second", "sh", "-c", "echo no >&2; exit 3"))
    outcome = await line.run(kind)
    assert outcome.message == "phase 'second': exited with status 3: no"
    assert line.said == "phase second\nno\n"
