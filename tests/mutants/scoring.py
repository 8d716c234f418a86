"""How many of a sample of small mistakes are noticed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from difflib import ndiff
from functools import partial

import attrs

from tests.mutants.sampling import Mistake, judged, noticed_by
from tests.mutants.trying import NotRun


@attrs.frozen
class Score:
    """`alike`: judged earlier, and changing nothing. `unread`: no code that can run at all. Neither
    counts.
    """

    noticed: int
    alike: int
    unread: int
    survivors: tuple[Mistake, ...]

    @property
    def counted(self) -> int:
        return self.noticed + len(self.survivors)

    def __str__(self) -> str:
        share = 100 * self.noticed / self.counted if self.counted else 100.0
        left_out = f"{self.alike} more change nothing, {self.unread} cannot run"
        return (
            f"{self.noticed} of {self.counted} small mistakes noticed ({share:.0f} %); {left_out}"
        )


def score(
    mistakes: Sequence[Mistake], seeds: int, pool: Executor, say: Callable[[str], None]
) -> Score:
    """Says of each what noticed it."""
    known = {one.edit for one in judged()}
    alike = [one for one in mistakes if one.edit in known]
    tried = [one for one in mistakes if one.edit not in known]
    survivors: list[Mistake] = []
    noticed = unread = 0
    for mistake, by in zip(tried, pool.map(partial(_try, seeds), tried), strict=True):
        say(f"{mistake.where}, {mistake.what}: {by or 'SURVIVED'}")
        if by is None:
            survivors.append(mistake)
            say(shown(mistake))
        elif isinstance(by, NotRun):
            unread += 1
        else:
            noticed += 1
    return Score(noticed, len(alike), unread, tuple(survivors))


def _try(seeds: int, mistake: Mistake) -> str | NotRun | None:
    try:
        return noticed_by(mistake, seeds)
    except NotRun as error:
        return NotRun(f"cannot run ({str(error).splitlines()[0]})")


def shown(mistake: Mistake) -> str:
    edit = mistake.edit
    lines = ndiff(edit.old.splitlines(), edit.new.splitlines())
    return "\n".join(f"    {line}" for line in lines if not line.startswith("?"))
