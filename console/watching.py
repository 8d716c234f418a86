"""`musterd run --watch`: the daemon reloads when a file that makes up its kinds changes.

Files are looked at from time to time, on any file system, and their number is bounded.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path

import attrs
import trio

from musterd.catalog.kinds import Catalog, Pipeline, Python, WorkKind
from musterd.config.settings import Settings
from musterd.manager.log import Log, event
from musterd.manager.node.daemon import Daemon
from musterd.store.threads import in_thread

LOOK_SECONDS = 0.5
ENTRIES_MAX = 10_000  # of folders, in one look
NAMED_MAX = 3
PEACE_LOOKS_MAX = 10
SUFFIXES = (".py", ".toml")
# Folders of programs that somebody else wrote.
FOREIGN = frozenset({"__pycache__", "node_modules", "site-packages", "dist-packages"})

Stamps = Mapping[str, tuple[int, int, int]]  # by path: what changes when a file is written


@attrs.frozen
class Look:
    """What was there. Not whole = there are more entries than are looked at."""

    stamps: Stamps
    is_whole: bool = True

    def changed_since(self, before: Look) -> list[str]:
        """Files that were written, made or deleted."""
        names = self.stamps.keys() | before.stamps.keys()
        return sorted(one for one in names if self.stamps.get(one) != before.stamps.get(one))


def watched_places(settings: Settings, catalog: Catalog, config_file: Path) -> tuple[Path, ...]:
    """The configuration, the catalogs, and the folders where modules of kinds are looked up."""
    modules = (folder for kind in _python_kinds(catalog) for folder in kind.search_path)
    return tuple(dict.fromkeys((config_file, *settings.catalog.paths, *modules)))


def kept_code(catalog: Catalog) -> tuple[str, ...]:
    """Kinds whose code the daemon itself has imported, and keeps."""
    return tuple(
        name
        for name, kind in catalog.items()
        if any(one.isolation != "process" for one in _python_of(kind))
    )


def look_at(places: Iterable[Path], entries_max: int = ENTRIES_MAX) -> Look:
    """Blocks. Hidden folders, those of installed packages, and links to folders are left out."""
    stamps: dict[str, tuple[int, int, int]] = {}
    waiting, left, been = [str(place) for place in places], entries_max, set[str]()
    while waiting:
        place = waiting.pop()
        if place in been:
            continue
        been.add(place)
        if not os.path.isdir(place):  # noqa: PTH112 - thousands of them, twice a second
            _note(stamps, place)
            continue
        entries = _entries(place, left + 1)
        left -= len(entries)
        if left < 0:
            return Look(stamps, is_whole=False)
        waiting += [one.path for one in entries if _is_own_folder(one)]
        for one in entries:
            if one.name.endswith(SUFFIXES):
                _note(stamps, one.path)
    return Look(stamps)


@attrs.frozen
class Watcher:
    """`run` looks until it is cancelled. Blocking, `look` tells what is at those places."""

    daemon: Daemon
    log: Log
    config_file: Path
    look: Callable[[Iterable[Path]], Look] = look_at

    async def run(self) -> None:
        places, seen = self._places(), await self._look()
        event(self.log, logging.INFO, "watching", files=len(seen.stamps))
        if not seen.is_whole:
            what = f"only the first {ENTRIES_MAX:,} entries of folders are watched"
            event(self.log, logging.WARNING, "watching in part", message=what)
        while True:
            await trio.sleep(LOOK_SECONDS)
            if self.daemon.why_no_reload() or not (await self._look()).changed_since(seen):
                continue
            now = await self._look_in_peace()
            await self._reload(now.changed_since(seen))
            # What is written while it reloads is seen as a change; new places are not.
            before, places = places, self._places()
            seen = now if places == before else await self._look()

    def _places(self) -> tuple[Path, ...]:
        return watched_places(self.daemon.settings, self.daemon.catalog, self.config_file)

    async def _look(self) -> Look:
        return await in_thread(partial(self.look, self._places()))

    async def _look_in_peace(self) -> Look:
        """Editors write a file in several steps, and people save several files."""
        now = await self._look()
        for _ in range(PEACE_LOOKS_MAX):
            await trio.sleep(LOOK_SECONDS)
            before, now = now, await self._look()
            if not now.changed_since(before):
                break
        return now

    async def _reload(self, changed: list[str]) -> None:
        named = ",".join(changed[:NAMED_MAX])
        event(self.log, logging.INFO, "files changed", count=len(changed), files=named)
        kept = kept_code(self.daemon.catalog)
        if kept and any(one.endswith(".py") for one in changed):
            what = "task and thread kinds keep the code that was imported"
            event(self.log, logging.WARNING, "needs a restart", message=what, kinds=",".join(kept))
        await self.daemon.reload()  # which logs what came of it


def _python_kinds(catalog: Catalog) -> Iterator[Python]:
    for kind in catalog.values():
        yield from _python_of(kind)


def _python_of(kind: WorkKind) -> Iterator[Python]:
    behaviour = kind.behaviour
    if isinstance(behaviour, Python):
        yield behaviour
    elif isinstance(behaviour, Pipeline):
        for phase in behaviour.phases:
            yield from _python_of(phase.kind)


def _entries(folder: str, most: int) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(islice(found, most))
    except OSError:
        return []  # it has gone, or is not ours to read


def _is_own_folder(entry: os.DirEntry[str]) -> bool:
    if entry.name.startswith(".") or entry.name in FOREIGN:
        return False
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _note(stamps: dict[str, tuple[int, int, int]], path: str) -> None:
    try:
        found = os.stat(path)  # noqa: PTH116 - as above
    except OSError:
        return  # as above
    stamps[path] = found.st_mtime_ns, found.st_size, found.st_ino
