"""The phases of jobs in SQLite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from musterd.store.phases import PhaseStart, PhaseStep, Results
from musterd.store.sqlite import phasing
from musterd.store.sqlite.runner import Call


class SqlitePhases:
    """See `store.phases` for what each method promises."""

    def __init__(self, call: Call) -> None:
        self._call = call

    async def begin(self, starts: Sequence[PhaseStart], now_local: float) -> Mapping[int, Results]:
        return await self._call(phasing.begin, starts, now_local)

    async def advance(self, steps: Sequence[PhaseStep]) -> frozenset[int]:
        return await self._call(phasing.advance, steps)
