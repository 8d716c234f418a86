"""One connection to one SQLite file, in short transactions; where its calls run; its migrations."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar, cast

from musterd.store.errors import StoreMisconfigured
from musterd.store.sqlfiles import Migration, load_statements, missing, shipped
from musterd.store.sqlite.errors import sort_error, sort_file_error
from musterd.store.sqlite.rows import Params, Row, microseconds

if TYPE_CHECKING:  # what clients load of this needs no Trio
    from musterd.store.engine import SchemaState
    from musterd.store.sqlite.hints import Hints

OLDEST = (3, 35, 0)
MEMORY = ":memory:"
JUMP_SECONDS = 1.0  # by which a clock must have been set
LOOK_SECONDS = 0.1
SORTED = (sqlite3.Error, UnicodeEncodeError, OverflowError)  # what `sort_error` knows about
P = ParamSpec("P")
T = TypeVar("T")


class Database:
    """Statements by name, inside `reading()` or `writing()`."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        where: str,
        wall_clock: Callable[[], float],
        folder: Path | None,
    ) -> None:
        """`folder`: that of the file; None where it is in memory."""
        self.connection = connection
        self.where = where
        self._folder = folder
        self._wall_clock = wall_clock
        self._jumps: Jumps | None = None
        self._sql = load_statements("musterd.store.sqlite")

    def now(self) -> int:
        """Microseconds since the epoch, on the store's clock."""
        return microseconds(self._wall_clock())

    def move_leases(self, boottime: Callable[[], float]) -> None:
        """From now on leases keep what is left of them when the clock is set. For a daemon, whose
        leases all of them are.
        """
        self._jumps = Jumps(self._wall_clock, boottime)

    def execute(self, name: str, params: Params | None = None) -> sqlite3.Cursor:
        return self.connection.execute(self._sql[name], params or {})

    def rows(self, name: str, params: Params | None = None) -> list[Row]:
        return self.execute(name, params).fetchall()

    def execute_filled(self, name: str, params: Params, **parts: str) -> sqlite3.Cursor:
        """For a statement of which a part is written out; never a part that came from outside."""
        return self.connection.execute(self._sql[name].format(**parts), params)

    @contextmanager
    def writing(self, what: str) -> Generator[int, None, None]:
        """A transaction that alone may write; gives the moment at which it had the file to itself.

        Leaves all of the work or none, and raises the store's own errors: `OutcomeUnknown` if the
        commit itself failed in a way that leaves both open.
        """
        committing = False
        try:
            self.connection.execute("begin immediate")
            jumped = self._jumps.seconds() if self._jumps else 0.0
            if jumped:
                self.execute("move_leases", {"by": microseconds(jumped)})
                self.execute("move_duties", {"by": microseconds(jumped)})
            yield self.now()
            committing = True
            self.connection.execute("commit")
            if jumped and self._jumps:
                self._jumps.heed(jumped)
        except BaseException as error:
            self._roll_back()
            self._raise_known(error, what, committing=committing)
            raise

    @contextmanager
    def reading(self, what: str) -> Generator[int, None, None]:
        """A transaction that sees one moment of the file throughout, and gives it."""
        with self.translated(what):
            self.connection.execute("begin")
            try:
                yield self.now()
            finally:
                self._roll_back()

    @contextmanager
    def translated(self, what: str) -> Generator[None, None, None]:
        """Turns SQLite's errors into the store's."""
        try:
            yield
        except SORTED as error:
            self._raise_known(error, what)
            raise

    def _raise_known(self, error: BaseException, what: str, *, committing: bool = False) -> None:
        if isinstance(error, SORTED):
            known = sort_error(error, what, self.where, committing=committing, folder=self._folder)
            if known is not None:
                raise known from error

    def _roll_back(self) -> None:
        # SQLite itself has rolled back after some errors: a full disk, a failed read or write.
        if self.connection.in_transaction:
            self.connection.execute("rollback")


class Jumps:
    """By how much the wall clock was set, as a clock says that nobody sets. Both go on while the
    machine sleeps.
    """

    def __init__(self, wall_clock: Callable[[], float], boottime: Callable[[], float]) -> None:
        self._wall_clock, self._boottime = wall_clock, boottime
        self._ahead_seconds = self._look()

    def seconds(self) -> float:
        """0 = it was not, or by too little to matter."""
        jumped = self._look() - self._ahead_seconds
        return jumped if abs(jumped) >= JUMP_SECONDS else 0.0

    def heed(self, seconds: float) -> None:
        """What had to be done about it has been done."""
        self._ahead_seconds += seconds

    def _look(self) -> float:
        while True:
            before, wall, after = self._boottime(), self._wall_clock(), self._boottime()
            if after - before < LOOK_SECONDS:  # else something came in between
                return wall - after


def connect(
    path: str, where: str, wall_clock: Callable[[], float], busy_timeout_seconds: float
) -> Database:
    """Opens the file, making it and its folder if need be. Raises the store's own errors."""
    if sqlite3.sqlite_version_info < OLDEST:
        raise StoreMisconfigured(
            f"opening: {where}: this Python brings SQLite {sqlite3.sqlite_version}, wanted 3.35 or"
            " newer: use a newer Python, or PostgreSQL"
        )
    connection, folder = None, None if path == MEMORY else Path(path).parent
    try:
        if folder is not None:
            _make_file(Path(path), where)
        connection = sqlite3.connect(
            path,
            timeout=busy_timeout_seconds,
            isolation_level=None,
            check_same_thread=path != MEMORY,  # one that tests share, a call at a time
        )
        _prepare(connection, where)
    except (sqlite3.Error, StoreMisconfigured) as error:
        if connection is not None:
            connection.close()
        known = sort_error(error, "opening", where, folder=folder)
        if known is None:
            raise
        raise known from error
    return Database(connection, where, wall_clock, folder)


def has_log(path: Path) -> bool:
    """Whether there is more to the file than is in it: whoever closes it as the last takes that
    away.
    """
    log = Path(f"{path}-wal")
    return log.exists() and log.stat().st_size > 0


def refuse_emptied(path: Path, where: str) -> None:
    """A file that a daemon has worked on is never empty again. Raises `StoreMisconfigured`."""
    if not path.exists() or path.stat().st_size > 0:
        return
    if has_log(path) or Path(f"{path}.lock").exists():
        raise StoreMisconfigured(
            f"opening: {where}: the file is empty, and a daemon has worked on it: restore it from a"
            f" backup; or remove it with {path}-wal and {path}.lock, to begin with no jobs"
        )


def check_file(database: Database) -> None:
    """Raises `StoreMisconfigured` where the file is damaged. Reads all of it."""
    with database.reading("checking the file"):
        found = database.connection.execute("pragma quick_check(1)").fetchone()[0]
    if found != "ok":
        raise StoreMisconfigured(
            f"checking the file: {database.where}: {str(found).strip()}: restore it from a backup"
        )


def _make_file(path: Path, where: str) -> None:
    """Payloads are nobody else's business: a new folder is 0700, a new file 0600."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            _make_private(path)
    except FileExistsError:
        pass  # another process was quicker
    except OSError as error:
        raise sort_file_error(error, "opening", where) from error


def _make_private(path: Path) -> None:
    # Made aside and linked, so that it is in WAL mode when it appears: of two that switch the same
    # file at once one fails, busy timeout or not. And to open and close the file under its own name
    # would drop the locks that another connection of this process holds on it.
    descriptor, aside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(descriptor)
    try:
        with closing(sqlite3.connect(aside)) as connection:
            connection.execute("pragma journal_mode = wal")
        os.link(aside, path)
    finally:
        Path(aside).unlink()


def _prepare(connection: sqlite3.Connection, where: str) -> None:
    # A row with bytes that are no text must not spoil its batch: as text it is merely wrong.
    connection.text_factory = _text
    for pragma in ("journal_mode = wal", "synchronous = full", "temp_store = memory"):
        connection.execute(f"pragma {pragma}").close()
    mode = connection.execute("pragma journal_mode").fetchone()[0]
    if mode not in ("wal", "memory"):
        raise StoreMisconfigured(
            f"opening: {where}: the file system allows only journal mode {mode}, wanted"
            " wal: keep the file on a local disk"
        )


def _text(stored: bytes) -> str:
    return stored.decode("utf-8", "backslashreplace")


class Call(Protocol):
    """How the parts of an engine reach its database."""

    async def __call__(
        self,
        operation: Callable[Concatenate[Database, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T: ...


class Aside(Protocol):
    """How work that does not ask the database is done beside it."""

    async def __call__(self, work: Callable[[], T]) -> T: ...


class Part:
    """One part of an engine. Most of its methods are functions of its module, `called`."""

    def __init__(self, call: Call, hints: Hints) -> None:
        self.call, self._hints = call, hints


Method: TypeAlias = "Callable[Concatenate[Part, P], CoroutineType[Any, Any, T]]"


def called(operation: Callable[Concatenate[Database, P], T]) -> Method[P, T]:
    """The method that carries this out where the database is."""

    async def method(part: Part, /, *args: P.args, **named: P.kwargs) -> T:
        return await part.call(operation, *args, **named)

    return cast("Method[P, T]", method)


def answers(answer: T) -> Method[..., T]:
    """The method that always gives this: a file has nothing of the kind."""

    async def method(*_asked: object) -> T:
        from trio.lowlevel import checkpoint  # noqa: PLC0415 - clients load this without Trio

        await checkpoint()
        return answer

    return cast("Method[..., T]", method)


PACKAGE = "musterd.store.sqlite"
LOG = """create table if not exists schema_migrations (
  number integer primary key, name text not null, checksum text not null,
  applied_at integer not null
)"""


def compare(database: Database) -> SchemaState:
    """Raises `StoreMisconfigured` if the schema is newer or made of other migrations."""
    known = shipped(PACKAGE)
    with database.reading("reading the schema's version"):
        applied = _applied(database.connection)
    missing(applied, known, database.where)
    from musterd.store.engine import SchemaState  # noqa: PLC0415 - clients load this without Trio

    return SchemaState(found=max(applied, default=0), wanted=known[-1].number)


def migrate(database: Database) -> list[str]:
    """Applies what is missing; returns their names."""
    known = shipped(PACKAGE)
    with database.reading("reading the schema's version"):
        applied = _applied(database.connection)
    if not missing(applied, known, database.where):
        return []
    with database.writing("migrating the schema") as now:
        database.connection.execute(LOG)
        todo = missing(_applied(database.connection), known, database.where)
        for migration in todo:
            _apply(database.connection, migration, now)
    return [migration.name for migration in todo]


def statements(script: str) -> Iterator[str]:
    """The statements of a script. `executescript` would commit first: half of it could stay."""
    text = ""
    for line in script.splitlines(keepends=True):
        text += line
        if sqlite3.complete_statement(text):
            yield text
            text = ""


def _apply(connection: sqlite3.Connection, migration: Migration, now: int) -> None:
    for statement in statements(migration.sql):
        connection.execute(statement)
    connection.execute(
        "insert into schema_migrations (number, name, checksum, applied_at) values (?, ?, ?, ?)",
        (migration.number, migration.name, migration.checksum, now),
    )


def _applied(connection: sqlite3.Connection) -> dict[int, str]:
    found = connection.execute("select 1 from sqlite_master where name = 'schema_migrations'")
    if found.fetchone() is None:
        return {}
    return dict(connection.execute("select number, checksum from schema_migrations").fetchall())
