"""The duties in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

from musterd.store.duties import FOLDED_ROWS, DutyNews, DutyRecord, DutyReport, Holder
from musterd.store.nodes import PAUSES_OF_THE_DEAD
from musterd.store.postgres.arrays import numbers, texts, words
from musterd.store.postgres.parts import Execute, Run
from musterd.store.postgres.rows import Params


class PostgresDuties:
    """See `store.duties` for what each method promises."""

    def __init__(self, run: Run, execute: Execute) -> None:
        self._run, self._execute = run, execute

    async def look(self, duties: Sequence[str]) -> DutyNews:
        params = {"duties": texts(duties), "pauses": PAUSES_OF_THE_DEAD}
        ((free, seconds, nodes),) = await self._run("look_at_duties", params)
        return DutyNews(tuple(free), seconds, nodes)

    async def take(self, duties: Sequence[str], holder: Holder) -> frozenset[str]:
        params = {
            "duties": texts(duties),
            "tenant": holder.tenant,
            "node": holder.node,
            "node_id": holder.node_id,
            "term": holder.term,
            "lease_seconds": holder.lease_seconds,
        }
        return frozenset(row[0] for row in await self._run("take_duties", params))

    async def renew(self, reports: Sequence[DutyReport], lease_seconds: float) -> frozenset[str]:
        params = {**_reported(reports), "lease_seconds": lease_seconds}
        return frozenset(row[0] for row in await self._run("renew_duties", params))

    async def release(self, reports: Sequence[DutyReport]) -> None:
        await self._execute("release_duties", _reported(reports))

    async def duties(self) -> list[DutyRecord]:
        return [DutyRecord(*row) for row in await self._run("duties", {})]

    async def fold_counts(self) -> int:
        folded = await self._run("fold_counts", {"rows": FOLDED_ROWS})
        return folded[0][0] if folded else 0


def _reported(reports: Sequence[DutyReport]) -> Params:
    return {
        "duties": texts(one.duty for one in reports),
        "terms": words(one.term for one in reports),
        "runs": numbers(one.runs for one in reports),
        "items": numbers(one.items for one in reports),
        "errors": numbers(one.errors for one in reports),
        "last_errors": texts(one.last_error for one in reports),
    }
