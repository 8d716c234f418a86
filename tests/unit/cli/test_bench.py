"""What `musterd bench` makes of what it has measured, and what it never touches."""

import json
from pathlib import Path

import pytest
from attrs import evolve

from musterd.config.load import load
from musterd.config.tenants import settings_of
from musterd.console.bench.measurement import (
    AGAINST,
    NOTHING,
    REPORTS_BEGIN,
    Findings,
    Machine,
    Plan,
    Spread,
    bench_catalog,
    bench_settings,
    cut_text,
    progress_text,
    report_lines,
    report_object,
    spread_of,
)
from musterd.store.postgres.scratch import LOCK_SPACE
from musterd.store.scratch import Scratch, is_scratch_name, scratch_name

ROOT = Path(__file__).parents[3]
ORDER = Plan(jobs=10_000, workers=8, pick_ups=200, within_seconds=120)
MACHINE = Machine(musterd="0.1.0", python="3.11.7", cores=2)
PLACE = Scratch(
    url="postgresql://app:hidden@db/shop",
    schema="musterd_bench_0123abcd",
    where="postgresql db/shop",
    product="PostgreSQL 16.4",
    pooled=True,
    removed=("schema musterd_bench_00000000",),
    left=("schema musterd_bench_ffffffff: drop schema musterd_bench_ffffffff cascade",),
)


def whole() -> Findings:
    found = Findings(place=PLACE, stage="picking up", is_whole=True)
    found.enqueued, found.enqueue_seconds = 10_000, 0.05
    found.done, found.done_seconds = 10_000, 0.4
    found.pick_ups_seconds = [0.001] * 99 + [0.02] * 100 + [1.5]
    return found


def test_a_spread_is_of_durations_that_were_measured() -> None:
    assert spread_of([]) is None
    assert spread_of([0.3]) == Spread(0.3, 0.3, 0.3)
    assert spread_of([n / 1000 for n in range(200, 0, -1)]) == Spread(0.1, 0.198, 0.2)


def test_a_rate_needs_jobs_and_time() -> None:
    assert Findings().enqueued_per_second is None
    assert Findings(done=5).done_per_second is None
    assert whole().enqueued_per_second == 200_000
    assert whole().done_per_second == 25_000


def test_people_read_figures_and_circumstances() -> None:
    lines = report_lines(ORDER, whole(), MACHINE)
    assert lines[0] == ("PostgreSQL 16.4, postgresql db/shop, in its own schema, through a pooler")
    assert lines[1].endswith("a killed measurement had left: schema musterd_bench_00000000")
    assert lines[2].startswith("LEFT BEHIND")
    assert lines[3] == "8 workers in this process, 2 cores, musterd 0.1.0, Python 3.11.7"
    shown = [" ".join(line.split()) for line in lines[6:11]]
    assert shown == [
        "enqueued 200,000 jobs/s 10,000 jobs by one client, up to 5,000 per call",
        "done 25,000 jobs/s 10,000 jobs that do nothing, from the first claim to the last result",
        "pick-up p50 20 ms 200 single jobs, from commit to start",
        "pick-up p99 20 ms",
        "pick-up max 1.5 s",
    ]
    assert lines[-1] == AGAINST


def test_programs_read_one_object_without_the_password() -> None:
    told = report_object(ORDER, whole(), MACHINE)
    assert told["whole"] is True
    assert told["enqueued_jobs_per_second"] == 200_000
    assert told["done_jobs_per_second"] == 25_000
    assert told["pick_up_seconds"] == {"p50": 0.02, "p99": 0.02, "max": 1.5}
    assert (told["workers"], told["cores"], told["pooler"]) == (8, 2, True)
    assert "hidden" not in json.dumps(told) + "".join(report_lines(ORDER, whole(), MACHINE))


def test_what_was_not_measured_is_said_to_be_so() -> None:
    found = Findings(place=PLACE, stage="doing", cut="time")
    found.enqueued, found.enqueue_seconds = 10_000, 0.05
    told = report_object(ORDER, found, MACHINE)
    assert (told["whole"], told["done_jobs_per_second"], told["pick_up_seconds"]) == (
        *(False, None),
        None,
    )
    assert sum("not measured" in line for line in report_lines(ORDER, found, MACHINE)) == 4
    assert report_lines(ORDER, Findings(), MACHINE)[0] == "no store was made"


def test_a_cut_says_why_and_how_far_it_came() -> None:
    found = Findings(stage="doing", enqueued=10_000, done=1_234, cut="time")
    far = "10,000 of 10,000 enqueued, 1,234 of 10,000 done, 0 of 200 single jobs picked up"
    assert cut_text(ORDER, found) == f"cut short after 2 m, while doing: {far}"
    assert progress_text(ORDER, found) == f"doing · {far}"
    found.cut = "signal"
    assert cut_text(ORDER, found).startswith("cut short by a signal, while doing: ")


@pytest.mark.parametrize(
    "name",
    ["musterd", "musterd_acme", "musterd_bench_", "musterd_bench_0123abc", "musterd_bench_0123ABCD",
     "musterd_bench_0123abcd_", "musterd_bench_0123abcd\n", "xmusterd_bench_0123abcd",
     'musterd_bench_"; drop'],
)  # fmt: skip
def test_nothing_else_has_a_name_that_may_be_taken_away(name: str) -> None:
    assert not is_scratch_name(name)


def test_a_name_is_made_of_eight_digits() -> None:
    assert is_scratch_name(scratch_name("0123abcd"))
    with pytest.raises(ValueError, match="eight hexadecimal digits"):
        scratch_name("0123")


def test_the_lock_on_a_name_is_no_other_lock() -> None:
    """One of the same number was held once, and no hint of new work was given any more."""
    others = [path for path in (ROOT / "store").rglob("*.sql") if path.is_file()]
    assert len(others) > 30
    assert not [path for path in others if str(LOCK_SPACE) in path.read_text("utf-8")]


def test_settings_take_over_the_store_and_nothing_that_others_would_notice(tmp_path: Path) -> None:
    file = tmp_path / "musterd.toml"
    file.write_text(
        """
        [store]
        url = "postgresql://app@db/shop"
        pool_size = 7
        [workers]
        poll_interval_ms = 100
        max_count = 5
        [limits]
        claim_batch = 40
        max_running = 1
        [webhooks]
        url = "https://example.org/told"
        secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZmdoaWprbG1ub3A="
        [retention]
        archive = "table"
        [schedules.nightly]
        kind = "report"
        every_seconds = 1
        [tenants.acme]
        """
    )
    own = settings_of(load(file, {}, []).settings, "default")
    made = bench_settings(own, PLACE, 3)
    assert (made.store.url, made.store.schema, made.store.url_file) == (PLACE.url, PLACE.schema, "")
    assert (made.store.pool_size, made.workers.poll_interval_ms) == (7, 100)
    assert (made.workers.default_count, made.workers.max_count) == (3, 3)
    seen = settings_of(made, "default")
    assert (seen.store.schema, seen.workers, seen.limits) == (
        *(PLACE.schema, made.workers),
        evolve(own.limits, max_running=0),
    )
    assert (made.webhooks.url, made.retention.archive, made.http.listen) == ("", "", "")
    assert not made.schedules
    assert list(made.tenants) == ["default"]


def test_its_kinds_never_wait_for_anything() -> None:
    retry = load(None, {}, [], ROOT / "none.toml").settings.retry
    catalog = bench_catalog(retry)
    assert list(catalog) == [NOTHING, REPORTS_BEGIN]
    assert not catalog.caps
    assert all(kind.broken is None and kind.max_running is None for kind in catalog.values())
