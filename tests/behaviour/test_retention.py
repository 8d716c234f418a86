"""Time passes: jobs that have ended go stale and are deleted, by whichever node is there."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import trio

from musterd.config.retention import Ages
from musterd.manager.duties.retention import RUN_SHARE
from musterd.store.errors import StoreUnavailable
from musterd.store.lifecycle import Action, JobState
from musterd.store.retention import BatchResult, JobPosition, RetentionTask
from tests.support import stage_idle_scan
from tests.support.stage import Stage, kind, settings_with, until

STEP = 6.0  # seconds
SHORT: dict[str, Any] = {
    "retention__stale_after_hours": 0.04,
    "retention__delete_after_hours": 0.08,
}  # 24, 48 steps


def stale(stage: Stage) -> list[int]:
    return [row[0] for row in stage.raw("select id from job_rows where stale_at is not null")]


def left(stage: Stage) -> list[int]:
    return [row[0] for row in stage.raw("select id from job_rows order by id")]


async def test_a_job_goes_stale_and_is_gone_in_the_end(stage: Stage) -> None:
    await stage.start(**SHORT)
    ids = await stage.put("noop", 3)
    await stage.all_ended()
    await trio.sleep(23.9 * STEP)
    assert stale(stage) == []
    await trio.sleep(3.0 * STEP)
    assert stale(stage) == ids
    await trio.sleep(20 * STEP)
    assert left(stage) == ids
    await trio.sleep(5 * STEP)
    assert left(stage) == []
    assert (await stage.store.queue.counts()).by_state[JobState.SUCCEEDED] == 0


async def test_a_clock_that_is_set_forward_makes_nothing_old(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a day: all that had just ended was deleted at once, and the events with it."""
    node = await stage.start(**SHORT)
    ids = await stage.put("noop", 3)
    await stage.all_ended()
    database = stage.store.engine._database  # pyright: ignore[reportPrivateUsage] - its clock
    wall_clock = stage_idle_scan.wall_clock
    monkeypatch.setattr(database, "_wall_clock", lambda: wall_clock() + 86_400.0)
    await trio.sleep(20 * STEP)
    assert (stale(stage), left(stage)) == ([], ids)
    assert (
        len(node.events.named("old jobs are kept for longer: the store's clock was set forward"))
        == 1
    )
    await trio.sleep(50 * STEP)  # by now they have been there for as long as any is kept
    assert left(stage) == []


async def test_a_kind_has_ages_of_its_own(stage: Stage) -> None:
    stage.kinds["kept"] = kind("kept", retention=Ages(delete_after_hours=0))
    await stage.start(**SHORT)
    (kept,) = await stage.put("kept")
    await stage.put("noop", 2)
    await stage.all_ended()
    await trio.sleep(200 * STEP)
    assert left(stage) == stale(stage) == [kept]


async def test_nothing_is_ever_deleted_where_that_is_asked_for(stage: Stage) -> None:
    await stage.start(retention__stale_after_hours=0, retention__delete_after_hours=0)
    await stage.put("noop", 2)
    await stage.all_ended()
    await trio.sleep(200 * STEP)
    assert (len(left(stage)), stale(stage)) == (2, [])
    assert stage.store.calls["retention_mark"] == 0


async def test_short_hours_are_kept_promptly(stage: Stage) -> None:
    await stage.start(retention__stale_after_hours=0.01, retention__delete_after_hours=0.02)
    await stage.put("noop")
    await stage.all_ended()
    assert 36 <= await until(lambda: stale(stage), 60) <= 40
    assert 32 <= await until(lambda: not left(stage), 60) <= 40


async def test_more_than_a_batch_is_done_in_one_go(stage: Stage) -> None:
    await stage.start(**SHORT, retention__batch=10)
    await stage.put("noop", 95)
    await stage.all_ended()
    await trio.sleep(24 * STEP)
    await until(lambda: stale(stage), 60)
    assert await until(lambda: len(stale(stage)) == 95) <= 1.0


async def test_two_nodes_tell_each_job_once(stage: Stage) -> None:
    await stage.start("north", **SHORT)
    await stage.start("south", **SHORT)
    ids = await stage.put("noop", 50)
    await stage.all_ended()
    await trio.sleep(60 * STEP)
    assert left(stage) == []
    await stage.store.events.order()
    page = await stage.store.events.read(0)
    for type_ in ("job.stale", "job.deleted"):
        assert sorted(one.job_id or 0 for one in page.events if one.type == type_) == ids


async def test_a_halted_target_is_not_freed_by_time(stage: Stage) -> None:
    await stage.start(**SHORT)
    broken = await stage.put_one("broken", target="t")
    await stage.all_ended()
    behind = await stage.put_one("noop", target="t")
    await trio.sleep(100 * STEP)
    assert left(stage) == [broken, behind]
    await stage.store.control.apply(Action.CLEAR, broken)
    await stage.all_ended()
    await trio.sleep(3 * STEP)
    assert left(stage) == [behind]


async def test_a_store_that_is_away_delays_it(stage: Stage) -> None:
    await stage.start(**SHORT)
    await stage.put("noop", 2)
    await stage.all_ended()
    stage.store.broken |= {"retention_mark", "retention_delete"}
    await trio.sleep(100 * STEP)
    assert len(left(stage)) == 2
    stage.store.broken.clear()
    await trio.sleep(5 * STEP)
    assert left(stage) == []


async def test_batches_that_take_too_long_become_smaller(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same batch again would take too long again, and nothing would ever be deleted."""
    retention, tried = stage.store.engine.retention, list[int]()
    delete, most = retention.delete, 20

    async def slow(task: RetentionTask, after: JobPosition | None) -> BatchResult:
        tried.append(task.batch)
        if task.batch > most:
            raise StoreUnavailable("delete: it took too long", "timeout")
        return await delete(task, after)

    monkeypatch.setattr(retention, "delete", slow)
    await stage.start(**SHORT, retention__batch=100)
    await stage.put("noop", 40)
    await stage.all_ended()
    await trio.sleep(60 * STEP)
    assert left(stage) == []
    assert tried[:3] == [100, 50, 25]
    most = 100
    await trio.sleep(60 * STEP)
    assert tried[-1] == 100


async def test_a_look_that_was_cut_while_it_marked_goes_on_soon(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though nothing is to be deleted."""
    retention, spans = stage.store.engine.retention, list[tuple[float, float]]()
    mark = retention.mark

    async def slow(task: RetentionTask, after: JobPosition | None) -> BatchResult:
        began = trio.current_time()
        await trio.sleep(STEP)
        spans.append((began, trio.current_time()))
        return await mark(task, after)

    monkeypatch.setattr(retention, "mark", slow)
    limit_seconds = STEP / RUN_SHARE  # each batch takes as long as a look may
    await stage.start(**SHORT, retention__batch=1, duties__run_limit_seconds=limit_seconds)
    ids = await stage.put("noop", 3)
    await stage.all_ended()
    spans.clear()
    await trio.sleep(30 * STEP)
    assert stale(stage) == ids
    busy = [each for each in spans if each[0] > spans[0][0] + 23 * STEP]
    pauses = [later[0] - earlier[1] for earlier, later in pairwise(busy)]
    assert min(pauses[:3]) < 1.0, pauses


async def test_jobs_are_written_down_before_they_are_deleted(stage: Stage, tmp_path: Path) -> None:
    file = tmp_path / "old.jsonl"
    await stage.start(**SHORT, retention__archive=f'"{file}"', retention__batch=2)
    ids = await stage.put("noop", 5)
    await stage.all_ended()
    await trio.sleep(52 * STEP)
    assert left(stage) == []
    found = [json.loads(line) for line in file.read_text().splitlines()]
    assert sorted(one["id"] for one in found) == ids
    assert {(one["state"], one["tenant"], len(one["attempts"])) for one in found} == {
        ("succeeded", "default", 1)
    }
    assert file.stat().st_mode & 0o777 == 0o600


async def test_what_cannot_be_written_down_stays_and_is_told_once(
    stage: Stage, tmp_path: Path
) -> None:
    folder = tmp_path / "later"
    node = await stage.start(**SHORT, retention__archive=f'"{folder}/old.jsonl"')
    await stage.put("noop", 2)
    await stage.all_ended()
    await trio.sleep(200 * STEP)
    assert len(left(stage)) == 2
    (line,) = node.events.named("archive cannot be written; no jobs are deleted")
    assert "No such file" in line["message"]
    assert "No such file" in str(node.tenancy().status().retention_trouble)
    folder.mkdir()
    await trio.sleep(3 * STEP)
    assert left(stage) == []
    assert node.events.named("archive can be written again")
    assert node.tenancy().status().retention_trouble is None


@pytest.mark.parametrize("hook", ["https://a.example/x", "shop:stale"])
async def test_the_hooks_are_told(stage: Stage, hook: str) -> None:
    url = hook if "/" in hook else f"python:{hook}"
    hooks: dict[str, Any] = {
        "retention__on_stale": f'"{hook}"',
        "retention__on_delete": f'"{hook}"',
    }
    await stage.start(**SHORT, **hooks)
    stage.store.broken.add("outbox_take")  # what is to be told waits
    job_id = await stage.put_one("noop")
    await stage.all_ended()
    await trio.sleep(30 * STEP)
    asked = "select job_id, url, type, body from webhooks order by id"
    assert stage.raw(asked) == [(job_id, url, "job.stale", None)]
    await trio.sleep(30 * STEP)
    assert left(stage) == [job_id]  # until it has been told of
    stage.raw("update webhooks set state = 'delivered', ended_at = created_at")
    await trio.sleep(3 * STEP)
    ((_, _, type_, body),) = stage.raw(asked)
    assert type_ == "job.deleted"
    assert json.loads(body)["id"] == job_id
    assert ("payload" in json.loads(body)) == (hook == "shop:stale")


async def test_a_reload_changes_the_rules_at_once(stage: Stage) -> None:
    node = await stage.start(retention__stale_after_hours=0, retention__delete_after_hours=0)
    await stage.put("noop", 2)
    await stage.all_ended()
    await trio.sleep(30 * STEP)
    before = stage.store.calls["retention_mark"]
    node.tenancy().settings.replace(settings_with(**SHORT))
    await until(lambda: len(stale(stage)) == 2, 120)
    assert before == 0


async def test_an_idle_node_seldom_looks(stage: Stage) -> None:
    await stage.start()
    await trio.sleep(1_800)
    before = stage.store.calls["retention_mark"]
    await trio.sleep(1_800)
    assert 1 <= stage.store.calls["retention_mark"] - before <= 4
