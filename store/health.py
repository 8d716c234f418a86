"""How a store is, beyond what its queue says: facts for metrics and for `musterd doctor`. Values
only; what is good and what is bad is judged elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

import attrs

HOLDERS_MAX = 20
PoolMode = Literal["none", "session", "transaction", "statement"]
HolderSort = Literal["session", "prepared", "slot", "standby"]


@attrs.frozen
class Signs:
    """What is exported as metrics; None = the store does not say, or has no such thing."""

    horizon_age_seconds: float | None
    dead_rows: int | None
    size_bytes: int | None


@attrs.frozen
class Server:
    """The database server, as the role of this URL sees it. `settings` are those that a fresh
    session of the role gets, before it sets its own.
    """

    version: int  # as 150012
    version_text: str
    in_recovery: bool
    role: str
    is_superuser: bool
    sees_statistics: bool  # of other roles' sessions
    may_create: bool  # schemas in this database
    settings: Mapping[str, str]


class Holder(NamedTuple):
    """Who keeps dead rows from being removed. `id`: a session's process, a prepared transaction's
    gid, a slot's name, the process that serves a standby. `age_seconds` None = not known.
    """

    sort: HolderSort
    id: str
    role: str
    application: str
    state: str
    age_seconds: float | None
    age_transactions: int


class Slot(NamedTuple):
    """A replication slot; `kept_bytes` of the write-ahead log are kept for it."""

    name: str
    is_active: bool
    kept_bytes: int | None
    wal_status: str | None


@attrs.frozen
class Replication:
    """`in_sync` None = the role may not see it. `wanted_standbys`: synchronous_standby_names."""

    slots: Sequence[Slot]
    wanted_standbys: str
    in_sync: int | None


class Table(NamedTuple):
    """One of our tables. Ages are None where it never happened."""

    name: str
    live_rows: int
    dead_rows: int
    vacuumed_seconds_ago: float | None
    options: Mapping[str, str]
    size_bytes: int
    frozen_age: int  # transactions since all of its rows were frozen


class Missing(NamedTuple):
    """A right that the role lacks."""

    thing: str
    right: str


@attrs.frozen
class Connections:
    """How many the server takes, and who has them. `ours` are musterd's, of all nodes and verbs;
    -1 as a limit = none.
    """

    most: int
    reserved: int  # for superusers and the like
    used: int
    ours: int
    role_limit: int
    role_used: int
    database_limit: int
    database_used: int


@attrs.frozen
class File:
    """An embedded store's file. `fault` is what a quick check found wrong; None = nothing."""

    path: str
    size_bytes: int
    wal_bytes: int
    free_bytes_within: int
    journal_mode: str
    engine_version: str
    checked_whole: bool  # False = the check had no time to look at all of it
    fault: str | None
    mode: int  # its permissions
    holder: int | None  # the process that the lock names, while somebody has the lock
    is_held: bool | None  # None = the system does not say


class Health(Protocol):
    """The health of one open store. What an engine does not have is None, or empty. Errors as for
    `Engine`.
    """

    async def signs(self) -> Signs: ...

    async def now(self) -> float:
        """The store's clock, in seconds since the epoch."""
        ...

    async def pool_mode(self) -> PoolMode:
        """What stands between us and the server."""
        ...

    async def server(self) -> Server | None: ...

    async def holders(self) -> Sequence[Holder]:
        """Who holds the horizon, the one that reaches furthest back first; at most
        `HOLDERS_MAX`.
        """
        ...

    async def replication(self) -> Replication | None: ...

    async def tables(self) -> Sequence[Table]: ...

    async def missing_rights(self) -> Sequence[Missing]: ...

    async def connections(self) -> Connections | None: ...

    async def file(self, monotonic: Callable[[], float], seconds: float) -> File | None:
        """Looks at the file, for so many seconds at most. For a program that works alone."""
        ...

    async def file_beside(self, monotonic: Callable[[], float], seconds: float) -> File | None:
        """The same, while the other calls of this engine go on."""
        ...
