"""The Engine protocol: what the rest of musterd may rely on, whichever database is behind it.

An engine is made of parts; each part's protocol stands in a module with its values. Every method of
a part is one short transaction on the store's own clock. Unless it says otherwise a method
raises `StoreUnavailable` when the store is away (nothing was written) and `StoreMisconfigured` when
waiting will not help. A cancelled call leaves no half-written state; whether a write landed is then
unknown, as after a lost reply.
"""

from __future__ import annotations

from typing import Protocol

import attrs

from musterd.store.control import Control
from musterd.store.duties import Duties
from musterd.store.events import Audit, EventLog
from musterd.store.health import Health
from musterd.store.history import History
from musterd.store.jobs import Jobs
from musterd.store.leases import Leases
from musterd.store.nodes import Nodes
from musterd.store.outbox import Outbox
from musterd.store.overview import Overview
from musterd.store.phases import Phases
from musterd.store.queue import IdleChecks, Queue
from musterd.store.retention import Retention
from musterd.store.scaling_journal import ScalingJournal
from musterd.store.schedules import Schedules


@attrs.frozen
class SchemaState:
    """How the store's schema compares with the one this program brings: it is no newer one, which
    every engine refuses. 0 = there is none.
    """

    found: int
    wanted: int

    @property
    def fault(self) -> str:
        """Of one that is not current: what it is, and what to do."""
        if self.found == 0:
            return "there is no schema yet: start the daemon or run `musterd db migrate`"
        return (
            f"the schema is at version {self.found}, this musterd needs {self.wanted}: start the"
            " daemon of this version or run `musterd db migrate`"
        )


class Engine(Protocol):
    """One store, opened by one owner. Methods may be called from several tasks at once.

    The engine itself has the store's life; the parts have what is in it.
    """

    @property
    def name(self) -> str:
        """`postgresql` or `sqlite`."""
        ...

    @property
    def where(self) -> str:
        """The store's address for people, without secrets."""
        ...

    @property
    def jobs(self) -> Jobs: ...

    @property
    def leases(self) -> Leases: ...

    @property
    def control(self) -> Control: ...

    @property
    def queue(self) -> Queue: ...

    @property
    def nodes(self) -> Nodes: ...

    @property
    def phases(self) -> Phases: ...

    @property
    def events(self) -> EventLog: ...

    @property
    def outbox(self) -> Outbox: ...

    @property
    def schedules(self) -> Schedules: ...

    @property
    def duties(self) -> Duties: ...

    @property
    def retention(self) -> Retention: ...

    @property
    def journal(self) -> ScalingJournal: ...

    @property
    def idle(self) -> IdleChecks: ...

    @property
    def overview(self) -> Overview: ...

    @property
    def audit(self) -> Audit: ...

    @property
    def health(self) -> Health: ...

    @property
    def history(self) -> History: ...

    async def open(self) -> None:
        """Reaches the store once and learns what it is. Raises if it can't; may then be tried
        again.
        """
        ...

    async def close(self) -> None:
        """Gives every connection and thread back. Never raises; safe to call twice."""
        ...

    async def schema(self) -> SchemaState:
        """Compares schema versions. Raises `StoreMisconfigured` where an applied migration differs
        from the shipped one.
        """
        ...

    async def migrate(self) -> list[str]:
        """Applies what is missing, whole or not at all, under a lock that makes two callers at once
        safe.

        Returns the names of the migrations applied. Raises `StoreMisconfigured` if the store's
        schema is newer than this program.
        """
        ...

    async def start_node(self, node: str) -> int:
        """Declares this engine the home of a daemon's node.

        SQLite: takes the file's daemon lock (raises `StoreMisconfigured` if another daemon has it)
        and gives the leases that a dead daemon left back at once, burning no attempt less; returns
        how many. PostgreSQL: nothing, returns 0.
        """
        ...
