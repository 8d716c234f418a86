"""The SQL that is shipped in files: statements by name, and numbered migrations with checksums."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType

import attrs

from musterd.store.errors import StoreMisconfigured

_BEGINNING = re.compile(r"^-- (part )?([a-z][a-z0-9_]*): ", re.MULTILINE)


@cache
def load_statements(package: str) -> Mapping[str, str]:
    """All statements of an engine (`musterd.store.postgres` or `.sqlite`) by name.

    In the files of its `sql` each begins with a line `-- name: what it promises`. Text that several
    statements share begins with `-- part name: what it is`; `{name}` stands for it. Read once in a
    process, whatever the number of its tenants.
    """
    statements: dict[str, str] = {}
    parts: dict[str, str] = {}
    for text in _texts(files(package) / "sql"):
        for is_part, name, piece in split(text):
            found = parts if is_part else statements
            if name in found:
                raise ValueError(f"{package}: two pieces of SQL are called {name}")
            found[name] = piece
    return MappingProxyType({name: _whole(text, parts) for name, text in statements.items()})


def split(text: str) -> Iterator[tuple[bool, str, str]]:
    """The pieces of a file: whether each is a part, its name, and its text. Lines before the first
    one say what the file is about.
    """
    begun = list(_BEGINNING.finditer(text))
    ends = [match.start() for match in begun[1:]] + [len(text)]
    for match, end in zip(begun, ends, strict=True):
        yield match[1] is not None, match[2], text[match.start() : end].rstrip()


def _texts(folder: Traversable) -> list[str]:
    entries = [entry for entry in folder.iterdir() if entry.name.endswith(".sql")]
    return [entry.read_text(encoding="utf-8") for entry in entries]


def _whole(text: str, parts: Mapping[str, str]) -> str:
    """With its parts; of the comments only the first line, by which servers show it."""
    for name, part in parts.items():
        text = text.replace(f"{{{name}}}", _without_comments(part))
    name, _, rest = text.partition("\n")
    return f"{name}\n{_without_comments(rest)}"


def _without_comments(text: str) -> str:
    lines = text.splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith("--"))


FILE_NAME = re.compile(r"(\d{4})_[a-z0-9_]+\.sql")


@attrs.frozen
class Migration:
    number: int
    name: str  # the file's name without `.sql`
    sql: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()[:16]


@cache
def shipped(package: str) -> tuple[Migration, ...]:
    """The migrations of an engine (`musterd.store.postgres` or `.sqlite`), in order. Read once in a
    process, whatever the number of its tenants.
    """
    return found_in(files(package))


def found_in(folder: Traversable) -> tuple[Migration, ...]:
    """The migrations in `folder`: numbered files in its `migrations`, which never change once they
    are released. Until a release has frozen the first of them, its `schema` is the first.
    """
    numbered = folder / "migrations"
    found = [
        Migration(int(match[1]), entry.name.removesuffix(".sql"), entry.read_text("utf-8"))
        for entry in (numbered.iterdir() if numbered.is_dir() else ())
        if (match := FILE_NAME.fullmatch(entry.name))
    ]
    if all(migration.number != 1 for migration in found):
        found.append(Migration(1, "0001_schema", current_schema(folder)))
    return tuple(sorted(found, key=lambda migration: migration.number))


def current_schema(folder: Traversable) -> str:
    """The whole schema as it is now: the files of `schema`, in the order of their names. A store
    that applied all migrations has exactly this; a test compares them.
    """
    entries = sorted((folder / "schema").iterdir(), key=lambda entry: entry.name)
    return "\n".join(entry.read_text("utf-8") for entry in entries if entry.name.endswith(".sql"))


def missing(
    applied: Mapping[int, str], known: tuple[Migration, ...], where: str
) -> list[Migration]:
    """What is still to be applied, `applied` being number -> checksum.

    Raises `StoreMisconfigured` if the store is ahead of this program, or was built from other
    migrations.
    """
    newest_known = known[-1].number
    newest_applied = max(applied, default=0)
    if newest_applied > newest_known:
        raise StoreMisconfigured(
            f"{where}: the schema is at version {newest_applied}, this musterd knows versions up to"
            f" {newest_known}: a newer musterd has migrated it; upgrade this one"
        )
    for migration in known:
        checksum = applied.get(migration.number)
        if checksum is not None and checksum != migration.checksum:
            raise StoreMisconfigured(
                f"{where}: migration {migration.name} was applied with checksum {checksum}, this"
                f" musterd ships {migration.checksum}: the schema was made by a different build;"
                " restore it from a backup or use the build that made it; to try this build,"
                " give it a store of its own: another state directory, store.url or store.schema"
            )
    return [migration for migration in known if migration.number not in applied]
