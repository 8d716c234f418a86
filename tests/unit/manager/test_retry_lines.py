"""The line in the daemon's log of an attempt that will be retried."""

import json
from uuid import UUID

from musterd.manager.events.node_events import retry_fields
from musterd.store.leases import Settlement
from musterd.store.lifecycle import AttemptOutcome, JobState
from musterd.store.words import ERROR_LENGTH_MAX


def test_of_an_error_of_many_lines_the_first_is_logged() -> None:
    error = json.dumps({"type": "ValueError", "message": "no\x1b[31m such file\nin line 2"})
    ended = Settlement(
        7,
        UUID(int=1),
        1,
        2,
        99.0,
        100.0,
        JobState.QUEUED,
        AttemptOutcome.RETRYING,
        20.0,
        error=error,
    )
    fields = retry_fields(ended)
    assert fields["error"] == "ValueError: no\\x1b[31m such file"
    assert fields["next_at"] == "1970-01-01T00:02:00.000000Z"
    long = json.dumps({"type": "ValueError", "message": "x" * 10_000})
    assert len(str(retry_fields(ended._replace(error=long))["error"])) == ERROR_LENGTH_MAX
