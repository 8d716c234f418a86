"""The statements of a schema as they are sent: their parameters, and the client's own limit for
their answers.

Lists go as array literals, written here because a driver that types each element costs ten times as
much; the numbers of successes, which are most of what is sent, go in the server's own binary form.
Sets of jobs go as multiranges: a few neighbours take hardly more room than one job.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias
from uuid import UUID

import attrs
import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

from musterd.config.job_options import NAMES, OPTIONS
from musterd.store.jobs import BRIEF_CHARACTERS, JOB_COLUMNS
from musterd.store.sqlfiles import load_statements

if TYPE_CHECKING:  # what clients load of this needs no Trio
    from musterd.store.postgres.connection import Pool, TrioConnection
    from musterd.store.postgres.time_limit import TimeLimit

Params = Mapping[str, Any]
Row = tuple[Any, ...]
Cursor = psycopg.AsyncCursor[Row]

_AS_TEXT = frozenset({"payload", "result", "error", "spent"})  # JSON that is decoded elsewhere
# Jobs that are asked for, as `new_job_params` hands them over: a column for each option.
_ARRAYS = ", ".join(f"%({one.name})s::{one.type.sql}[]" for one in OPTIONS)
NEW_JOBS = (
    f"unnest(%(kind)s::text[], {_ARRAYS}) with ordinality as job (kind, {', '.join(NAMES)}, place)"
)
SELECTED = ", ".join(f"{name}::text" if name in _AS_TEXT else name for name in JOB_COLUMNS)
# The same without what may be large.
_BRIEF = {
    "payload": "'{}'",
    "result": "null::text",
    "spent": "null::text",
    "log": "null::text",
    "error": "{schema}.short_error(error)::text",
    "reason": f"left(reason, {BRIEF_CHARACTERS})",
}
BRIEF = ", ".join(f"{_BRIEF[name]} as {name}" if name in _BRIEF else name for name in JOB_COLUMNS)
_NAMED = re.compile(r"%\((\w+)\)s|%%")


class Numbered(NamedTuple):
    """A statement whose parameters are numbered, `names` in the order of their numbers. psycopg
    would look for named ones each time that it sends a statement as long as ours are, which costs
    as much as all the values of a small batch.
    """

    text: bytes
    names: tuple[str, ...]


def numbered(sql: str) -> Numbered:
    names = list(dict.fromkeys(name for name in _NAMED.findall(sql) if name))

    def number(found: re.Match[str]) -> str:
        return f"${names.index(found[1]) + 1}" if found[1] else "%"

    return Numbered(_NAMED.sub(number, sql).encode(), tuple(names))


def fill(sql: str, schema: str) -> str:
    """SQL text with the schema's names in it. `schema` is a checked identifier (see config)."""
    return (
        sql.replace("{brief_columns}", BRIEF)
        .replace("{schema}", f'"{schema}"')
        .replace("{schema_name}", schema)
        .replace("{job_columns}", SELECTED)
        .replace("{new_jobs}", NEW_JOBS)
    )


def statements_of(schema: str) -> Mapping[str, Numbered]:
    """By name, from the files by topic in `sql`, where each begins `-- name: what it promises`."""
    texts = load_statements("musterd.store.postgres")
    return {name: numbered(fill(text, schema)) for name, text in texts.items()}


async def send(conn: TrioConnection, statement: Numbered, params: Params) -> Cursor:
    """The rows come as binary."""
    cursor = psycopg.AsyncRawCursor(conn)
    cursor.format = Format.BINARY
    return await cursor.execute(statement.text, [params[name] for name in statement.names])


# What several statements read is then of one moment.
SNAPSHOT = b"begin transaction isolation level repeatable read read only"
LOCK_SECONDS = 0.25  # what writes about jobs in hand waits so long for whoever else holds one


class Run(Protocol):
    async def __call__(self, name: str, params: Params) -> list[Row]:
        """One statement by name, as a transaction of its own; gives its rows."""
        ...


class Execute(Protocol):
    async def __call__(self, name: str, params: Params) -> int:
        """As `Run`, for a statement that returns no rows; gives how many it changed."""
        ...


Ask: TypeAlias = "Callable[[TrioConnection, str, Params], Awaitable[list[str | None]]]"
Send: TypeAlias = "Callable[[TrioConnection, str, Params], Awaitable[Cursor]]"


@attrs.frozen
class Statements:
    """The statements of one schema, by name, over the connections that most calls share."""

    sql: Mapping[str, Numbered]
    shared: Pool
    timeout_seconds: float
    limits: Callable[[float, str], TimeLimit]

    async def run(self, name: str, params: Params, pool: Pool | None = None) -> list[Row]:
        with self.limit(name):
            async with (pool or self.shared).use(name) as conn:
                cursor = await self.send(conn, name, params)
                return await cursor.fetchall()

    async def run_soon(self, name: str, params: Params) -> list[Row]:
        """As `run`, of jobs that somebody else may hold: gives up soon, since whoever waits for one
        of them keeps the leases of others locked. Raises `Locked`.
        """
        with self.limit(name):
            async with self.shared.use(name) as conn:
                async with conn.pipeline():
                    await self.send(conn, "bound_waits", {"lock_ms": ms(LOCK_SECONDS)})
                    cursor = await self.send(conn, name, params)
                return await cursor.fetchall()

    async def execute(self, name: str, params: Params) -> int:
        with self.limit(name):
            async with self.shared.use(name) as conn:
                return (await self.send(conn, name, params)).rowcount

    async def send(
        self, conn: TrioConnection, name: str, params: Params
    ) -> psycopg.AsyncCursor[Row]:
        return await send(conn, self.sql[name], params)

    async def ask(self, conn: TrioConnection, name: str, params: Params) -> list[str | None]:
        """See `TrioConnection.ask`. Parameters are words and numbers."""
        statement = self.sql[name]
        return await conn.ask(statement.text, [str(params[each]) for each in statement.names])

    def limit(self, what: str) -> TimeLimit:
        return self.limits(self.timeout_seconds, what)


def ms(seconds: float) -> str:
    """As the server's settings have it."""
    return f"{round(seconds * 1000)}ms"


def numbers(values: Iterable[float | None]) -> str:
    """For numbers and booleans."""
    return "{" + ",".join(map(str, values)).replace("None", "NULL") + "}"


PACKED_AT_ONCE = 64  # numbers: longer formats would be compiled anew for each length


class _Packed(bytes):
    """An array as the server keeps it."""


class _Int4s(_Packed): ...


class _Int8s(_Packed): ...


class _Float8s(_Packed): ...


def _packing(
    array: type[_Packed], array_oid: int, oid: int, code: str
) -> Callable[[Sequence[float]], _Packed]:
    class AsItIs(Dumper):
        format = Format.BINARY

        def dump(self, obj: _Packed) -> _Packed:
            return obj

    AsItIs.oid = array_oid
    psycopg.adapters.register_dumper(array, AsItIs)
    size = struct.calcsize(f">{code}")
    packs = [struct.Struct(">" + f"i{code}" * count).pack for count in range(PACKED_AT_ONCE + 1)]

    def pack(values: Sequence[float]) -> _Packed:
        sized: list[float] = [size] * (2 * len(values))
        sized[1::2] = values
        starts = range(0, len(sized), 2 * PACKED_AT_ONCE)
        parts = [sized[start : start + 2 * PACKED_AT_ONCE] for start in starts]
        dimensions = (len(values), 1) if values else ()
        head = struct.pack(f">iiI{len(dimensions)}i", bool(values), 0, oid, *dimensions)
        return array(head + b"".join([packs[len(part) // 2](*part) for part in parts]))

    return pack


int4s = _packing(_Int4s, 1007, 23, "i")
int8s = _packing(_Int8s, 1016, 20, "q")
float8s = _packing(_Float8s, 1022, 701, "d")


def words(values: Iterable[object]) -> str:
    """For values whose text holds no quote, comma, brace, backslash or blank, and is not NULL:
    states, tokens.
    """
    return "{" + ",".join(map(str, values)) + "}"


def texts(values: Iterable[str | None]) -> str:
    """For any text."""
    return "{" + ",".join(["NULL" if value is None else _quoted(value) for value in values]) + "}"


def texts_if_any(values: Sequence[str | None]) -> str:
    """Empty where all are null: what is shorter than its neighbours is padded with nulls."""
    return "{}" if values.count(None) == len(values) else texts(values)


def tokens(values: Iterable[UUID]) -> str:
    """Of a few different tokens: the text of one is dear, as is its hash."""
    given = list(values)
    known = {number: str(one) for number, one in {id(one): one for one in given}.items()}
    return words(map(known.__getitem__, map(id, given)))


def epochs(moments: Sequence[float | None]) -> str:
    """To the microsecond, as the server keeps them."""
    if None in moments:
        return numbers(moments)
    return "{" + (("%.6f," * len(moments)) % tuple(moments))[:-1] + "}"  # cheaper than one by one


def _quoted(text: str) -> str:
    if "\\" in text:
        text = text.replace("\\", "\\\\")
    return '"' + text.replace('"', '\\"') + '"'


def given_params(jobs: Iterable[tuple[int, UUID]]) -> dict[str, str]:
    """The jobs under each token; tokens are few, and most share one object."""
    by_token: dict[UUID, list[int]] = {}
    latest: UUID | None = None
    ids: list[int] = []
    for job_id, token in jobs:
        if token is not latest:  # the hash of one is dear
            latest, ids = token, by_token.setdefault(token, [])
        ids.append(job_id)
    tokens = sorted(by_token)
    return {
        "tokens": words(tokens),
        "sets": "{" + ",".join(f'"{multirange(by_token[token])}"' for token in tokens) + "}",
    }


def ended_params(jobs: Iterable[tuple[int, UUID, str | None]]) -> dict[str, str | _Packed]:
    """The jobs under each token and target, and the place of each one's token; where there is one
    token that is not said.
    """
    places: dict[UUID, int] = {}
    sets: dict[tuple[int, str | None], list[int]] = {}
    which: list[int] = []
    place, latest = 0, None
    for job_id, token, target in jobs:
        if token is not latest:  # the hash of one is dear
            place, latest = places.setdefault(token, len(places) + 1), token
        key = place, target
        if key in sets:
            sets[key].append(job_id)
        else:
            sets[key] = [job_id]
        which.append(place)
    tokens = [str(token) for token in places]
    return {
        "tokens": words(tokens),
        "which": int4s(which if len(tokens) > 1 else ()),
        "set_tokens": words(tokens[place - 1] for place, _ in sets),
        "set_targets": texts(target or "" for _, target in sets),
        "sets": "{" + ",".join(f'"{multirange(ids)}"' for ids in sets.values()) + "}",
    }


def multirange(ids: Sequence[int]) -> str:
    """Each of them once, in any order."""
    first, last = ids[0], ids[-1]
    if last - first + 1 == len(ids) and list(ids) == list(range(first, last + 1)):
        return f"{{[{first},{last}]}}"
    stretches: list[str] = []
    in_order = sorted(ids)
    begun = before = in_order[0]
    for one in in_order[1:]:
        if one != before + 1:
            stretches.append(f"[{begun},{before}]")
            begun = one
        before = one
    stretches.append(f"[{begun},{before}]")
    return "{" + ",".join(stretches) + "}"
