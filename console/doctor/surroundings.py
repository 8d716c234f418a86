"""Checks that need no store: of the configuration, its files, and this machine."""

from __future__ import annotations

import os
import re
import resource
import shutil
import stat
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar, cast
from zoneinfo import available_timezones

import attrs
import trio

from musterd.config.credentials import find_credential, resolve_http_tokens, resolve_signing_keys
from musterd.config.load import resolve_store_url
from musterd.config.settings import keys
from musterd.config.tenants import settings_of
from musterd.console.doctor import judges
from musterd.console.doctor.finding import Check, Finding, Setup, fail, ok, warn
from musterd.store.opening import sqlite_path

T = TypeVar("T")
_LINE = re.compile(r":\d+$")
CONFIGURATION, MACHINE = "configuration", "machine"


def checks(setup: Setup) -> list[Check]:
    settings = setup.settings
    return [
        Check("leases", CONFIGURATION, _in_thread(lambda: judges.judge_leases(settings))),
        Check("secrets", CONFIGURATION, _in_thread(lambda: _secrets(setup))),
        Check("permissions", CONFIGURATION, _in_thread(lambda: _permissions(setup))),
        Check("kinds", CONFIGURATION, _in_thread(lambda: judges.judge_kinds(setup.kinds()))),
        Check("hooks", CONFIGURATION, _in_thread(lambda: judges.judge_hooks(setup.hooks()))),
        Check("schedules", CONFIGURATION, _in_thread(lambda: _schedules(setup))),
        Check("systemd", MACHINE, lambda: _systemd(setup)),
        Check("open files", MACHINE, _in_thread(lambda: _open_files(setup))),
        Check("disk", MACHINE, _in_thread(lambda: _disks(setup))),
    ]


def _in_thread(look: Callable[[], T]) -> Callable[[], Awaitable[T]]:
    """Checks may wait for disks or programs; cancelling abandons the thread."""
    return partial(trio.to_thread.run_sync, look, abandon_on_cancel=True)


def _secrets(setup: Setup) -> list[Finding]:
    """Raises ConfigError if one cannot be read."""
    settings, environ = setup.settings, setup.environ
    for name in setup.tenants:
        resolve_store_url(settings_of(settings, name), environ)
    tokens = resolve_http_tokens(settings, environ)
    signing = resolve_signing_keys(settings, environ)
    said = f"readable: {len(tokens)} tokens, {len(signing)} keys that sign webhooks"
    return [*judges.judge_signing(settings, bool(signing))] or [ok("secrets", said)]


def _schedules(setup: Setup) -> list[Finding]:
    found = judges.judge_schedules(setup.settings.schedules, setup.wall_clock())
    return [*judges.judge_zones(len(available_timezones())), *found]


def _permissions(setup: Setup) -> list[Finding]:
    return judges.judge_permissions(list(_given_files(setup)))


def _given_files(setup: Setup) -> Iterator[judges.GivenFile]:
    for key, path in _secret_paths(setup):
        yield from _given(path, key, True)
    secret = set(_files_with_secrets(setup))
    named = {_LINE.sub("", origin) for origin in setup.origins.values()}
    for text in sorted(named):
        if text.startswith("/") or Path(text).is_file():
            yield from _given(Path(text), "configuration", text in secret)
    for path in (*setup.settings.catalog.paths, *setup.settings.catalog.python_path):
        yield from _given(path, "catalog", False)


def _given(path: Path, key: str, is_secret: bool) -> Iterator[judges.GivenFile]:
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return  # reported by another check
    yield judges.GivenFile(str(path), key, mode, is_secret)


def _secret_paths(setup: Setup) -> Iterator[tuple[str, Path]]:
    settings = setup.settings
    named = {
        "store.url_file": settings.store.url_file,
        "http.token_file": settings.http.token_file,
        "webhooks.secret_file": settings.webhooks.secret_file,
    }
    named |= {f"http.tokens.{one.name}": one.token_file for one in settings.http.tokens}
    named |= {f"tenants.{one.name}": one.place.url_file for one in settings.tenants.values()}
    for key, name in named.items():
        if name:
            yield key, find_credential(name, setup.environ) or Path(name)


def _files_with_secrets(setup: Setup) -> Iterator[str]:
    for key, origin in setup.origins.items():
        mask, value = _masked(setup, key)
        if mask is not None and value and mask(value) != value:
            yield _LINE.sub("", origin)


def _masked(setup: Setup, key: str) -> tuple[Callable[[str], str] | None, str]:
    """A setting's mask, and its value."""
    section, _, name = key.partition(".")
    attribute = keys().get(key)
    if attribute is not None:
        found = cast(str, getattr(getattr(setup.settings, section), name))
        return attribute.metadata.get("mask"), found
    if section == "tenants" and name.endswith(".url"):
        tenant = setup.settings.tenants[name.removesuffix(".url")]
        return keys()["store.url"].metadata["mask"], tenant.place.url
    return None, ""


async def _systemd(setup: Setup) -> Iterable[Finding]:
    if not setup.has_systemd:
        await trio.lowlevel.checkpoint()
        return [ok("systemd", "does not run here")]
    names = ",".join(judges.PROPERTIES)
    done = await setup.run(["systemctl", "show", setup.unit, f"--property={names}"])
    if done.code != 0:
        said, advice = f"systemctl show ended with {done.code}", "check that you may query systemd"
        return [warn("systemd", said, "the unit's properties", advice)]
    shown = judges.properties(done.out)
    return judges.judge_unit(setup.unit, shown, setup.settings) + _units_files(setup, shown)


def _units_files(setup: Setup, shown: Mapping[str, str]) -> list[Finding]:
    limit = shown.get("LimitNOFILESoft", "")
    if shown.get("LoadState") != "loaded" or not limit.isdigit():
        return []
    judged = judges.judge_open_files(int(limit), setup.settings, setup.unit)
    return [attrs.evolve(one, name="systemd") for one in judged if one.level != "ok"]


def _open_files(setup: Setup) -> list[Finding]:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = soft if soft != resource.RLIM_INFINITY else 2**31
    return judges.judge_open_files(limit, setup.settings, "a process started from here")


def _disks(setup: Setup) -> list[Finding]:
    places = dict(_places(setup))
    if not places:
        return [ok("disk", "no part of the queue is on this machine")]
    return [one for path, what in places.items() for one in _disk(path, what)]


def _disk(path: Path, what: str) -> list[Finding]:
    there = next((one for one in (path, *path.parents) if one.is_dir()), None)
    if there is None:
        return [fail("disk", f"{path} ({what}) does not exist", "a folder", "create it")]
    usage, files = shutil.disk_usage(there), os.statvfs(there)
    disk = judges.Disk(str(there), what, usage.free, usage.total, files.f_favail, files.f_files)
    return judges.judge_disk(disk)


def _places(setup: Setup) -> Iterator[tuple[Path, str]]:
    """Folders that can fill up."""
    archive = setup.settings.retention.archive
    if archive.startswith("/"):
        yield Path(archive).parent, "the archive"
    for name in setup.tenants:
        url = resolve_store_url(settings_of(setup.settings, name), setup.environ)
        if url.startswith("sqlite:"):
            yield sqlite_path(url).absolute().parent, "the embedded store"
