"""A schema for the occasion.

Its maker holds an advisory lock on its name as long as it lives. A schema of such a name that bears
our mark, and whose lock nobody holds, was left behind.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager

import psycopg

from musterd.store.errors import StoreError, StoreMisconfigured
from musterd.store.postgres import addresses, setup
from musterd.store.postgres.connection import TrioConnection
from musterd.store.postgres.errors import first_line, sort_connect_error, sort_error
from musterd.store.postgres.setup import Hosts
from musterd.store.scratch import Scratch, check_name, is_scratch_name

# The first key of the advisory lock on a name. Who else holds it keeps a schema from being swept.
LOCK_SPACE = 1836413799
# Beside the name: a tenant's schema may happen to have one like it.
MARK = "made by musterd bench for one measurement, and dropped after it"
FOUND_MAX = 20

FIND = """
select n.nspname, r.rolname, pg_has_role(n.nspowner, 'usage')
from pg_namespace n join pg_roles r on r.oid = n.nspowner
where n.nspname ~ '^musterd_bench_[0-9a-f]{8}$' and obj_description(n.oid, 'pg_namespace') = %s
order by n.nspname limit %s"""
IS_OURS = """
select true from pg_namespace where nspname = %s and obj_description(oid, 'pg_namespace') = %s"""
# A lock of the transaction: through a pooler one of the session would be anybody's.
LOCK = "select pg_advisory_xact_lock(%s, hashtext(%s))"
TRY_LOCK = "select pg_try_advisory_xact_lock(%s, hashtext(%s))"
STAY = "begin; set local idle_in_transaction_session_timeout = 0"
# Tables that autovacuum is at are given up by it after a second.
DROP_WITHIN = "set local lock_timeout = '10s'; set local statement_timeout = '15s'"


class ScratchSchema:
    """See `store.scratch.ScratchStore`."""

    def __init__(self, url: str, options: setup.StoreOptions, name: str) -> None:
        check_name(name)
        self._url, self._name, self._options = url, name, options
        params = addresses.connection_params(url)
        self._where = addresses.address(params)
        self._hosts = Hosts(params, options.connect_timeout_seconds)
        self._owner: TrioConnection | None = None  # holds the lock, in a transaction
        self._may_be_there = False

    async def make(self) -> Scratch:
        self._owner = owner = await self._dial()
        setup.check_version(owner, self._where)
        with _sorted("making a schema", self._where):
            removed, left = await self._sweep(owner)
            await owner.execute(STAY, prepare=False)
            await owner.execute(LOCK, (LOCK_SPACE, self._name), prepare=False)
            pooled = await setup.is_pooled(owner)
        await self._create()
        version = owner.info.parameter_status("server_version") or "of unknown version"
        return Scratch(
            self._url, self._name, self._where, f"PostgreSQL {version}", pooled, removed, left
        )

    async def remove(self) -> None:
        owner, self._owner = self._owner, None
        try:
            if self._may_be_there and not await self._removed_by(owner):
                await self._remove_anew()
        finally:
            if owner is not None:
                owner.discard()

    async def _remove_anew(self) -> None:
        what = f"dropping schema {self._name}"
        async with self._connection() as conn:
            with _sorted(what, self._where):
                await conn.execute("begin", prepare=False)
                await _drop(conn, self._name)
                await conn.execute("commit", prepare=False)

    async def _removed_by(self, owner: TrioConnection | None) -> bool:
        """False = its connection is lost."""
        if owner is None or owner.closed:
            return False
        try:
            await _drop(owner, self._name)
            await owner.execute("commit", prepare=False)
        except psycopg.Error:
            return False
        return True

    async def _create(self) -> None:
        """In a transaction of its own, so that it is there for all."""
        async with self._connection() as conn:
            self._may_be_there = True
            text = f'create schema "{self._name}"; comment on schema "{self._name}" is \'{MARK}\''
            try:
                await conn.execute(text.encode(), prepare=False)
            except psycopg.errors.InsufficientPrivilege as error:
                self._may_be_there = False
                raise self._not_allowed(conn) from error
            except psycopg.Error as error:
                raise sort_error(error, "making a schema", self._where, sent=True) from error

    def _not_allowed(self, conn: TrioConnection) -> StoreError:
        role, database = conn.info.user, conn.info.dbname
        return StoreMisconfigured(
            f"{self._where}: role {role!r} lacks the right to create a schema in database"
            f' {database!r}: grant create on database "{database}" to "{role}", and revoke it'
            " afterwards; or measure with the URL of a role that has it"
        )

    async def _sweep(self, conn: TrioConnection) -> tuple[list[str], list[str]]:
        """Drops what was left behind; gives that, and what is to be dropped by others."""
        removed: list[str] = []
        left: list[str] = []
        cursor = await conn.execute(FIND, (MARK, FOUND_MAX), prepare=False)
        for name, role, is_ours in await cursor.fetchall():
            await conn.execute("begin", prepare=False)
            try:
                if not await _is_free(conn, name):
                    pass  # another measurement, under way
                elif is_ours:
                    await _drop(conn, name)
                    removed.append(f"schema {name}")
                else:
                    left.append(f"schema {name}: drop schema {name} cascade, as role {role}")
            except psycopg.Error as error:
                left.append(f"schema {name}: drop schema {name} cascade ({first_line(error)})")
            await conn.execute("commit", prepare=False)  # after an error: a rollback
        return removed, left

    @asynccontextmanager
    async def _connection(self) -> AsyncGenerator[TrioConnection]:
        conn = await self._dial()
        try:
            yield conn
        finally:
            conn.discard()

    async def _dial(self) -> TrioConnection:
        try:
            return await setup.dial(self._hosts, self._options, {})
        except psycopg.Error as error:
            raise sort_connect_error(error, self._where) from None  # may show the password
        except OSError as error:
            raise sort_connect_error(psycopg.OperationalError(str(error)), self._where) from None


async def _is_free(conn: TrioConnection, name: str) -> bool:
    """Whether nobody holds the lock on it; then we do, as long as the transaction lasts."""
    cursor = await conn.execute(TRY_LOCK, (LOCK_SPACE, name), prepare=False)
    return await cursor.fetchone() == (True,)


async def _drop(conn: TrioConnection, name: str) -> None:
    """Drops it where it bears our mark, in the transaction that `conn` is in."""
    assert is_scratch_name(name), "nothing else is ever dropped"
    ours = await (await conn.execute(IS_OURS, (name, MARK), prepare=False)).fetchone()
    if ours is not None:
        await conn.execute(DROP_WITHIN, prepare=False)
        await conn.execute(f'drop schema "{name}" cascade'.encode(), prepare=False)


@contextmanager
def _sorted(what: str, where: str) -> Generator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise sort_error(error, what, where, sent=True) from error
