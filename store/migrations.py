"""Numbered migrations with checksums: which are shipped, and which are missing from a store.
Engines apply them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

import attrs

from musterd.store.errors import StoreMisconfigured

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
                " restore it from a backup or use the build that made it"
            )
    return [migration for migration in known if migration.number not in applied]
