"""The logs of jobs: noted while they run, read, and what is left of one whose lease was lost."""

from __future__ import annotations

from collections.abc import Sequence

from musterd.store.job_log import ATTEMPTS_MAX, LogPage, LogPart, LogPosition, page_of
from musterd.store.leases import LogNote
from musterd.store.lifecycle import JobState
from musterd.store.sqlite import rows
from musterd.store.sqlite.database import Database

# The column `log` of a record: of a job in hand what is known so far. One line, since it stands in
# a comment too.
LOG_COLUMN = (
    "case when lease_expires_at is null then log else (select group_concat(words, '') from (select"
    " words from live_logs where job_id = job_rows.id and token = claim_token order by first)) end"
)


def note_logs(database: Database, notes: Sequence[LogNote]) -> frozenset[int]:
    taken: set[int] = set()
    with database.writing("noting logs"):
        for note in notes:
            params = {**note._asdict(), "token": note.token.bytes}
            if database.execute("note_log", params).rowcount:
                database.execute("drop_log_parts", params)
                taken.add(note.id)
    return frozenset(taken)


def take_live_log(database: Database, job_id: int, token: bytes) -> str | None:
    """What an attempt has logged whose lease was lost, as part of the transaction that ends it."""
    fence = {"id": job_id, "token": token, "line": 0}
    parts = database.rows("live_log", fence)
    if parts:
        database.execute("forget_log", fence)
    return "".join(words for _, words in parts) or None


def job_log(database: Database, job_id: int, after: LogPosition) -> LogPage | None:
    if abs(job_id) > rows.ID_MAX:
        return None
    wanted = {**after._asdict(), "id": job_id, "count": ATTEMPTS_MAX}
    with database.reading("reading a log"):
        head = database.rows("log_head", wanted)
        if not head:
            return None
        state, attempt, token, last_outcome, is_held, text = head[0]
        past = database.rows("past_logs", wanted)
        parts = [LogPart(number, None, log) for number, log in past]
        if last_outcome is not None and text is not None and attempt >= after.attempt:
            parts.append(LogPart(attempt, None, text))
        elif is_held:
            line = after.line if attempt == after.attempt else 0
            live = database.rows("live_log", {"id": job_id, "token": token, "line": line})
            parts += [LogPart(attempt, first, words) for first, words in live]
    return page_of(JobState(state), parts, after)
