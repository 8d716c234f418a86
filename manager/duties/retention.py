"""The duty of retention: marks finished jobs as stale and deletes them when their time is up, after
copying them to an archive; deletes old decisions of the supervisors. Two nodes that do it at once
share the work without waiting for each other.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import stat
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import attrs
import trio

from musterd.catalog.kinds import Catalog
from musterd.config.retention import IN_TABLE, NOTHING, function_of, kept
from musterd.config.retention import Ages as KindAges
from musterd.config.retention import Retention as RetentionSettings
from musterd.config.settings import LiveSettings
from musterd.manager.duties.clock_watch import ClockWatch
from musterd.manager.duties.duty import NEXT_BATCH_SECONDS
from musterd.manager.log import Log, event
from musterd.store.errors import StoreUnavailable
from musterd.store.jobs import JobRecord
from musterd.store.lifecycle import ENDED, JobState
from musterd.store.report import job_object
from musterd.store.retention import (
    Ages,
    BatchResult,
    DeleteRequest,
    JobPosition,
    Kept,
    Retention,
    RetentionTask,
)
from musterd.store.scaling_journal import ScalingJournal
from musterd.store.waiting import Bell

PAUSE_SECONDS = 0.02  # between two batches, at least
REST = 2.0  # times as long as a batch took, so that others have the store too
RUN_SHARE = 0.2  # of the longest run of a duty: a look that is cut goes on soon
DAY_SECONDS = 86_400.0
LOOKS = 10.0  # within the shortest age
LOOK_SECONDS_MIN = 1.0
DOUBLED_MAX = 4  # times the interval is doubled while there is nothing to do
HALVED_MAX = 6  # times a batch is halved that the store's time limit has ended

Which = Literal["stale_seconds", "delete_seconds"]


@attrs.define(eq=False)
class Retiring:
    """Owned by its tenant. `look` is the duty; `trouble`: why nothing is deleted."""

    store: Retention
    journal: ScalingJournal
    settings: LiveSettings  # of the tenant
    catalog: Callable[[], Catalog]
    tenant: str
    log: Log
    clock: ClockWatch | None = None
    trouble: str | None = attrs.field(default=None, init=False)
    _bell: Bell = attrs.field(factory=Bell, init=False)
    _quiet: int = attrs.field(default=0, init=False)  # looks in a row that found nothing
    # So often: a batch that is too large for the store as it is.
    _halved: int = attrs.field(default=0, init=False)
    _until_local: float = attrs.field(default=0.0, init=False)  # one look takes no longer
    _is_held_back: bool = attrs.field(default=False, init=False)  # a clock was set forward
    _is_cut: bool = attrs.field(default=False, init=False)  # the last look left something to do

    async def wait(self, seconds: float) -> None:
        await self._bell.wait(NEXT_BATCH_SECONDS if self._is_cut else seconds)
        self._bell.clear()

    def look_seconds(self) -> float:
        settings, catalog = self.settings.now.retention, self.catalog()
        ages = ages_of(settings, catalog, "stale_seconds")
        return pause_seconds(settings.interval_seconds, ages.shortest, self._quiet)

    def wake(self) -> None:
        """The rules have changed."""
        self._bell.ring()

    async def look(self) -> int:
        """Returns the number of jobs. After a batch hit a time limit, the next ones are smaller."""
        try:
            done = await self._look()
        except StoreUnavailable as error:
            if error.trouble == "timeout":
                self._halved = min(self._halved + 1, HALVED_MAX)
            raise
        self._halved = max(0, self._halved - 1)
        self._quiet = 0 if done else min(self._quiet + 1, DOUBLED_MAX)
        return done

    async def _look(self) -> int:
        settings, catalog = self.settings.now.retention, self.catalog()
        self._is_cut = False
        limit_seconds = self.settings.now.duties.run_limit_seconds * RUN_SHARE
        self._until_local = trio.current_time() + limit_seconds
        batch = max(1, settings.batch >> self._halved)
        stale = ages_of(settings, catalog, "stale_seconds")
        expired = ages_of(settings, catalog, "delete_seconds")
        too_old_seconds = await self._too_old_seconds(max(stale.longest, expired.longest))
        stale, expired = stale.later(too_old_seconds), expired.later(too_old_seconds)
        done = 0
        if stale.shortest is not None:
            task = RetentionTask(stale, batch, address_of(settings.on_stale))
            done += await self._walk(self.store.mark, task)
        if expired.shortest is not None:
            done += await self._delete(settings, batch, expired)
            if not too_old_seconds:
                await self._forget(self.store.forget_leftovers, batch)
        if not too_old_seconds:
            await self._forget(self._forget_decisions, batch)
        return done

    async def _too_old_seconds(self, longest_seconds: float) -> float:
        """How much older all seems than it is, because the store's clock was set forward."""
        if self.clock is None:
            return 0.0
        longest_seconds = max(longest_seconds, self._journal_seconds)
        found = await self.clock.too_old_seconds(longest_seconds)
        if bool(found) != self._is_held_back:
            self._is_held_back = bool(found)
            what = "old jobs are kept for longer: the store's clock was set forward"
            if found:
                event(self.log, logging.WARNING, what, tenant=self.tenant, seconds=round(found))
        return found

    @property
    def _journal_seconds(self) -> float:
        return self.settings.now.scaling.journal_days * DAY_SECONDS

    async def _delete(self, settings: RetentionSettings, batch: int, ages: Ages) -> int:
        keeper = keeper_of(settings, self.tenant, self.catalog)
        task = RetentionTask(ages, batch, address_of(settings.on_delete), keeper)
        try:
            done = await self._walk(self.store.delete, task)
        except ArchiveFailed as error:
            self._note_trouble(str(error))
            return 0
        self._note_trouble(None)
        return done

    async def _walk(
        self,
        act: Callable[[RetentionTask, JobPosition | None], Awaitable[BatchResult]],
        task: RetentionTask,
    ) -> int:
        done = 0
        place: JobPosition | None = None
        while True:
            started = trio.current_time()
            result = await act(task, place)
            done += result.done
            place = result.further
            self._is_cut |= place is not None and trio.current_time() >= self._until_local
            if place is None or self._is_cut:
                return done
            await self._give_way(started)

    async def _forget_decisions(self, batch: int) -> int:
        return await self.journal.forget(self._journal_seconds, batch)

    async def _forget(self, forget: Callable[[int], Awaitable[int]], batch: int) -> None:
        started = trio.current_time()
        while not self._is_cut and await forget(batch) >= batch:
            self._is_cut = trio.current_time() >= self._until_local
            await self._give_way(started)
            started = trio.current_time()

    async def _give_way(self, started: float) -> None:
        await trio.sleep(max(PAUSE_SECONDS, REST * (trio.current_time() - started)))

    def _note_trouble(self, trouble: str | None) -> None:
        """Logs once when it begins and once when it ends."""
        before, self.trouble = self.trouble, trouble
        if before == trouble:
            return
        fields = {"tenant": self.tenant, "archive": self.settings.now.retention.archive}
        if trouble is None:
            event(self.log, logging.INFO, "archive can be written again", **fields)
            return
        what = "archive cannot be written; no jobs are deleted"
        event(self.log, logging.ERROR, what, **fields, message=trouble)


def ages_of(settings: RetentionSettings, catalog: Catalog, which: Which) -> Ages:
    """When jobs become stale or are deleted, by state and kind."""

    def of(own: KindAges) -> Mapping[JobState, float | None]:
        return {state: getattr(kept(settings, state, own), which) for state in sorted(ENDED)}

    said = {name: kind.retention for name, kind in catalog.items()}
    return Ages(of(NOTHING), {name: of(own) for name, own in said.items() if own != NOTHING})


def address_of(hook: str) -> str | None:
    if not hook:
        return None
    return hook if function_of(hook) is None else f"python:{hook}"


def keeper_of(
    settings: RetentionSettings, tenant: str, catalog: Callable[[], Catalog]
) -> Archivist | None:
    """What to do with jobs before they are deleted; None = nothing."""
    archive, hook = settings.archive, settings.on_delete
    return Archivist(tenant, catalog, archive, hook) if archive or hook else None


def delete_request(
    settings: RetentionSettings, tenant: str, catalog: Callable[[], Catalog], by: str
) -> DeleteRequest:
    """To delete a job in somebody's name, as the duty would do it when its time has come."""
    hook, keeper = address_of(settings.on_delete), keeper_of(settings, tenant, catalog)
    return DeleteRequest(by, hook, keeper)


def pause_seconds(interval_seconds: float, shortest_age: float | None, quiet: int) -> float:
    """Grows while nothing is due, but a job is late by a tenth of the shortest age at most."""
    pause = interval_seconds * 2.0**quiet
    if shortest_age is None:
        return pause
    return max(LOOK_SECONDS_MIN, min(pause, shortest_age / LOOKS))


class ArchiveFailed(Exception):
    """The file could not be written: the jobs of this batch must not be deleted."""


@attrs.frozen
class Archivist:
    """A `Keeper` (see `store.retention`). `archive` and `hook` are settings; "" = none."""

    tenant: str
    catalog: Callable[[], Catalog]
    archive: str
    hook: str

    def __call__(self, jobs: Sequence[JobRecord]) -> Sequence[Kept]:
        """Raises `ArchiveFailed`. On return the lines are on disk."""
        catalog, in_table = self.catalog(), self.archive == IN_TABLE
        objects = [job_object(job, self.tenant, catalog.budget_of(job.kind)) for job in jobs]
        texts = [json.dumps(each) for each in objects]
        if self.archive and not in_table:
            append_lines(Path(self.archive), texts)
        if function_of(self.hook) is None:  # a URL does not get the payload
            for each in objects:
                del each["payload"]
        return [
            Kept(text if in_table else None, json.dumps(each) if self.hook else None)
            for text, each in zip(texts, objects, strict=True)
        ]


def append_lines(path: Path, lines: Sequence[str]) -> None:
    """Appends all lines or none; on return they are on disk. Creates the file for its owner alone.
    Several processes may write to it.

    Raises `ArchiveFailed`. A line that a crash cut short is ended first.
    """
    try:
        is_new = not path.exists()
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
        descriptor = os.open(path, flags, 0o600)
        try:
            _append(descriptor, "".join(f"{line}\n" for line in lines).encode())
        finally:
            os.close(descriptor)
        if is_new:
            _sync_folder(path.parent)
    except OSError as error:
        raise ArchiveFailed(f"{path}: {error.strerror or error}") from error


def _append(descriptor: int, data: bytes) -> None:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise OSError("it is no plain file")
    fcntl.flock(descriptor, fcntl.LOCK_EX)  # until it is closed
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        data = b"\n" + data
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, size)  # no half of a batch stays
        raise


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
