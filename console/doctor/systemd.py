"""Whether the unit that systemd runs fits the configuration: pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import attrs

from musterd.config.settings import Settings
from musterd.console.doctor.finding import Finding, fail, ok, warn

PROPERTIES = (
    *("LoadState", "ActiveState", "NeedDaemonReload", "Type", "TimeoutStopUSec", "WatchdogUSec"),
    *("KillMode", "RestartPreventExitStatus", "LimitNOFILESoft"),
)
NOTIFYING = ("notify", "notify-reload")
MARGIN_SECONDS = 5.0
EXIT_CONFIGURATION = "78"
_UNITS: Mapping[str, float] = {
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
    """What `systemctl show` says, by name."""
    pairs = (line.partition("=") for line in text.splitlines())
    return {name: value for name, _, value in pairs if name}


def span_seconds(text: str) -> float | None:
    """A span as systemd writes it, `5min 30s`; None = infinity, or no span."""
    if text == "0":
        return 0.0
    parts = _PART.findall(text)
    if not parts or any(unit not in _UNITS for _, unit in parts):
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def ending_seconds(settings: Settings) -> float:
    """The longest that a daemon takes to end: every step of it has its bound in [shutdown]."""
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
    return [*_faults(unit, shown, settings)] or [ok("systemd", said)]


def _faults(unit: str, shown: Mapping[str, str], settings: Settings) -> Iterator[Finding]:
    edit = f"systemctl edit {unit}"
    if shown.get("NeedDaemonReload") == "yes":
        said = f"{unit} has changed on disk since systemd read it"
        yield warn("systemd", said, "what runs is what is written", "systemctl daemon-reload")
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
        said = f"{unit} has no watchdog: a daemon that hangs goes on hanging"
        yield warn("systemd", said, "WatchdogSec=30", edit)
    if shown.get("KillMode", "mixed") != "mixed":
        said = f"{unit}: KillMode={shown['KillMode']}: running jobs do not end with the daemon's"
        said += " drain"
        yield warn("systemd", said, "KillMode=mixed", edit)
    if EXIT_CONFIGURATION not in shown.get("RestartPreventExitStatus", "").split():
        said = f"{unit} is restarted after a fault of the configuration, again and again"
        yield warn("systemd", said, f"RestartPreventExitStatus={EXIT_CONFIGURATION}", edit)
