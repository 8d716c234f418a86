"""The health of an embedded store: its file."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import quote

import trio

from musterd.store.health import File, PoolMode, Signs
from musterd.store.sqlite.database import Aside, Call, Database, Part, answers
from musterd.store.sqlite.hints import Hints

STEPS = 20_000  # of SQLite's machine between two looks at the clock


def _file(database: Database, path: str, monotonic: Callable[[], float], deadline: float) -> File:
    whole, fault = _quick_check(database, monotonic, deadline)
    is_held, holder = _lock_of(f"{path}.lock")
    with database.translated("looking at the file"):
        return File(
            path=path,
            size_bytes=_size_bytes(database),
            wal_bytes=_bytes_of(f"{path}-wal"),
            free_bytes_within=_pragma(database, "freelist_count") * _pragma(database, "page_size"),
            journal_mode=str(_pragma(database, "journal_mode")),
            engine_version=sqlite3.sqlite_version,
            checked_whole=whole,
            fault=fault,
            mode=stat.S_IMODE(Path(path).stat().st_mode),
            holder=holder,
            is_held=is_held,
        )


def _quick_check(
    database: Database, monotonic: Callable[[], float], deadline: float
) -> tuple[bool, str | None]:
    """Whether all was looked at, and what is wrong."""
    connection = database.connection
    connection.set_progress_handler(lambda: int(monotonic() > deadline), STEPS)
    try:
        ((found,),) = connection.execute("pragma quick_check(1)").fetchall()
    except sqlite3.OperationalError:  # told to stop
        return False, None
    except sqlite3.DatabaseError as error:
        return True, str(error)
    finally:
        connection.set_progress_handler(None, 0)
    return True, None if found == "ok" else str(found)


def _pragma(database: Database, name: str) -> int:
    value: int = database.connection.execute(f"pragma {name}").fetchone()[0]
    return value


def _size_bytes(database: Database) -> int:
    with database.translated("measuring the file"):
        return _pragma(database, "page_count") * _pragma(database, "page_size")


def _bytes_of(path: str) -> int:
    with suppress(OSError):  # it is not there: it is empty
        return Path(path).stat().st_size
    return 0


def _lock_of(path: str) -> tuple[bool | None, int | None]:
    """Whether a daemon has the lock (None = this system does not say), and the process that it
    names. Only looks: to try the lock would be in the way of a daemon that starts.
    """
    try:
        inode, locks = Path(path).stat().st_ino, Path("/proc/locks").read_text("ascii")
    except FileNotFoundError:
        return (None, None) if Path(path).exists() else (False, None)
    except OSError:
        return None, None
    if not any(_is_on(line.split(), inode) for line in locks.splitlines()):
        return False, None
    text = Path(path).read_text("ascii", "replace").strip()
    return True, int(text) if text.isdigit() else None


def _is_on(lock: Sequence[str], inode: int) -> bool:
    """A line as `1: FLOCK ADVISORY WRITE 4711 08:01:1234 0 EOF`."""
    return lock[1:2] == ["FLOCK"] and any(word.endswith(f":{inode}") for word in lock[4:6])


class SqliteHealth(Part):
    """See `store.health.Health` for what each method promises. What deleted rows held is used
    again, so there are no dead rows to speak of.
    """

    server = answers(None)
    holders = answers(())
    replication = answers(None)
    tables = answers(())
    missing_rights = answers(())
    connections = answers(None)

    def __init__(self, path: str, in_memory: bool, call: Call, hints: Hints, aside: Aside) -> None:
        super().__init__(call, hints)
        self._path, self._in_memory, self._aside = path, in_memory, aside

    async def pool_mode(self) -> PoolMode:
        await trio.lowlevel.checkpoint()
        return "none"

    async def signs(self) -> Signs:
        size = await self.call(_size_bytes)
        return Signs(None, None, size + _bytes_of(f"{self._path}-wal"))

    async def now(self) -> float:
        return await self.call(lambda database: database.now() / 1_000_000)

    async def file(self, monotonic: Callable[[], float], seconds: float) -> File | None:
        if self._in_memory:
            await trio.lowlevel.checkpoint()
            return None
        return await self.call(_file, self._path, monotonic, monotonic() + seconds)

    async def file_beside(self, monotonic: Callable[[], float], seconds: float) -> File | None:
        if self._in_memory:
            await trio.lowlevel.checkpoint()
            return None
        where = await self.call(lambda database: database.where)
        deadline = monotonic() + seconds

        def look() -> File:
            wanted = f"file:{quote(self._path)}?mode=ro"
            with closing(sqlite3.connect(wanted, uri=True, isolation_level=None)) as connection:
                beside = Database(connection, where, monotonic, Path(self._path).parent)
                return _file(beside, self._path, monotonic, deadline)

        return await self._aside(look)
