"""`make bench`: prints every figure with its ratio to the bare database of the same run. ARGS:
`quick` for a tenth of the jobs; alone: `growth` for what grows with the work, `hot` for what a job
costs, `page` for the live page, `tracing` for traces, `scaling` for crews under each policy.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from tests.bench import (
    caps,
    ceiling,
    embedded,
    enqueueing,
    hot,
    nodes,
    pages,
    postgres,
    retention,
    runners,
    targets,
    tenants,
    tracing,
    why,
)
from tests.bench.growth import running
from tests.bench.scaling import running as scaling
from tests.support.postgres_server import PostgresServer


def main(words: list[str]) -> None:
    if words[:1] == ["growth"]:
        running.main(words[1:])
        return
    if words[:1] == ["page"]:
        for what, found in pages.lines():
            _say(what, found)
        return
    if words[:1] == ["tracing"]:
        _tracing()
        return
    if words[:1] == ["scaling"]:
        scaling.main(words[1:])
        return
    if words[:1] == ["hot"]:
        hot.main(words[1:])
        return
    share = 10 if "quick" in words else 1
    with PostgresServer(durable=True) as server:
        bare = ceiling.claim_and_complete(server)
        _say("bare claim-100 + complete-100 (pgbench)", f"{bare:,.0f} jobs/s")
        _drains(server, share)
        _filling(server, 200_000 // share)
        _targets(server, share)
        _caps(server, share)
        late = postgres.pickups(server)
        p50, p99 = (postgres.percentile(late, one) for one in (0.5, 0.99))
        _say("idle pick-up, commit to end of a no-op job", f"p50 {p50:.2f} ms, p99 {p99:.2f} ms")
        rest = postgres.idle(server)
        _say(
            "idle daemon",
            f"{rest.core_percent:.2f} % of a core, {rest.statements_a_second:.1f} statements/s,"
            f" {rest.resident_mib:.0f} MiB",
        )
        _many_tenants(server)
        for what, found in nodes.lines(server, share):
            _say(what, found)
        rate = embedded.drain(60_000 // share)
        _say("embedded drain, max_count 100", f"{rate:,.0f} jobs/s")
        late = embedded.pickups()
        p50, p99 = (postgres.percentile(late, one) for one in (0.5, 0.99))
        _say("embedded pick-up, commit to the handler", f"p50 {p50:.2f} ms, p99 {p99:.2f} ms")
        _python_kinds(server, share)
        _asking_why(server, 1_000_000 // share)
        _retaining(server, 600 // share)


def _drains(server: PostgresServer, share: int) -> None:
    first = 100_000 // share
    for queued in (1_000, 100_000 // share, 1_000_000 // share):
        rows = min(queued, first)
        before = ceiling.claim_and_complete(server)
        found = postgres.drain(server, rows, queued)
        bare = (before + ceiling.claim_and_complete(server)) / 2
        cpu, wal = found.cpu_microseconds_a_job, found.wal_bytes_a_job
        _say(
            f"drain of {rows:,} from {queued:,} queued, max_count 100",
            f"{found.jobs_a_second:,.0f} jobs/s = {found.jobs_a_second / bare:.2f} of bare,"
            f" {cpu:.1f} us CPU/job, {wal:,.0f} B WAL/job, {found.resident_mib:.0f} MiB",
        )


def _retaining(server: PostgresServer, seconds: float) -> None:
    *over_time, ratio = retention.lines(retention.sizes(server, seconds, jobs_a_second=1_000))
    _say("1,000 jobs/s, each deleted after 36 s", f"{over_time[-1]}; {ratio}")


def _many_tenants(server: PostgresServer) -> None:
    what = f"idle daemon, {tenants.TENANTS} tenants"
    rest, sessions = tenants.idle_postgres(server)
    said = f"{rest.core_percent:.2f} % of a core, {rest.statements_a_second:.1f} statements/s"
    _say(f"{what}, PostgreSQL", f"{said}, {sessions} connections, {rest.resident_mib:.0f} MiB")
    rest = tenants.idle_embedded()
    _say(f"{what}, embedded", f"{rest.core_percent:.2f} % of a core, {rest.resident_mib:.0f} MiB")


def _filling(server: PostgresServer, jobs: int) -> None:
    before = ceiling.copy(server, jobs, enqueueing.BATCH)
    rate = enqueueing.fill(server, jobs)
    bare = (before + ceiling.copy(server, jobs, enqueueing.BATCH)) / 2
    _say("bare COPY, 10,000 at a time", f"{bare:,.0f} rows/s")
    beside = f"{rate:,.0f} jobs/s = {rate / bare:.2f} of bare"
    _say("enqueue_many by one client, 10,000 at a time", beside)


def _targets(server: PostgresServer, share: int) -> None:
    for engine, by_scene in targets.claims(server, share).items():
        without, *_ = by_scene.values()
        for scene, milliseconds in by_scene.items():
            beside = f"{milliseconds:.2f} ms = {milliseconds / without:.2f} of none"
            _say(f"claim of {targets.BATCH}, {engine}, {scene}", beside)


def _caps(server: PostgresServer, share: int) -> None:
    for engine, by_scene in caps.rates(server, share).items():
        for scene, rate in by_scene.items():
            beside = f"{rate:,.0f} jobs/s = {rate / by_scene[caps.WITHOUT.name]:.2f} of none"
            _say(f"batches of {caps.BATCH}, {engine}, {scene}", beside)


def _python_kinds(server: PostgresServer, share: int) -> None:
    rows = 20_000 // share
    engines: dict[str, Callable[[str], float]] = {
        "embedded": lambda kind: runners.drain(kind, rows),
        "PostgreSQL": lambda kind: runners.drain_postgres(server, kind, rows),
    }
    for engine, drain_one in engines.items():
        rates = runners.noops(drain_one)
        for kind, rate in rates.by_kind.items():
            beside = f"{rate:,.0f} jobs/s = {rates.ratio(kind, 'noop'):.2f} of the deterministic"
            _say(f"no-op {kind}, {runners.WORKERS} workers, {engine}", beside)
    found, bare = runners.two_cores()
    what = f"{found:.2f} times as fast, bare processes {bare:.2f} = {found / bare:.2f} of that"
    _say("computing on 2 workers beside 1", what)
    _say("a child above a bare interpreter", f"{runners.child_mib_above_bare():.1f} MiB")


def _tracing() -> None:
    with PostgresServer(durable=True) as server:
        found = {"embedded": tracing.embedded(20_000)}
        found["PostgreSQL"] = tracing.postgres(server, 20_000)
    for engine, costs in found.items():
        for way, cost in costs.items():
            more = f"{cost - costs['off']:+.1f} us" if way != "off" else ""
            _say(f"no-op job with a trace, {way}, {engine}", f"{cost:.1f} us CPU/job {more}")


def _asking_why(server: PostgresServer, jobs: int) -> None:
    for engine, took in (
        ("PostgreSQL", why.postgres(server, jobs)),
        ("embedded", why.embedded(jobs)),
    ):
        _say(f"why, with {jobs:,} queued, {engine}", f"{took:.1f} ms")


def _say(what: str, found: str) -> None:
    print(f"{what:<52} {found}", flush=True)


main(sys.argv[1:])
