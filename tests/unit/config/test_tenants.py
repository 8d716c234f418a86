"""Tenants in the settings: what is read, what is filled in, what is refused."""

import json
from pathlib import Path

import pytest
import tomli

from musterd.config.faults import ConfigError
from musterd.config.load import Loaded, load, resolve_store_url
from musterd.config.settings import Settings
from musterd.config.show import as_text, as_tree
from musterd.config.tenants import settings_of

ABSENT = Path("/nonexistent/musterd.toml")
HEADER = "write [tenants.NAME] above its keys"
WHOLE = "wanted a whole number - write it without the quotes"
NAME = "a name of a-z, 0-9 and _, a letter first, at most 41 long"
TWO = """
[tenants.acme]
[tenants.globex]
url = "postgresql://u:hidden@h/d"
schema = "jobs"
[tenants.globex.workers]
default_count = 3
max_count = 5
[tenants.globex.limits]
claim_batch = 7
"""


def loaded(text: str = "", *sets: str, environ: dict[str, str] | None = None) -> Loaded:
    file = Path("musterd.toml")
    file.write_text(text)
    return load(file, environ or {}, sets, ABSENT)


def faults(text: str, *sets: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        loaded(text, *sets)
    return str(caught.value).splitlines()


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def url_of(settings: Settings, name: str) -> str:
    return resolve_store_url(settings_of(settings, name), {"STATE_DIRECTORY": "/var/lib/m"})


def test_there_is_always_the_default_tenant_which_sees_the_nodes_own_settings() -> None:
    settings = loaded().settings
    assert list(settings.tenants) == ["default"]
    assert settings_of(settings, "default") == settings


def test_what_a_tenant_leaves_open_is_filled_in() -> None:
    settings = loaded(TWO).settings
    acme, globex = settings_of(settings, "acme"), settings_of(settings, "globex")
    assert (acme.workers.default_count, acme.workers.max_count) == (1, 8)
    assert (globex.workers.default_count, globex.workers.max_count) == (3, 5)
    assert (acme.store.schema, globex.store.schema) == ("musterd_acme", "jobs")
    assert (acme.limits, globex.limits.claim_batch) == (settings.limits, 7)
    assert globex.limits.max_result_bytes == settings.limits.max_result_bytes


def test_the_place_of_each_tenant() -> None:
    settings = loaded(TWO).settings
    assert url_of(settings, "default") == "sqlite:////var/lib/m/musterd.db"
    assert url_of(settings, "acme") == "sqlite:////var/lib/m/acme.db"
    assert url_of(settings, "globex") == "postgresql://u:hidden@h/d"
    shared = loaded(TWO, "store.url=postgresql://h/main").settings
    assert url_of(shared, "acme") == "postgresql://h/main"
    named = loaded(TWO, "store.url=sqlite:///some/where.db").settings
    assert url_of(named, "acme") == "sqlite:///some/acme.db"


def test_a_url_from_a_file_stands_beside_its_configuration(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("postgresql://h/other\n")
    settings = loaded('[tenants.acme]\nurl_file = "secret"').settings
    assert url_of(settings, "acme") == "postgresql://h/other"


def test_every_layer_knows_tenants() -> None:
    environ = {"MUSTERD_TENANTS__ACME__WORKERS__MAX_COUNT": "4"}
    found = loaded("[tenants.acme]", "tenants.acme.schema=musterd2", environ=environ)
    acme = settings_of(found.settings, "acme")
    assert (acme.workers.max_count, acme.store.schema) == (4, "musterd2")
    key = "tenants.acme.workers.max_count"
    assert found.origins[key] == "env MUSTERD_TENANTS__ACME__WORKERS__MAX_COUNT"


def test_the_bounds_of_the_default_tenant() -> None:
    settings = loaded("[tenants.default.workers]\nmax_count = 4\n[tenants.acme]").settings
    assert settings_of(settings, "default").workers.max_count == 4
    assert settings.workers.max_count == 8


def test_all_faults_of_tenants_at_once() -> None:
    text = """
tenants.Big.url = ""
tenants.small = 3
[tenants.default]
schema = "other"
[tenants.acme]
shcema = "x"
[tenants.acme.workers]
max_cont = 2
[tenants.acme.limits]
claim_batch = "1"
"""
    assert faults(text) == [
        f"musterd.toml:2: tenants.Big: found a name, wanted {NAME}",
        f"musterd.toml:3: tenants.small: found a number, wanted a table - {HEADER}",
        "musterd.toml:5: tenants.default.schema: unknown key - set store.schema",
        "musterd.toml:7: tenants.acme.shcema: unknown key - did you mean schema?",
        "musterd.toml:9: tenants.acme.workers.max_cont: unknown key - did you mean max_count?",
        f'musterd.toml:11: tenants.acme.limits.claim_batch: found "1", {WHOLE}',
    ]


def test_the_floors_together_fit_the_node() -> None:
    text = "[workers]\nmax_count = 5\n" + "".join(f"[tenants.t{n}]\n" for n in range(4))
    (said,) = faults(text)
    assert said == (
        "musterd.toml:2: workers.max_count: found 5, wanted at least 6, the default_count of 5"
        " tenants together - raise it, or lower default_count in [tenants.NAME.workers]"
    )
    assert loaded(text.replace("5", "6")).settings.workers.max_count == 6


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('[tenants.a]\nschema = "musterd"', "tenants.a.schema"),
        ('[tenants.a]\nschema = "s"\n[tenants.b]\nschema = "s"', "tenants.b.schema"),
    ],
)
def test_two_tenants_never_share_a_store(text: str, key: str) -> None:
    (said,) = faults(text, "store.url=postgresql://h/d")
    assert f"{key}: found another tenant's store" in said


def test_a_tenant_whose_file_would_be_the_default_tenants() -> None:
    (said,) = faults("[tenants.musterd]")
    assert "tenant default uses the same one" in said


def test_a_floor_above_its_own_ceiling_and_a_schema_too_long() -> None:
    long = (
        f"[tenants.a]\n[tenants.a.workers]\ndefault_count = 3\nmax_count = 2\n[tenants.{'b' * 41}]"
    )
    first, second = faults(long, f"store.schema={'s' * 40}")
    assert "found 3, wanted default_count <= max_count (max_count is 2)" in first
    assert f"set tenants.{'b' * 41}.schema" in second


def test_what_is_shown_loads_to_the_same_and_hides_secrets() -> None:
    first = loaded(TWO)
    for origin in (False, True):
        text = as_text(first, origin)
        assert "hidden" not in text + json.dumps(as_tree(first, origin))
        again = loaded(text.replace("***", "hidden"))
        assert again.settings == first.settings
    tree = as_tree(first, origin=False)
    assert tree["tenants"]["acme"]["workers"] == {"default_count": 1, "max_count": 8}
    assert tomli.loads(as_text(first, origin=False)) == tree
    assert as_tree(first, origin=True)["tenants"]["globex"]["schema"] == {
        "value": "jobs",
        "origin": "musterd.toml:5",
    }
