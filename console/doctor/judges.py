"""Whether settings, kinds, hooks, schedules and secrets work well, and whether machine, files and
systemd unit suit a daemon. Pure. What cannot work at all is refused elsewhere.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple

import attrs

from musterd.catalog.kinds import Catalog
from musterd.config.schedules import Schedule
from musterd.config.settings import Settings, lease_plan
from musterd.manager.scaling.guard import Machine, is_on, unseen
from musterd.store.health import File
from musterd.store.words import count_text, cut, one_line, plural

NAME = "leases"
SPARE_RENEWALS = 4  # below this a short hiccup of the store costs leases


def judge_leases(settings: Settings) -> list[Finding]:
    plan = lease_plan(settings)
    said = (
        f"a lease of {plan.lease_seconds:g} s, renewed every {plan.heartbeat_seconds:g} s,"
        f" trusted until {plan.margin_seconds:g} s before its end"
    )
    found = [*_of_lease(settings), *_of_database(settings), *_of_looks(settings)]
    return found or [ok(NAME, said)]


def _of_lease(settings: Settings) -> Iterator[Finding]:
    plan = lease_plan(settings)
    trusted = plan.lease_seconds - plan.margin_seconds
    renewals = trusted / plan.heartbeat_seconds
    if renewals < SPARE_RENEWALS:
        said = f"a lease of {plan.lease_seconds:g} s has room for {renewals:.1f} renewals"
        advice = "raise workers.lease_timeout_seconds, or lower leases.heartbeat_seconds"
        yield warn(NAME, said, f"room for {SPARE_RENEWALS}", advice)
    if plan.request_timeout_seconds >= plan.heartbeat_seconds:
        due = f"the next one is due after {plan.heartbeat_seconds:g} s"
        said = f"a renewal may take {plan.request_timeout_seconds:g} s, {due}"
        advice = "set it to 0, which means three quarters of the heartbeat"
        yield warn(NAME, said, "a shorter leases.request_timeout_seconds", advice)


def _of_database(settings: Settings) -> Iterator[Finding]:
    plan, store = lease_plan(settings), settings.store
    for name in ("statement_timeout_seconds", "idle_transaction_timeout_seconds"):
        seconds = getattr(store, name)
        if seconds >= plan.lease_seconds - plan.margin_seconds:
            said = f"store.{name} = {seconds:g} is not shorter than a lease is trusted"
            wanted = f"less than {plan.lease_seconds - plan.margin_seconds:g} s"
            advice = f"lower store.{name}: a longer statement ends with its lease anyway"
            yield warn(NAME, said, wanted, advice)
    if store.lock_timeout_seconds >= store.statement_timeout_seconds:
        limit = f"store.statement_timeout_seconds = {store.statement_timeout_seconds:g}"
        said = f"store.lock_timeout_seconds = {store.lock_timeout_seconds:g} is not below {limit}"
        wanted = "lock waits that end before the statement does"
        yield warn(NAME, said, wanted, "lower store.lock_timeout_seconds")
    if store.reconnect_max_seconds >= plan.lease_seconds / 3:
        key = f"store.reconnect_max_seconds = {store.reconnect_max_seconds:g}"
        advice = "lower it: after a short outage leases would expire before anyone reconnects"
        wanted = f"less than {plan.lease_seconds / 3:g} s"
        yield warn(NAME, f"{key} is a third of a lease or more", wanted, advice)


def _of_looks(settings: Settings) -> Iterator[Finding]:
    plan, workers = lease_plan(settings), settings.workers
    for name in ("poll_interval_ms", "scale_interval_ms"):
        ms = getattr(workers, name)
        if ms / 1000 >= plan.lease_seconds / 3:
            said = f"workers.{name} = {ms} is a third of a lease or more"
            advice = f"lower workers.{name}, or raise workers.lease_timeout_seconds"
            yield warn(NAME, said, f"less than {plan.lease_seconds / 3 * 1000:.0f}", advice)
    duties = settings.duties
    if duties.mode == "leader" and duties.lease_seconds > 2 * plan.lease_seconds:
        why = "after a node dies, nobody looks for lost leases for this long"
        said = f"duties.lease_seconds = {duties.lease_seconds:g}: {why}"
        wanted = f"at most {2 * plan.lease_seconds:g} s, two leases of a job"
        yield warn(NAME, said, wanted, "lower duties.lease_seconds")
    if duties.mode == "everyone":
        said = 'duties.mode = "everyone": all nodes do all background work'
        yield warn(NAME, said, '"leader"', "remove it: it is meant for development")


WIDTH = 200
ZONES = 300  # the world has more than that


def judge_kinds(catalog: Catalog) -> list[Finding]:
    found = [
        warn(
            "kinds",
            f"kind {name} cannot run here: {cut(one_line(kind.broken), WIDTH)}",
            "everything that it names, on this machine",
            f"fix {kind.source}, then `musterd kinds --check`; its jobs wait until then",
        )
        for name, kind in catalog.items()
        if kind.broken is not None
    ]
    return found or [ok("kinds", f"{plural(len(catalog), 'kind')}, all of which can run here")]


def judge_hooks(broken: Mapping[str, str]) -> list[Finding]:
    advice = "fix it: calls to it wait until then"
    found = [
        warn("hooks", f"{key}: {cut(one_line(why), WIDTH)}", "a function that exists", advice)
        for key, why in broken.items()
    ]
    return found or [ok("hooks", "none is broken")]


def judge_zones(known: int) -> list[Finding]:
    """`known`: how many time zones this machine knows."""
    if known >= ZONES:
        return []
    said, advice = f"this machine knows {known} time zones", "install tzdata"
    return [warn("schedules", said, "all time zones", advice)]


def judge_schedules(schedules: Mapping[str, Schedule], now: float) -> list[Finding]:
    """`now`: seconds since the epoch."""
    moment = datetime.fromtimestamp(now, UTC)
    found = [
        fail(
            "schedules",
            f"schedule {name} never fires: no slot within fifty years",
            "a date that occurs",
            f"fix its cron in {schedule.source}",
        )
        for name, schedule in schedules.items()
        if schedule.enabled and schedule.rhythm.next_after(moment) is None
    ]
    off = sum(not schedule.enabled for schedule in schedules.values())
    said = plural(len(schedules), "schedule") + (f", {off} of them disabled" if off else "")
    return found or [ok("schedules", said)]


def judge_signing(settings: Settings, signs: bool) -> list[Finding]:
    if not settings.webhooks.url or signs:
        return []
    advice = "set webhooks.secret_file"
    return [warn("secrets", "webhooks are sent unsigned", "a signing secret", advice)]


MIB = 1024**2
FREE_BYTES_MIN, FREE_BYTES_FEW = 100 * MIB, 2048 * MIB
FREE_SHARE_FEW = 0.05
FREE_FILES_MIN = 1_000
OTHER_CONNECTIONS, OWN_FILES, FILES_A_WORKER = 120, 64, 6


@attrs.frozen
class Disk:
    """Numbers of files are 0 if the file system has no limit."""

    path: str
    what: str
    free_bytes: int
    whole_bytes: int
    free_files: int
    whole_files: int


@attrs.frozen
class GivenFile:
    """A file named by the setting `key`."""

    path: str
    key: str
    mode: int
    is_secret: bool


def judge_disk(disk: Disk) -> list[Finding]:
    name, free = "disk", disk.free_bytes
    where = f"{disk.path} ({disk.what})"
    said = f"{where}: {count_text(free // MIB)} of {count_text(disk.whole_bytes // MIB)} MiB free"
    advice = "free some space: a full store accepts no jobs"
    if free < FREE_BYTES_MIN:
        return [fail(name, said, f"{FREE_BYTES_MIN // MIB} MiB or more", advice)]
    if disk.whole_files and disk.free_files < FREE_FILES_MIN:
        said = f"{where}: {count_text(disk.free_files)} files (inodes) left"
        return [fail(name, said, f"{count_text(FREE_FILES_MIN)} or more", advice)]
    if free < FREE_BYTES_FEW and free < FREE_SHARE_FEW * disk.whole_bytes:
        return [warn(name, said, f"{FREE_BYTES_FEW // MIB} MiB, or 5 %", advice)]
    return [ok(name, said)]


def judge_guard(settings: Settings, machine: Machine) -> list[Finding]:
    """Whether what `scaling.guard` goes by can be measured here."""
    guard = settings.scaling.guard
    if not is_on(guard):
        return [ok("guard", "off: hiring stops nowhere but at max_count")]
    if missing := unseen(guard, machine):
        found = ", ".join(f"scaling.guard.{name}" for name in missing)
        wanted = "what the guard goes by: MemAvailable, and PSI in /proc/pressure"
        advice = "boot the kernel with psi=1, or leave the key out: it stops nobody"
        return [warn("guard", f"cannot be measured here: {found}", wanted, advice)]
    free = "" if machine.free_memory_bytes is None else f"; {_mib(machine.free_memory_bytes)} free"
    return [ok("guard", f"all that it goes by can be measured{free}")]


def judge_open_files(limit: int, settings: Settings, whose: str) -> list[Finding]:
    """`limit`: how many files a process may open; connections count."""
    wanted = files_wanted(settings)
    name, said = "open files", f"{whose} may open {count_text(limit)}"
    if limit >= wanted:
        return [ok(name, said)]
    advice = "raise LimitNOFILE= in the unit, or ulimit -n; or use fewer workers or readers"
    return [warn(name, said, f"{count_text(wanted)}, for this configuration", advice)]


def files_wanted(settings: Settings) -> int:
    """The most files that a daemon with these settings opens."""
    tenants = len(settings.tenants)
    store = 2 * settings.store.pool_size + 4 + 3 * tenants
    web = OTHER_CONNECTIONS + settings.http.max_event_readers if settings.http.listen else 0
    work = settings.workers.max_count * FILES_A_WORKER
    return OWN_FILES + store + web + work + tenants * settings.webhooks.concurrency


def judge_permissions(files: Sequence[GivenFile]) -> list[Finding]:
    found = [fault for file in files for fault in _permission_faults(file)]
    said = f"{plural(len(files), 'file')} checked; none is open to everyone"
    return found or [ok("permissions", said)]


def _permission_faults(file: GivenFile) -> Iterator[Finding]:
    name, mode = "permissions", f"mode {file.mode:04o}"
    if file.mode & stat.S_IWOTH:
        said = f"{file.path} ({file.key}) is writable by everyone ({mode})"
        yield fail(name, said, "writable by its owner only", f"chmod o-w {file.path}")
    if file.is_secret and file.mode & stat.S_IROTH:
        said = f"{file.path} ({file.key}) holds a secret that everyone can read ({mode})"
        yield fail(name, said, "0600, or 0640", f"chmod o-r {file.path}")


PROPERTIES = (
    *("LoadState", "ActiveState", "NeedDaemonReload", "Type", "TimeoutStopUSec", "WatchdogUSec"),
    *("KillMode", "RestartPreventExitStatus", "LimitNOFILESoft"),
)
NOTIFYING = ("notify", "notify-reload")
MARGIN_SECONDS = 5.0
EXIT_CONFIGURATION = "78"
_UNIT_SECONDS: Mapping[str, float] = {
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86400.0,
    "w": 7 * 86400.0,
    "month": 30.44 * 86400.0,
    "y": 365.25 * 86400.0,
}
_PART = re.compile(r"([\d.]+)\s*([a-z]+)")


def properties(text: str) -> dict[str, str]:
    """The output of `systemctl show` by name."""
    pairs = (line.partition("=") for line in text.splitlines())
    return {name: value for name, _, value in pairs if name}


def span_seconds(text: str) -> float | None:
    """A span as systemd writes it, `5min 30s`; None = infinity, or not a span."""
    if text == "0":
        return 0.0
    parts = _PART.findall(text)
    if not parts or any(unit not in _UNIT_SECONDS for _, unit in parts):
        return None
    return sum(float(number) * _UNIT_SECONDS[unit] for number, unit in parts)


def ending_seconds(settings: Settings) -> float:
    """The longest time that a daemon takes to end: each step is limited in [shutdown]."""
    steps: Mapping[str, object] = attrs.asdict(settings.shutdown)
    bounds = [value for name, value in steps.items() if name.endswith("_seconds")]
    return sum(float(value) for value in bounds if isinstance(value, int | float))


def judge_unit(unit: str, shown: Mapping[str, str], settings: Settings) -> list[Finding]:
    if shown.get("LoadState", "not-found") == "not-found":
        return [ok("systemd", f"there is no unit {unit}")]
    if shown["LoadState"] != "loaded":
        said, advice = f"{unit}: {shown['LoadState']}", f"systemctl status {unit} says why"
        return [fail("systemd", said, "loaded", advice)]
    said = f"{unit} is {shown.get('ActiveState', 'there')}; it fits the configuration"
    return [*_unit_faults(unit, shown, settings)] or [ok("systemd", said)]


def _unit_faults(unit: str, shown: Mapping[str, str], settings: Settings) -> Iterator[Finding]:
    edit = f"systemctl edit {unit}"
    if shown.get("NeedDaemonReload") == "yes":
        said = f"{unit} has changed on disk since systemd read it"
        yield warn("systemd", said, "the unit as it is on disk", "systemctl daemon-reload")
    needed = ending_seconds(settings) + MARGIN_SECONDS
    stop = span_seconds(shown.get("TimeoutStopUSec", "infinity"))
    if stop is not None and stop < needed:
        said = f"{unit}: TimeoutStopSec is {stop:g} s, and a drain may take {needed:g} s"
        wanted = f"TimeoutStopSec={needed:g} or more"
        yield fail("systemd", said, wanted, f"{edit}, or shorten the times of [shutdown]")
    sort = shown.get("Type", "")
    if sort not in NOTIFYING:
        yield warn("systemd", f"{unit}: Type={sort}", "Type=notify", f"{edit}: use deploy/systemd")
    elif span_seconds(shown.get("WatchdogUSec", "0")) in (0.0, None):
        said = f"{unit} has no watchdog: a daemon that hangs stays hung"
        yield warn("systemd", said, "WatchdogSec=30", edit)
    if shown.get("KillMode", "mixed") != "mixed":
        mode = f"KillMode={shown['KillMode']}"
        said = f"{unit}: {mode}: running jobs do not end with the daemon's drain"
        yield warn("systemd", said, "KillMode=mixed", edit)
    if EXIT_CONFIGURATION not in shown.get("RestartPreventExitStatus", "").split():
        said = f"{unit} restarts endlessly after a fault in the configuration"
        yield warn("systemd", said, f"RestartPreventExitStatus={EXIT_CONFIGURATION}", edit)


WAL_BYTES = 256 * 1024**2
MOUNT_POINT = 4  # the field of mountinfo
REMOTE = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "glusterfs", "lustre"})
PASSING = frozenset({"tmpfs", "ramfs"})


def judge_file(file: File) -> list[Finding]:
    name = "file"
    if file.fault is not None:
        said = f"{file.path} is damaged: {file.fault}"
        advice = "stop the daemon and restore a backup: see docs/running.md"
        return [fail(name, said, "a sound file", advice)]
    found: list[Finding] = []
    if file.journal_mode != "wal":
        said = f"journal mode {file.journal_mode}"
        found.append(fail(name, said, "wal", "keep the file on a local disk"))
    if file.wal_bytes > WAL_BYTES:
        said = f"{file.path}-wal has {_mib(file.wal_bytes)}: a reader never finishes"
        advice = "end the program that keeps the file open (lsof), or restart the daemon"
        found.append(warn(name, said, f"less than {_mib(WAL_BYTES)}", advice))
    if file.mode & (stat.S_IRWXG | stat.S_IRWXO):
        said = f"{file.path} is accessible to others (mode {file.mode:04o})"
        found.append(warn(name, said, "0600: it holds payloads", f"chmod 600 {file.path}"))
    if not found:
        whole = "sound" if file.checked_whole else "sound as far as checked"
        said = f"{_mib(file.size_bytes)}, {whole}; SQLite {file.engine_version}, {_lock(file)}"
        found.append(ok(name, said))
    return found


def judge_file_system(path: str, sort: str | None) -> list[Finding]:
    name = "file system"
    if sort is None:
        return [ok(name, "of unknown type")]
    if sort in REMOTE or sort.startswith("fuse."):
        advice = "move it to a local disk, or use PostgreSQL"
        return [fail(name, f"{path} is on {sort}, a network file system", "a local disk", advice)]
    if sort in PASSING:
        said = f"{path} is on {sort}, which is lost when the machine restarts"
        return [warn(name, said, "a disk", "set store.url or STATE_DIRECTORY")]
    if sort == "overlay":
        said = f"{path} is in the container's own layer, which is lost with the container"
        return [warn(name, said, "a volume", "mount a volume there")]
    return [ok(name, sort)]


def file_system_of(path: str, mounts: Sequence[str]) -> str | None:
    """The type of the file system of `path`, by the lines of /proc/self/mountinfo."""
    best, sort = "", None
    for line in mounts:
        left, _, right = line.partition(" - ")
        fields = left.split()
        if len(fields) <= MOUNT_POINT or not right:
            continue
        place = fields[MOUNT_POINT].replace("\\040", " ")
        inside = path == place or path.startswith(place.rstrip("/") + "/")
        if inside and len(place) >= len(best):
            best, sort = place, right.split()[0]
    return sort


def _lock(file: File) -> str:
    if file.is_held is None:
        return "the holder of its lock is unknown"
    if not file.is_held:
        return "no daemon holds it"
    return f"process {file.holder} holds it" if file.holder else "a daemon holds it"


def _mib(count: int) -> str:
    return f"{count_text(-(-count // MIB))} MiB"


Level = Literal["ok", "warn", "fail"]
Stop = Literal["unavailable", "misconfigured"]  # why nothing more can be asked of a store


@attrs.frozen
class Finding:
    """`wanted` and `advice` are empty if all is well."""

    name: str
    level: Level
    found: str
    wanted: str = ""
    advice: str = ""
    tenant: str = ""  # whose store it is about; "" = this machine, or all
    group: str = ""  # that of the check
    stop: Stop | None = None


@attrs.frozen
class Check:
    """`look` may raise or hang: the examination handles both."""

    name: str
    group: str
    look: Callable[[], Awaitable[Iterable[Finding]]]
    tenant: str = ""


def ok(name: str, found: str) -> Finding:
    return Finding(name, "ok", found)


def warn(name: str, found: str, wanted: str, advice: str) -> Finding:
    return Finding(name, "warn", found, wanted, advice)


def fail(name: str, found: str, wanted: str, advice: str) -> Finding:
    return Finding(name, "fail", found, wanted, advice)


class ProgramResult(NamedTuple):
    code: int
    out: str


@attrs.frozen
class Setup:
    """What is examined. `settings` are the node's own, as it runs if it could be asked, which
    `running` tells; `tenants` are those to check. `kinds` checks each kind, `hooks` returns the
    broken functions of the settings; both block. `origins` says where settings come from. `run`
    runs a program.
    """

    settings: Settings
    tenants: Sequence[str]
    origins: Mapping[str, str]
    environ: Mapping[str, str] = attrs.field(repr=False)
    kinds: Callable[[], Catalog]
    hooks: Callable[[], Mapping[str, str]]
    wall_clock: Callable[[], float]
    monotonic: Callable[[], float]
    run: Callable[[Sequence[str]], Awaitable[ProgramResult]]
    running: Sequence[Finding] = ()
    unit: str = "musterd.service"
    has_systemd: bool = False
    mounts: Path = Path("/proc/self/mountinfo")
