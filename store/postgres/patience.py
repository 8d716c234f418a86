"""A connection for threads that gives up a server which keeps silent. By itself libpq waits for
ever where the line is well and no answer comes: the server is frozen, or what stands between lets
bytes vanish.
"""

from __future__ import annotations

from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen

T = TypeVar("T")
LOOK_SECONDS = 0.1  # so often Ctrl-C is heard while an answer is waited for


class PatientConnection(psycopg.Connection[Any]):
    """No answer is waited for longer than `answer_seconds`. One that has not come by then is given
    up with its connection: it breaks, as if the line had.
    """

    answer_seconds: float | None = None  # None = as long as it takes

    def wait(
        self, gen: PQGen[T], interval: float = LOOK_SECONDS, timeout: float | None = None
    ) -> T:
        limit = self.answer_seconds if timeout is None else timeout
        try:
            return super().wait(gen, interval, limit)
        except psycopg.OperationalError as error:
            if error.sqlstate is None and not self.closed:
                self.close()
            raise
