"""What the fingerprint of a configuration is about, and what it is not."""

import re
import subprocess
import sys
from pathlib import Path

import attrs
import pytest

from musterd.catalog.differences import DIGITS, WHOLE_TABLES, fingerprint
from musterd.catalog.load import catalog_of
from musterd.config.load import load
from musterd.config.settings import Settings

SETTINGS = """
[store]
url = "postgresql://worker:pa55word@one/jobs"
[retention]
archive = "/var/lib/a.jsonl"
on_stale = "https://hooks.example/stale"
[webhooks]
url = "https://hooks.example/ends"
secret = "whsec_bXVzdGVyZCBtdXN0ZXJkIG11c3RlcmQgMTIzNA=="
[http]
token = "0123456789abcdef0123456789abcdef"
[catalog]
paths = ["kinds.toml"]
[tenants.acme]
[tenants.acme.limits]
max_running = 7
[schedules.nightly]
kind = "sums"
cron = "30 2 * * *"
timezone = "Europe/Berlin"
payload = { b = 1, a = [2.0, "x"] }
[schedules.pulse]
kind = "sums"
every_seconds = 90
"""
KINDS = """
[kinds.plain]
duration_ms = [10, 20]
fail_first = 1
[kinds.sums]
python = "shop.sums:add"
budgets = { tokens = 10, calls = 3 }
max_running = 3
webhook = "https://hooks.example/sums"
retention = { delete_after_hours = 5 }
[kinds.backup]
command = ["/bin/true", "--full"]
cwd = "work"
environment = ["LANG"]
rlimits = { nofile = 64, cpu_seconds = 9 }
[kinds.notify]
http.url = "https://example.org/notify?x=1"
http.headers = { Authorization = "Bearer s3cret", A = "b" }
time_limit_seconds = 10
[kinds.video]
priority = 3
[[kinds.video.phases]]
name = "download"
duration_ms = 300
[[kinds.video.phases]]
name = "upload"
command = ["/bin/cat"]
input = "phases"
"""


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def told(settings: str = SETTINGS, kinds: str = KINDS, *sets: str, folder: str = "here") -> str:
    """The fingerprint of these two files in a folder of their own."""
    home = Path(folder).absolute()
    home.mkdir(exist_ok=True)
    (home / "work").mkdir(exist_ok=True)
    (home / "musterd.toml").write_text(settings)
    (home / "kinds.toml").write_text(kinds)
    loaded = load(home / "musterd.toml", {}, sets, Path("no-such-file")).settings
    return fingerprint(loaded, catalog_of(loaded, {}))


def changed(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1
    return text.replace(old, new)


def test_it_is_a_few_digits() -> None:
    assert re.fullmatch(f"[0-9a-f]{{{DIGITS}}}", told())


def test_it_is_the_same_wherever_the_files_lie() -> None:
    assert told() == told(folder="somewhere else")


def test_it_is_the_same_in_every_process() -> None:
    """Also where hashes of texts, and with them the order of sets, are others."""
    here = told()
    program = (
        "from pathlib import Path\n"
        "from musterd.catalog.load import catalog_of\n"
        "from musterd.config.load import load\n"
        "from musterd.catalog.differences import fingerprint\n"
        "settings = load(Path('here/musterd.toml'), {}, (), Path('no-such-file')).settings\n"
        "print(fingerprint(settings, catalog_of(settings, {})))\n"
    )
    for seed in ("1", "2"):
        found = subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert found.stdout.strip() == here


def test_the_order_of_tables_and_keys_does_not_count() -> None:
    first, *tables = re.split(r"\n(?=\[kinds)", KINDS.strip())
    turned = "\n".join([tables[0], first, *tables[1:]])
    swapped = changed(KINDS, "{ tokens = 10, calls = 3 }", "{ calls = 3, tokens = 10 }")
    payload = changed(SETTINGS, '{ b = 1, a = [2.0, "x"] }', '{ a = [2, "x"], b = 1.0 }')
    assert {told(kinds=turned), told(kinds=swapped), told(payload)} == {told()}


def test_one_number_has_one_spelling() -> None:
    assert told(SETTINGS, KINDS, "retry.base_seconds=2") == told(
        SETTINGS, KINDS, "retry.base_seconds=2.0"
    )


@pytest.mark.parametrize(
    "change",
    [
        "workers.default_count=3",
        "workers.max_count=77",
        "workers.poll_interval_ms=999",
        "http.listen=127.0.0.1:1",
        "http.token=fedcba9876543210fedcba9876543210",
        "log.level=debug",
        "metrics.kinds_max=7",
        "store.url=postgresql://else:other@two/jobs",
        "store.pool_size=9",
        "executor.max_jobs_per_child=9",
        "retention.archive=/mnt/other.jsonl",
        "tenants.acme.workers.max_count=5",
        "webhooks.secret=whsec_b3RoZXIgb3RoZXIgb3RoZXIgb3RoZXIgMTIzNA==",
    ],
)
def test_what_may_differ_between_machines_does_not_count(change: str) -> None:
    assert told(SETTINGS, KINDS, change) == told()


@pytest.mark.parametrize(
    "change",
    [
        "retry.max_retries=9",
        "limits.max_running=9",
        "leases.heartbeat_seconds=1.5",
        "workers.lease_timeout_seconds=31",
        "duties.mode=everyone",
        "duties.lease_seconds=20",
        "events.keep_hours=1",
        "retention.delete_after_hours=7000",
        "retention.failed={delete_after_hours = 9000}",
        "retention.archive=table",
        "retention.on_stale=https://hooks.example/other",
        "webhooks.url=https://hooks.example/other",
        "webhooks.secret=",
        "webhooks.allow_http=true",
        "store.schema=other",
        "tenants.acme.schema=other",
        "tenants.acme.limits.max_running=8",
        "tenants.initech.workers.max_count=1",
        "schedules.pulse.every_seconds=91",
        "schedules.nightly.enabled=false",
        "schedules.nightly.timezone=Europe/Paris",
        "schedules.nightly.cron=31 2 * * *",
    ],
)
def test_what_nodes_must_agree_on_counts(change: str) -> None:
    assert told(SETTINGS, KINDS, change) != told()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[kinds.plain]", "[kinds.simple]"),
        ("duration_ms = [10, 20]", "duration_ms = [10, 21]"),
        ("fail_first = 1", "fail_first = 2"),
        ("tokens = 10", "tokens = 11"),
        ("shop.sums:add", "shop.sums:subtract"),
        ("max_running = 3", "max_running = 4"),
        ("https://hooks.example/sums", "https://hooks.example/other"),
        ("delete_after_hours = 5", "delete_after_hours = 6"),
        ('"--full"', '"--fast"'),
        ('["LANG"]', '["LANG", "TZ"]'),
        ("nofile = 64", "nofile = 65"),
        ("notify?x=1", "notify?x=2"),
        ('A = "b"', 'A = "c"'),
        ("time_limit_seconds = 10", "time_limit_seconds = 11"),
        ("priority = 3", "priority = 4"),
        ('name = "download"', 'name = "fetch"'),
        ("duration_ms = 300", "duration_ms = 301"),
        ('input = "phases"', 'input = "payload"'),
    ],
)
def test_all_that_a_kind_says_counts(old: str, new: str) -> None:
    assert told(kinds=changed(KINDS, old, new)) != told()


def test_where_a_kind_finds_its_things_does_not_count() -> None:
    assert told(kinds=changed(KINDS, 'cwd = "work"', 'cwd = "."')) == told()
    assert told(kinds=f"# another line\n{KINDS}") == told()


def test_secrets_are_not_in_it() -> None:
    """Two that differ in nothing else have the same."""
    assert told(kinds=changed(KINDS, "Bearer s3cret", "Bearer other")) == told()
    hook = "https://hooks.example/other?password={}"
    kinds = [changed(KINDS, "https://hooks.example/sums", hook.format(word)) for word in "ab"]
    assert told(kinds=kinds[0]) == told(kinds=kinds[1])


def test_whether_messages_are_signed_counts_and_not_where_the_secret_lies() -> None:
    Path("here").mkdir()
    Path("here/secret").write_text("whsec_b3RoZXIgb3RoZXIgb3RoZXIgb3RoZXIgMTIzNA==\n")
    from_file = re.sub(r'secret = ".*"', 'secret_file = "secret"', SETTINGS)
    assert told(from_file) == told()


def test_what_is_broken_on_this_machine_does_not_count() -> None:
    whole = told()
    loaded = load(Path("here/musterd.toml"), {}, (), Path("no-such-file")).settings
    catalog = catalog_of(loaded, {})
    broken = attrs.evolve(catalog["backup"], broken="/bin/true is no program")
    assert fingerprint(loaded, attrs.evolve(catalog, kinds=[*catalog.values(), broken])) == whole


def test_it_refuses_what_it_does_not_know() -> None:
    loaded = load(None, {}, (), Path("no-such-file")).settings
    kinds = catalog_of(loaded, {})
    odd = attrs.evolve(kinds["report"], priority=object())  # type: ignore[arg-type]  # a bug's
    with pytest.raises(TypeError, match="found object"):
        fingerprint(loaded, attrs.evolve(kinds, kinds=[odd]))


def test_the_tables_that_count_whole_are_there() -> None:
    assert set(WHOLE_TABLES) < set(attrs.fields_dict(Settings))
