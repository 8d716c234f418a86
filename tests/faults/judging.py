"""The end of a campaign: the work is brought to its end, the evidence together, and judged."""

from __future__ import annotations

import json
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import attrs
import psycopg

from tests.checker.facts import ENDED, Record
from tests.checker.verdict import Judgement, judge
from tests.faults import figures
from tests.faults.figures import Spread
from tests.faults.fleet import RUN, left_of
from tests.faults.ground import DATABASE
from tests.faults.recording import Evidence, names_of, records, write_history
from tests.faults.scene import STATEMENT_SECONDS, Scene
from tests.faults.workload import all_ended
from tests.support.command import COMMAND

END_SECONDS = 90.0
DUMP_SECONDS = 600.0
EVERYTHING = ("--limit", "100000")
BUDGET = 10
STOP_SECONDS = 1.0  # a daemon that was frozen wakes up, and tells its handlers
RECORDS = (
    *("clients", "handlers", "events", "faults", "processes", "deliveries"),
    *("jobs", "messages", "schedule_rows", "counts"),
)
SESSIONS = """
    select application_name, state, query from pg_stat_activity
    where datname = %s and pid <> pg_backend_pid() and backend_type = 'client backend'
"""
MISPLACED = "select job_id, fault from musterd.check() order by job_id limit 20"
LOCKS = "select count(*) from pg_locks where locktype = 'advisory' and pid <> pg_backend_pid()"


@attrs.frozen
class Judged:
    """What came of a campaign."""

    seed: int
    history: Path
    judgement: Judgement
    tally: Mapping[str, int]
    jobs: int  # that the store holds in the end
    asked: int  # that some client was told of
    lost_jobs: int  # that some client was told of
    recoveries: Mapping[str, Spread]
    seconds: float
    left: tuple[str, ...]  # what should not be there any more

    @property
    def complaints(self) -> list[str]:
        told = [
            f"{one.name}: {violation.story}"
            for one in self.judgement.verdicts
            for violation in one.violations[:5]
        ]
        return [*told, *self.left]

    @property
    def lines(self) -> list[str]:
        """For people."""
        faults = ", ".join(f"{count} x {name}" for name, count in sorted(self.tally.items()))
        first = f"seed {self.seed}: {self.jobs} jobs, {self.seconds:.0f} s, {faults}"
        return [first, *(f"  {name}: {each}" for name, each in self.recoveries.items())]

    @property
    def how_to_judge_again(self) -> str:
        return f"seed {self.seed}; judge it again: python -m tests.checker {self.history}"


def judged(scene: Scene, seed: int, began: float) -> Judged:
    """Waits until all work has ended, lets the daemons leave, and asks the checker."""
    left = [] if has_settled(scene) else ["work or messages were left after the faults"]
    left += let_leave(scene)
    left += leftovers(scene)
    path = scene.notebook.folder / "history.jsonl"
    jobs = write_down(scene, path)
    with path.open(encoding="utf-8") as lines:
        judgement = judge(lines)
    story = figures.read(path)
    return Judged(
        seed, path, judgement, Counter(scene.notebook.tally), jobs, len(story.acknowledged),
        figures.lost_jobs(story), figures.recoveries(story), time.monotonic() - began, tuple(left),
    )  # fmt: skip


def has_settled(scene: Scene) -> bool:
    scene.workload.stop_enqueueing()
    settled = all_ended(scene.ground.url, END_SECONDS)
    scene.workload.__exit__(None, None, None)
    if scene.workload.troubles:
        raise scene.workload.troubles[0]
    return settled


def let_leave(scene: Scene) -> list[str]:
    for node in scene.fleet.nodes:
        scene.fleet.tell_to_leave(node)
    codes = {node.name: scene.fleet.has_left(node) for node in scene.fleet.nodes}
    return [f"{name} ended with {code}" for name, code in codes.items() if code]


def leftovers(scene: Scene) -> list[str]:
    """Processes, connections and locks that outlive the daemons; jobs that do not stand where they
    should, as the store itself sees it.
    """
    found = [f"process {each} was left behind" for each in left_of({RUN: scene.tag})]
    if scene.ground.bouncer is not None:
        scene.ground.bouncer.stop()
    for line in scene.ground.lines:
        line.hang_up()
    time.sleep(0.5)
    with psycopg.connect(scene.ground.url, autocommit=True) as session:
        rows = session.execute(SESSIONS, [DATABASE]).fetchall()
        found += [f"a session was left behind: {row}" for row in rows]
        if session.execute(LOCKS).fetchone() != (0,):
            found.append("advisory locks were left behind")
        rows = session.execute(MISPLACED).fetchall()
        found += [f"job {job_id} {fault}" for job_id, fault in rows]
    return found


def write_down(scene: Scene, path: Path) -> int:
    """The history of the campaign; gives how many jobs the store holds."""
    events = dumped(scene, "events", "--since", "0")
    names = names_of(records(events), scene.fleet.process_ids)
    jobs = dumped(scene, "jobs", *EVERYTHING)
    end = chain(
        ({"record": "event", **event} for event in records(events)),
        [{"record": "final", "at": now_text(scene), "queue_paused": False}],
        ({"record": "final.job", **job} for job in records(jobs)),
        final("message", dumped(scene, "webhooks", *EVERYTHING)),
        final("schedule", dumped(scene, "schedules")),
        (counts_of(status) for status in records(dumped(scene, "status"))),
    )
    files = (scene.notebook.harness, scene.notebook.witness)
    write_history(Evidence(header_of(scene), files, end, names), path)
    return sum(1 for _ in records(jobs))


def final(what: str, file: Path) -> Iterator[Record]:
    return ({"record": f"final.{what}", **each} for each in records(file))


def counts_of(status: Record) -> Record:
    counts = status["counts"]
    return {
        "record": "final.counts",
        "by_state": counts["jobs"],
        "enqueued": counts["enqueued_total"],
    }


def dumped(scene: Scene, *words: str) -> Path:
    """What the command says, as it stands; `status` calls a store without daemons unwell."""
    path = scene.notebook.folder / f"{words[0]}.jsonl"
    command = [*COMMAND, *words, "--json", *scene.options]
    with path.open("wb") as file:
        done = subprocess.run(
            command, env=scene.home.environ(), stdout=file, timeout=DUMP_SECONDS, check=False
        )
    assert done.returncode == 0 or words == ("status",), f"{words}: exit {done.returncode}"
    return path


def header_of(scene: Scene) -> dict[str, Any]:
    sizes = scene.sizes
    return {
        "records": RECORDS,
        "lease_seconds": sizes.lease_seconds,
        "margin_seconds": sizes.margin_seconds,
        "stop_seconds": STOP_SECONDS,
        "statement_seconds": STATEMENT_SECONDS,
        "caps": {"capped": 3},
        "budgets": {"": BUDGET},
        "schedules": True,
        "grace_seconds": 20,
        "retention": dict.fromkeys(ENDED, sizes.keep_seconds),
        "bounds": {"end": 40, "drain": 30, "tell": 3},
    }


def now_text(scene: Scene) -> str:
    with psycopg.connect(scene.ground.url) as session:
        row = session.execute("select to_json(clock_timestamp())::text").fetchone()
    assert row is not None
    text: str = json.loads(row[0])
    return text
