"""`musterd verify`: compares a live store with its log without blocking anyone: a job that changes
meanwhile is compared with all states that it had.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TextIO

import click

from musterd.console.command import CommandLine, Verb
from musterd.console.output import Exit
from musterd.console.verbs.events import (
    Since,
    batches_of,
    position_since,
    read_since,
    source_option,
)
from musterd.console.verify.judge import Judge, StateAndAttempt, verdict_lines, verdict_object
from musterd.console.verify.rules import TYPES, Rule
from musterd.store.engine import Engine
from musterd.store.event_pages import order_all
from musterd.store.events import ROWS_AT_ONCE, AuditRow, Draft
from musterd.store.lifecycle import JobState
from musterd.store.opening import in_store

GONE: StateAndAttempt = (None, 0)
ID_MAX = 2**63 - 1


class Comparison:
    """Follows the log of a store and compares its rows."""

    def __init__(self, engine: Engine, judge: Judge) -> None:
        self._engine, self._judge = engine, judge

    async def follow(self, until: int | None = None) -> None:
        """Judges what has happened so far, or up to a position."""
        log, judge = self._engine.events, self._judge
        newest = await order_all(log) if until is None else until
        while judge.position < newest:
            page = await log.read(judge.position)
            found = [one for one in page.events if one.id <= newest]
            if found and found[0].id > judge.position + 1:
                # Events are forgotten, the oldest first, and this may have overtaken us.
                judge.start_behind(min((await log.bounds()).oldest, found[0].id) - 1)
            judge.take(found)
            if not page.more:
                return

    async def compare(self) -> None:
        known = self._judge.lives.ids()
        after: int | None = 0
        while after is not None:
            after = await self._compare_page(after, known)
        self._judge.lives.unwatch()
        await self._compare_counts()
        await self._look_at_places()

    async def _compare_page(self, after: int, known: Sequence[int]) -> int | None:
        """Returns the last id; None = there are no more. The log is read after the page, so each
        row is compared with all that its job has been since before.
        """
        lives, cases = self._judge.lives, self._judge.findings.cases
        meanwhile = lives.watch()
        rows = await self._engine.audit.rows(after)
        await self.follow()
        more = len(rows) == ROWS_AT_ONCE
        last = rows[-1].id if more else ID_MAX
        found = {row.id: row for row in rows}
        logged = known[bisect_right(known, after) : bisect_right(known, last)]
        for job_id in sorted({*logged, *found}):
            seen, row = lives.seen(job_id), found.get(job_id)
            cases[Rule.TABLE] += seen != GONE
            if not any(_fits(one, row) for one in (seen, *meanwhile.get(job_id, ()))):
                self._accuse(job_id, seen, row)
        return last if more else None

    def _accuse(self, job_id: int, seen: StateAndAttempt, row: AuditRow | None) -> None:
        lives, findings = self._judge.lives, self._judge.findings
        if not lives.is_whole and seen == GONE:
            return  # it began before the log does
        state, attempt = seen
        logged = "gone, or never existed" if seen == GONE else f"{state} at attempt {attempt}"
        has = "no such job" if row is None else f"it {row.state} at attempt {row.attempt}"
        story = f"by the log, job {job_id} is {logged}; the table has {has}"
        findings.add(Rule.TABLE, job_id, (lives.position_of(job_id),), story)

    async def _compare_counts(self) -> None:
        tally, findings = await self._engine.audit.tally(), self._judge.findings
        await self.follow(tally.newest)
        findings.cases[Rule.COUNTS] += 1
        said = [(state, n, f"{n:,} jobs are counted as {state}") for state, n in tally.kept.items()]
        if self._judge.lives.is_whole:
            logged = self._after(tally.drafts)
            said += [(one, logged[one], f"by the log, {logged[one]:,} jobs are {one}")
                for one in JobState]  # fmt: skip
        for state, count, story in said:
            counted = tally.counted.get(state, 0)
            if count != counted:
                findings.add(Rule.COUNTS, None, (), f"{story}, the table has {counted:,}")

    async def _look_at_places(self) -> None:
        found, findings = await self._engine.audit.faults(), self._judge.findings
        if found is None:
            findings.unchecked[Rule.PLACES] = "here a job has no place but its row"
            return
        findings.cases[Rule.PLACES] += 1
        for fault in found:
            findings.add(Rule.PLACES, fault.job_id, (), f"job {fault.job_id} {fault.story}")

    def _after(self, drafts: Sequence[Draft]) -> Mapping[JobState, int]:
        """The number of jobs in each state once these drafts are ordered."""
        lives = self._judge.lives
        totals: Counter[JobState] = lives.totals()
        now: dict[int, JobState | None] = {}
        for draft in drafts:
            before = now.get(draft.job_id, lives.seen(draft.job_id)[0])
            after = _state_after(draft, before)
            if before is not None:
                totals[before] -= 1
            if after is not None:
                totals[after] += 1
            now[draft.job_id] = after
        return totals


def _state_after(draft: Draft, before: JobState | None) -> JobState | None:
    if draft.type == "job.deleted":
        return None
    if draft.type == "job.enqueued" and draft.state is not None:
        return draft.state
    known = TYPES.get(draft.type)
    return before if known is None or known.becomes is None else known.becomes


def _fits(seen: StateAndAttempt, row: AuditRow | None) -> bool:
    """Whether a row agrees with the log; what the log does not say agrees."""
    state, attempt = seen
    if row is None or seen == GONE:
        return row is None and seen == GONE
    return state in (None, row.state) and attempt in (None, row.attempt)


NEEDS_STORE = "needs the store"


@click.command(cls=Verb)
@source_option("--file")
@click.option(
    "--since", callback=read_since, metavar="10m|POSITION|TIME", help="Only newer events."
)
@click.pass_context
def verify(context: click.Context, /, source: TextIO | None, since: Since | None) -> None:
    """Check that the log of events, the jobs and the counts are consistent.

    Works while daemons run, without disturbing them. Exits 0 if all rules hold, 1 if one is
    violated, 69 if the store cannot be reached.
    """
    cli: CommandLine = context.obj
    judge = Judge()
    tenant = cli.tenant
    if source is None:
        tenant = _verify_store(cli, judge, since)
    else:
        _verify_file(source, judge, tenant, since)
    cli.show([verdict_object(judge, tenant)], lambda: verdict_lines(judge))
    context.exit(Exit.DONE if judge.findings.holds else Exit.UNSUCCESSFUL)


def _verify_store(cli: CommandLine, judge: Judge, since: Since | None) -> str:
    async def work(engine: Engine) -> None:
        judge.start_behind(await position_since(engine, since, await order_all(engine.events)))
        comparison = Comparison(engine, judge)
        await comparison.follow()
        await comparison.compare()

    settings = cli.settings()
    in_store(settings, work)
    return settings.tenant


def _verify_file(source: TextIO, judge: Judge, tenant: str | None, since: Since | None) -> None:
    if not (since is None or isinstance(since, int)):
        raise click.UsageError("with a file, --since takes a position only")
    judge.start_behind(since or 0)
    for batch in batches_of(source, tenant):
        judge.take(one for one in batch if one.id > (since or 0))
    for rule in (Rule.TABLE, Rule.COUNTS, Rule.PLACES):
        judge.findings.unchecked[rule] = NEEDS_STORE
