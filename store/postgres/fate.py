"""A transaction whose reply may be lost, and what can be asked of a server to tell its fate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import psycopg

T = TypeVar("T")
Connection = psycopg.Connection[Any]

# A server that has crashed gives ids of transactions again that it had not yet written to disk. It
# is another run of the server then, whose start or whose loss of statistics tells it apart.
RUN = "concat(pg_postmaster_start_time(), ' ', pg_stat_get_bgwriter_stat_reset_time())"
TRANSACTION = f"select pg_current_xact_id()::text, {RUN}"
STATUS = f"select pg_xact_status(%s::text::xid8), {RUN}"


class Transaction(Generic[T]):
    """One try. `id`, with the run of the server, is set once only the commit is left."""

    id: tuple[str, str] | None = None
    result: T

    def run(self, conn: Connection, work: Callable[[Connection], T]) -> T:
        with conn.transaction():
            self.result = work(conn)
            self.id = conn.execute(TRANSACTION).fetchall()[0]
        return self.result
