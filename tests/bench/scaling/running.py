"""Gives each load to all contestants at once, and tells what they did with it."""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Sequence

from tests.bench.scaling import celery, modelled
from tests.bench.scaling.daemons import POLICIES, REST_SECONDS, Daemon
from tests.bench.scaling.figures import Found
from tests.bench.scaling.loads import LOADS, Arrival, arrivals
from tests.bench.scaling.telling import HEADS, offline, rows, schedules_line
from tests.support.postgres_server import PostgresServer

LOAD_SECONDS = 60.0
READY_SECONDS = 18.0  # to start, to measure each kind, and to rest
Contestant = Daemon | celery.Celery


def main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.scaling")
    parser.add_argument("loads", nargs="*", default=[], help=f"of {', '.join(LOADS)}")
    parser.add_argument("--seconds", type=float, default=LOAD_SECONDS, help="of each load")
    parser.add_argument("--model", action="store_true", help="what costs how much, by the model")
    asked = parser.parse_args(words)
    if asked.model:
        print(modelled.HEADS, *modelled.rows(), sep="\n")
        return
    if unknown := set(asked.loads) - set(LOADS):
        parser.error(f"no such load: {', '.join(sorted(unknown))}")
    if why := celery.missing():
        print(f"Celery is left out: {why}.\n")
    print(HEADS, flush=True)
    told: list[str] = []
    with PostgresServer(durable=True) as server:
        for load in asked.loads or LOADS:
            found = run(server, arrivals(load, asked.seconds), asked.seconds)
            window_seconds = asked.seconds + REST_SECONDS
            known = offline(found, window_seconds)
            for row in rows(load, found, known):
                print(row, flush=True)
            told.append(schedules_line(load, known))
    print("", *told, sep="\n")


def run(server: PostgresServer, jobs: Sequence[Arrival], seconds: float) -> Sequence[Found]:
    """Side by side: whatever else the machine does hits all of them."""
    contestants: list[Contestant] = [Daemon(server, name) for name in POLICIES]
    if celery.missing() is None:
        contestants.append(celery.Celery())
    at_epoch = time.time() + READY_SECONDS + REST_SECONDS
    threads = [
        threading.Thread(target=one.run, args=[jobs, at_epoch, seconds + REST_SECONDS])
        for one in contestants
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = [one.found for one in contestants]
    assert all(one is not None for one in found), "a contestant did not come to its end"
    return [one for one in found if one is not None]
