"""What the catalog and the limits make of schedules."""

from pathlib import Path

from musterd.catalog.load import catalog_of
from musterd.config.load import load
from musterd.manager.duties.schedules import schedule_faults

FILE = """
[tenants.small.limits]
max_payload_bytes = 20
[schedules.typo]
every_seconds = 60
kind = "reprot"
[schedules.strange]
every_seconds = 60
kind = "qqqqqqqq"
[schedules.large]
every_seconds = 60
kind = "report"
payload = { text = "more than twenty bytes" }
tenant = "small"
[schedules.nul]
every_seconds = 60
kind = "report"
payload = ["a\\u0000"]
[schedules.good]
every_seconds = 60
kind = "report"
payload = { text = "more than twenty bytes" }
"""


def test_every_fault_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "musterd.toml"
    file.write_text(FILE)
    loaded = load(file, {}, [])
    faults = schedule_faults(loaded.settings, catalog_of(loaded.settings, {}), loaded.origins)
    found = [str(fault).replace(str(file), "FILE") for fault in faults]
    unknown = "wanted a kind of the catalog"
    too_large = "found 33 bytes, wanted at most 20 ([limits] max_payload_bytes)"
    with_nul = "at $[0]: found the character NUL (\\u0000), wanted text without it"
    assert found == [
        f'FILE:6: schedules.typo.kind: found "reprot", {unknown} - did you mean report?',
        f'FILE:9: schedules.strange.kind: found "qqqqqqqq", {unknown} - `musterd kinds` lists them',
        f"FILE:13: schedules.large.payload: {too_large}",
        f"FILE:18: schedules.nul.payload: {with_nul}",
    ]


def test_without_the_places_of_keys_the_schedule_is_named(tmp_path: Path) -> None:
    file = tmp_path / "musterd.toml"
    file.write_text(FILE)
    settings = load(file, {}, []).settings
    faults = schedule_faults(settings, catalog_of(settings, {}), {})
    assert faults[0].source == f"{file}:4"
