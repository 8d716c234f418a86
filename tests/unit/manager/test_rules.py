"""What a node says of its kinds."""

from pathlib import Path

from musterd.catalog.kinds import Catalog
from musterd.config.load import load
from musterd.manager.tenancy.starting import kind_rules
from tests.support.stage import kind

ABSENT = Path("/nonexistent/musterd.toml")


def test_every_kind_is_told_of_and_all_of_them_together() -> None:
    catalog = Catalog([kind("a", webhook="https://a.example/"), kind("b")])
    silent = kind_rules(catalog, load(None, {}, [], ABSENT).settings)
    assert {name: rule.webhook for name, rule in silent.items()} == {
        "a": "https://a.example/",
        "b": None,
        "": None,
    }
    told = load(None, {}, ["webhooks.url=https://all.example/"], ABSENT).settings
    assert kind_rules(catalog, told)[""].webhook == "https://all.example/"
