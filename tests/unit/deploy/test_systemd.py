"""The shipped units: without fault, closed, and in step with the defaults."""

import re
import subprocess
from pathlib import Path

import pytest

from musterd.manager.node.systemd import drain_seconds_max
from tests.support.missing import program
from tests.support.pages import bare, page, table
from tests.support.stage import settings_with

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "deploy" / "systemd"
DAEMONS = ("musterd.service", "musterd@.service")
INSTANCES = "musterd-instances.service"
UNITS = (*DAEMONS, INSTANCES)
PROGRAM = "/opt/musterd/bin/musterd"
EXPOSURE_MAX = {INSTANCES: 18}  # tenths; that one runs as root
EXPOSURE_MAX_ELSE = 12


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """As they are installed, but for a program that is here."""
    for name in UNITS:
        text = (FOLDER / name).read_text().replace(PROGRAM, "/bin/true")
        (tmp_path / name).write_text(text)
    return tmp_path


def key(name: str, unit: str) -> str:
    """What it says in the unit, where it stands once."""
    (found,) = re.findall(rf"^{name}=(.*)$", (FOLDER / unit).read_text(), re.MULTILINE)
    return str(found)


@pytest.mark.parametrize("name", ["musterd.service", "musterd@one.service", INSTANCES])
def test_systemd_has_nothing_to_say_about_it(units: Path, name: str) -> None:
    """It exits with 0 whatever it finds."""
    done = subprocess.run(
        [program("systemd-analyze"), "verify", "--man=no", f"./{name}"],
        cwd=units,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def check_security(unit: str, folder: Path, environ: dict[str, str] | None = None) -> None:
    most = EXPOSURE_MAX.get(Path(unit).name, EXPOSURE_MAX_ELSE)
    words = ("security", "--offline=true", f"--threshold={most}", unit)
    done = subprocess.run(
        [program("systemd-analyze"), *words],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", UNITS)
def test_it_is_closed(units: Path, name: str) -> None:
    check_security(name, units, {"SYSTEMD_UNIT_PATH": f"{units}:"})


@pytest.mark.parametrize("name", UNITS)
def test_it_is_closed_where_it_lies_too(name: str) -> None:
    """systemd takes a folder NAME.service.d beside a unit for a part of it."""
    check_security(f"./{name}", FOLDER)


@pytest.mark.parametrize("name", DAEMONS)
def test_a_whole_drain_fits_before_systemd_loses_patience(name: str) -> None:
    settings = settings_with()
    assert int(key("TimeoutStopSec", name)) >= drain_seconds_max(settings)
    assert drain_seconds_max(settings) > settings.shutdown.grace_period_seconds


def test_the_units_differ_by_their_instance_alone() -> None:
    plain, template = ((FOLDER / name).read_text() for name in DAEMONS)
    made = template.replace(" --config /etc/musterd/%i.toml", "").replace("-%i", "")
    assert made.replace(" (%i)", "").splitlines()[1:] == plain.splitlines()[1:]


def test_the_page_names_the_timeouts_and_the_credentials_of_the_unit() -> None:
    unit, text = "musterd.service", page("systemd.md")
    told = {bare(name): value for name, value, _ in table(text, "key of the unit", "seconds")}
    names = ("TimeoutStartSec", "TimeoutStopSec", "WatchdogSec")
    assert told == {name: key(name, unit) for name in names}
    files = [bare(row[0]) for row in table(text, "file", "in `/etc/musterd/musterd.toml`")]
    loaded = re.findall(r"^LoadCredential=(\S+)$", (FOLDER / unit).read_text(), re.MULTILINE)
    assert files == [f"/etc/credstore/{name}" for name in loaded]


def test_the_installer_is_a_script_that_a_plain_shell_reads() -> None:
    script = ROOT / "deploy" / "install.sh"
    assert script.stat().st_mode & 0o111
    subprocess.run(["sh", "-n", str(script)], check=True)
    usage = subprocess.run([script, "--help"], capture_output=True, text=True, check=True).stdout
    assert "--prefix" in usage


@pytest.mark.parametrize("prefix", ["relative", "/with space", "/a;b", "/a,b"])
def test_a_prefix_that_would_not_fit_into_a_unit_is_refused(prefix: str) -> None:
    done = subprocess.run(
        [ROOT / "deploy" / "install.sh", "--prefix", prefix],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, prefix in done.stderr) == (1, True)


def test_instances_with_one_configuration_differ_from_the_service_by_their_address() -> None:
    """The drop-in takes back what the template says of files by its name."""
    drop_in = (FOLDER / "drop-ins" / "instances.conf").read_text()
    own = " --set http.listen=unix:/run/musterd-%i/http.sock"
    for name in ("ExecStart", "ExecReload"):
        last = re.findall(rf"^{name}=(.+)$", drop_in, re.MULTILINE)
        assert last == [key(name, "musterd.service") + own]
    loaded = re.findall(r"^LoadCredential=(.*)$", drop_in, re.MULTILINE)
    unit = (FOLDER / "musterd.service").read_text()
    assert loaded == ["", *re.findall(r"^LoadCredential=(.+)$", unit, re.MULTILINE)]


def test_the_keeper_of_instances_has_no_more_than_the_page_says() -> None:
    (most,) = re.findall(r"instances --most (\d+)$", key("ExecStart", INSTANCES))
    assert f"`musterd@1` to `musterd@{most}`" in page("systemd.md")
    assert key("RestartPreventExitStatus", INSTANCES) == "2 78"


def test_each_drop_in_is_for_the_service() -> None:
    files = sorted((FOLDER / "drop-ins").iterdir())
    names = ["handlers.conf", "instances.conf", "network.conf", "notify-reload.conf"]
    assert [one.name for one in files] == names
    for one in files:
        assert "[Service]" in one.read_text()
        assert f"drop-ins/{one.name}" in page("systemd.md")
