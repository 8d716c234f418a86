"""How far a job has come, in one line. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from musterd.store.job import JobRecord

CELLS = 20


def progress_bar(percent: int) -> str:
    """Gives `████████░░░░░░░░░░░░ 42 %`. It is full at 100 only."""
    full = max(0, min(CELLS, percent * CELLS // 100))
    return f"{'█' * full}{'░' * (CELLS - full)} {percent} %"


def progress_words(record: JobRecord) -> str:
    """Gives the phase that a job is in and what it says of itself, if it does."""
    from musterd.store.words import one_line

    note = one_line(record.progress_note or "")
    return ": ".join(part for part in (_phase(record), note) if part)


def running_line(record: JobRecord) -> str:
    """Gives `job 7 running  ████░░ 20 %  download: 3 of 15 files`."""
    from musterd.store.phase_states import overall

    again = f", attempt {record.attempt}" if record.attempt > 1 else ""
    head = f"job {record.id} {record.state.value}{again}"
    if not record.phases and record.progress is None:
        return f"{head} …"
    return "  ".join(filter(None, (head, progress_bar(overall(record)), progress_words(record))))


def _phase(record: JobRecord) -> str:
    from musterd.store.phases import PhaseState
    from musterd.store.words import one_line

    names = [one.name for one in record.phases if one.state is PhaseState.RUNNING]
    return one_line(names[0]) if names else ""
