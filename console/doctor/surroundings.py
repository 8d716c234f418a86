"""The checks that need no store: the configuration, its files, this machine."""

from __future__ import annotations

import os
import re
import resource
import shutil
import stat
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar, cast
from zoneinfo import available_timezones

import attrs
import trio

from musterd.config.credentials import find_credential, resolve_http_tokens, resolve_signing_keys
from musterd.config.settings import keys
from musterd.config.store_url import resolve_store_url, sqlite_path
from musterd.config.tenants import settings_of
from musterd.console.doctor import machine
from musterd.console.doctor.configuration import (
    judge_hooks,
    judge_kinds,
    judge_leases,
    judge_schedules,
    judge_signing,
    judge_zones,
)
from musterd.console.doctor.finding import Check, Finding, Setup, fail, ok, warn

T = TypeVar("T")
_LINE = re.compile(r":\d+$")
CONFIGURATION, MACHINE = "configuration", "machine"


def checks(patient: Setup) -> list[Check]:
    """In the order in which they are told."""
    settings = patient.settings
    return [
        Check("leases", CONFIGURATION, _at_once(lambda: judge_leases(settings))),
        Check("secrets", CONFIGURATION, _at_once(lambda: _secrets(patient))),
        Check("permissions", CONFIGURATION, _in_thread(lambda: _permissions(patient))),
        Check("kinds", CONFIGURATION, _in_thread(lambda: judge_kinds(patient.kinds()))),
        Check("hooks", CONFIGURATION, _in_thread(lambda: judge_hooks(patient.hooks()))),
        Check("schedules", CONFIGURATION, _in_thread(lambda: _schedules(patient))),
        Check("systemd", MACHINE, lambda: _systemd(patient)),
        Check("open files", MACHINE, _at_once(lambda: _open_files(patient))),
        Check("disk", MACHINE, _in_thread(lambda: _disks(patient))),
    ]


def _at_once(look: Callable[[], T]) -> Callable[[], Awaitable[T]]:
    async def looked() -> T:
        await trio.lowlevel.checkpoint()
        return look()

    return looked


def _in_thread(look: Callable[[], T]) -> Callable[[], Awaitable[T]]:
    """For what waits for disks or programs; who waits for it may leave."""

    async def looked() -> T:
        return await trio.to_thread.run_sync(look, abandon_on_cancel=True)

    return looked


def _secrets(patient: Setup) -> list[Finding]:
    """Raises ConfigError where one cannot be read."""
    settings, environ = patient.settings, patient.environ
    for name in patient.tenants:
        resolve_store_url(settings_of(settings, name), environ)
    tokens = resolve_http_tokens(settings, environ)
    signing = resolve_signing_keys(settings, environ)
    said = f"readable: {len(tokens)} tokens, {len(signing)} keys that sign webhooks"
    return [*judge_signing(settings, bool(signing))] or [ok("secrets", said)]


def _schedules(patient: Setup) -> list[Finding]:
    found = judge_schedules(patient.settings.schedules, patient.wall_clock())
    return [*judge_zones(len(available_timezones())), *found]


def _permissions(patient: Setup) -> list[Finding]:
    return machine.judge_permissions(list(_given_files(patient)))


def _given_files(patient: Setup) -> Iterator[machine.GivenFile]:
    for key, path in _secret_paths(patient):
        yield from _given(path, key, True)
    secret = set(_files_with_secrets(patient))
    named = {_LINE.sub("", origin) for origin in patient.origins.values()}
    for text in sorted(named):
        if text.startswith("/") or Path(text).is_file():
            yield from _given(Path(text), "configuration", text in secret)
    for path in (*patient.settings.catalog.paths, *patient.settings.catalog.python_path):
        yield from _given(path, "catalog", False)


def _given(path: Path, key: str, is_secret: bool) -> Iterator[machine.GivenFile]:
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return  # another check tells of it
    yield machine.GivenFile(str(path), key, mode, is_secret)


def _secret_paths(patient: Setup) -> Iterator[tuple[str, Path]]:
    settings = patient.settings
    named = {
        "store.url_file": settings.store.url_file,
        "http.token_file": settings.http.token_file,
        "webhooks.secret_file": settings.webhooks.secret_file,
    }
    named |= {f"http.tokens.{one.name}": one.token_file for one in settings.http.tokens}
    named |= {f"tenants.{one.name}": one.place.url_file for one in settings.tenants.values()}
    for key, name in named.items():
        if name:
            yield key, find_credential(name, patient.environ) or Path(name)


def _files_with_secrets(patient: Setup) -> Iterator[str]:
    for key, origin in patient.origins.items():
        mask, value = _masked(patient, key)
        if mask is not None and value and mask(value) != value:
            yield _LINE.sub("", origin)


def _masked(patient: Setup, key: str) -> tuple[Callable[[str], str] | None, str]:
    """How a setting is masked, and its value."""
    section, _, name = key.partition(".")
    attribute = keys().get(key)
    if attribute is not None:
        found = cast(str, getattr(getattr(patient.settings, section), name))
        return attribute.metadata.get("mask"), found
    if section == "tenants" and name.endswith(".url"):
        tenant = patient.settings.tenants[name.removesuffix(".url")]
        return keys()["store.url"].metadata["mask"], tenant.place.url
    return None, ""


async def _systemd(patient: Setup) -> Iterable[Finding]:
    if not patient.has_systemd:
        await trio.lowlevel.checkpoint()
        return [ok("systemd", "does not run here")]
    names = ",".join(machine.PROPERTIES)
    done = await patient.run(["systemctl", "show", patient.unit, f"--property={names}"])
    if done.code != 0:
        said, advice = f"systemctl show ended with {done.code}", "check that you may query systemd"
        return [warn("systemd", said, "the unit's properties", advice)]
    shown = machine.properties(done.out)
    return machine.judge_unit(patient.unit, shown, patient.settings) + _units_files(patient, shown)


def _units_files(patient: Setup, shown: Mapping[str, str]) -> list[Finding]:
    limit = shown.get("LimitNOFILESoft", "")
    if shown.get("LoadState") != "loaded" or not limit.isdigit():
        return []
    judged = machine.judge_open_files(int(limit), patient.settings, patient.unit)
    return [attrs.evolve(one, name="systemd") for one in judged if one.level != "ok"]


def _open_files(patient: Setup) -> list[Finding]:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = soft if soft != resource.RLIM_INFINITY else 2**31
    return machine.judge_open_files(limit, patient.settings, "a process started from here")


def _disks(patient: Setup) -> list[Finding]:
    places = dict(_places(patient))
    if not places:
        return [ok("disk", "no part of the queue is on this machine")]
    return [one for path, what in places.items() for one in _disk(path, what)]


def _disk(path: Path, what: str) -> list[Finding]:
    there = next((one for one in (path, *path.parents) if one.is_dir()), None)
    if there is None:
        return [fail("disk", f"{path} ({what}) does not exist", "a folder", "create it")]
    usage, files = shutil.disk_usage(there), os.statvfs(there)
    disk = machine.Disk(str(there), what, usage.free, usage.total, files.f_favail, files.f_files)
    return machine.judge_disk(disk)


def _places(patient: Setup) -> Iterator[tuple[Path, str]]:
    """The folders that fill up."""
    archive = patient.settings.retention.archive
    if archive.startswith("/"):
        yield Path(archive).parent, "the archive"
    for name in patient.tenants:
        url = resolve_store_url(settings_of(patient.settings, name), patient.environ)
        if url.startswith("sqlite:"):
            yield sqlite_path(url).absolute().parent, "the embedded store"
