"""Numbered migrations with checksums: which are shipped, and which are missing from a store.
Engines apply them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

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
    folder = files(package) / "migrations"
    found = [
        Migration(int(match[1]), entry.name.removesuffix(".sql"), entry.read_text("utf-8"))
        for entry in folder.iterdir()
        if (match := FILE_NAME.fullmatch(entry.name))
    ]
    return tuple(sorted(found, key=lambda migration: migration.number))


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
